"""A log of every change to the objects of a test, in the server's order.

In: a REST client and collections to watch. Out: `Change`s, ordered by resourceVersion, which is one counter for all
kinds in kube-apiserver and in our own server. `settle` returns when the log is up to date with the server, so that an
oracle never checks an incomplete log. A change that was lost to a compacted history is an error.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType

from trainwright.schema.jsonobject import Json
from trainwright.testing.rest import Refused, Rest

COLLECTIONS = (
    "/apis/trainer.kubeflow.org/v1alpha1/trainjobs",
    "/apis/trainer.kubeflow.org/v1alpha1/trainingruntimes",
    "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes",
    "/apis/jobset.x-k8s.io/v1alpha2/jobsets",
    "/apis/apps/v1/controllerrevisions",
    "/api/v1/configmaps",
    "/api/v1/secrets",
)

LISTED = "LISTED"


@dataclass(frozen=True)
class Change:
    """One event of a watch, or an object from the first list (`LISTED`). `at` is the local time of its arrival; changes
    are ordered by `version`."""

    type: str
    kind: str
    version: int
    object: Json
    at: float

    @property
    def uid(self) -> str:
        uid: str = self.object["metadata"]["uid"]
        return uid

    @property
    def namespace(self) -> str:
        namespace: str = self.object["metadata"].get("namespace", "")
        return namespace

    @property
    def name(self) -> str:
        name: str = self.object["metadata"]["name"]
        return name

    def __str__(self) -> str:
        return f"{self.type} {self.kind} {self.namespace}/{self.name} (uid {self.uid}, version {self.version})"


class WatchLog:
    """`with WatchLog(rest, collections) as log: …; log.settle(); log.changes()`. A namespace in a path narrows it."""

    def __init__(self, rest: Rest, collections: Iterable[str] = COLLECTIONS) -> None:
        self._rest = rest
        self._collections = tuple(collections)
        self._lock = threading.Lock()
        self._changes: list[Change] = []
        self._failures: list[str] = []
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> WatchLog:
        for path in self._collections:
            listed = self._rest.get(path)
            kind = str(listed["kind"]).removesuffix("List")
            for item in listed["items"]:
                self._record(LISTED, kind, item)
            version = str(listed["metadata"]["resourceVersion"])
            thread = threading.Thread(
                target=self._follow, args=(path, kind, version), name=f"watch {path}", daemon=True
            )
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()

    def changes(self, namespace: str | None = None) -> list[Change]:
        """The changes in the server's order: all, or those in `namespace` and of cluster-scoped objects."""
        with self._lock:
            if self._failures:
                raise AssertionError("the watch log has a gap: " + "; ".join(self._failures))
            changes = sorted(self._changes, key=lambda change: change.version)
        return [change for change in changes if namespace is None or change.namespace in ("", namespace)]

    def settle(self, seconds: float = 20.0) -> None:
        """Waits until replaying the log gives the same objects as a new list, for every collection."""
        end = time.monotonic() + seconds
        for path in self._collections:
            while True:
                listed = self._rest.get(path)
                kind = str(listed["kind"]).removesuffix("List")
                there = {(item["metadata"]["uid"], item["metadata"]["resourceVersion"]) for item in listed["items"]}
                logged = {(uid, str(last.version)) for uid, last in self.live(kind).items()}
                if there == logged:
                    break
                if time.monotonic() > end:
                    raise AssertionError(f"the watch log of {path} did not catch up: {there ^ logged}")
                time.sleep(0.05)

    def live(self, kind: str) -> dict[str, Change]:
        """The last state of each object of `kind` that is not deleted, by UID."""
        return live(change for change in self.changes() if change.kind == kind)

    def _follow(self, path: str, kind: str, version: str) -> None:
        while not self._stopped.is_set():
            try:
                for event in self._rest.watch(path, version, idle=600):
                    if self._stopped.is_set():
                        return
                    if event["type"] == "ERROR":
                        raise Refused("WATCH", path, event["object"].get("code", 0), str(event["object"]).encode())
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._record(event["type"], kind, event["object"])
            except Refused as refused:
                if refused.code == 410:
                    self._fail(f"{path}: history before version {version} is gone")
                    return
                time.sleep(0.1)  # the server is down for a while: the history is still there when it comes back
            except (OSError, ValueError):
                time.sleep(0.1)

    def _record(self, type_: str, kind: str, item: Json) -> None:
        change = Change(type_, kind, int(item["metadata"]["resourceVersion"]), item, time.time())
        with self._lock:
            self._changes.append(change)

    def _fail(self, what: str) -> None:
        with self._lock:
            self._failures.append(what)


def live(changes: Iterable[Change]) -> dict[str, Change]:
    """Replays changes: the last state of each object that exists, by UID."""
    state: dict[str, Change] = {}
    for change in changes:
        if change.type == "DELETED":
            state.pop(change.uid, None)
        else:
            state[change.uid] = change
    return state


def histories(changes: Iterable[Change]) -> Iterator[list[Change]]:
    """The changes of each object (by UID), in order."""
    found: dict[str, list[Change]] = {}
    for change in changes:
        found.setdefault(change.uid, []).append(change)
    yield from found.values()
