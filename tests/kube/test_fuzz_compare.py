"""Our API server takes what the real one takes and refuses what it refuses: 500 mutated objects, created on both.

A sample of the schema walk (`laws/schemawalk.py`) too: properties of TrainJobs and runtimes with odd values.

What it says in protobuf, in which Go's typed clients ask for failures, is the same to the byte.

They are dry runs, so that no answer depends on an earlier one. `TRAINWRIGHT_FUZZ` multiplies the count,
`TRAINWRIGHT_FUZZ_SEED` draws others.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from commandline import command_line
from embedded.apiserver.test_fuzz import CASES, META, SCALE, SEED, mutate
from kube.conftest import BuiltPrograms
from kube.crds import install_crds
from laws.schemawalk import Case, cases
from laws.test_schema_walk import BASES
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import CLEANERS, RealControlPlane
from trainwright.testing.rest import Rest

OBJECTS = 500 * SCALE

pytestmark = pytest.mark.timeout(600 * SCALE)


@pytest.fixture(scope="module")
def servers(programs: BuiltPrograms, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Rest, Rest]]:
    """(ours, the real one), with the same types and no controllers that would tell them apart."""
    directory: Path = tmp_path_factory.mktemp("fuzz")
    real = RealControlPlane(
        programs,
        directory / "plane",
        with_parts=("kube-controller-manager",),
        controllers=CLEANERS,
        without_admission=("ServiceAccount",),
    )
    with real, command_line(directory / "state") as line:
        install_crds(real)
        line("up", "--detach", "--api-only")
        yield Rest.from_kubeconfig(line.kubeconfig, directory / "scratch"), real.admin


def objects(count: int) -> Iterator[tuple[str, Json]]:
    chance = random.Random(SEED + 1000)
    for _ in range(count):
        path, template = chance.choice(CASES)
        base = {**template, "metadata": {**META, **template.get("metadata", {})}}
        mode = chance.choice(("Strict", "Ignore"))
        yield f"{path}?dryRun=All&fieldValidation={mode}", mutate(base, chance)


def test_mutated_objects_are_accepted_or_refused_as_by_the_real_server(servers: tuple[Rest, Rest]) -> None:
    ours, real = servers
    wrong, accepted = [], 0
    for path, item in objects(OBJECTS):
        mine, my_answer = ours.raw("POST", path, item)
        theirs, their_answer = real.raw("POST", path, item)
        accepted += theirs < 300
        if (mine < 300) != (theirs < 300):
            texts = [f"{code} {message(answer)}" for code, answer in ((mine, my_answer), (theirs, their_answer))]
            wrong.append(f"POST {path} {json.dumps(item)}\n  ours: {texts[0]}\n  real: {texts[1]}")
    assert OBJECTS > accepted > OBJECTS // 50  # both outcomes occur, or the test says nothing
    assert not wrong, f"{len(wrong)} of {OBJECTS} differ:\n" + "\n".join(wrong)


TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
COLLECTIONS = {
    "TrainJob": f"{TRAINER}/namespaces/default/trainjobs",
    "TrainingRuntime": f"{TRAINER}/namespaces/default/trainingruntimes",
    "ClusterTrainingRuntime": f"{TRAINER}/clustertrainingruntimes",
}
WALKED = 200 * SCALE


def test_properties_with_odd_values_are_accepted_or_refused_as_by_the_real_server(servers: tuple[Rest, Rest]) -> None:
    ours, real = servers
    all_of_them = [case for base in BASES for case in cases(base)]
    wrong, accepted = [], 0
    sample: list[Case] = random.Random(SEED).sample(all_of_them, WALKED)
    for case in sample:
        path = f"{COLLECTIONS[case.kind]}?dryRun=All&fieldValidation=Strict"
        mine, my_answer = ours.raw("POST", path, case.value)
        theirs, their_answer = real.raw("POST", path, case.value)
        accepted += theirs < 300
        if (mine < 300) != (theirs < 300):
            texts = [f"{code} {message(answer)}" for code, answer in ((mine, my_answer), (theirs, their_answer))]
            wrong.append(f"{case.kind} {case.path} {case.how}\n  ours: {texts[0]}\n  real: {texts[1]}")
    print(f"{WALKED} of {len(all_of_them)} objects of the schema walk, {accepted} accepted, {len(wrong)} differ")
    assert WALKED > accepted > WALKED // 20
    assert not wrong, f"{len(wrong)} of {WALKED} differ:\n" + "\n".join(wrong)


CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
JOB_SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
JOB_SET = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
FAILURES: list[tuple[str, str, Json | None, str]] = [
    ("GET", f"{CONFIG_MAPS}/none", None, "application/json"),
    ("GET", f"{JOB_SETS}/none", None, "application/json"),
    ("GET", "/api/v1/nothings", None, "application/json"),
    ("DELETE", "/api", None, "application/json"),
    ("DELETE", f"{CONFIG_MAPS}/none", None, "application/json"),
    ("PUT", f"{CONFIG_MAPS}/none", {"metadata": {"name": "other"}}, "application/json"),
    ("POST", CONFIG_MAPS, {"metadata": {"name": "A_b", "labels": {"x y": "z"}}}, "application/json"),
    ("POST", JOB_SETS, {**JOB_SET, "metadata": {"name": "A_b"}}, "application/json"),
    ("POST", "/api/v1/namespaces/nowhere/configmaps", {"metadata": {"name": "a"}}, "application/json"),
    ("PATCH", f"{CONFIG_MAPS}/none", {}, "application/wrong"),
    ("GET", f"{CONFIG_MAPS}?watch=1&resourceVersionMatch=Exact", None, "application/json"),
    ("GET", f"{CONFIG_MAPS}?labelSelector=a+b", None, "application/json"),
]
PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.mark.parametrize("accept", [f"{PROTOBUF},application/json", f"application/json;q=0.5,{PROTOBUF}"])
def test_failures_in_protobuf_are_those_of_the_real_server(servers: tuple[Rest, Rest], accept: str) -> None:
    ours, real = servers
    for method, path, body, kind in FAILURES:
        mine = ours.raw(method, path, body, content_type=kind, accept=accept)
        theirs = real.raw(method, path, body, content_type=kind, accept=accept)
        assert mine == theirs, f"{method} {path}"
        assert theirs[1].startswith(b"k8s\x00")


def message(answer: bytes) -> str:
    try:
        return str(json.loads(answer).get("message", "accepted"))[:400]
    except ValueError:
        return answer[:400].decode(errors="replace")
