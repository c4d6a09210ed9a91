"""One HTTP request as the handlers see it, and the answer they give. Nothing here does I/O."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from typing import Any

import msgspec

from trainwright.embedded.apiserver.errors import StatusError, bad_request, invalid_options
from trainwright.embedded.apiserver.metadata import manager_faults
from trainwright.embedded.apiserver.operations.writing import User, WriteOptions
from trainwright.embedded.apiserver.types import Type
from trainwright.schema import errors as field

JSON_TYPE = "application/json"


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


class Call:
    """A request for a resource: what is asked of which object by whom."""

    __slots__ = (
        "body",
        "headers",
        "method",
        "name",
        "namespace",
        "path",
        "query",
        "served",
        "subresource",
        "user",
        "watch",
    )

    def __init__(self, method: str, path: str, query: Query, headers: Mapping[str, str], user: User) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.user = user
        self.body = b""
        self.served: Type = _NOTHING
        self.namespace = ""
        self.name = ""
        self.subresource = ""
        self.watch = False

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
        apply = kind == "PatchOptions" and self.content_type.startswith("application/apply-patch")
        if apply and not manager:
            faults.append(field.required("fieldManager", "is required for apply patch"))
        if kind == "PatchOptions" and not apply and query.has("force"):
            faults.append(field.forbidden("force", "may not be specified for non-apply patch"))
        if faults:
            raise invalid_options(kind, faults)
        return WriteOptions(
            manager=manager or self.user_agent_manager(),
            dry_run=bool(dry_run),
            validation=validation,
            force=query.flag("force"),
        )

    def user_agent_manager(self) -> str:
        """Without a fieldManager, the part of the user agent before the slash stands for it."""
        agent = (self.headers.get("User-Agent") or "unknown").partition("/")[0]
        cleaned = "".join(char for char in agent if char.isprintable())
        return cleaned.encode()[:128].decode(errors="ignore")


_NOTHING: Any = None


class Answer(msgspec.Struct):
    """What goes back: bytes that are ready to send."""

    status: int
    body: bytes
    content_type: str = JSON_TYPE
    headers: dict[str, str] = {}


def json_answer(status: int, value: Any) -> Answer:
    return Answer(status, msgspec.json.encode(value))


def text_answer(status: int, text: str) -> Answer:
    return Answer(status, text.encode(), "text/plain; charset=utf-8")


class PageNotFound(StatusError):
    """The path belongs to nobody: plain text, as Go's mux answers."""

    def __init__(self) -> None:
        super().__init__(404, "404 page not found")
