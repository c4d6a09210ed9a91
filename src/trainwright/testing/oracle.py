"""The oracle: checks the watch and audit logs of a test against the operator's invariants (docs/architecture.md).

In: a `Story` (changes in the server's order, requests of the operator's user). Out: `Violation`s, each with the
invariant it breaks and what was seen. Every rule is a function `Story → violations` in `RULES`; every test that runs an
operator calls `check` at its end. Invariants that logs cannot show, such as reserved variables and reproducible
rendering, have unit and property tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from trainwright.api.wellknown import SYSTEM_NAMESPACE
from trainwright.schema.jsonobject import Json
from trainwright.testing.audit import Request
from trainwright.testing.watchlog import Change, histories

FINISHED = ("Complete", "Failed")
CHILDREN = {"jobsets": "JobSet", "configmaps": "ConfigMap", "secrets": "Secret", "podgroups": "PodGroup"}
RUNTIMES = {"trainingruntimes": "TrainingRuntime", "clustertrainingruntimes": "ClusterTrainingRuntime"}

# How long an operator may not know yet that a job is being deleted: no precondition can prevent that.
NEWS_TAKES_SECONDS = 3.0


@dataclass(frozen=True)
class Violation:
    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}"


@dataclass(frozen=True)
class Story:
    """What happened in a test. `requests` are those of the operator's user. `home` is the operator's own namespace."""

    changes: list[Change]
    requests: list[Request] = field(default_factory=list)
    home: str = SYSTEM_NAMESPACE
    manager: str = "trainer"
    news_seconds: float = NEWS_TAKES_SECONDS

    @cached_property
    def _by_kind(self) -> dict[str, list[Change]]:
        found: dict[str, list[Change]] = {}
        for change in self.changes:
            found.setdefault(change.kind, []).append(change)
        return found

    @cached_property
    def _by_name(self) -> dict[tuple[str, str, str], list[Change]]:
        found: dict[tuple[str, str, str], list[Change]] = {}
        for change in self.changes:
            found.setdefault((change.kind, change.namespace, change.name), []).append(change)
        return found

    def of(self, kind: str) -> list[Change]:
        return self._by_kind.get(kind, [])

    def before(self, kind: str, namespace: str, name: str, version: int | None, at: float) -> Change | None:
        """The last known state of an object before a version or, without a version, before a time."""
        last = None
        for change in self._by_name.get((kind, namespace, name), []):
            if change.version < version if version is not None else change.at < at:
                last = change
        return None if last is None or last.type == "DELETED" else last


def check(story: Story) -> None:
    """Raises AssertionError with every violation, one per line."""
    found = [violation for rule in RULES for violation in rule(story)]
    if found:
        raise AssertionError(f"{len(found)} violations:\n" + "\n".join(str(violation) for violation in found))


# Rules over the watch log


def one_live_jobset(story: Story) -> Iterator[Violation]:
    """A TrainJob has at most one live JobSet, of the same name and in the same namespace."""
    jobs = {change.uid: change for change in story.of("TrainJob")}
    alive: dict[str, set[str]] = {}
    for change in story.of("JobSet"):
        owner = owning_trainjob(change.object)
        if owner is None:
            continue
        siblings = alive.setdefault(owner["uid"], set())
        if change.type == "DELETED":
            siblings.discard(change.uid)
            continue
        siblings.add(change.uid)
        if len(siblings) > 1:
            yield Violation(
                "one JobSet", f"{change}: TrainJob {owner['name']} ({owner['uid']}) has {len(siblings)} live JobSets"
            )
        if change.name != owner["name"]:
            yield Violation("one JobSet", f"{change} belongs to TrainJob {owner['name']}: their names must be the same")
        job = jobs.get(owner["uid"])
        if job is not None and job.namespace != change.namespace:
            yield Violation("one JobSet", f"{change} belongs to a TrainJob in namespace {job.namespace}")


def children_are_owned(story: Story) -> Iterator[Violation]:
    """Every object that our field manager wrote has a TrainJob as controller, except for revisions and in `home`."""
    for kind in CHILDREN.values():
        for change in story.of(kind):
            if change.type == "DELETED" or change.namespace == story.home:
                continue
            if story.manager in managers(change.object) and owning_trainjob(change.object) is None:
                yield Violation(
                    "own objects only", f"{change} was written by {story.manager} and has no TrainJob as its controller"
                )


def terminal_is_a_latch(story: Story) -> Iterator[Violation]:
    """Complete and Failed are never removed, and never both set."""
    for history in histories(story.of("TrainJob")):
        finished: str | None = None
        for change in history:
            now = [kind for kind in FINISHED if has_condition(change.object, kind)]
            if len(now) > 1:
                yield Violation("finished is final", f"{change} is Complete and Failed at once")
            if finished is not None and finished not in now:
                yield Violation(
                    "finished is final", f"{change} was {finished} and is {now[0] if now else 'unfinished'} again"
                )
            if now:
                finished = now[0]


def no_jobset_for_a_finished_job(story: Story) -> Iterator[Violation]:
    """A job that is finished, being deleted or deleted gets no new JobSet."""
    jobs = {history[0].uid: history for history in histories(story.of("TrainJob"))}
    for born in (history[0] for history in histories(story.of("JobSet"))):
        owner = owning_trainjob(born.object)
        if owner is None or born.type != "ADDED":
            continue
        known = [change for change in jobs.get(owner["uid"], []) if change.version < born.version]
        if known and any(has_condition(known[-1].object, kind) for kind in FINISHED):
            yield Violation("finished is final", f"{born} was created although its TrainJob had finished ({known[-1]})")
        leaving = [change for change in known if change.type == "DELETED" or is_being_deleted(change.object)]
        if leaving and (late := born.at - leaving[0].at) > story.news_seconds:
            yield Violation(
                "finished is final", f"{born} was created {late:.1f} s after its TrainJob's deletion ({leaving[0]})"
            )


def written_once(story: Story) -> Iterator[Violation]:
    """The content of an SSH Secret and of a runtime revision never changes."""
    for kind, content in (("Secret", "data"), ("ControllerRevision", "data")):
        for history in histories(story.of(kind)):
            if kind == "Secret" and not any(owning_trainjob(change.object) for change in history):
                continue
            first = history[0]
            for change in history[1:]:
                if change.type != "DELETED" and change.object.get(content) != first.object.get(content):
                    yield Violation(
                        "created once", f"{change}: its {content} is not what was created (version {first.version})"
                    )


def status_never_goes_back(story: Story) -> Iterator[Violation]:
    """A condition's lastTransitionTime and observedGeneration only grow."""
    for history in histories(story.of("TrainJob")):
        newest: dict[tuple[str, str], str | int] = {}
        for change in history:
            for condition in conditions(change.object):
                for member in ("lastTransitionTime", "observedGeneration"):
                    key, value = (condition["type"], member), condition.get(member)
                    if value is None:
                        continue
                    if key in newest and value < newest[key]:
                        yield Violation(
                            "status bound to its version",
                            f"{change}: {key[0]}'s {member} went from {newest[key]} to {value}",
                        )
                    newest[key] = value


# Rules over the audit log


def writes_touch_only_what_is_owned(story: Story) -> Iterator[Violation]:
    """Every write to a child is to an object that a TrainJob owns; of a runtime only finalizers change."""
    for request in story.requests:
        if not (request.is_write and request.succeeded) or request.namespace == story.home:
            continue
        if request.resource in CHILDREN:
            yield from _child_write(story, request)
        elif request.resource in RUNTIMES:
            yield from _runtime_write(story, request)


def _child_write(story: Story, request: Request) -> Iterator[Violation]:
    version = _version(request.answer)
    kind = CHILDREN[request.resource]
    if request.is_creation:
        # Bodies of Secrets are not logged: of all that ever had this name, the one that was created at that time.
        born = [
            c for c in story.of(kind) if (c.type, c.namespace, c.name) == ("ADDED", request.namespace, request.name)
        ]
        nearest = min(born, key=lambda change: abs(change.at - request.at), default=None)
        made = request.answer or (nearest.object if nearest is not None else None)
        if made is not None and owning_trainjob(made) is None:
            yield Violation("own objects only", f"{request} made an object that no TrainJob owns")
        return
    before = story.before(kind, request.namespace, request.name, version, request.at)
    if before is not None and owning_trainjob(before.object) is None:
        yield Violation("own objects only", f"{request} wrote to {before}, which no TrainJob owns")


def _runtime_write(story: Story, request: Request) -> Iterator[Violation]:
    version = _version(request.answer)
    if version is not None and is_being_deleted(request.answer or {}):
        version += 1  # taking the last finalizer away deletes the object: the answer still has the version before
    before = story.before(RUNTIMES[request.resource], request.namespace, request.name, version, request.at)
    if before is None or request.answer is None or request.answer.get("kind") == "Status":
        return
    if _without_finalizers(before.object) != _without_finalizers(request.answer):
        yield Violation("own objects only", f"{request} changed more of a runtime than its finalizers")


def status_carries_its_version(story: Story) -> Iterator[Violation]:
    """Conditions are written with the resourceVersion that they were computed from."""
    for request in story.requests:
        if (request.resource, request.subresource) != ("trainjobs", "status") or not request.is_write:
            continue
        sent = request.sent or {}
        versioned = sent.get("metadata", {}).get("resourceVersion")
        if "conditions" in sent.get("status", {}) and not versioned:
            yield Violation("status bound to its version", f"{request} wrote conditions without a resourceVersion")


def nothing_forbidden(story: Story) -> Iterator[Violation]:
    """The shipped roles suffice: RBAC never denied a request of the operator."""
    for request in story.requests:
        if request.code == 403 and not _being_terminated(request):
            yield Violation("least privilege", str(request))


def secrets_are_never_read(story: Story) -> Iterator[Violation]:
    """Secrets outside the operator's own namespace are created, never read."""
    for request in story.requests:
        if request.resource != "secrets" or request.namespace == story.home:
            continue
        if request.verb != "create":
            yield Violation("least privilege", str(request))


RULES: tuple[Callable[[Story], Iterable[Violation]], ...] = (
    one_live_jobset,
    children_are_owned,
    terminal_is_a_latch,
    no_jobset_for_a_finished_job,
    written_once,
    status_never_goes_back,
    writes_touch_only_what_is_owned,
    status_carries_its_version,
    nothing_forbidden,
    secrets_are_never_read,
)


def effective_writes(requests: Iterable[Request], since: float, until: float | None = None) -> list[Request]:
    """The writes of a converged operator, which should write nothing but its Lease."""
    return [
        request
        for request in requests
        if request.is_write
        and request.resource != "leases"
        and request.at >= since
        and (until is None or request.at <= until)
    ]


# Reading objects


def owning_trainjob(item: Json) -> Json | None:
    """The owner reference of the TrainJob that controls it."""
    for owner in item["metadata"].get("ownerReferences", []):
        if owner.get("kind") == "TrainJob" and owner.get("controller"):
            found: Json = owner
            return found
    return None


def managers(item: Json) -> set[str]:
    return {entry["manager"] for entry in item["metadata"].get("managedFields", []) if not entry.get("subresource")}


def conditions(item: Json) -> list[Json]:
    found: list[Json] = item.get("status", {}).get("conditions", [])
    return found


def has_condition(item: Json, kind: str) -> bool:
    return any(condition["type"] == kind and condition["status"] == "True" for condition in conditions(item))


def is_being_deleted(item: Json) -> bool:
    return "deletionTimestamp" in item["metadata"]


def _version(answer: Json | None) -> int | None:
    version = (answer or {}).get("metadata", {}).get("resourceVersion")
    return int(version) if version else None


def _without_finalizers(item: Json) -> Json:
    hidden = ("finalizers", "managedFields", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds")
    metadata = {key: value for key, value in item["metadata"].items() if key not in hidden}
    return {**{k: v for k, v in item.items() if k not in ("kind", "apiVersion")}, "metadata": metadata}


def _being_terminated(request: Request) -> bool:
    """Whether admission denied a create because the namespace is being deleted: that is a 403 too."""
    causes = (request.answer or {}).get("details", {}).get("causes", [])
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
