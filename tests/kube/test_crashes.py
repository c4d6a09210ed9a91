"""The operator dies after each of its writes and is started again: nothing is lost, nothing is done twice.

A story is played once undisturbed, which tells how many writes there are to die after. Then it is played once for every
write, with an operator that dies right after it and another that finds what it left. Both runs must end in the same
state, and each object must have come and gone equally often. The watch counts that, not the audit log: the log does
not tell for sure what became of a request that was on its way when its operator died.
"""

from __future__ import annotations

import difflib
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from kube.stories import STORIES, Story
from trainwright.schema.jsonobject import Json
from trainwright.testing import oracle
from trainwright.testing.controlplane import RealControlPlane
from trainwright.testing.endstate import end_state
from trainwright.testing.faults import Crash, Rule
from trainwright.testing.operators import OperatorInThread
from trainwright.testing.watchlog import Change, WatchLog

QUIET_SECONDS = 0.5


@dataclass
class Ending:
    state: dict[str, Json]
    counts: Counter[str]
    writes: int
    died: bool


@contextmanager
def mortal_operator(kubeconfig: Path, rules: list[Rule]) -> Iterator[OperatorInThread]:
    """An operator that is replaced by a fresh one as soon as it dies."""
    done = threading.Event()
    with OperatorInThread(kubeconfig, rules=rules) as first:

        def replace() -> None:
            while not done.is_set() and not first.wait_for_crash(0.2):
                pass
            if first.has_crashed:
                first.stop()
                with OperatorInThread(kubeconfig):
                    done.wait()

        heir = threading.Thread(target=replace, daemon=True)
        heir.start()
        try:
            yield first
        finally:
            done.set()
            heir.join(60)


def play(plane: RealControlPlane, story: Story, die_after: int | None = None, rule: Rule | None = None) -> Ending:
    namespace = plane.namespace("crash")
    here = f"/namespaces/{namespace}/"
    user = f"operator-{namespace}"
    kubeconfig = plane.user_kubeconfig(user, "system:masters")
    rules = [Rule(Crash(), path=here, nth=die_after, writes_only=True)] if die_after else []
    if rule is not None:
        rule.path = here
        rules.append(rule)
    with WatchLog(plane.admin) as log, mortal_operator(kubeconfig, rules) as first:
        story(plane.admin, namespace)
        state = settled(plane, namespace)
        writes = sum(here in request.path for request in first.transport.writes)
        log.settle()
    counts = Counter(
        f"{change.type} {change.kind} {change.name}"
        for change in log.changes(namespace)
        if change.type in ("ADDED", "DELETED") and is_ours(change)
    )
    plane.admin.delete(f"/api/v1/namespaces/{namespace}")
    return Ending(state, counts, writes, first.has_crashed)


def is_ours(change: Change) -> bool:
    return change.kind == "ControllerRevision" or oracle.owning_trainjob(change.object) is not None


def settled(plane: RealControlPlane, namespace: str) -> dict[str, Json]:
    """The end state, once it has stood still for a while."""
    still = threading.Event()
    state = end_state(plane.admin, namespace)
    while True:
        still.wait(QUIET_SECONDS)
        later = end_state(plane.admin, namespace)
        if later == state:
            return state
        state = later


def difference(undisturbed: dict[str, Json], disturbed: dict[str, Json]) -> str:
    a, b = (yaml.safe_dump(state).splitlines() for state in (undisturbed, disturbed))
    return "\n".join(difflib.unified_diff(a, b, "undisturbed", "disturbed", lineterm=""))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_job_ends_alike_whichever_write_its_operator_dies_after(plane: RealControlPlane, story: Story) -> None:
    undisturbed = play(plane, story)
    assert undisturbed.writes >= 5
    for number in range(1, undisturbed.writes + 1):
        disturbed = play(plane, story, die_after=number)
        if not disturbed.died:  # two quick news in one status: this run had fewer writes than the first
            assert number > 5
            break
        when = f"died after write {number} of {undisturbed.writes}"
        assert not difference(undisturbed.state, disturbed.state), when
        assert disturbed.counts == undisturbed.counts, when
