"""What a real Kueue 0.15.2 counts of an elastic TrainJob, and what it does when the job is scaled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster import kueue
from kube.conftest import BuiltPrograms
from kube.crds import install_crds
from kube.installation import MANIFESTS, Installation
from kube.stories import base, create, runtime, trainjob, until_state
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import RealControlPlane, documents

RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    directory = tmp_path_factory.mktemp("kueue")
    with RealControlPlane(BuiltPrograms(), tmp_path_factory.mktemp("plane")) as running:
        install_crds(running)
        running.admin.create("/api/v1/namespaces", {"metadata": {"name": "kubeflow-system"}})
        running.admin.patch("/api/v1/nodes/node-0", {"metadata": {"labels": {"pool": "training"}}})
        for item in documents((MANIFESTS / "components/kueue/cluster_role.yaml").read_text()):
            running.admin.create(f"{RBAC}/{item['kind'].lower()}s", item)
        with Installation(running, overlay="manager"):
            process = kueue.start(running, directory)
            try:
                yield running
            finally:
                process.stop(grace=0)


def elastic() -> Json:
    made = runtime("it", {"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 4}}})
    (job,) = made["spec"]["template"]["spec"]["replicatedJobs"]
    job["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    return made


def counted(plane: RealControlPlane, namespace: str) -> list[tuple[str, list[int]]]:
    """The workloads of a namespace, each with the pods that Kueue counts for it."""
    return [
        (item["metadata"]["uid"], [podset["count"] for podset in item["spec"]["podSets"]])
        for item in plane.admin.items(f"{kueue.API}/namespaces/{namespace}/workloads")
    ]


def uids(plane: RealControlPlane, namespace: str) -> set[str]:
    return {pod["metadata"]["uid"] for pod in plane.admin.items(f"/api/v1/namespaces/{namespace}/pods")}


def queued(name: str, nodes: int | None) -> Json:
    job = trainjob(name, "it", "hang")
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "main"}
    job["spec"]["trainer"]["numNodes"] = nodes
    if nodes is None:
        del job["spec"]["trainer"]["numNodes"]
    return job


def scaled(plane: RealControlPlane, namespace: str, name: str, nodes: int) -> tuple[int, str]:
    path = f"{base(namespace)}/trainjobs/{name}/scale"
    body = {"spec": {"replicas": nodes}}
    code, answer = plane.admin.raw("PATCH", path, body, content_type="application/merge-patch+json")
    return code, answer.decode()


def test_kueue_counts_the_nodes_and_nobody_changes_them_while_it_trains(plane: RealControlPlane) -> None:
    """Kueue 0.15.2 counts `numNodes`; for another number it deletes its Workload and suspends the job, which then
    starts anew with all its pods. So such a scaling is refused while the job trains, and allowed while it waits.
    """
    namespace = plane.namespace()
    kueue.queue(plane, namespace, cpus=4)
    create(plane.admin, namespace, elastic(), queued("job", None))
    until_state(plane.admin, namespace, "Running", "job")
    [(workload, counts)] = counted(plane, namespace)
    assert counts == [2], "the fewest, which the operator wrote before Kueue admitted it"

    def is_held(job: Json | None) -> bool:
        limits = ((job or {}).get("status") or {}).get("elastic") or {}
        return (limits.get("minNodes"), limits.get("maxNodes")) == (2, 2)

    plane.admin.until(f"{base(namespace)}/trainjobs/job", is_held, what="its nodes are held", seconds=30)
    before = uids(plane, namespace)
    code, answer = scaled(plane, namespace, "job", 3)
    assert code == 422
    assert "no more than status.elastic.maxNodes" in answer
    body = {"spec": {"trainer": {"numNodes": 3}}}
    code, _ = plane.admin.raw(
        "PATCH", f"{base(namespace)}/trainjobs/job", body, content_type="application/merge-patch+json"
    )
    assert code == 422

    create(plane.admin, namespace, queued("second", 4))
    until_state(plane.admin, namespace, "Suspended", "second")

    def may_change(job: Json | None) -> bool:
        return (((job or {}).get("status") or {}).get("elastic") or {}).get("maxNodes") == 4

    plane.admin.until(f"{base(namespace)}/trainjobs/second", may_change, what="its limits", seconds=30)
    assert scaled(plane, namespace, "second", 2)[0] == 200, "what waits may ask for fewer"
    until_state(plane.admin, namespace, "Running", "second")
    assert before <= uids(plane, namespace), "the first went on"
    assert (workload, [2]) in counted(plane, namespace)
