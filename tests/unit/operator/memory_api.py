"""A small API server in memory, as a transport: enough of Kubernetes to run the operator in virtual time.

Objects have uids and versions, creates conflict, patches and deletes honour preconditions, watches stream,
server-side apply replaces what its manager applied before. It judges nothing (no schema, no admission): the real
servers do that in other folders.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any

from trainwright.client.requests import APPLY_PATCH, Request
from trainwright.client.transport import Answer
from trainwright.controlloop import VirtualClock
from trainwright.schema.jsonobject import Json
from trainwright.schema.jsonpatch import merge_patch

_PATH = re.compile(
    r"^/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>status|log))?$"
)


class Failure(Exception):
    def __init__(self, code: int, reason: str, message: str = "", **details: Any) -> None:
        super().__init__(message or reason)
        self.code, self.reason, self.details = code, reason, details

    def answer(self) -> Answer:
        body = {
            "kind": "Status",
            "status": "Failure",
            "code": self.code,
            "reason": self.reason,
            "message": str(self),
            "details": self.details,
        }
        return Answer(self.code, {}, json.dumps(body).encode())


class MemoryApi:
    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.objects: dict[tuple[str, str, str], Json] = {}  # plural, namespace, name
        self.absent: set[str] = set()  # plurals whose CRD is not installed
        self.log: list[Request] = []
        self.before: Callable[[Request], None] = lambda request: None  # may raise, to inject a fault
        self.after: Callable[[Request], None] = lambda request: None
        self.refuse_next: Failure | None = None
        self._version = itertools.count(1)
        self._uid = itertools.count(1)
        self._watches: list[tuple[str, str | None, str | None, asyncio.Queue[bytes]]] = []

    # What tests use

    def add(self, plural: str, body: Json, namespace: str = "ns") -> Json:
        return self._create(plural, namespace, copy.deepcopy(body))

    def get(self, plural: str, name: str, namespace: str = "ns") -> Json | None:
        return self.objects.get((plural, namespace, name))

    def change(self, plural: str, name: str, patch: Json, namespace: str = "ns") -> Json:
        current = self.objects[plural, namespace, name]
        return self._store(plural, namespace, name, merge_patch(copy.deepcopy(current), patch))

    def remove(self, plural: str, name: str, namespace: str = "ns") -> None:
        self._delete((plural, namespace, name))

    def cut(self, plural: str) -> None:
        """Every watch of this kind ends, as it does every few minutes."""
        for kind, _, _, queue in self._watches:
            if kind == plural:
                queue.put_nowait(b"")

    @property
    def writes(self) -> list[Request]:
        return [request for request in self.log if request.is_write]

    # The transport

    async def send(self, request: Request, *, deadline: float) -> Answer:
        self.log.append(request)
        self.before(request)
        try:
            if self.refuse_next is not None:
                failure, self.refuse_next = self.refuse_next, None
                raise failure
            answer = self._handle(request)
        except Failure as failure:
            answer = failure.answer()
        self.after(request)
        return answer

    @asynccontextmanager
    async def stream(self, request: Request, *, deadline: float, idle: float) -> AsyncIterator[Any]:
        self.before(request)
        match = _PATH.match(request.path)
        assert match is not None
        query = dict(request.query)
        if self.refuse_next is not None:
            failure, self.refuse_next = self.refuse_next, None
            yield _Refused(failure)
            return
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        entry = (match["plural"], match["namespace"], query.get("labelSelector"), queue)
        self._watches.append(entry)
        try:
            yield _Stream(queue)
        finally:
            self._watches.remove(entry)

    async def open(self) -> None: ...
    async def close(self) -> None: ...

    def _handle(self, request: Request) -> Answer:
        match = _PATH.match(request.path)
        assert match is not None, request.path
        plural, namespace, name = match["plural"], match["namespace"] or "", match["name"]
        if plural in self.absent:
            return Answer(404, {}, b"404 page not found")
        query = dict(request.query)
        body = json.loads(request.body) if request.body else {}
        dry = query.get("dryRun") == "All"
        if request.method == "GET" and name is None:
            return self._ok(self._list(plural, match["namespace"], query))
        if request.method == "GET":
            return self._ok(self._find(plural, namespace, name))
        if request.method == "POST":
            if (plural, namespace, body["metadata"].get("name")) in self.objects:
                raise Failure(409, "AlreadyExists", f'{plural} "{body["metadata"]["name"]}" already exists')
            return self._ok(body if dry else self._create(plural, namespace, body), 201)
        if request.method == "DELETE":
            return self._ok(self._remove(plural, namespace, name, body))
        if request.method == "PATCH" and request.content_type == APPLY_PATCH:
            return self._apply(plural, namespace, name, body, query["fieldManager"])
        current = self._find(plural, namespace, name)
        self._check(current, body["metadata"])
        if dry:
            return self._ok(current)
        if match["sub"] == "status":
            body = {"status": body.get("status")}
        else:
            body = {key: value for key, value in body.items() if key != "status"}
        return self._ok(self._store(plural, namespace, name, merge_patch(copy.deepcopy(current), body)))

    def _ok(self, body: Json, code: int = 200) -> Answer:
        date = formatdate(self.clock.wall(), usegmt=True)
        return Answer(code, {"Date": date}, json.dumps(body).encode())

    def _find(self, plural: str, namespace: str, name: str) -> Json:
        try:
            return self.objects[plural, namespace, name]
        except KeyError:
            raise Failure(404, "NotFound", f'{plural} "{name}" not found', name=name) from None

    def _check(self, current: Json, metadata: Json) -> None:
        for field in ("uid", "resourceVersion"):
            if metadata.get(field) and metadata[field] != current["metadata"][field]:
                raise Failure(409, "Conflict", f"{field} is {current['metadata'][field]}")

    def _list(self, plural: str, namespace: str | None, query: dict[str, str]) -> Json:
        items = [
            thing
            for (kind, where, name), thing in self.objects.items()
            if kind == plural
            and namespace in (None, where)
            and _selected(thing, query.get("labelSelector"))
            and query.get("fieldSelector", f"metadata.name={name}") == f"metadata.name={name}"
        ]
        return {"metadata": {"resourceVersion": str(next(self._version))}, "items": items}

    def _create(self, plural: str, namespace: str, body: Json) -> Json:
        body["metadata"].update(namespace=namespace, uid=f"uid-{next(self._uid)}", creationTimestamp=self._time())
        return self._store(plural, namespace, body["metadata"]["name"], body)

    def _apply(self, plural: str, namespace: str, name: str, body: Json, manager: str) -> Answer:
        current = self.objects.get((plural, namespace, name))
        if current is None:
            if body["metadata"].get("uid"):
                raise Failure(409, "Conflict", "uid mismatch")
            return self._ok(self._create(plural, namespace, body), 201)
        if body["metadata"].get("uid") not in (None, current["metadata"]["uid"]):
            raise Failure(
                422, "Invalid", "uid", causes=[{"reason": "FieldValueInvalid", "message": "", "field": "metadata.uid"}]
            )
        merged = merge_patch(copy.deepcopy(current), body)
        if merged == current:
            return self._ok(current)  # as the real one: no change, no event
        return self._ok(self._store(plural, namespace, name, merged))

    def _store(self, plural: str, namespace: str, name: str, body: Json) -> Json:
        key = (plural, namespace, name)
        old = self.objects.get(key)
        metadata = body["metadata"]
        metadata["resourceVersion"] = str(next(self._version))
        if "spec" in body:  # the others have none: a ConfigMap, a ControllerRevision
            before = old["metadata"].get("generation", 0) if old else 0
            metadata["generation"] = before if old and old.get("spec") == body["spec"] else before + 1
        self.objects[key] = body
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self._delete(key)
        else:
            self._emit("MODIFIED" if old else "ADDED", key, body)
        return body

    def _remove(self, plural: str, namespace: str, name: str, options: Json) -> Json:
        current = self._find(plural, namespace, name)
        self._check(current, options.get("preconditions") or {})
        if current["metadata"].get("finalizers"):
            body = copy.deepcopy(current)
            body["metadata"]["deletionTimestamp"] = self._time()
            return self._store(plural, namespace, name, body)
        self._delete((plural, namespace, name))
        return {"kind": "Status", "status": "Success"}

    def _delete(self, key: tuple[str, str, str]) -> None:
        body = self.objects.pop(key)
        body["metadata"]["resourceVersion"] = str(next(self._version))
        self._emit("DELETED", key, body)

    def _emit(self, kind: str, key: tuple[str, str, str], body: Json) -> None:
        line = json.dumps({"type": kind, "object": body}).encode()
        for plural, namespace, selector, queue in self._watches:
            if plural == key[0] and namespace in (None, key[1]) and _selected(body, selector):
                queue.put_nowait(line)

    def _time(self) -> str:
        return datetime.fromtimestamp(self.clock.wall(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class _Refused:
    def __init__(self, failure: Failure) -> None:
        self._answer = failure.answer()
        self.status, self.headers = self._answer.status, self._answer.headers

    async def read(self) -> bytes:
        return self._answer.body


class _Stream:
    def __init__(self, queue: asyncio.Queue[bytes]) -> None:
        self.status = 200
        self.headers: dict[str, str] = {}
        self._queue = queue

    async def read(self) -> bytes:
        return b""

    async def lines(self) -> AsyncIterator[bytes]:
        while line := await self._queue.get():
            yield line


def _selected(thing: Json, selector: str | None) -> bool:
    labels = thing["metadata"].get("labels") or {}
    for part in (selector or "").split(",") if selector else ():
        name, equals, value = part.partition("=")
        if name not in labels or (equals and labels[name] != value):
            return False
    return True
