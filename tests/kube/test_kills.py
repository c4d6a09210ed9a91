"""Real processes are killed: the operator at each of its writes (F1), and kube-apiserver under it (F6). And a job is
deleted without its workload (LC6).

`TRAINWRIGHT_SIGKILLS` is how many kills of the operator are drawn from all writes of the stories, 0 for every one of
them; `TRAINWRIGHT_SERVER_KILLS` how often kube-apiserver is killed. `make test-long` asks for all and for twenty.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kube.crds import install_crds
from kube.stories import STORIES, TORCH, Story, base, create, jobsets, runtime, trainjob, until_state
from kube.test_crashes import Ending, difference, is_ours, play, settled
from trainwright.schema.jsonobject import Json
from trainwright.testing import oracle
from trainwright.testing.controlplane import RealControlPlane
from trainwright.testing.operators import OperatorInThread
from trainwright.testing.processes import Process
from trainwright.testing.watchlog import WatchLog
from waiting import eventually

SIGKILLS = int(os.environ.get("TRAINWRIGHT_SIGKILLS", "2"))
SERVER_KILLS = int(os.environ.get("TRAINWRIGHT_SERVER_KILLS", "1"))
FIRST_WRITES = 5  # every story has at least as many
SCRIPT = Path(__file__).with_name("mortaloperator.py")


@contextmanager
def mortal_process(kubeconfig: Path, directory: Path, namespace: str, nth: int, when: str) -> Iterator[Process]:
    """An operator that is killed at a write; as soon as it is dead, another one takes its place."""
    argv = [sys.executable, str(SCRIPT), str(kubeconfig), namespace]
    first = Process("mortal", [*argv, str(nth), when], directory / f"{namespace}-mortal.log")
    heir = Process("heir", [*argv, "0", "never"], directory / f"{namespace}-heir.log")
    done = threading.Event()

    def replace() -> None:
        while not done.wait(0.05):
            if not first.is_alive():
                heir.start()
                done.wait()
                heir.stop(grace=0)

    first.start()
    watcher = threading.Thread(target=replace, daemon=True)
    watcher.start()
    try:
        yield first
    finally:
        done.set()
        watcher.join(30)
        first.stop(grace=0)


def killed(plane: RealControlPlane, story: Story, directory: Path, nth: int, when: str) -> Ending:
    namespace = plane.namespace("kill")
    kubeconfig = plane.user_kubeconfig(f"operator-{namespace}", "system:masters")
    with WatchLog(plane.admin) as log, mortal_process(kubeconfig, directory, namespace, nth, when) as first:
        story(plane.admin, namespace)
        state = settled(plane, namespace)
        log.settle()
        died = not first.is_alive()
    changes = log.changes(namespace)
    oracle.check(oracle.Story(changes))
    counts = Counter(
        f"{change.type} {change.kind} {change.name}"
        for change in changes
        if change.type in ("ADDED", "DELETED") and is_ours(change)
    )
    plane.admin.delete(f"/api/v1/namespaces/{namespace}")
    return Ending(state, counts, nth, died)


def drawn(story: Story) -> list[tuple[int, str]]:
    """Which writes of a story an operator is killed at."""
    every = [(number, when) for number in range(1, FIRST_WRITES + 1) for when in ("before", "after")]
    if not SIGKILLS:
        return every
    all_of_them = [(it, place) for it in STORIES for place in every]
    return [place for it, place in random.Random(4).sample(all_of_them, SIGKILLS) if it is story]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_job_ends_alike_whichever_write_its_operators_process_is_killed_at(
    plane: RealControlPlane, story: Story, tmp_path: Path
) -> None:
    places = drawn(story)
    if not places:
        pytest.skip("none of the kills that were drawn is in this story")
    undisturbed = play(plane, story)
    for number, when in places:
        disturbed = killed(plane, story, tmp_path, number, when)
        where = f"killed {when} write {number}"
        assert disturbed.died, where
        assert not difference(undisturbed.state, disturbed.state), where
        assert disturbed.counts == undisturbed.counts, where
    print(f"{len(places)} kills of {story.__name__}: each ends alike")


def test_an_orphaned_workload_runs_on_and_a_new_job_of_the_name_does_not_adopt_it(plane: RealControlPlane) -> None:
    """Here and not among the judged tests: what is orphaned has our fields and no owner, which the oracle forbids."""
    here, admin = plane.namespace("orphan"), plane.admin
    path, job_set = f"{base(here)}/trainjobs/job", f"{jobsets(here)}/job"
    with OperatorInThread(plane.user_kubeconfig(f"operator-{here}", "system:masters")):
        create(admin, here, runtime("it", TORCH), trainjob("job", "it", "hang"))
        until_state(admin, here, "Running")
        uid = admin.get(job_set)["metadata"]["uid"]
        admin.delete(path, propagationPolicy="Orphan")
        admin.until(path, lambda found: found is None, what="the job gone", seconds=60)
        time.sleep(2)
        create(admin, here, trainjob("job", "it"))

        def says_so(found: Json | None) -> bool:
            return 'JobSet "job" exists already' in (((found or {}).get("status") or {}).get("message") or "")

        admin.until(path, says_so, what="status.message names it", seconds=60)
        left = admin.get(job_set)
        assert (left["metadata"]["uid"], left["metadata"].get("ownerReferences")) == (uid, None)
        admin.delete(job_set)
        until_state(admin, here, "Complete")


@pytest.fixture
def own_plane(plane: RealControlPlane, tmp_path: Path) -> Iterator[RealControlPlane]:
    """A control plane of its own: nobody else's tests shall suffer."""
    with RealControlPlane(plane.programs, tmp_path / "own") as running:
        install_crds(running)
        yield running


@pytest.mark.timeout(300 + 60 * SERVER_KILLS)
def test_jobs_survive_every_kill_of_the_api_server(own_plane: RealControlPlane) -> None:
    chance = random.Random(5)
    admin, namespace = own_plane.admin, own_plane.namespace("server")
    server = own_plane.parts["kube-apiserver"]
    kubeconfig = own_plane.user_kubeconfig("operator-server", "system:masters")
    create(admin, namespace, runtime("it", TORCH))
    seen: dict[str, str] = {}  # JobSets by name, as soon as they were seen
    with OperatorInThread(kubeconfig) as operator:
        for number in range(SERVER_KILLS):
            create(admin, namespace, trainjob(f"job-{number}", "it"))
            end = time.monotonic() + chance.uniform(0.0, 2.0)
            while time.monotonic() < end:
                note(own_plane, namespace, seen)
            server.stop(grace=0)
            server.start()
            server.wait_until(own_plane.is_ready, 120)
            eventually("the server answers", lambda: note(own_plane, namespace, seen), 60)
            until_state(admin, namespace, "Complete", f"job-{number}")
        assert operator.error is None
    before = dict(seen)
    assert note(own_plane, namespace, seen)
    assert {name: seen[name] for name in before} == before, "a JobSet was made again"
    assert seen.keys() == {f"job-{number}" for number in range(SERVER_KILLS)}
    pods = own_plane.admin.items(f"/api/v1/namespaces/{namespace}/pods")
    assert len(pods) == 2 * SERVER_KILLS, "a job trained twice"
    print(f"{SERVER_KILLS} kills of kube-apiserver: {len(seen)} jobs, each with one JobSet, all complete")


def note(plane: RealControlPlane, namespace: str, seen: dict[str, str]) -> bool:
    """Note which JobSets there are; False while the server does not answer."""
    code, body = plane.admin.raw("GET", jobsets(namespace))
    if code != 200:
        return False
    for item in json.loads(body)["items"]:
        seen[item["metadata"]["name"]] = item["metadata"]["uid"]
    return True
