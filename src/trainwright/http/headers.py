"""Headers of a message, as they came: looked up by name in any case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

Fields = list[tuple[bytes, bytes]]


class Headers(Mapping[str, str]):
    """Values are UTF-8; bytes that are not are replaced, so that every value can be shown and stored."""

    __slots__ = ("_fields", "_first")

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._first: dict[bytes, bytes] | None = None  # of each name; made by the first look-up

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Headers:
        return cls([(name.encode(), value.encode()) for name, value in pairs])

    def __getitem__(self, name: str) -> str:
        first = self._first
        if first is None:
            first = self._first = {field.lower(): value for field, value in reversed(self._fields)}
        return first[name.lower().encode()].decode(errors="replace")

    def getall(self, name: str, default: list[str]) -> list[str]:
        """The values of a header that may come more than once."""
        wanted = name.lower().encode()
        return [value.decode(errors="replace") for field, value in self._fields if field.lower() == wanted] or default

    def __iter__(self) -> Iterator[str]:
        names = (field.decode(errors="replace").title() for field, _ in self._fields)
        return (name for name in dict.fromkeys(names))

    def __len__(self) -> int:
        return sum(1 for _ in self)
