"""Jobs with volumes of their own on the real JobSet: suspending, resuming and changing them never costs a volume."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kube.installation import Installation
from kube.stories import TORCH, base, create, jobsets, runtime, trainjob, until_state
from trainwright.schema.jsonobject import Json
from trainwright.testing.controlplane import RealControlPlane

SECONDS = 60.0


@pytest.fixture(scope="module")
def installed(plane: RealControlPlane) -> Iterator[Installation]:
    with Installation(plane) as running:
        yield running


@pytest.fixture
def here(plane: RealControlPlane, installed: Installation) -> Iterator[str]:
    namespace = plane.namespace("claims")
    volume = {
        "metadata": {"name": namespace},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": namespace,
            "hostPath": {"path": "/none"},
        },
    }
    plane.admin.create("/api/v1/persistentvolumes", volume)
    yield namespace
    plane.admin.delete(f"/api/v1/persistentvolumes/{namespace}")


def with_claim(namespace: str) -> Json:
    """A runtime as torchtune's are: claims without the fields that JobSet fills in."""
    claim = {
        "metadata": {"name": "work"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": namespace,
            "resources": {"requests": {"storage": "1024Mi"}},  # JobSet writes 1Gi
        },
    }
    body = runtime("it", TORCH)
    spec = body["spec"]["template"]["spec"]
    spec["volumeClaimPolicies"] = [{"templates": [claim]}]
    [container] = spec["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"]
    container["volumeMounts"] = [{"name": "work", "mountPath": "/work"}]
    return body


class Uids:
    """The JobSet and its claim, by uid."""

    def __init__(self, plane: RealControlPlane, namespace: str) -> None:
        job_set = plane.admin.get(f"{jobsets(namespace)}/job")
        [claim] = plane.admin.items(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims")
        assert not claim["metadata"].get("deletionTimestamp")
        self.both = (job_set["metadata"]["uid"], claim["metadata"]["uid"])


def suspend(plane: RealControlPlane, namespace: str, value: bool) -> None:
    plane.admin.patch(f"{base(namespace)}/trainjobs/job", {"spec": {"suspend": value}})


def no_pods(plane: RealControlPlane, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    plane.admin.until(pods, lambda found: found is not None and not found["items"], what="no pods", seconds=SECONDS)


def test_a_running_job_with_claims_is_suspended_and_resumed_with_its_jobset_and_volume(
    plane: RealControlPlane, here: str
) -> None:
    create(plane.admin, here, with_claim(here), trainjob("job", "it", "hang"))
    until_state(plane.admin, here, "Running")
    before = Uids(plane, here).both
    for _ in range(2):
        suspend(plane, here, True)
        no_pods(plane, here)
        until_state(plane.admin, here, "Suspended")
        assert Uids(plane, here).both == before
        suspend(plane, here, False)
        until_state(plane.admin, here, "Running")
        assert Uids(plane, here).both == before


def test_a_job_with_claims_that_starts_suspended_keeps_its_jobset_and_volume(
    plane: RealControlPlane, here: str
) -> None:
    create(plane.admin, here, with_claim(here), trainjob("job", "it", suspend=True))
    until_state(plane.admin, here, "Suspended")
    claims = f"/api/v1/namespaces/{here}/persistentvolumeclaims"
    plane.admin.until(claims, lambda found: bool(found and found["items"]), what="claim", seconds=SECONDS)
    before = Uids(plane, here).both
    suspend(plane, here, False)
    until_state(plane.admin, here, "Complete")
    assert Uids(plane, here).both == before


def test_a_change_that_jobset_refuses_never_costs_the_volume_and_the_message_says_what_to_do(
    plane: RealControlPlane, here: str
) -> None:
    create(plane.admin, here, with_claim(here), trainjob("job", "it", "hang", suspend=True))
    until_state(plane.admin, here, "Suspended")
    claims = f"/api/v1/namespaces/{here}/persistentvolumeclaims"
    plane.admin.until(claims, lambda found: bool(found and found["items"]), what="claim", seconds=SECONDS)
    before = Uids(plane, here).both
    pod = {"template": {"spec": {"volumes": [{"name": "scratch", "emptyDir": {}}]}}}
    jobs = [{"name": "node", "template": {"spec": pod}}]
    patch = {"manager": "test.io/claims", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}
    plane.admin.patch(f"{base(here)}/trainjobs/job", {"spec": {"runtimePatches": [patch]}})

    def says_so(found: Json | None) -> bool:
        message = ((found or {}).get("status") or {}).get("message") or ""
        return "would delete its PersistentVolumeClaims: take the change back" in message

    plane.admin.until(f"{base(here)}/trainjobs/job", says_so, what="status.message", seconds=SECONDS)
    assert Uids(plane, here).both == before
    plane.admin.patch(f"{base(here)}/trainjobs/job", {"spec": {"runtimePatches": None}})
    suspend(plane, here, False)
    until_state(plane.admin, here, "Running")
    assert Uids(plane, here).both == before
