"""`pods/{name}/exec`, `attach` and `portforward`: checked here, served by the pod's node.

The request goes on to the node as it came, WebSocket or SPDY. If the node switches protocols, the client's connection
is joined to the node's, byte for byte; else the client gets what the node says, as a Status.
"""

from __future__ import annotations

import functools
import urllib.parse
from collections.abc import Mapping

from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.errors import StatusError, bad_request
from trainwright.embedded.apiserver.http.requests import Call, UpgradedAnswer
from trainwright.embedded.apiserver.operations.logs import Kubelet, accepted, address_of, container_of
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.http.asking import Asked
from trainwright.http.duplex import Duplex, relay
from trainwright.http.headers import Headers
from trainwright.schema.jsonobject import Json

STREAMS = ("exec", "attach", "portforward")
METHODS = ("GET", "POST")
PASSED = ("Upgrade", "Connection", "X-Stream-Protocol-Version")
"""Headers that say which protocol the client wants. Those of a WebSocket are passed on too."""
FLAGS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
"""A client's parameters, and a kubelet's."""


async def stream(api: Api, kubelet: Kubelet | None, call: Call) -> UpgradedAnswer:
    """The connection to the pod's node, switched."""
    if call.method not in METHODS:
        raise errors.method_not_allowed()
    stored = api.state.get(Key("pods", call.namespace, call.name))
    if stored is None:
        raise errors.not_found("", "pods", call.name)
    pod = call.served.whole_object(stored.data)
    path = _path(call, pod)
    if not (pod.get("spec") or {}).get("nodeName"):
        raise bad_request(f"pod {call.name} does not have a host assigned")
    address = address_of(api, pod)
    if not call.headers.get("Upgrade"):
        raise bad_request("Upgrade request required")
    if kubelet is None:
        raise StatusError(503, "this server was started without a way to its nodes, so it has no streams")
    url = f"https://{address}{path}"
    upstream = await accepted(kubelet.switch(call.method, url, _fields(call.headers)), url, 101)
    duplex = upstream.duplex
    assert duplex is not None
    fields = [(name, value) for name, value in upstream.reply.headers.items() if _is_passed(name)]
    return UpgradedAnswer(functools.partial(_join, upstream, duplex), fields, upstream.release)


def _path(call: Call, pod: Json) -> str:
    """The node's path and query for what the client asks."""
    names = [call.namespace, call.name]
    if call.subresource == "portforward":
        kind = "portForward"
        query = [("port", ",".join(call.query.all("ports")))] if call.query.has("ports") else []
    else:
        kind = call.subresource
        names.append(container_of(call, pod))
        query = [(theirs, "1") for ours, theirs in FLAGS.items() if call.query.flag(ours)]
        query += [("command", word) for word in call.query.all("command")]
    quoted = "/".join(urllib.parse.quote(name, safe="") for name in names)
    return f"/{kind}/{quoted}" + (f"?{urllib.parse.urlencode(query)}" if query else "")


def _is_passed(name: str) -> bool:
    return name.title() in PASSED or name.lower().startswith("sec-websocket-")


def _fields(headers: Mapping[str, str]) -> dict[str, str]:
    """The client's headers for the node. A protocol list that came in several lines becomes one."""
    every = headers.getall if isinstance(headers, Headers) else lambda name, _: [headers[name]]
    # Extensions are the client's with us: the node has none.
    return {
        name: ", ".join(every(name, []))
        for name in headers
        if _is_passed(name) and name.lower() != "sec-websocket-extensions"
    }


async def _join(upstream: Asked, node: Duplex, client: Duplex) -> None:
    try:
        await relay(client, node)
    finally:
        upstream.release()
