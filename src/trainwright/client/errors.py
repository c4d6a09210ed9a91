"""The errors of a request to an API server, as one tree.

    ClientError
    ├── ConfigError            a kubeconfig or credential cannot be used; nothing was sent
    ├── RequestError           the request is invalid, such as a name with a slash; nothing was sent
    ├── Unreachable            no connection could be made; nothing was sent
    ├── DecodeError            the server answered with something that is not the object asked for
    ├── UnknownOutcome         a deadline, a reset or a 504: the write may or may not have happened
    └── ApiError               the server answered with a failure Status
        ├── BadRequest 400 · Unauthorized 401 · Forbidden 403 · NotFound 404 · MethodNotAllowed 405
        ├── Conflict 409 · AlreadyExists 409 · Expired 410 · TooLarge 413 · UnsupportedMediaType 415 · Invalid 422
        ├── TooManyRequests 429
        └── ServerError 5xx
            └── ServerTimeout 504 (an UnknownOutcome too)

`str(error)` is the server's own message if there is one. A reconciler catches the errors that it can act on; the
worker loop handles the rest.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class ClientError(Exception):
    """The root of the tree."""


class ConfigError(ClientError):
    """A kubeconfig, a credential or a certificate that cannot be used. The message names the file and the field."""


class RequestError(ClientError):
    """A request that was refused before it was sent."""


class Unreachable(ClientError):
    """No connection: the name does not resolve, the port refuses, or the TLS handshake fails. Nothing was sent."""


class DecodeError(ClientError):
    """The answer is not the object that was asked for: HTML from a proxy, truncated JSON, another type."""


class UnknownOutcome(ClientError):
    """The request was sent and no answer came. The server may have carried it out: read before deciding anything."""


class StatusCause(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retryAfterSeconds: int = 0


class Status(msgspec.Struct, frozen=True):
    """The fields of a `meta/v1 Status` that a client acts on."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


class ApiError(ClientError):
    """The server answered with an error."""

    def __init__(self, status: Status, *, retry_after: float | None = None) -> None:
        super().__init__(status.message or status.reason or f"the server answered {status.code}")
        self.status = status
        self.retry_after = retry_after

    @property
    def code(self) -> int:
        return self.status.code

    @property
    def reason(self) -> str:
        return self.status.reason

    @property
    def causes(self) -> tuple[StatusCause, ...]:
        return self.status.details.causes if self.status.details else ()


class BadRequest(ApiError):
    """400: the body or a parameter could not be read."""


class Unauthorized(ApiError):
    """401: the credential is not accepted."""


class Forbidden(ApiError):
    """403: RBAC, or an admission webhook, refused."""


class NotFound(ApiError):
    """404: no such object, or the type itself is not served."""

    @property
    def is_missing_type(self) -> bool:
        """Whether the type is not served, as while a CRD is not installed. False when one object is missing."""
        details = self.status.details
        return not (details and details.name)


class MethodNotAllowed(ApiError):
    """405: the resource does not support the verb."""


class Conflict(ApiError):
    """409: a resourceVersion, a uid or a field owner is not the one that the request expects."""


class AlreadyExists(ApiError):
    """409 on create: the name is taken."""


class Expired(ApiError):
    """410: the resourceVersion or continue token is too old. List again."""


class TooLarge(ApiError):
    """413: the body is over the server's limit."""


class UnsupportedMediaType(ApiError):
    """415: the resource does not support this type of patch."""


class Invalid(ApiError):
    """422: the object breaks its schema or a rule."""

    @property
    def is_about_uid(self) -> bool:
        """A server-side apply with a uid that is not the live object's: the object was deleted and created again."""
        return any(cause.field == "metadata.uid" for cause in self.causes)


class TooManyRequests(ApiError):
    """429: retry after `retry_after` seconds."""


class ServerError(ApiError):
    """5xx: the server failed."""


class ServerTimeout(ServerError, UnknownOutcome):
    """504: the server gave up waiting for its store. The write may still happen."""


_BY_REASON: Mapping[str, type[ApiError]] = {
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Expired": Expired,
    "Gone": Expired,
    "Timeout": ServerTimeout,
    "TooManyRequests": TooManyRequests,
}

_BY_CODE: Mapping[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    409: Conflict,
    410: Expired,
    413: TooLarge,
    415: UnsupportedMediaType,
    422: Invalid,
    429: TooManyRequests,
    504: ServerTimeout,
}

_BODY_SHOWN = 400
_status_decoder: msgspec.json.Decoder[Status] = msgspec.json.Decoder(Status)


def error_of(status: Status, *, retry_after: float | None = None) -> ApiError:
    """The error for a `Status`, from an answer or from an ERROR event of a watch."""
    kind = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code)
    if kind is None:
        kind = ServerError if status.code >= 500 else ApiError
    if retry_after is None and status.details and status.details.retryAfterSeconds:
        retry_after = float(status.details.retryAfterSeconds)
    return kind(status, retry_after=retry_after)


def error_of_answer(code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The error for an HTTP answer of 400 or more. A body that is no Status (a proxy's page) is quoted, shortened."""
    try:
        status = _status_decoder.decode(body)
    except msgspec.DecodeError:
        status = Status()
    if status.kind != "Status":
        text = " ".join(body[: 4 * _BODY_SHOWN].decode("utf-8", "replace").split())[:_BODY_SHOWN]
        status = Status(kind="Status", code=code, message=f"the server answered {code}" + (f": {text}" if text else ""))
    elif status.code != code:
        status = msgspec.structs.replace(status, code=code)
    return error_of(status, retry_after=_seconds(headers.get("Retry-After")))


def _seconds(value: str | None) -> float | None:
    return float(value) if value and value.isdecimal() else None


def not_served(group_resource: str) -> str:
    """The message for a type that the API server does not serve."""
    return f"{group_resource} is not served by this API server: is its CustomResourceDefinition installed?"


def is_away(error: BaseException | None) -> bool:
    """Whether nobody answered: no connection, a reset or a deadline, and not a server that said so."""
    return isinstance(error, (Unreachable, UnknownOutcome)) and not isinstance(error, ApiError)
