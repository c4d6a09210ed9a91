"""The real kube-controller-manager runs a Job on our API server (`up --api-only`).

It runs for two minutes, on our server and on the real one, and may log no error on ours that it does not log there.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from commandline import command_line
from kube.conftest import BuiltPrograms
from trainwright.schema.jsonobject import Json
from trainwright.testing.certificates import Authority
from trainwright.testing.controlplane import RealControlPlane
from trainwright.testing.processes import Process, free_port
from trainwright.testing.rest import Rest

CONTROLLERS = (
    "job-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "ttl-after-finished-controller",
)
WATCHED_SECONDS = 120.0

pytestmark = pytest.mark.timeout(400)  # the first test lives through both stories

NAMESPACE = "lived-in"


@dataclass
class Lived:
    """What the API showed of a Job, and the errors that kube-controller-manager logged meanwhile."""

    story: dict[str, object]
    errors: set[str]


def job(name: str, **spec: object) -> Json:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}}
    return {"metadata": {"name": name}, "spec": {"parallelism": 2, "completions": 2, "template": pod, **spec}}


def live(rest: Rest, kubeconfig: Path, programs: BuiltPrograms, directory: Path) -> Lived:
    authority = Authority(directory / "pki")
    log = directory / "kube-controller-manager.log"
    manager = Process(
        "kube-controller-manager",
        [
            programs.program("kube-controller-manager"),
            f"--kubeconfig={kubeconfig}",
            f"--controllers={','.join(CONTROLLERS)}",
            f"--service-account-private-key-file={authority.signing_key('accounts').key}",
            "--kube-api-content-type=application/json",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
        ],
        log,
    )
    manager.start()
    started = time.monotonic()
    try:
        story = tell(rest)
        assert manager.is_alive(), manager.tail()
        time.sleep(max(0.0, WATCHED_SECONDS - (time.monotonic() - started)))
        assert manager.is_alive(), manager.tail()
    finally:
        manager.stop()
    return Lived(story, errors_in(log.read_text(errors="replace")))


def tell(rest: Rest) -> dict[str, object]:
    """Create, suspend, resume, complete and clean up a Job; return what the API showed at each step."""
    rest.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    jobs = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"

    def until_pods(count: int) -> list[Json]:
        listed = rest.until(
            pods, lambda found: found is not None and len(found["items"]) == count, what=f"{count} pods"
        )
        assert listed is not None
        items: list[Json] = listed["items"]
        return items

    def until_job(name: str, holds: Callable[[Json], bool], what: str) -> Json:
        found = rest.until(f"{jobs}/{name}", lambda seen: seen is not None and holds(seen), what=what)
        assert found is not None
        return found

    story: dict[str, object] = {}
    rest.create(jobs, job("work", ttlSecondsAfterFinished=2))
    story["pods created"] = len(until_pods(2))
    story["active"] = until_job("work", lambda seen: seen["status"].get("active") == 2, "2 active")["status"]["active"]
    rest.patch(f"{jobs}/work", {"spec": {"suspend": True}})
    for pod in rest.items(pods):
        let_go(rest, pods, pod)
    until_pods(0)
    suspended = until_job("work", lambda seen: condition(seen, "Suspended") == "True", "Suspended")
    story["suspended"] = [c["reason"] for c in suspended["status"]["conditions"]]
    rest.patch(f"{jobs}/work", {"spec": {"suspend": False}})
    resumed = until_pods(2)
    story["resumed"] = sorted(pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] for pod in resumed)
    for pod in resumed:
        rest.patch(f"{pods}/{pod['metadata']['name']}/status", {"status": {"phase": "Succeeded"}})
    done = until_job("work", lambda seen: condition(seen, "Complete") == "True", "Complete")
    story["succeeded"] = done["status"]["succeeded"]
    rest.until(f"{jobs}/work", lambda seen: seen is None, what="gone after its TTL")
    until_pods(0)
    rest.create(jobs, job("left"))
    until_pods(2)
    rest.delete(f"/api/v1/namespaces/{NAMESPACE}")
    rest.until(f"/api/v1/namespaces/{NAMESPACE}", lambda seen: seen is None, what="namespace gone")
    story["namespace"] = "gone"
    return story


def let_go(rest: Rest, pods: str, pod: Json) -> None:
    """Finish a pod that is being deleted, as its kubelet would: this plane has no nodes."""
    rest.raw("DELETE", f"{pods}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})


def condition(item: Json, kind: str) -> str:
    conditions = item.get("status", {}).get("conditions") or []
    return next((entry["status"] for entry in conditions if entry["type"] == kind), "")


def errors_in(log: str) -> set[str]:
    """klog's errors and reflector warnings, with whatever differs from run to run masked."""
    found = set()
    for line in log.splitlines():
        matched = re.match(r"([EWF])\d{4} \S+ +\d+ ([\w.]+):\d+\] (.*)", line)
        if matched and (matched[1] in "EF" or "reflector" in matched[2]) and not is_lost_race(matched[3]):
            text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uid>", matched[3])
            text = re.sub(r"(127\.0\.0\.1|localhost):\d+", "<server>", text)
            text = re.sub(r"-[a-z0-9]{5}\b", "-<random>", text)
            found.add(re.sub(r"\d+", "<n>", f"{matched[2]}: {text}"))
    return found


def is_lost_race(text: str) -> bool:
    """Whether a controller's delete met a newer version of the object than the one it had read.

    The garbage collector, the namespace controller and the Job controller all write to the pods of a namespace that is
    being deleted. Who comes second is chance, on either server; the garbage collector logs the conflict and
    tries again. A conflict between equal versions would be the server's fault, and counts.
    """
    versions = re.search(r"ResourceVersion in the precondition \((\d+)\) does not match .* in record \((\d+)\)", text)
    return versions is not None and int(versions[1]) < int(versions[2])


@pytest.fixture(scope="module")
def lives(programs: BuiltPrograms, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lived, Lived]:
    """(on our server, on the real one)"""
    directory = tmp_path_factory.mktemp("lives")
    bare = RealControlPlane(programs, directory / "plane", with_parts=(), without_admission=("ServiceAccount",))
    with bare as real, command_line(directory / "state") as line, ThreadPoolExecutor(2) as both:
        line("up", "--detach", "--api-only")
        ours = Rest.from_kubeconfig(line.kubeconfig, directory / "scratch")
        mine = both.submit(live, ours, line.kubeconfig, programs, directory / "ours")
        theirs = both.submit(live, real.admin, real.admin_kubeconfig, programs, directory / "real")
        return mine.result(), theirs.result()


def test_a_job_is_created_suspended_resumed_and_cleaned_up_as_on_the_real_server(lives: tuple[Lived, Lived]) -> None:
    ours, real = lives
    assert ours.story == real.story
    assert ours.story["succeeded"] == 2


def test_it_logs_no_error_that_it_does_not_log_on_the_real_server(lives: tuple[Lived, Lived]) -> None:
    ours, real = lives
    assert ours.errors - real.errors == set()
