"""kubectl follows a training run on the local cluster: apply, get, watch, logs, wait, describe, delete."""

from __future__ import annotations

import pytest
import yaml

from commandline import plain_job
from kubectl.kubectl import Kubectl
from waiting import eventually

JOB = plain_job(
    "talk",
    """
    import os, time
    print("hello from", os.environ["JOB_COMPLETION_INDEX"], flush=True)
    time.sleep(2)
    print("goodbye", flush=True)
    """,
    nodes=2,
)


@pytest.fixture(scope="module")
def applied(kubectl: Kubectl) -> str:
    result = kubectl("apply", "-f", "-", stdin=JOB)
    assert result.code == 0, result.text
    return result.out


def test_apply_says_what_it_created(applied: str) -> None:
    assert applied.splitlines() == [
        "trainingruntime.trainer.kubeflow.org/talk-runtime created",
        "trainjob.trainer.kubeflow.org/talk created",
    ]


def test_get_watch_shows_the_job_to_its_end(kubectl: Kubectl, applied: str) -> None:
    watched = kubectl.until(["get", "trainjobs", "-w"], r"talk +Complete", seconds=60)
    assert watched.code == 0, watched.text


def test_get_trainjobs_shows_its_state(kubectl: Kubectl, applied: str) -> None:
    assert kubectl("wait", "trainjob/talk", "--for=condition=Complete", "--timeout=60s").code == 0
    listed = kubectl("get", "trainjobs")
    assert listed.out.splitlines()[0].split()[:2] == ["NAME", "STATE"]
    assert listed.out.splitlines()[1].split()[:2] == ["talk", "Complete"]


def test_get_shows_jobsets_jobs_and_pods_at_once(kubectl: Kubectl, applied: str) -> None:
    assert kubectl("wait", "trainjob/talk", "--for=condition=Complete", "--timeout=60s").code == 0
    listed = kubectl("get", "jobsets,jobs,pods")
    assert listed.code == 0, listed.text
    assert "jobset.jobset.x-k8s.io/talk" in listed.out
    assert "job.batch/talk-node-0" in listed.out
    pods = [line.split() for line in listed.out.splitlines() if line.startswith("pod/talk-node-0-")]
    assert [(pod[1], pod[2]) for pod in pods] == [("0/1", "Completed")] * 2


def test_get_yaml_is_the_whole_object(kubectl: Kubectl, applied: str) -> None:
    result = kubectl("get", "trainjob", "talk", "-o", "yaml")
    job = yaml.safe_load(result.out)
    assert (job["kind"], job["spec"]["trainer"]["numNodes"]) == ("TrainJob", 2)
    assert job["metadata"]["uid"]


def test_logs_of_a_pod_and_of_all_pods(kubectl: Kubectl, applied: str) -> None:
    assert kubectl("wait", "trainjob/talk", "--for=condition=Complete", "--timeout=60s").code == 0
    selector = ["-l", "jobset.sigs.k8s.io/jobset-name=talk"]
    names = kubectl("get", "pods", *selector, "-o", "name").out.split()
    assert len(names) == 2
    lines = {tuple(kubectl("logs", name).out.splitlines()) for name in names}
    assert lines == {("hello from 0", "goodbye"), ("hello from 1", "goodbye")}
    every = kubectl("logs", *selector, "--tail=-1", "--prefix").out.splitlines()
    assert len(every) == 4
    assert kubectl("logs", "job/talk-node-0", "--tail=1").out.strip() == "goodbye"


def test_describe_tells_its_story(kubectl: Kubectl, applied: str) -> None:
    assert kubectl("wait", "trainjob/talk", "--for=condition=Complete", "--timeout=60s").code == 0
    told = kubectl("describe", "trainjob", "talk").out
    assert "Type:" in told
    assert "Complete" in told


TOKEN_JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: token}
spec:
  template:
    spec:
      restartPolicy: Never
      volumes: [{name: token, projected: {sources: [{serviceAccountToken: {path: token, audience: somebody}}]}}]
      containers:
      - name: main
        image: python
        command: [python3, -c]
        args: ["import base64; print(base64.urlsafe_b64decode(open('/var/run/it/token').read().split('.')[1] + '=='))"]
        volumeMounts: [{name: token, mountPath: /var/run/it}]
"""


def test_a_pod_that_names_no_service_account_mounts_the_default_ones_token(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=TOKEN_JOB).code == 0
    done = kubectl("wait", "job/token", "--for=condition=Complete", "--timeout=60s")
    assert done.code == 0, done.text + kubectl("describe", "pods", "-l", "job-name=token").text
    claims = kubectl("logs", "job/token").out
    assert "system:serviceaccount:default:default" in claims
    assert "somebody" in claims
    assert kubectl("delete", "job", "token").code == 0


def test_the_log_of_a_pod_that_cannot_start_says_that_it_waits(kubectl: Kubectl) -> None:
    waiting = TOKEN_JOB.replace("name: token}\nspec", "name: stuck}\nspec").replace(
        "projected: {sources: [{serviceAccountToken: {path: token, audience: somebody}}]}", "secret: {secretName: none}"
    )
    assert kubectl("apply", "-f", "-", stdin=waiting).code == 0
    pods = ["-l", "job-name=stuck"]
    assert kubectl("wait", "pod", *pods, "--for=condition=PodScheduled", "--timeout=30s").code == 0
    said = kubectl("logs", "job/stuck")
    assert said.code == 1
    assert 'container "main" in pod "stuck-' in said.err
    assert "is waiting to start: " in said.err
    assert kubectl("delete", "job", "stuck").code == 0


def test_logs_can_be_followed_while_it_runs(kubectl: Kubectl) -> None:
    slow = plain_job(
        "follow", "import time\nfor n in range(30):\n    print('tick', n, flush=True)\n    time.sleep(0.2)"
    )
    assert kubectl("apply", "-f", "-", stdin=slow).code == 0
    found = kubectl("wait", "pod", "-l", "jobset.sigs.k8s.io/jobset-name=follow", "--for=create", "--timeout=30s")
    assert found.code == 0, found.text
    selector = ["-l", "jobset.sigs.k8s.io/jobset-name=follow"]
    ready = kubectl("wait", "pod", *selector, "--for=jsonpath={.status.phase}=Running", "--timeout=30s")
    assert ready.code == 0, ready.text
    followed = kubectl.until(["logs", "-f", *selector], r"tick 5", seconds=20)
    assert followed.code == 0, followed.text
    assert kubectl("delete", "trainjob", "follow", "--timeout=60s").code == 0


def test_delete_takes_everything_with_it(kubectl: Kubectl, applied: str) -> None:
    deleted = kubectl("delete", "trainjob", "talk")
    assert (deleted.code, deleted.out.strip()) == (
        0,
        'trainjob.trainer.kubeflow.org "talk" deleted from default namespace',
    )
    eventually("nothing is left", lambda: kubectl("get", "jobsets,jobs,pods", "-o", "name").out == "")
