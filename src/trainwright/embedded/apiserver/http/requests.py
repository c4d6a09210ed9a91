"""A request and its answer, as values: nothing here does I/O, and nothing is changed after it was made.

Request          what came in: method, path, query, headers; its body is read when somebody wants it
Call             a request for a resource, whole: what the router found, who asks, and the body
Answer           bytes that are ready to send
StreamedAnswer   a body that comes piece by piece (a watch, a log), written to a `Sink`
UpgradedAnswer   another protocol from here on (exec, port-forward), spoken over a `Duplex`
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.errors import StatusError, bad_request, invalid_options
from trainwright.embedded.apiserver.metadata import manager_faults
from trainwright.embedded.apiserver.operations.writes import WriteOptions
from trainwright.embedded.apiserver.types import Type
from trainwright.http.duplex import Duplex
from trainwright.http.headers import Headers
from trainwright.schema import errors as field

JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain; charset=utf-8"


class Query:
    """Query parameters. Booleans follow Kubernetes: absent, `0` and `false` are false, anything else is true."""

    __slots__ = ("_values",)

    def __init__(self, text: str = "") -> None:
        self._values: dict[str, list[str]] = {}
        if text:
            for name, value in urllib.parse.parse_qsl(text, keep_blank_values=True, errors="replace"):
                self._values.setdefault(name, []).append(value)

    def get(self, name: str, default: str = "") -> str:
        found = self._values.get(name)
        return found[0] if found else default

    def all(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def has(self, name: str) -> bool:
        return name in self._values

    def flag(self, name: str) -> bool:
        found = self._values.get(name)
        return found is not None and found[0].lower() not in ("0", "false")

    def integer(self, name: str) -> int | None:
        found = self._values.get(name)
        if not found or found[0] == "":
            return None
        try:
            return int(found[0])
        except ValueError:
            raise bad_request(f'strconv.ParseInt: parsing "{found[0]}": invalid syntax') from None


class Request(msgspec.Struct, frozen=True):
    """A request as it came in: nobody has looked at it yet."""

    method: str
    path: str  # percent-encoded, as on the request line
    query: Query
    headers: Headers  # looked up in any case
    read_body: Callable[[], Awaitable[bytes]]  # all of it; raises a StatusError if it is too long, too slow or broken

    @classmethod
    def of(cls, method: str, target: str, headers: Headers, read_body: Callable[[], Awaitable[bytes]]) -> Request:
        """`target` is what stands between method and version on the request line."""
        path, _, query = target.partition("?")
        if "://" in path[:8]:
            path = urllib.parse.urlsplit(path).path
        return cls(method, path, Query(query), headers, read_body)


class Call(msgspec.Struct, frozen=True):
    """A request for a resource: what is asked of which object by whom."""

    method: str
    path: str
    query: Query
    headers: Mapping[str, str]
    user: User
    served: Type
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False
    body: bytes = b""

    @property
    def accept(self) -> str:
        return self.headers.get("Accept", "")

    @property
    def content_type(self) -> str:
        kind, _, parameters = self.headers.get("Content-Type", "").partition(";")
        # A parameter without a value makes the whole unreadable.
        if any("=" not in parameter for parameter in parameters.split(";") if parameter.strip()):
            return kind + ";"
        return kind.strip().lower()

    def write_options(self, kind: str) -> WriteOptions:
        """`kind` names the options in messages: CreateOptions, UpdateOptions, PatchOptions."""
        query = self.query
        faults: list[field.FieldError] = []
        manager = query.get("fieldManager")
        if manager:
            faults += manager_faults(manager, "fieldManager")
        dry_run = query.all("dryRun")
        if any(value != "All" for value in dry_run):
            faults.append(field.not_supported("dryRun", dry_run, ["All"]))
        validation = query.get("fieldValidation") or "Warn"
        if validation not in ("Ignore", "Warn", "Strict"):
            faults.append(field.not_supported("fieldValidation", validation, ["", "Ignore", "Strict", "Warn"]))
        if kind == "PatchOptions":
            faults += self._patch_faults(manager)
        if faults:
            raise invalid_options(kind, faults)
        return WriteOptions(
            manager=manager or self.user_agent_manager(),
            dry_run=bool(dry_run),
            validation=validation,
            force=query.flag("force"),
        )

    def _patch_faults(self, manager: str) -> list[field.FieldError]:
        if self.content_type.startswith("application/apply-patch"):
            return [] if manager else [field.required("fieldManager", "is required for apply patch")]
        if self.query.has("force"):
            return [field.forbidden("force", "may not be specified for non-apply patch")]
        return []

    def user_agent_manager(self) -> str:
        """Without a fieldManager, the part of the user agent before the slash stands for it."""
        agent = (self.headers.get("User-Agent") or "unknown").partition("/")[0]
        cleaned = "".join(char for char in agent if char.isprintable())
        return cleaned.encode()[:128].decode(errors="ignore")


class Answer(msgspec.Struct, frozen=True):
    """What goes back: bytes that are ready to send."""

    status: int
    body: bytes
    content_type: str = JSON_TYPE
    headers: Mapping[str, str] = {}
    warnings: tuple[str, ...] = ()  # set by the boundary


class Sink(Protocol):
    """Where a streamed body goes: a connection, or a reader in this process."""

    def write(self, data: bytes) -> None:
        """Take the bytes at once, however far the reader is behind."""

    async def send(self, data: bytes) -> None:
        """Take the bytes, and wait while the reader is far behind. Raises `ConnectionError` if it has left."""

    def unread(self) -> int:
        """How many bytes were taken and wait for the reader."""
        ...

    def is_closing(self) -> bool: ...

    def abort(self) -> None:
        """Break the stream off: the reader sees a broken connection."""


def _nothing_to_do() -> None: ...


class StreamedAnswer(msgspec.Struct, frozen=True):
    """Status 200, and a body that `send` writes until it ends. Cancelled when the reader leaves.

    Of `send` and `abandon` exactly one is called: the second if the reader left before the first.
    """

    send: Callable[[Sink], Awaitable[None]]
    content_type: str = JSON_TYPE
    abandon: Callable[[], None] = _nothing_to_do
    warnings: tuple[str, ...] = ()  # set by the boundary


class UpgradedAnswer(msgspec.Struct, frozen=True):
    """Status 101, and another protocol, which `serve` speaks until it ends. Cancelled when the client leaves.

    Of `serve` and `abandon` exactly one is called: the second if the client left before the first.
    """

    serve: Callable[[Duplex], Awaitable[None]]
    fields: Sequence[tuple[str, str]]
    abandon: Callable[[], None] = _nothing_to_do
    warnings: tuple[str, ...] = ()  # which nobody reads


def header_fields(answer: Answer | StreamedAnswer, date: str) -> list[tuple[str, str]]:
    """The headers of an answer, as they go out."""
    fields = [("Content-Type", answer.content_type), ("Date", date)]
    more: Mapping[str, str] = answer.headers if isinstance(answer, Answer) else {}
    if "Cache-Control" not in more:
        fields.append(("Cache-Control", "no-cache, private"))
    fields += more.items()
    fields += [("Warning", f'299 - "{_escape(text)}"') for text in answer.warnings]
    return fields


def _escape(text: str) -> str:
    flat = "".join(char if char.isprintable() else " " for char in text)
    return flat.replace("\\", "\\\\").replace('"', '\\"')


def json_answer(status: int, value: Any) -> Answer:
    return Answer(status, msgspec.json.encode(value))


def text_answer(status: int, text: str) -> Answer:
    return Answer(status, text.encode(), TEXT_TYPE)


class PageNotFound(StatusError):
    """The path belongs to nobody: plain text, as Go's mux answers."""

    def __init__(self) -> None:
        super().__init__(404, "404 page not found")
