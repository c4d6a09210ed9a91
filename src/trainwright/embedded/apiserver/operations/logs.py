"""`GET pods/{name}/log`: checked here, answered by the pod's node.

The node is found as in Kubernetes: the pod's `spec.nodeName`, the Node's InternalIP and kubelet port, TLS by the
cluster's CA, and a bearer token that server and node share.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
import urllib.parse
from collections.abc import Awaitable, Mapping

from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.errors import StatusError, bad_request
from trainwright.embedded.apiserver.http.requests import Answer, Call, Sink, StreamedAnswer
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.embedded.apiserver.wire.scalars import DecodeError, parse_time
from trainwright.http.asking import Asked, Asker
from trainwright.http.pool import BadAddress
from trainwright.schema import errors as field
from trainwright.schema.jsonobject import Json

PASSED = ("follow", "previous", "sinceSeconds", "sinceTime", "timestamps", "tailLines", "limitBytes", "stream")
ANSWER_SECONDS = 30.0


class Kubelet:
    """The way to the nodes. Made at wiring time; without it neither logs nor streams can be had."""

    def __init__(self, ca: str, token: str) -> None:
        self._ca = ca
        self._token = token
        self._asker = Asker()
        self._context: ssl.SSLContext | None = None

    async def ask(self, url: str) -> Asked:
        """The node's reply, its body still to come."""
        context = await self._tls()
        return await self._asker.ask("GET", url, self._fields, context=context, seconds=ANSWER_SECONDS)

    async def switch(self, method: str, url: str, fields: Mapping[str, str]) -> Asked:
        """The node's reply to a request for another protocol."""
        context = await self._tls()
        both = {**fields, **self._fields}
        return await self._asker.switch(method, url, both, context=context, seconds=ANSWER_SECONDS)

    @property
    def _fields(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    async def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = await asyncio.to_thread(ssl.create_default_context, cafile=self._ca)
        return self._context

    async def close(self) -> None:
        self._asker.close()


def _check_options(call: Call) -> None:
    query = call.query
    faults: list[field.FieldError] = []
    since = query.integer("sinceSeconds")
    tail = query.integer("tailLines")
    limit = query.integer("limitBytes")
    if tail is not None and tail < 0:
        faults.append(field.invalid("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        faults.append(field.invalid("limitBytes", limit, "must be greater than 0"))
    if since is not None and query.get("sinceTime"):
        text = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        faults.append(field.forbidden("[]", text))
    elif since is not None and since < 1:
        faults.append(field.invalid("sinceSeconds", since, "must be greater than 0"))
    if faults:
        raise errors.invalid("", "PodLogOptions", call.name, faults)
    if query.get("sinceTime"):
        try:
            parse_time(query.get("sinceTime"))
        except DecodeError as error:
            raise bad_request(str(error)) from None


def container_of(call: Call, pod: Json) -> str:
    """The container asked for, or the only one there is."""
    spec = pod.get("spec") or {}
    names = [str(c.get("name")) for c in spec.get("containers") or ()]
    init = [str(c.get("name")) for c in spec.get("initContainers") or ()]
    wanted = call.query.get("container")
    if not wanted:
        if len(names) == 1:
            return names[0]
        text = f"a container name must be specified for pod {call.name}, choose one of: [{' '.join(names)}]"
        if init:
            text += f" or one of the init containers: [{' '.join(init)}]"
        raise bad_request(text)
    if wanted not in names and wanted not in init:
        raise bad_request(f"container {wanted} is not valid for pod {call.name}")
    return wanted


def address_of(api: Api, pod: Json) -> str:
    """`host:port` of the node's own server."""
    node_name = (pod.get("spec") or {}).get("nodeName", "")
    stored = api.state.get(Key("nodes", "", node_name))
    if stored is None:
        raise errors.not_found("", "pods", node_name)  # the real server names the resource of the request
    return endpoint_of(stored.decode())


def endpoint_of(node: Json) -> str:
    status = node.get("status") or {}
    port = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port", 0)
    for address in status.get("addresses") or ():
        if address.get("type") == "InternalIP" and port:
            return f"{address['address']}:{port}"
    name = node["metadata"]["name"]
    raise StatusError(500, f"node {name} says neither its InternalIP nor its kubelet port", reason="InternalError")


async def log(api: Api, kubelet: Kubelet | None, call: Call) -> Answer | StreamedAnswer:
    """The node's answer, as it comes; an empty one if the pod has no node yet."""
    _check_options(call)
    stored = api.state.get(Key("pods", call.namespace, call.name))
    if stored is None:
        raise errors.not_found("", "pods", call.name)
    pod = call.served.whole_object(stored.data)
    container = container_of(call, pod)
    if not (pod.get("spec") or {}).get("nodeName"):
        return Answer(204, b"", "text/plain")
    address = address_of(api, pod)
    if kubelet is None:
        raise StatusError(503, "this server was started without a way to its nodes, so it has no logs")
    quoted = [urllib.parse.quote(part, safe="") for part in (call.namespace, call.name, container)]
    query = urllib.parse.urlencode([(name, call.query.get(name)) for name in PASSED if call.query.has(name)])
    url = f"https://{address}/containerLogs/{'/'.join(quoted)}" + (f"?{query}" if query else "")
    upstream = await ask(kubelet, url)
    return StreamedAnswer(functools.partial(_relay, upstream), "text/plain", upstream.release)


async def ask(kubelet: Kubelet, url: str) -> Asked:
    """The node's answer, its body still to come. Raises what the node says if it refuses."""
    return await accepted(kubelet.ask(url), url, 200)


async def accepted(asking: Awaitable[Asked], url: str, status: int) -> Asked:
    """The node's answer if it has this status. Another one is raised as a Status, with the node's words."""
    try:
        upstream = await asking
        if upstream.reply.status == status:
            return upstream
        with upstream as reply:
            text = (await reply.some(65536, ANSWER_SECONDS)).decode(errors="replace").strip()
    except (BadAddress, OSError) as error:  # TimeoutError is an OSError
        host = urllib.parse.urlsplit(url).netloc
        raise StatusError(503, f"the node at {host} does not answer: {error or type(error).__name__}") from None
    code = reply.status if 400 <= reply.status < 500 else 500
    raise StatusError(code, text or f"the node answered {reply.status}")


async def _relay(upstream: Asked, sink: Sink) -> None:
    with upstream as reply:
        try:
            async for data in reply.chunks(None):
                await sink.send(data)
        except ConnectionError:
            return  # one side left in the middle; the client sees a short answer, as with a real kubelet
