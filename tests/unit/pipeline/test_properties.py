"""Properties of every build, checked on random TrainJobs and runtimes."""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from trainwright.api.runtime import runtime_from
from trainwright.api.trainjob import TrainJob, trainjob_from
from trainwright.cli.console.output import to_yaml
from trainwright.cli.failure import Failure
from trainwright.cli.files.documents import Document, parse, steps
from trainwright.cli.files.explain import explain_job
from trainwright.cli.files.offline import Offline
from trainwright.cli.files.render import check_runtime
from trainwright.pipeline import MaskedKeys, Observed, build
from trainwright.pipeline.framework import Framework
from trainwright.pipeline.info import Info, make_info
from trainwright.pipeline.provenance import DEFAULT, PLUGIN, RUNTIME
from trainwright.plugins import load
from trainwright.schema.jsonobject import Json
from unit.pipeline.strategies import runtimes, train_jobs

OBSERVED = Observed(ca_certificate="PEM")
SERVER = "https://server:1"
ordinary = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
few = settings(
    ordinary, max_examples=8, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)  # shrinking takes minutes


def rendered(job: Json, runtime: Json, framework: Framework | None = None) -> str:
    framework = framework or load(discovered={}, progress_server=SERVER)
    plan = build(trainjob_from(job), runtime_from(runtime), OBSERVED, framework, MaskedKeys())
    return to_yaml([intention.object for intention in plan.objects])


@ordinary
@given(train_jobs(), runtimes())
def test_rendering_twice_gives_the_same_bytes_and_leaves_the_input_alone(job: Json, runtime: Json) -> None:
    before = copy.deepcopy((job, runtime))
    assert rendered(job, runtime) == rendered(job, runtime)
    assert (job, runtime) == before


class Marker:
    """A plugin that depends on what others have done before it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def enforce_ml_policy(self, info: Info, job: TrainJob) -> None:
        for pod_set in info.pod_sets:
            for container in pod_set.containers:
                container.set_env({"name": f"SEEN_BY_{self.name}", "value": str(len(container.env))})


@ordinary
@given(train_jobs(), runtimes(), st.permutations(["one", "three", "two"]))
def test_the_order_of_discovery_does_not_change_a_byte(job: Json, runtime: Json, order: list[str]) -> None:
    def framework(found: list[str]) -> Framework:
        return load(discovered={name: functools.partial(Marker, name) for name in found}, enabled=["two", "*"])

    assert rendered(job, runtime, framework(order)) == rendered(job, runtime, framework(sorted(order)))


def test_another_start_gives_the_same_bytes() -> None:
    """Recorded random cases, rendered by two processes whose hash seeds differ."""
    cases = Path(__file__).parents[2] / "conformance" / "random.jsonl"
    pairs = [json.loads(line)["input"] for line in cases.read_text().splitlines()[:40]]
    text = "---\n".join(json.dumps(item) + "\n" for pair in pairs for item in pair)
    command = [sys.executable, "-m", "trainwright.cli.main", "render", "-f", "-"]
    first, second = (
        subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": seed},
            input=text,
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        ).stdout
        for seed in ("1", "2")
    )
    assert first.count("kind: JobSet") == 40
    assert first == second


unknown_values = st.recursive(
    st.one_of(st.booleans(), st.integers(-5, 5), st.text("ab", max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(["p", "q"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@ordinary
@given(train_jobs(), runtimes(), unknown_values, st.integers(0, 5))
def test_unknown_fields_of_a_template_survive(job: Json, runtime: Json, value: Any, place: int) -> None:
    spec = runtime["spec"]["template"]["spec"]
    last = spec["replicatedJobs"][-1]
    pod = last["template"]["spec"]["template"]["spec"]
    [spec, last, last["template"]["spec"], pod, pod["containers"][0], pod["volumes"][0]][place]["notYetKnown"] = value
    plan = build(trainjob_from(job), runtime_from(runtime), OBSERVED, load(discovered={}), MaskedKeys())
    made = next(i.object for i in plan.objects if i.object["kind"] == "JobSet")["spec"]
    item = made["replicatedJobs"][-1]
    pods = item["template"]["spec"]["template"]["spec"]
    volume = next(v for v in pods["volumes"] if v["name"] == "v0")
    found = [made, item, item["template"]["spec"], pods, pods["containers"][0], volume][place]
    assert found["notYetKnown"] == value


@ordinary
@given(train_jobs(), runtimes())
def test_a_phase_applied_twice_changes_nothing(job: Json, runtime: Json) -> None:
    framework = load(discovered={}, progress_server=SERVER)
    info = make_info(trainjob_from(job), runtime_from(runtime), OBSERVED, MaskedKeys())
    phases = ("enforce_ml_policy", "enforce_pod_group_policy", "enforce_pod_spec", "sync_template")
    for phase in phases:
        for plugin in framework.plugins:
            if method := getattr(plugin, phase, None):
                method(info, info.job)
        once = _state(info)
        for plugin in framework.plugins:
            if method := getattr(plugin, phase, None):
                method(info, info.job)
        assert _state(info) == once
    assert list(framework.build(info)) == list(framework.build(info))
    assert _state(info) == once


def _state(info: Info) -> Any:
    endpoints = [list(pod_set.endpoints) for pod_set in info.pod_sets]
    return json.dumps([info.labels, info.annotations, info.spec, info.command, info.args, endpoints])


def explained(documents: list[Json], disabled: tuple[str, ...] = ()) -> dict[tuple[str, str], Any]:
    """Value and origin of every field, by object and identity."""
    text = "---\n".join(json.dumps(item, indent=1) + "\n" for item in documents)
    read = [Document("f", n, value, place) for n, (value, place) in enumerate(parse(text.encode(), "f"), 1)]
    offline = Offline(read, "ns", load(discovered={}, disabled=disabled))
    found: dict[tuple[str, str], Any] = {}
    with contextlib.redirect_stderr(io.StringIO()):
        for document in offline.runtimes:
            check_runtime(offline, document)
        for document in offline.train_jobs:
            for item in explain_job(offline, document):
                for field in item.fields:
                    key = (item.title, field.identity)
                    assert key not in found, f"{key} has two origins"
                    found[key] = (field.value, field.origin._replace(line=0))
    return found


def leaves(value: Any) -> int:
    if isinstance(value, dict) and value:
        return sum(leaves(item) for item in value.values())
    return sum(leaves(item) for item in value) if isinstance(value, list) and value else 1


def without(documents: list[Json], origin: Any) -> list[Json]:
    """The same documents without the field that an origin names."""
    runtime, job = copy.deepcopy(documents)
    value: Any = runtime if origin.layer == RUNTIME else job
    *parents, last = steps(origin.field)
    for step in parents:
        value = value[step]
    del value[last]
    return [runtime, job]


@few
@given(train_jobs(), runtimes())
def test_every_field_has_one_origin_and_removing_it_is_seen(job: Json, runtime: Json) -> None:
    documents = [runtime, job]
    before = explained(documents)
    plan = build(
        trainjob_from({**job, "spec": {"suspend": False, **job["spec"]}}),
        runtime_from(runtime),
        Observed(),
        load(discovered={}),
        MaskedKeys(),
    )
    assert {title for title, _ in before} == {
        f"{i.object['kind']}/{i.object['metadata']['name']}" for i in plan.objects
    }
    assert len(before) >= sum(leaves(intention.object) for intention in plan.objects)
    tried: dict[Any, Any] = {}
    for key, (value, origin) in before.items():
        if origin.layer == DEFAULT:
            continue
        if origin not in tried:
            try:
                disabled = (origin.name,) if origin.layer == PLUGIN else ()
                tried[origin] = explained(documents if disabled else without(documents, origin), disabled)
            except Failure:  # without it the input is refused: that is a change
                tried[origin] = {}
        assert tried[origin].get(key) != (value, origin), f"{key} does not depend on {origin}"
