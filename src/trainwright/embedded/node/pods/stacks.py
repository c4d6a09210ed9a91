"""Where the processes of a pod are in their code: the Python stack of each rank, by py-spy or by faulthandler.

In: the pod's supervisor. Out: one line for each process that trains, innermost call first:

    rank 1 (pid 4711): sleep (train.py:9) <- step (train.py:20) <- <module> (train.py:31)

py-spy reads the memory of another process, where it is installed and the kernel allows it. Without it, a process that
has registered faulthandler for our signal (`from trainwright import progress` does) prints its stack itself. The signal
is sent only to a process that handles it: to any other it would be the end.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from trainwright.embedded.node.pods.processes import descendants
from trainwright.embedded.node.pods.record import PodRecord
from trainwright.schema.jsonobject import Json

RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "JAX_PROCESS_ID", "JOB_COMPLETION_INDEX")
OURS = b"trainwright.embedded.node"
"""In the command line of supervisors and keepers."""
SIGNAL = getattr(signal, "SIGRTMIN", 34) + 7
"""As `reporting` registers it."""
DUMP_SECONDS = 5.0
FRAMES = 10
PROCESSES = 16
FIRST_LINE = b"most recent call first"


class Found:
    """What was learned: one line for each process, or why not."""

    def __init__(self, stacks: dict[str, str], note: str = "", *, may_have_printed: bool = False) -> None:
        self._stacks = stacks
        self._note = note
        self.may_have_printed = may_have_printed

    def lines(self) -> list[str]:
        return [f"{who}: {stack}" for who, stack in self._stacks.items()] + ([self._note] if self._note else [])


class Stacks:
    """Finds stacks. `program` is py-spy; empty for none, by default it is searched."""

    def __init__(self, program: str | None = None, proc: Path = Path("/proc")) -> None:
        self._program = program
        self._proc = proc

    def of(self, record: PodRecord, output: Callable[[], bytes], *, may_print: bool = True) -> Found:
        """The stacks of a pod's processes. `output` reads the end of what the pod printed."""
        processes = self._processes(int(record["supervisor"][0]))
        program = _find("py-spy") if self._program is None else self._program
        stacks: dict[str, str] = {}
        refused = ""
        if program:
            for pid, who in processes:
                stack, error = dump(program, pid)
                if stack:
                    stacks[who] = stack
                refused = refused or error
        if stacks or not processes:
            return Found(stacks)
        asked = [(pid, who) for pid, who in processes if may_print and self._handles(pid)]
        for pid, _ in asked:
            try:
                os.kill(pid, SIGNAL)
            except OSError:
                continue
        if asked:
            time.sleep(0.5)
            printed = _printed(output())
            return Found({who: stack for (_, who), stack in zip(asked, printed, strict=False)}, may_have_printed=True)
        why = f"py-spy says: {refused}" if refused else "py-spy is not installed (pip install py-spy)"
        return Found({}, f"no stacks: {why}")

    def _processes(self, supervisor: int) -> list[tuple[int, str]]:
        """The processes that train, by pid, with their names: those with a rank of their own, else the programs."""
        found: list[tuple[int, str | None]] = []
        ranks: set[str] = set()
        for pid in descendants(supervisor, self._proc):
            if OURS in self._read(pid, "cmdline") or not self._read(pid, "cmdline"):
                continue
            rank = self._rank(pid)
            if rank is not None:
                if rank in ranks:
                    continue  # a data loader of the same rank
                ranks.add(rank)
            found.append((pid, rank))
        with_rank = [(pid, f"rank {rank} (pid {pid})") for pid, rank in found if rank is not None]
        return (with_rank or [(pid, f"process {pid}") for pid, _ in found])[:PROCESSES]

    def _rank(self, pid: int) -> str | None:
        """The rank in the process's environment. A launcher that starts ranks has none of its own."""
        variables = dict(item.partition(b"=")[::2] for item in self._read(pid, "environ").split(b"\0"))
        is_launcher = b"PET_NNODES" in variables and b"LOCAL_RANK" not in variables
        if is_launcher:
            return None
        for name in RANK_VARIABLES:
            value = variables.get(name.encode(), b"").decode(errors="replace")
            if value.isdecimal():
                return value
        return None

    def _handles(self, pid: int) -> bool:
        """Whether the process has a handler for our signal."""
        for line in self._read(pid, "status").splitlines():
            if line.startswith(b"SigCgt:"):
                return bool(int(line.split()[1], 16) >> (SIGNAL - 1) & 1)
        return False

    def _read(self, pid: int, name: str) -> bytes:
        try:
            return (self._proc / str(pid) / name).read_bytes()
        except OSError:
            return b""


def dump(program: str, pid: int) -> tuple[str, str]:
    """The stack of a process's main thread by py-spy, or why there is none."""
    try:
        done = subprocess.run(
            [program, "dump", "--json", "--pid", str(pid)], capture_output=True, timeout=DUMP_SECONDS, check=False
        )
        threads: list[Json] = json.loads(done.stdout) if done.returncode == 0 else []
    except (OSError, subprocess.TimeoutExpired, json.JSONDecodeError) as error:
        return "", str(error)
    if not threads:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return "", said[-1][:200] if said else f"exit code {done.returncode}"
    main = next((one for one in threads if one.get("thread_name") == "MainThread"), threads[0])
    frames = [f"{one['name']} ({one['filename']}:{one['line']})" for one in main.get("frames") or ()]
    return " <- ".join(frames[:FRAMES]), ""


def _printed(output: bytes) -> list[str]:
    """The stacks in the end of an output, as faulthandler prints them, of each dump the main thread."""
    found: list[list[str]] = []
    reading = False
    for record in output.split(b"\n"):
        text = record.split(b" ", 3)[-1].decode("utf-8", "replace")
        if FIRST_LINE.decode() in text:
            reading = True
            found.append([])
        elif reading and text.lstrip().startswith('File "'):
            path, _, rest = text.strip()[len('File "') :].partition('", line ')
            line, _, function = rest.partition(" in ")
            found[-1].append(f"{function} ({path}:{line})")
        else:
            reading = False
    return [" <- ".join(frames[:FRAMES]) for frames in found if frames]


def _find(name: str) -> str:
    """The program, on PATH or beside this Python; empty when it is not installed."""
    beside = Path(sys.executable).parent / name
    return shutil.which(name) or (str(beside) if beside.exists() else "")
