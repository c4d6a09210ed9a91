"""The operator copes with a second operator, with etcd away, and with a CRD that is not installed yet.

`TRAINWRIGHT_FREEZES` is how often a leader is stopped past its lease (`make test-long`: 50), `TRAINWRIGHT_RESTARTS` how
often operators are restarted in turn, every five seconds (120, with 200 jobs).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kube.crds import install_crds
from kube.installation import NAMESPACE, Installation
from kube.stories import STORIES, TORCH, Story, base, create, jobsets, runtime, trainjob, until_state
from trainwright.schema.jsonobject import Json
from trainwright.testing.audit import requests
from trainwright.testing.controlplane import RealControlPlane
from trainwright.testing.operators import OperatorInThread
from trainwright.testing.processes import Process
from trainwright.testing.watchlog import WatchLog
from waiting import eventually

FREEZES = int(os.environ.get("TRAINWRIGHT_FREEZES", "1"))
RESTARTS = int(os.environ.get("TRAINWRIGHT_RESTARTS", "2"))
FIRST_LEADER = "first-leader"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/trainer.kubeflow.org"


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_two_operators_without_election_are_as_good_as_one(plane: RealControlPlane, story: Story) -> None:
    namespace = plane.namespace("two")
    users = [f"{name}-{namespace}" for name in ("first", "second")]
    first, second = (OperatorInThread(plane.user_kubeconfig(user, "system:masters")) for user in users)
    begin = plane.audit_position()
    with first, second:
        story(plane.admin, namespace)
        time.sleep(1.5)
        quiet_since = time.time()
        time.sleep(5)
    here = requests(plane.audit_events(begin), namespace=namespace, agent="trainwright")
    created = [request for request in here if request.is_creation and request.resource != "events"]
    names = [(request.resource, request.name) for request in created]
    again = {"jobsets"} if story.__name__ == "is_deleted_and_made_again" else set()
    doubled = {name for name in names if names.count(name) > 1 and name[0] not in again}
    assert not doubled
    assert [str(request) for request in here if request.is_write and request.at > quiet_since] == []


def test_with_etcd_stopped_and_started_running_jobs_go_on_and_new_ones_complete(plane: RealControlPlane) -> None:
    namespace = plane.namespace("etcd")
    with OperatorInThread(plane.user_kubeconfig(f"operator-{namespace}", "system:masters")) as operator:
        create(plane.admin, namespace, runtime("it", TORCH), trainjob("before", "it", "hang"))
        until_state(plane.admin, namespace, "Running", "before")
        uid = plane.admin.get(f"{jobsets(namespace)}/before")["metadata"]["uid"]
        etcd = plane.parts["etcd"]
        etcd.stop()
        time.sleep(5)
        etcd.start()
        plane.parts["kube-apiserver"].wait_until(plane.is_ready, 60)
        create_when_possible(plane, namespace, trainjob("after", "it"))
        until_state(plane.admin, namespace, "Complete", "after")
        assert plane.admin.get(f"{jobsets(namespace)}/before")["metadata"]["uid"] == uid
        assert operator.error is None


def create_when_possible(plane: RealControlPlane, namespace: str, job: Json) -> None:
    assert until_created(plane, f"{base(namespace)}/trainjobs", job) in (201, 409)


def until_created(plane: RealControlPlane, path: str, body: Json) -> int:
    """Create an object; the first answers after etcd is back, or before a webhook is up, may be failures."""

    def created() -> int | None:
        code, _ = plane.admin.raw("POST", path, body)
        return code if code in (201, 409) else None

    code = eventually("the object to be created", created, 60)
    assert code is not None
    return code


@pytest.fixture
def bare_plane(plane: RealControlPlane, tmp_path: Path) -> Iterator[RealControlPlane]:
    """A control plane of its own, with our CRDs and without JobSet."""
    parts = ("kube-controller-manager", "kube-scheduler", "kwok")
    with RealControlPlane(plane.programs, tmp_path / "bare", with_parts=parts) as running:
        install_crds(running, ours_only=True)
        yield running


@pytest.mark.timeout(240)
def test_jobset_may_be_installed_after_the_operator_and_no_restart_is_needed(bare_plane: RealControlPlane) -> None:
    admin = bare_plane.admin
    namespace = bare_plane.namespace("late")
    with OperatorInThread(bare_plane.admin_kubeconfig) as operator:
        create(admin, namespace, runtime("it", TORCH), trainjob("job", "it"))
        message = "jobsets.jobset.x-k8s.io is not served by this API server"

        def says_so(job: Json | None) -> bool:
            return message in ((job or {}).get("status") or {}).get("message", "")

        admin.until(f"{base(namespace)}/trainjobs/job", says_so, what="the message")
        assert operator.operator.is_ready
        bare_plane.install_jobset()
        until_state(admin, namespace, "Complete")
        assert operator.error is None


class OperatorProcess:
    """The operator as `trainwright operator --take-over` runs it: the webhooks call the other one of the two."""

    def __init__(self, installed: Installation, name: str, directory: Path) -> None:
        configuration = directory / f"{name}.yaml"
        configuration.write_text(installed.configuration())
        self.name = name
        script = (
            "import logging, pathlib, sys; from trainwright.operator.run import run_operator;"
            "from trainwright.operator.certificates.material import Policy;"
            "logging.basicConfig(level=logging.INFO);"
            "sys.exit(run_operator(config=pathlib.Path(sys.argv[1]), kubeconfig=pathlib.Path(sys.argv[2]),"
            f"namespace={NAMESPACE!r}, identity=sys.argv[3], take_over=True,"
            "policy=Policy('x.svc', addresses=('127.0.0.1',))))"
        )
        argv = [sys.executable, "-c", script, str(configuration), str(installed.kubeconfig), name]
        self.process = Process(name, argv, directory / f"{name}.log")


@contextmanager
def two_processes(
    plane: RealControlPlane, directory: Path, kubeconfig_of_one: Path | None = None
) -> Iterator[tuple[OperatorProcess, OperatorProcess]]:
    first, second = Installation(plane, lease_seconds=4), Installation(plane, lease_seconds=4)
    first.install()
    second.kubeconfig = kubeconfig_of_one or first.kubeconfig
    plane.admin.delete_if_there(LEASE)
    # The API server calls the webhooks of the other one: the first will be stopped.
    one, other = OperatorProcess(second, "one", directory), OperatorProcess(first, "other", directory)
    try:
        one.process.start()
        plane.admin.until(LEASE, lambda lease: holder(lease) == "one", what="one leads")
        other.process.start()
        yield one, other
    finally:
        for part in (one, other):
            part.process.stop(grace=0)
        first.uninstall()


def holder(lease: Json | None) -> str:
    return ((lease or {}).get("spec") or {}).get("holderIdentity") or ""


@pytest.mark.timeout(120 + 60 * FREEZES)
def test_a_leader_that_was_stopped_past_its_lease_writes_nothing_and_stands_again(
    plane: RealControlPlane, tmp_path: Path
) -> None:
    namespace = plane.namespace("leader")
    with two_processes(plane, tmp_path, plane.user_kubeconfig(FIRST_LEADER, "system:masters")) as (one, other):
        created = until_created(plane, f"{base(namespace)}/trainingruntimes", runtime("it", TORCH))
        assert created == 201
        create_when_possible(plane, namespace, trainjob("first", "it", "hang"))
        until_state(plane.admin, namespace, "Running", "first")
        for number in range(FREEZES):
            begin = plane.audit_position()
            os.kill(one.process.pid, signal.SIGSTOP)
            plane.admin.until(LEASE, lambda lease: holder(lease) == "other", what="the other leads", seconds=60)
            expired = time.time()
            create_when_possible(plane, namespace, trainjob(f"job-{number}", "it"))
            until_state(plane.admin, namespace, "Complete", f"job-{number}")
            os.kill(one.process.pid, signal.SIGCONT)
            time.sleep(5)
            assert one.process.is_alive(), "it keeps its process, and stands for election again"
            late = [
                request
                for request in requests(plane.audit_events(begin), user=FIRST_LEADER)
                if request.is_write and request.at > expired
            ]
            assert [str(request) for request in late if request.succeeded] == []
            assert other.process.is_alive()
            if number + 1 < FREEZES:
                lead_again(plane, one, other)
    print(f"{FREEZES} leaders were stopped past their lease: 0 writes afterwards")


def lead_again(plane: RealControlPlane, one: OperatorProcess, other: OperatorProcess) -> None:
    """The second, which leads, is restarted, so that the first, which stands for election, leads."""
    other.process.stop()
    plane.admin.until(LEASE, lambda lease: holder(lease) == "one", what="one leads", seconds=60)
    other.process.start()


@pytest.mark.timeout(300 + 30 * RESTARTS)
def test_each_job_is_made_once_while_operators_are_restarted_in_turn(plane: RealControlPlane, tmp_path: Path) -> None:
    namespace = plane.namespace("rolling")
    jobs = max(6, min(200, 2 * RESTARTS))
    with WatchLog(plane.admin) as log:
        with two_processes(plane, tmp_path) as (one, other):
            assert until_created(plane, f"{base(namespace)}/trainingruntimes", runtime("it", TORCH)) == 201
            made = 0
            for turn in range(RESTARTS):
                for _ in range(-(-jobs // RESTARTS)):
                    create_when_possible(plane, namespace, trainjob(f"job-{made}", "it"))
                    made += 1
                restarted = (one, other)[turn % 2].process
                restarted.send(signal.SIGTERM)
                eventually("it ends", lambda process=restarted: not process.is_alive(), 20)  # type: ignore[misc]
                restarted.start()
                time.sleep(5)
            for number in range(made):
                until_state(plane.admin, namespace, "Complete", f"job-{number}")
        log.settle()
    born = Counter(it.name for it in log.changes(namespace) if (it.type, it.kind) == ("ADDED", "JobSet"))
    assert born == {f"job-{number}": 1 for number in range(made)}
    print(f"{RESTARTS} restarts, {made} jobs: each has one JobSet and is complete")


def exit_code(process: Process, signals: list[signal.Signals]) -> int:
    """Send all signals, and wait for the process to end."""
    for number in signals:
        process.send(number)
    _, status = os.waitpid(process.pid, 0)
    return os.waitstatus_to_exitcode(status)


def test_on_sigterm_the_leader_lets_go_of_its_lease_and_ends_with_0(plane: RealControlPlane, tmp_path: Path) -> None:
    with two_processes(plane, tmp_path) as (one, _):
        begun = time.monotonic()
        code = exit_code(one.process, [signal.SIGTERM, signal.SIGINT] * 50)
        assert time.monotonic() - begun < 10
        assert code == 0
        plane.admin.until(LEASE, lambda lease: holder(lease) == "other", what="the other leads", seconds=3)
