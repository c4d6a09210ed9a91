"""No value of any property of a TrainJob or a runtime is more than refused (Z1).

Every property of the three schemas, with every odd value (`schemawalk`): the object is admitted or refused, by the
rules that webhooks and `validate` share and by our API server alike, and what is admitted can be built, or cannot with
a reason. Every 100th by default; with `TRAINWRIGHT_SCHEMA_SHARE=1` all of them (`make test-long`). A sample is judged
beside the real API server by `tests/kube/test_fuzz_compare.py`.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from laws.schemawalk import Case, cases, properties
from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS, TRAINING_RUNTIMES
from trainwright.api.runtime import TrainingRuntime, runtime_from
from trainwright.api.schema import schema_for
from trainwright.api.trainjob import RuntimeRef, trainjob_from
from trainwright.cli.files.configured import framework_of
from trainwright.client.requests import Request, path_of
from trainwright.pipeline import Observed, PipelineError, build
from trainwright.pipeline.admission import Lookup, admit_runtime, admit_trainjob
from trainwright.pipeline.plan import MASK, MaskedKeys
from trainwright.schema.jsonobject import Json
from trainwright.testing.virtualserver import VirtualServer

SHARE = int(os.environ.get("TRAINWRIGHT_SCHEMA_SHARE", "100"))
VERSION = "trainer.kubeflow.org/v1alpha1"
STEP = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
NODE: Json = {
    "name": "node",
    "template": {
        "metadata": STEP,
        "spec": {"template": {"spec": {"containers": [{"name": "node", "image": "python"}]}}},
    },
}
TEMPLATE: Json = {"spec": {"replicatedJobs": [NODE]}}
RUNTIME: Json = {"mlPolicy": {"numNodes": 2, "torch": {}}, "template": TEMPLATE}
BASES: list[Json] = [
    {
        "apiVersion": VERSION,
        "kind": "TrainJob",
        "metadata": {"name": "job", "namespace": "default", "uid": "1"},
        "spec": {"runtimeRef": {"name": "it"}},
    },
    *(
        {"apiVersion": VERSION, "kind": kind, "metadata": {"name": "it"}, "spec": RUNTIME}
        for kind in ("TrainingRuntime", "ClusterTrainingRuntime")
    ),
]
PLURALS = {it.kind: it for it in (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)}
NOW = "2024-01-01T00:00:00Z"


def chosen() -> Iterator[Case]:
    return itertools.islice((case for base in BASES for case in cases(base)), 0, None, SHARE)


class Judge:
    """Plays admission and the build, without a cluster."""

    def __init__(self) -> None:
        self.framework = framework_of(None, None)
        self.observed = Observed(ca_certificate=MASK, priority_classes=frozenset())
        answer = admit_runtime(BASES[2], schema_for("ClusterTrainingRuntime"))
        assert not answer.messages
        self._runtime = runtime_from(answer.value)

    def outcome(self, case: Case) -> str:
        """`refused`, `cannot be built`, or `built`. Whatever else happens is a fault of ours."""
        if case.kind == "TrainJob":
            lookup = Lookup(self._find, self.observed)
            answer = admit_trainjob(case.value, None, schema_for(case.kind), lookup, self.framework, NOW)
            return "refused" if answer.messages else self._built(answer.value, self._runtime)
        answer = admit_runtime(case.value, schema_for(case.kind))
        return "refused" if answer.messages else self._built(BASES[0], runtime_from(answer.value))

    def _find(self, ref: RuntimeRef, namespace: str) -> TrainingRuntime | None:
        return self._runtime if ref.name == "it" else None

    def _built(self, job: Json, runtime: TrainingRuntime) -> str:
        try:
            build(trainjob_from(job), runtime, self.observed, self.framework, MaskedKeys())
        except PipelineError:
            return "cannot be built"
        return "built"


@pytest.mark.timeout(3600)
def test_every_property_with_every_odd_value_is_admitted_or_refused() -> None:
    judge = Judge()
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    touched: dict[str, set[str]] = {base["kind"]: set() for base in BASES}
    for case in chosen():
        touched[case.kind].add(case.path)
        try:
            outcomes[judge.outcome(case)] += 1
        except Exception as error:  # noqa: BLE001 - any at all is what this looks for
            wrong.append(f"{case.kind} {case.path} {case.how}: {type(error).__name__}: {str(error)[:200]}")
    print(f"{sum(outcomes.values())} objects: {dict(outcomes)}, {len(wrong)} wrong")
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:40])
    assert min(outcomes["refused"], outcomes["built"]) > 5
    if SHARE == 1:
        for base in BASES:
            assert touched[base["kind"]] == properties(base)


@pytest.mark.timeout(3600)
async def test_our_api_server_admits_what_the_rules_admit_and_never_fails() -> None:
    """Its schemas are the same; it has no webhooks here, so it may admit more."""
    judge = Judge()
    wrong: list[str] = []
    admitted = count = 0
    async with VirtualServer() as server:
        for case in chosen():
            status, answer = await _create(server, case)
            count += 1
            admitted += status < 300
            if status >= 500:
                wrong.append(f"{case.kind} {case.path} {case.how}: {status} {answer}")
            if status >= 300 and judge.outcome(case) != "refused":
                wrong.append(f"{case.kind} {case.path} {case.how}: only the server refuses it: {answer}")
    print(f"{count} objects, {admitted} admitted, {len(wrong)} wrong")
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:40])
    assert count > admitted > count // 20


async def _create(server: VirtualServer, case: Case) -> tuple[int, Any]:
    resource = PLURALS[case.kind]
    path = path_of(resource, "default" if resource.namespaced else None)
    body = msgspec.json.encode(case.value)
    answer = await server.admin.transport.send(Request("POST", path, (("dryRun", "All"),), body), deadline=30.0)
    return answer.status, msgspec.json.decode(answer.body).get("message", "")
