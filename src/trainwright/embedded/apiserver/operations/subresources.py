"""Subresources with an operation of their own: scale, binding, eviction, finalize. `status` is read and written like
the object, `log` and `token` are answered elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.builtin.pods import UNSUPPORTED
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http.decoding import check_names, read_object
from trainwright.embedded.apiserver.http.requests import Answer, Call
from trainwright.embedded.apiserver.operations import finalizing, podactions, reading
from trainwright.embedded.apiserver.operations.namespaces import namespace_key
from trainwright.embedded.apiserver.operations.scale import scale
from trainwright.embedded.apiserver.operations.writes import Write, replacing

Operation = Callable[[Api, Call], Awaitable[Answer]]


async def finalize(api: Api, call: Call) -> Answer:
    if call.method != "PUT":
        raise errors.method_not_allowed()
    options = call.write_options("UpdateOptions")
    obj = read_object(call, call.served, options.validation)
    check_names(call, obj)
    write = Write(call.served, namespace_key(call.name), call.user, options, replacing(obj))
    return reading.object_answer(api, call, await finalizing.finalize(api, write))


OPERATIONS: dict[tuple[str, str], Operation] = {
    ("namespaces", "finalize"): finalize,
    ("pods", "binding"): podactions.binding,
    ("pods", "eviction"): podactions.eviction,
}


def operation_of(call: Call) -> Operation | None:
    """The operation of a subresource, None if it is read and written like the object."""
    if call.subresource == "scale" and "scale" in call.served.subresources:
        return scale if call.method in ("GET", "PUT", "PATCH") else None
    found = OPERATIONS.get((call.served.resource, call.subresource))
    if found is None and call.served.resource == "pods" and call.subresource in UNSUPPORTED:
        raise _refused(call)
    return found


def _refused(call: Call) -> StatusError:
    """Known to Kubernetes, not to this server: said plainly."""
    text = f"the subresource {call.served.plural}/{call.subresource} is not supported by the embedded API server"
    return StatusError(405, text, details={})
