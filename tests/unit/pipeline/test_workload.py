"""Any plugin may build the workload: who builds it, who reports it, and what is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from trainwright.api.metadata import Condition, ObjectMeta
from trainwright.api.resources import JOB_SETS, JOBS, NODES, SECRETS, Resource
from trainwright.api.trainjob import TrainJob
from trainwright.pipeline import (
    Apply,
    CreateOnce,
    Framework,
    MaskedKeys,
    NamedWatch,
    Observed,
    PipelineError,
    Plan,
    PluginFailed,
    TwoWorkloads,
    Watch,
    Workload,
    WorkloadStatus,
    WorkloadUnknown,
    build,
    end_of,
    workload_of,
)
from trainwright.pipeline.info import Info
from trainwright.plugins import load
from trainwright.schema.jsonobject import Json
from unit.pipeline.objects import intentions, objects, runtime, trainjob

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


class Thing(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class PlainJob:
    """Runs every TrainJob as a batch/v1 Job."""

    def __init__(self, name: str = "PlainJob", *, claims: bool = True, watch: Watch | None = None) -> None:
        self.name = name
        self._claims = claims
        self._watch = watch or Watch(JOBS, Thing, workload=True)

    def sync_template(self, info: Info, job: TrainJob) -> None:
        if self._claims:
            info.claim_workload(self.name)

    def build(self, info: Info, job: TrainJob) -> Iterator[Apply]:
        if not self._claims or info.workload_plugin == self.name:
            yield Apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": info.name}}, workload=True)

    def watches(self) -> Iterator[Watch]:
        yield self._watch

    def status(self, job: TrainJob, workload: Thing) -> WorkloadStatus:
        return WorkloadStatus(message=f"{self.name} reports {workload.metadata.name}")


def framework(*plugins: Any) -> Framework:
    def factory(plugin: Any) -> Callable[[], Any]:
        return lambda: plugin

    return load(discovered={plugin.name: factory(plugin) for plugin in plugins})


def plan(*plugins: Any, observed: Observed | None = None) -> Any:
    return build(trainjob(), runtime(), observed or Observed(), framework(*plugins), MaskedKeys())


def test_a_plugin_that_claims_the_workload_builds_it_in_place_of_the_jobset() -> None:
    made = plan(PlainJob())
    assert intentions(made) == [(Apply, "Job")]
    assert objects(made)["Job/tj"]["metadata"]["annotations"] == {"trainwright.dev/workload": "PlainJob"}


def test_two_workloads_are_refused_with_both_plugins() -> None:
    with pytest.raises(TwoWorkloads, match=r"^plugins JobSet and PlainJob both build the workload of this TrainJob"):
        plan(PlainJob(claims=False))
    with pytest.raises(TwoWorkloads, match=r"^plugins One and Other both build the workload of this TrainJob"):
        plan(PlainJob("One"), PlainJob("Other"))


def of_jobset(**annotations: str) -> Workload:
    metadata = ObjectMeta(name="tj", annotations={f"trainwright.dev/{key}": text for key, text in annotations.items()})
    return Workload(JOB_SETS, metadata, "JobSet", WorkloadStatus(is_suspended=True))


def test_a_job_keeps_the_workload_it_has_whatever_plugins_there_are_now() -> None:
    made = plan(PlainJob(), observed=Observed(workload=of_jobset(workload="JobSet")))
    assert intentions(made) == [(Apply, "JobSet")]


def test_a_plugin_that_does_not_build_its_workload_any_more_is_named() -> None:
    theirs = msgspec.structs.replace(of_jobset(), plugin="Other")
    with pytest.raises(PluginFailed, match=r'^plugin Other failed in build: it made JobSet "tj" and does not build it'):
        plan(observed=Observed(workload=theirs))


def digest_of(made: Plan) -> str | None:
    annotations: Json = objects(made)["JobSet/tj"]["metadata"]["annotations"]
    return annotations.get("trainwright.dev/plugins")


def with_digest(digest: str, workload: Workload | None, *, suspend: bool = False) -> Plan:
    plugins = Framework(load(discovered={}).plugins, digest=digest)
    return build(trainjob(suspend=suspend), runtime(), Observed(workload=workload), plugins, MaskedKeys())


def test_the_digest_of_plugins_is_written_at_a_start_and_kept_over_a_suspension() -> None:
    first = with_digest("d1", None)
    assert (digest_of(first), first.plugins_changed) == ("d1", False)
    assert digest_of(with_digest("", None)) is None
    suspended = with_digest("d2", of_jobset(workload="JobSet", plugins="d1"), suspend=True)
    assert (digest_of(suspended), suspended.plugins_changed) == ("d1", False)


@pytest.mark.parametrize(
    ("stored", "digest", "changed"),
    [
        ({"workload": "JobSet", "plugins": "d1"}, "d1", False),
        ({"workload": "JobSet", "plugins": "d1"}, "d2", True),
        ({"workload": "JobSet", "plugins": "d1"}, "", True),
        ({"workload": "JobSet"}, "d1", True),
        ({"workload": "JobSet"}, "", False),
        ({}, "d1", False),
    ],
    ids=["same", "other", "gone", "new", "none", "made by a release that wrote no digest"],
)
def test_a_resumed_job_says_when_plugins_changed(stored: dict[str, str], digest: str, changed: bool) -> None:
    resumed = with_digest(digest, of_jobset(**stored))
    assert (digest_of(resumed), resumed.plugins_changed) == (digest or None, changed)


class Widgets:
    """Puts one object of its own beside the workload."""

    name = "Widgets"

    def __init__(self, *watches: Any) -> None:
        self._watches = watches

    def build(self, info: Info, job: TrainJob) -> Iterator[CreateOnce]:
        yield CreateOnce({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": f"{info.name}-w"}})

    def watches(self) -> Iterator[Any]:
        yield from self._watches


def test_a_kind_of_ones_own_is_written_when_its_plugin_names_it() -> None:
    assert intentions(plan(Widgets(Watch(WIDGETS)))) == [(CreateOnce, "Widget"), (Apply, "JobSet")]


def test_a_kind_that_no_plugin_names_is_not_written() -> None:
    words = "^plugin Widgets failed in build: it builds a Widget of example.com/v1, which no plugin names in watches"
    with pytest.raises(PluginFailed, match=words):
        plan(Widgets())


def test_a_workload_must_be_named_as_one_and_have_the_trainjobs_name() -> None:
    with pytest.raises(PluginFailed, match="plugin PlainJob failed in build: its watches"):
        plan(PlainJob(watch=Watch(JOBS, Thing)))

    class Renamed(PlainJob):
        def build(self, info: Info, job: TrainJob) -> Iterator[Apply]:
            yield Apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "other"}}, workload=True)

    with pytest.raises(PluginFailed, match='the workload Job "other" must have the name of the TrainJob'):
        plan(Renamed())


class Raises:
    def __iter__(self) -> Any:
        raise KeyError("a bug of mine")


@pytest.mark.parametrize(
    ("watches", "why"),
    [
        (Raises(), "'a bug of mine'"),
        (["widgets"], "'widgets' is no Watch"),
        ([Watch(SECRETS)], "Secrets are created and never read"),
        ([Watch(NODES)], "nodes has no namespace"),
        ([Watch(WIDGETS, dict)], "is no msgspec Struct with metadata"),
        ([Watch(WIDGETS, Thing, workload=True)], "the plugin has no method status"),
    ],
)
def test_watches_that_cannot_be_used_concern_their_plugin_alone(watches: Any, why: str) -> None:
    class Faulty(Widgets):
        def watches(self) -> Iterator[Any]:
            yield from watches

    made = framework(Faulty())
    assert str(made.unwatchable["Widgets"]).startswith("plugin Widgets failed in watches: ")
    assert why in str(made.unwatchable["Widgets"])
    assert made.watches == load(discovered={}).watches
    with pytest.raises(PluginFailed, match=r"^plugin Widgets failed in watches"):
        build(trainjob(), runtime(), Observed(), made, MaskedKeys())


def stored(uid: str = "w", owner: str = "u1", **annotations: str) -> Thing:
    reference = {"apiVersion": "v1", "kind": "TrainJob", "name": "tj", "uid": owner, "controller": True}
    metadata: Json = {"name": "tj", "uid": uid, "ownerReferences": [reference]}
    if annotations:
        metadata["annotations"] = {"trainwright.dev/workload": annotations["plugin"]}
    return msgspec.convert({"metadata": metadata}, Thing)


def found(made: Framework, thing: Thing) -> list[tuple[NamedWatch, Thing]]:
    return [(named, thing) for named in made.watches if named.watch.resource is JOBS]


def test_the_annotation_says_which_of_several_plugins_reports() -> None:
    made = framework(PlainJob("One"), PlainJob("Other"))
    for plugin in ("One", "Other"):
        workload = workload_of(trainjob(), found(made, stored(plugin=plugin)), made)
        assert workload is not None
        assert (workload.plugin, workload.status.message) == (plugin, f"{plugin} reports tj")


def test_without_an_annotation_the_first_plugin_of_the_kind_reports() -> None:
    made = framework(PlainJob("One"), PlainJob("Other"))
    workload = workload_of(trainjob(), found(made, stored()), made)
    assert workload is not None
    assert workload.plugin == "One"


def test_somebody_elses_object_is_no_workload() -> None:
    made = framework(PlainJob())
    assert workload_of(trainjob(), found(made, stored(owner="other")), made) is None


def test_a_workload_whose_plugin_is_gone_is_named() -> None:
    made = framework(PlainJob("One"))
    with pytest.raises(WorkloadUnknown, match=r'^plugin Gone built Job "tj" and is not loaded any more'):
        workload_of(trainjob(), found(made, stored(plugin="Gone")), made)


def test_two_workloads_of_one_job_are_named() -> None:
    made = framework(PlainJob())
    both = [*found(made, stored("a")), *found(made, stored("b"))]
    with pytest.raises(WorkloadUnknown, match=r'^Job "tj" and Job "tj" are both the workload'):
        workload_of(trainjob(), both, made)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (ZeroDivisionError("a bug of mine"), "a bug of mine"),
        (None, "it gave None, which is no WorkloadStatus"),
        (WorkloadStatus(end=Condition("Done", "True", "R", "", "t")), "an end is a true Complete or Failed, not Done"),
    ],
)
def test_a_status_that_cannot_be_used_names_its_plugin(answer: Any, why: str) -> None:
    class Faulty(PlainJob):
        def status(self, job: TrainJob, workload: Thing) -> WorkloadStatus:
            if isinstance(answer, Exception):
                raise answer
            return answer  # type: ignore[no-any-return]

    made = framework(Faulty())
    with pytest.raises(PipelineError, match=f"^plugin PlainJob failed in status: {why}"):
        workload_of(trainjob(), found(made, stored()), made)


def condition(type: str, status: str = "True", reason: str = "") -> Condition:
    return Condition(type, status, reason, "because", "2026-01-01T00:00:00Z")


def test_an_end_is_read_from_any_kinds_conditions() -> None:
    assert end_of(None, complete="Done") is None
    assert end_of([condition("Done", "False")], complete="Done") is None
    complete = end_of([condition("Running"), condition("Done")], complete="Done")
    assert complete == Condition("Complete", "True", "Complete", "because", "2026-01-01T00:00:00Z")
    failed = end_of([condition("Failed", reason="Why")], complete="Done")
    assert failed is not None
    assert (failed.type, failed.reason) == ("Failed", "Why")
