"""Hands a prepared run over: into the outbox, then to its cluster, or to a process that delivers it when that answers.

`submit`, `trainwright.submit` and `run --detach` end here. What is in the outbox is accepted: it is on disk, it has
been judged, and whoever delivers it finds all that it needs there.
"""

from __future__ import annotations

import shlex
import subprocess
import sys

from trainwright.cli.clusters.target import Target
from trainwright.cli.launch.prepared import Prepared
from trainwright.cli.run.delivering import Result, deliver, keep
from trainwright.cli.run.lastseen import judge, remember_runtimes
from trainwright.runs.outbox import Outbox

STARTED: list[subprocess.Popen[bytes]] = []
"""Deliverers, which outlive a program that calls `submit`; forgotten, each would be warned about."""


async def hand_over(prepared: Prepared, target: Target, source: str, *, replaces: bool = False) -> Result:
    """Judges a run, keeps it, and delivers it if its cluster answers. Raises `Failure` where it is refused here."""
    silent = await remember_runtimes(target, prepared.submission.namespace)
    judge(prepared.submission, target)
    keep(target, prepared, source, replaces=replaces)
    result = Result([], [], silent) if silent else await deliver(target)
    if result.why_waiting:
        deliver_later(target)
    return result


def said_of_waiting(result: Result, target: Target) -> str:
    """The sentence about what is kept."""
    return (
        f"kept: {result.why_waiting}. It is delivered when the cluster answers, by a process in the background or"
        f" by: trainwright submit{target.flag()}. See what waits with: trainwright runs{target.directory.flag()}"
    )


def deliver_later(target: Target) -> None:
    """A process of its own that delivers when the cluster is back, and ends then."""
    words = shlex.split(target.flag()) if target.flag() else (["--local"] if target.is_local else [])
    log = Outbox(target.directory.path).path / "delivery.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "trainwright.cli.main", "submit", "--quiet", *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    STARTED.append(process)
