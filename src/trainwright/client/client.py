"""The Kubernetes API as methods: objects in, objects out, one error tree.

Objects are plain JSON (`dict`) unless `decode=` names a msgspec type; then only the fields of that type are decoded,
which saves memory in stores of thousands of objects. No method retries, except after a 401 with renewable credentials:
the caller decides what to do about a failure. After a write whose outcome is unknown it must read before it writes
again.

    async with Client(HttpTransport(kubeconfig.load(path))) as client:
        job = await client.get(TRAIN_JOBS, "mnist", "default")
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, Unpack, overload

import msgspec

from trainwright.api.resources import PODS, Resource
from trainwright.client import requests
from trainwright.client.aio import HttpTransport
from trainwright.client.errors import DecodeError, Status, error_of, error_of_answer
from trainwright.client.kubeconfig import Connection
from trainwright.client.requests import DeleteOptions, Request, Selection, WriteChecks, WriteOptions
from trainwright.client.servertime import ServerTime
from trainwright.client.transport import Answer, Stream, Transport
from trainwright.schema.jsonobject import Json

T = TypeVar("T")

REQUEST_DEADLINE = 30.0
WATCH_IDLE_SECONDS = 120.0
PAGE_SIZE = 500
LOG_BUFFER = 2**18
"""Small, because a training has many logs, and whoever reads them may be slower than the ranks write."""


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ObjectList(msgspec.Struct, Generic[T]):
    """The answer to a list: its items and their resourceVersion."""

    items: list[T] | None = None
    metadata: ListMeta = ListMeta()

    @property
    def resource_version(self) -> str:
        return self.metadata.resource_version


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """One event of a watch: ADDED, MODIFIED, DELETED with an object, or BOOKMARK with only a version."""

    type: str
    object: T | None
    resource_version: str


class _ObjectEvent(msgspec.Struct, Generic[T]):
    """An event as it nearly always is; decoded in one pass."""

    type: str
    object: T


class _WireEvent(msgspec.Struct):
    """Any event; one that is no object's."""

    type: str
    object: msgspec.Raw


class _Versioned(msgspec.Struct):
    metadata: ListMeta = ListMeta()


_OBJECT_EVENTS = frozenset(["ADDED", "MODIFIED", "DELETED"])
_event_decoder = msgspec.json.Decoder(_WireEvent)
_version_decoder = msgspec.json.Decoder(_Versioned)
_status_decoder = msgspec.json.Decoder(Status)


def _version_of(thing: Any) -> str | None:
    """The version of an object whose type keeps it."""
    metadata = thing.get("metadata") if isinstance(thing, dict) else getattr(thing, "metadata", None)
    if isinstance(metadata, dict):
        return metadata.get("resourceVersion")
    return getattr(metadata, "resource_version", None)


class Client:
    """One API server, as one user. `async with` opens and closes its transport."""

    def __init__(
        self, transport: Transport, *, namespace: str = "default", on_warning: Callable[[str], None] | None = None
    ) -> None:
        self.transport = transport
        self.namespace = namespace
        self.server_time = ServerTime()
        self._on_warning = on_warning
        self._decoders: dict[Any, msgspec.json.Decoder[Any]] = {}

    @classmethod
    def to(cls, connection: Connection, *, on_warning: Callable[[str], None] | None = None) -> Self:
        """A client for a connection, over HTTP: `Client.to(kubeconfig.load(path))`."""
        return cls(HttpTransport(connection), namespace=connection.namespace, on_warning=on_warning)

    async def __aenter__(self) -> Self:
        await self.transport.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.transport.close()

    # Reading

    @overload
    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, subresource: str | None = None
    ) -> Json: ...
    @overload
    async def get(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        decode: type[T],
        metadata_only: bool = False,
    ) -> T: ...
    async def get(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        decode: Any = Json,
        metadata_only: bool = False,
    ) -> Any:
        return await self._send(requests.get(resource, name, namespace, subresource, metadata=metadata_only), decode)

    @overload
    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        page_size: int | None = PAGE_SIZE,
        at_most: int | None = None,
        **selection: Unpack[Selection],
    ) -> ObjectList[Json]: ...
    @overload
    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        decode: type[T],
        metadata_only: bool = False,
        page_size: int | None = PAGE_SIZE,
        at_most: int | None = None,
        **selection: Unpack[Selection],
    ) -> ObjectList[T]: ...
    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        decode: Any = Json,
        metadata_only: bool = False,
        page_size: int | None = PAGE_SIZE,
        at_most: int | None = None,
        **selection: Unpack[Selection],
    ) -> ObjectList[Any]:
        """All objects, in one namespace or in all, page by page; `Expired` when a page's token has become too old. With
        `at_most`, one page of so many.

        kube-apiserver reads pages from etcd and answers a list without `page_size` from memory, as up to date and for a
        fifth of its CPU; who can hold the whole answer for a moment should ask for that.
        """
        items: list[Any] = []
        token: str | None = None
        while True:
            request = requests.list_page(
                resource,
                namespace,
                limit=at_most or page_size,
                continue_token=token,
                metadata=metadata_only,
                **selection,
            )
            page: ObjectList[Any] = await self._send(request, ObjectList[decode])
            items += page.items or ()
            token = page.metadata.continue_
            if not token or at_most:
                return ObjectList(items, page.metadata)

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        timeout_seconds: int | None = None,
        idle_seconds: float = WATCH_IDLE_SECONDS,
        gather_seconds: float = 0.0,
        decode: Any = Json,
        metadata_only: bool = False,
        **selection: Unpack[Selection],
    ) -> AsyncIterator[AsyncIterator[WatchEvent[Any]]]:
        """An open watch: `async with client.watch(…) as events: async for event in events: …`.

        The iterator ends when the server ends the stream. An ERROR event is raised, as `Expired` when the version is
        too old. Events that come close upon others may wait for `gather_seconds`: read together, they cost less.
        """
        request = requests.watch(
            resource,
            namespace,
            timeout_seconds=timeout_seconds,
            gather_seconds=gather_seconds,
            metadata=metadata_only,
            **selection,
        )
        async with self._stream(request, idle_seconds) as stream:
            yield self._events(stream, decode)

    async def raw(self, path: str, *, decode: Any = Json) -> Any:
        """GET of a path that is no resource, such as `/version`. `decode=bytes` returns the body undecoded."""
        return await self._send(requests.raw(path), decode)

    # Writing

    async def create(
        self,
        resource: Resource,
        body: Any,
        namespace: str | None = None,
        *,
        name: str | None = None,
        subresource: str | None = None,
        decode: Any = Json,
        **options: Unpack[WriteOptions],
    ) -> Any:
        """POST. `name` and `subresource` together post to a subresource, such as a pod's binding."""
        path = requests.path_of(resource, namespace, name, subresource)
        return await self._send(requests.write("POST", path, body, **options), decode)

    async def update(
        self,
        resource: Resource,
        body: Any,
        *,
        name: str,
        namespace: str | None = None,
        subresource: str | None = None,
        decode: Any = Json,
        **options: Unpack[WriteOptions],
    ) -> Any:
        """PUT. A `resourceVersion` in the body makes it fail with `Conflict` when the object has changed since."""
        path = requests.path_of(resource, namespace, name, subresource)
        return await self._send(requests.write("PUT", path, body, **options), decode)

    async def apply(
        self,
        resource: Resource,
        body: Any,
        *,
        name: str,
        namespace: str | None = None,
        field_manager: str,
        force: bool = True,
        subresource: str | None = None,
        decode: Any = Json,
        **checks: Unpack[WriteChecks],
    ) -> Any:
        """Server-side apply of exactly the fields in `body`, as `field_manager`."""
        path = requests.path_of(resource, namespace, name, subresource)
        request = requests.write(
            "PATCH",
            path,
            body,
            content_type=requests.APPLY_PATCH,
            force=force,
            field_manager=field_manager,
            **checks,
        )
        return await self._send(request, decode)

    async def apply_new(
        self, resource: Resource, body: Any, *, name: str, namespace: str | None = None, field_manager: str
    ) -> tuple[bytes, bool]:
        """Server-side apply of an object that should not exist yet, without force: the answer, and whether it was
        created. The API server merges into an object that does exist.
        """
        path = requests.path_of(resource, namespace, name)
        request = requests.write(
            "PATCH", path, body, content_type=requests.APPLY_PATCH, field_manager=field_manager, force=False
        )
        answer = await self._answer(request)
        return answer.body, answer.status == 201

    async def patch(
        self,
        resource: Resource,
        body: Any,
        *,
        name: str,
        namespace: str | None = None,
        content_type: str = requests.MERGE_PATCH,
        subresource: str | None = None,
        decode: Any = Json,
        **options: Unpack[WriteOptions],
    ) -> Any:
        """A merge patch, or with `content_type` a JSON patch or a strategic merge patch."""
        path = requests.path_of(resource, namespace, name, subresource)
        request = requests.write("PATCH", path, body, content_type=content_type, **options)
        return await self._send(request, decode)

    async def delete(
        self, resource: Resource, name: str, namespace: str | None = None, options: DeleteOptions | None = None
    ) -> Json:
        """DELETE, with the preconditions that `options` contain. The answer is a Status, or the object."""
        answer: Json = await self._send(requests.delete(resource, name, namespace, options or DeleteOptions()), Json)
        return answer

    # Logs

    @asynccontextmanager
    async def logs(
        self,
        name: str,
        namespace: str,
        *,
        container: str | None = None,
        follow: bool = False,
        previous: bool = False,
        timestamps: bool = False,
        since_seconds: int | None = None,
        since_time: str | None = None,
        tail_lines: int | None = None,
        limit_bytes: int | None = None,
        idle_seconds: float = 24 * 3600.0,
    ) -> AsyncIterator[Stream]:
        """A pod's log as a stream of `lines()` or `chunks()`. The idle limit is long: training may print nothing for
        hours. A line of `lines()` is at most twice `LOG_BUFFER` long; `chunks()` has no such limit.
        """
        query = requests.query_of(
            {
                "container": container,
                "follow": follow or None,
                "previous": previous or None,
                "timestamps": timestamps or None,
                "sinceSeconds": since_seconds,
                "sinceTime": since_time,
                "tailLines": tail_lines,
                "limitBytes": limit_bytes,
            }
        )
        path = requests.path_of(PODS, namespace, name, "log")
        request = Request("GET", path, query, accept="text/plain, */*", read_buffer=LOG_BUFFER)
        async with self._stream(request, idle_seconds) as stream:
            yield stream

    # Sending

    async def _answer(self, request: Request) -> Answer:
        sent = self.server_time.local()
        answer = await self.transport.send(request, deadline=REQUEST_DEADLINE)
        self.server_time.observe(answer.headers.get("Date"), sent, self.server_time.local())
        self._warn(answer)
        if answer.status >= 400:
            raise error_of_answer(answer.status, answer.headers, answer.body)
        return answer

    async def _send(self, request: Request, decode: Any) -> Any:
        answer = await self._answer(request)
        if decode is bytes:
            return answer.body
        try:
            return self._decoder(decode).decode(answer.body)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise DecodeError(f"{request.method} {request.path}: {error}") from error

    @asynccontextmanager
    async def _stream(self, request: Request, idle: float) -> AsyncIterator[Stream]:
        async with self.transport.stream(request, deadline=REQUEST_DEADLINE, idle=idle) as stream:
            if stream.status >= 400:
                raise error_of_answer(stream.status, stream.headers, await stream.read())
            yield stream

    async def _events(self, stream: Stream, decode: Any) -> AsyncIterator[WatchEvent[Any]]:
        decoder = self._decoder(_ObjectEvent[decode])
        async for line in stream.lines():
            try:
                event = decoder.decode(line)
            except msgspec.ValidationError:  # a bookmark, or an error, or indeed not what we expect
                yield self._odd_event(line, decode)
                continue
            except msgspec.DecodeError as error:
                raise DecodeError(f"a line of the watch is not an event: {error}") from error
            version = _version_of(event.object) if event.type in _OBJECT_EVENTS else None
            if version is None:
                yield self._odd_event(line, decode)
            else:
                yield WatchEvent(event.type, event.object, version)

    def _odd_event(self, line: bytes, decode: Any) -> WatchEvent[Any]:
        try:
            wire = _event_decoder.decode(line)
            if wire.type == "ERROR":
                raise error_of(_status_decoder.decode(wire.object))
            version = _version_decoder.decode(wire.object).metadata.resource_version
            thing = self._decoder(decode).decode(wire.object) if wire.type in _OBJECT_EVENTS else None
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise DecodeError(f"a line of the watch is not an event: {error}") from error
        return WatchEvent(wire.type, thing, version)

    def _decoder(self, decode: Any) -> msgspec.json.Decoder[Any]:
        found = self._decoders.get(decode)
        if found is None:
            found = self._decoders[decode] = msgspec.json.Decoder(decode)
        return found

    def _warn(self, answer: Answer) -> None:
        """Passes on `Warning: 299 - "text"` headers, by which the server warns about deprecated fields."""
        if self._on_warning is None:
            return
        headers = answer.headers
        values = headers.getall("Warning", []) if hasattr(headers, "getall") else [headers.get("Warning")]
        for value in values:
            if value and value.startswith("299 "):
                text = value.split(" ", 2)[-1].strip()
                self._on_warning(text[1:-1].replace('\\"', '"') if text.startswith('"') else text)
