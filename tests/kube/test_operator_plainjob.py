"""The example plugin PlainJob on a real Kubernetes: TrainJobs as plain Jobs, with the shipped roles and the example's.

The operator starts with an empty directory of plugins, and the plugin's file is dropped into it while it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client import generate_latest

from kube.installation import USER, Installation, refusal
from kube.stories import base, create, jobsets, runtime, trainjob, until_state
from trainwright.schema.jsonobject import Json
from trainwright.testing.audit import requests
from trainwright.testing.controlplane import RealControlPlane
from trainwright.testing.grants import unused
from waiting import eventually

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugins" / "plainjob"
PLUGIN = EXAMPLE / "trainwright_plainjob.py"
ROLE, BINDING = yaml.safe_load_all((EXAMPLE / "role.yaml").read_text())


class WithPlugins(Installation):
    """An operator with a directory of plugins and the example's role."""

    def __init__(self, plane: RealControlPlane, directory: Path) -> None:
        super().__init__(plane)
        self.directory = directory
        self.began = plane.audit_position()

    def install(self) -> None:
        super().install()
        for item in (ROLE, BINDING):
            self.plane.admin.apply(self._path(item), item, manager="installation")
            self.objects.append(item)

    def configuration(self) -> str:
        return f"{super().configuration()}\nplugins: {{directory: {self.directory}}}\n"

    def put(self, source: str) -> None:
        """Write the plugin's file, as a ConfigMap's change would."""
        (self.directory / PLUGIN.name).write_text(source)
        (self.directory / PLUGIN.name).chmod(0o644)

    def serve(self, source: str) -> None:
        """Write the plugin's file and wait until its plugins are in force."""
        before = self.operator.operator.kinds.framework
        self.put(source)
        eventually("the file to be read", lambda: self.operator.operator.kinds.framework is not before)

    @property
    def figures(self) -> str:
        return generate_latest(self.operator.operator.metrics.registry).decode()


@pytest.fixture(scope="module")
def installed(plane: RealControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithPlugins]:
    with WithPlugins(plane, tmp_path_factory.mktemp("plugins")) as running:
        running.serve(PLUGIN.read_text())
        yield running


@pytest.fixture
def here(plane: RealControlPlane, installed: WithPlugins) -> str:
    namespace = plane.namespace("plain")
    create(plane.admin, namespace, runtime("it", {"numNodes": 1}))
    return namespace


def plain(outcome: str = "complete", nodes: int = 1, name: str = "job", **spec: object) -> Json:
    job = trainjob(name, "it", outcome, **spec)
    job["metadata"]["labels"] = {"example.com/plain-job": "true"}
    job["spec"]["trainer"]["numNodes"] = nodes
    return job


def job_path(namespace: str, name: str = "job") -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}"


def train_job_path(namespace: str) -> str:
    return f"{base(namespace)}/trainjobs/job"


def until_no_pods(plane: RealControlPlane, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    plane.admin.until(pods, lambda found: found is not None and not found["items"], what="no pods")


def condition(item: Json, type: str) -> Json:
    [found] = [it for it in item["status"]["conditions"] if it["type"] == type]
    return dict(found)


def test_a_plain_job_completes_without_a_jobset(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, plain())
    train_job = until_state(plane.admin, here, "Complete")
    job = plane.admin.get(job_path(here))
    assert job["metadata"]["ownerReferences"][0]["uid"] == train_job["metadata"]["uid"]
    assert job["metadata"]["annotations"]["trainwright.dev/workload"] == "PlainJob"
    ours, theirs = condition(train_job, "Complete"), condition(job, "Complete")
    assert [ours[it] for it in ("reason", "message", "lastTransitionTime")] == [
        theirs[it] for it in ("reason", "message", "lastTransitionTime")
    ]
    assert train_job["status"]["jobsStatus"][0]["succeeded"] == 1
    assert plane.admin.items(jobsets(here)) == []


def test_a_plain_job_whose_pod_fails_fails_with_the_jobs_words(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, plain("fail"))
    failed = condition(until_state(plane.admin, here, "Failed"), "Failed")
    theirs = condition(plane.admin.get(job_path(here)), "Failed")
    assert (failed["reason"], failed["message"]) == (theirs["reason"], theirs["message"])


def test_at_the_deadline_a_plain_job_fails_and_its_pods_go(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, plain("hang", activeDeadlineSeconds=3))
    until_state(plane.admin, here, "Running")
    failed = condition(until_state(plane.admin, here, "Failed"), "Failed")
    assert failed["reason"] == "DeadlineExceeded"
    plane.admin.until(job_path(here), lambda found: found is None, what="Job gone")
    until_no_pods(plane, here)


def test_a_plain_job_is_suspended_and_resumed(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, plain("hang"))
    until_state(plane.admin, here, "Running")
    first = plane.admin.get(job_path(here))["metadata"]["uid"]
    plane.admin.patch(train_job_path(here), {"spec": {"suspend": True}})
    until_state(plane.admin, here, "Suspended")
    until_no_pods(plane, here)
    plane.admin.patch(train_job_path(here), {"spec": {"suspend": False}})
    until_state(plane.admin, here, "Running")
    assert plane.admin.get(job_path(here))["metadata"]["uid"] == first


def test_a_plain_job_that_begins_suspended_completes_when_it_is_resumed(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, plain(suspend=True))
    until_state(plane.admin, here, "Suspended")
    assert plane.admin.get(job_path(here))["spec"]["suspend"] is True
    plane.admin.patch(train_job_path(here), {"spec": {"suspend": False}})
    train_job = until_state(plane.admin, here, "Complete")
    assert condition(train_job, "Suspended")["reason"] == "Resumed"


def test_a_job_deleted_by_hand_is_built_again(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, plain("hang"))
    until_state(plane.admin, here, "Running")
    first = plane.admin.get(job_path(here))["metadata"]["uid"]
    plane.admin.delete(job_path(here))
    job = plane.admin.until(
        job_path(here), lambda found: found is not None and found["metadata"]["uid"] != first, what="another Job"
    )
    assert job is not None
    assert job["metadata"]["ownerReferences"][0]["kind"] == "TrainJob"
    until_state(plane.admin, here, "Running")


def test_more_than_one_node_is_refused_with_a_sentence(plane: RealControlPlane, here: str) -> None:
    assert refusal(plane, f"{base(here)}/trainjobs", plain(nodes=2)).endswith(
        "spec.trainer.numNodes: Invalid value: 2: must be 1: "
        'a TrainJob labelled example.com/plain-job: "true" runs as one Job of one node'
    )


def test_any_other_job_is_a_jobset_as_before(plane: RealControlPlane, here: str) -> None:
    create(plane.admin, here, trainjob("job", "it"))
    until_state(plane.admin, here, "Complete")
    assert [it["metadata"]["name"] for it in plane.admin.items(jobsets(here))] == ["job"]


def test_a_changed_file_serves_the_next_job_and_a_broken_one_leaves_the_last_good(
    plane: RealControlPlane, here: str, installed: WithPlugins
) -> None:
    create(plane.admin, here, plain("hang"))
    until_state(plane.admin, here, "Running")
    before = plane.admin.get(job_path(here))
    source = PLUGIN.read_text()
    changed = source.replace('"labels": labels', '"labels": {**labels, "example.com/version": "2"}')
    assert changed != source
    installed.serve(changed)
    create(plane.admin, here, plain(name="changed"))
    until_state(plane.admin, here, "Complete", "changed")
    assert plane.admin.get(job_path(here, "changed"))["metadata"]["labels"]["example.com/version"] == "2"
    installed.put("class Broken:\n")
    eventually(
        "the file to be read", lambda: f'trainwright_plugins_broken{{file="{PLUGIN.name}"}} 1.0' in installed.figures
    )
    create(plane.admin, here, plain(name="broken"))
    until_state(plane.admin, here, "Complete", "broken")
    assert plane.admin.get(job_path(here, "broken"))["metadata"]["labels"]["example.com/version"] == "2"
    assert plane.admin.get(job_path(here)) == before, "what runs is left alone"
    installed.serve(source)


def test_every_verb_of_its_role_was_used(plane: RealControlPlane, installed: WithPlugins) -> None:
    assert [str(it) for it in unused([ROLE], requests(plane.audit_events(installed.began), user=USER))] == []
