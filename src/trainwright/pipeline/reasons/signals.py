"""How a process ended by its exit code or by a signal, and what that usually means."""

from __future__ import annotations

import re
import signal
from typing import Final

from trainwright.pipeline.reasons.cause import CONSEQUENCE, FIRST, VAGUE, Cause, Finding
from trainwright.pipeline.reasons.evidence import Ended, label_of, name_of
from trainwright.pipeline.reasons.ranks import speaker

TERM: Final = int(signal.SIGTERM)
KILL: Final = 9  # not every system has a name for it
LINE_LENGTH = 160
KERNEL = re.compile(r"^kernel: (.*)")
"""A line that the node adds to a container's last words."""

OUT_OF_MEMORY = Cause(
    "OutOfMemory",
    "Out of memory",
    "The kernel ended the process with SIGKILL because the pod reached its memory limit, or because the machine had no"
    " memory left. A process that is killed so writes no last line. SIGKILL has other senders too, such as a person or"
    " a batch system; where the kernel's log can be read, the reason says what it says.",
    "Give each node more memory (--memory, or resourcesPerNode), or use less: a smaller batch, fewer data loader"
    " workers, fewer processes on each node",
    "`trainwright why JOB` shows the kernel's own line where this machine lets you read it (`dmesg`).",
)
CRASHED = Cause(
    "Crashed",
    "A process crashed in native code",
    "A signal such as SIGSEGV, SIGABRT, SIGBUS, SIGILL or SIGFPE ended the process: a library failed, not a line of"
    " Python. SIGBUS is often a full /dev/shm, SIGILL a library built for another processor, SIGABRT a check in C++"
    " that failed.",
    "Run it once with PYTHONFAULTHANDLER=1, which prints the Python line that was running",
    "Libraries of different versions that were built against each other are the usual suspect: compare the versions"
    " of torch, CUDA and whatever was installed last.",
)
ENDED_FROM_OUTSIDE = Cause(
    "EndedFromOutside",
    "The process was asked to end",
    "SIGTERM, SIGINT or SIGHUP ended the process: its pod was deleted, another rank failed and its launcher ended this"
    " one, or somebody sent the signal.",
    "Look for the rank that failed first, or for who ended the pod: trainwright why shows both",
)
EXIT_CODE = Cause(
    "ExitCode",
    "The program ended with an exit code",
    "The program itself ended with a code other than 0, and its output has no line that explains it as far as it is"
    " known. A script that calls sys.exit, a shell that stops at a failed command or a program that reports its errors"
    " in its own way ends like this.",
    "Read its last lines: trainwright logs JOB",
    "Exit code 126 means that the program cannot be executed, 127 that a shell did not find it, 2 often a wrong flag.",
)


def name_of_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def finding(one: Ended, rank: int | None, number: int) -> Finding:
    """What a signal means that ended this rank, or the container's only program."""
    kernel = [line for line in one.lines if KERNEL.match(line)]
    who = who_failed(one, rank)
    if one.reason == "OOMKilled":
        cause, what = OUT_OF_MEMORY, f"{who} used more memory than {_memory_limit(one)} and was killed (OOMKilled)"
    elif number == KILL and kernel:
        said = KERNEL.sub(r"\1", kernel[-1])
        cause, what = OUT_OF_MEMORY, f"{who} was killed by the kernel: {said[:160]}"
    elif number == KILL:
        cause, what = OUT_OF_MEMORY, f"{who} was killed (SIGKILL), probably because memory ran out"
    elif number in (TERM, 1, 2):
        cause, what = ENDED_FROM_OUTSIDE, f"{who} was ended by {name_of_signal(number)}"
    else:
        cause, what = CRASHED, f"{who} crashed with {name_of_signal(number)}"
    return Finding(
        cause=cause,
        what=what,
        kind="Pod",
        name=name_of(one.pod),
        rank=rank,
        weight=CONSEQUENCE if cause is ENDED_FROM_OUTSIDE else FIRST,
        time=one.time,
        details=tuple(kernel or one.lines[-4:]),
    )


def _memory_limit(one: Ended) -> str:
    for container in (one.pod.get("spec") or {}).get("containers") or []:
        if container.get("name") == one.container:
            limit = ((container.get("resources") or {}).get("limits") or {}).get("memory")
            return f"its limit of {limit}" if limit else "its limit allows"
    return "its limit allows"


def by_exit_code(one: Ended) -> Finding:
    """What is known of a container whose lines explain nothing."""
    rank = rank_of(one)
    if one.signal or one.reason == "OOMKilled":
        return finding(one, rank, one.signal)
    return Finding(
        cause=EXIT_CODE,
        what=f"{who_failed(one, rank)} ended with exit code {one.code}{_last_line(one)}",
        kind="Pod",
        name=name_of(one.pod),
        rank=rank,
        weight=VAGUE,
        time=one.time,
        details=tuple(one.lines[-6:]),
    )


def _last_line(one: Ended) -> str:
    last = next((line.strip() for line in reversed(one.lines) if line.strip()), "")
    return f"; its last line: {last[:LINE_LENGTH].rstrip('. ')}" if last else ""


def rank_of(one: Ended) -> int | None:
    """The rank of a pod that runs one process."""
    who = speaker(one.pod)
    return who.node if who.processes == 1 else None


def who_failed(one: Ended, rank: int | None) -> str:
    return f"rank {rank}" if rank is not None else label_of(one.pod)
