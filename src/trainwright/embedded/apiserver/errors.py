"""Answers that are not success: one exception that is a Kubernetes `Status`.

    StatusError          an answer to the client: code, reason, message, details
    StoreError           the store cannot be opened or written (see store.py)

Every handler raises `StatusError`; the HTTP boundary turns it into JSON. The texts are kube-apiserver's, because
clients match on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from trainwright.schema.errors import FieldError, aggregate
from trainwright.schema.jsonobject import Json

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class StatusError(Exception):
    """A failure the client is told about."""

    def __init__(
        self, code: int, message: str, *, reason: str | None = None, details: Json | None = None, retry_after: int = 0
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = REASONS.get(code, "") if reason is None else reason
        self.details = details
        self.retry_after = retry_after
        self.warnings: Sequence[str] = ()

    @property
    def status(self) -> Json:
        body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        body["message"] = self.message
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


def details_of(name: str, group: str, kind: str, **more: Any) -> Json:
    """The `details` of a Status: empty members are left out, as Go leaves them out."""
    found = {"name": name, "group": group, "kind": kind, **more}
    return {key: value for key, value in found.items() if value}


def qualified(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def not_found(group: str, resource: str, name: str) -> StatusError:
    return StatusError(
        404, f'{qualified(resource, group)} "{name}" not found', details=details_of(name, group, resource)
    )


def already_exists(group: str, resource: str, name: str) -> StatusError:
    text = f'{qualified(resource, group)} "{name}" already exists'
    return StatusError(409, text, reason="AlreadyExists", details=details_of(name, group, resource))


def conflict(group: str, resource: str, name: str, why: str) -> StatusError:
    text = f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {why}'
    return StatusError(409, text, details=details_of(name, group, resource))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def bad_request(message: str) -> StatusError:
    return StatusError(400, message)


def unknown_resource() -> StatusError:
    return StatusError(404, "the server could not find the requested resource", details={})


def method_not_allowed() -> StatusError:
    return StatusError(405, "the server does not allow this method on the requested resource", details={})


def forbidden(group: str, resource: str, name: str, why: str) -> StatusError:
    target = qualified(resource, group) + (f' "{name}"' if name else "")
    return StatusError(403, f"{target} is forbidden: {why}", details=details_of(name, group, resource))


def invalid(group: str, kind: str, name: str, errors: Iterable[FieldError]) -> StatusError:
    """422: `kind` is the Kind (or, from storage, the plural) and every error becomes a cause."""
    found = list(errors)
    causes = [{"reason": e.reason, "message": e.body, "field": e.field or "<nil>"} for e in found]
    text = f'{qualified(kind, group)} "{name}" is invalid: {aggregate(found)}'
    return StatusError(422, text, details=details_of(name, group, kind, causes=causes))


def invalid_options(kind: str, errors: Iterable[FieldError]) -> StatusError:
    """422 for query parameters and options, which belong to the group meta.k8s.io."""
    return invalid("meta.k8s.io", kind, "", errors)


def expired(message: str) -> StatusError:
    return StatusError(410, message, reason="Expired")


def too_old(wanted: int, oldest: int) -> StatusError:
    return expired(f"too old resource version: {wanted} ({oldest})")
