"""`ssh [options] [user@]host [command]` inside a pod of the local node.

A host that is a pod of this job is reached through its sshd (`sshd.py`), which gets the command and this program's
standard streams; this program ends as the command does. Its own pod needs nobody: the command is run at once. Any
other host is none of ours: the machine's own ssh takes over. Standard library only.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from trainwright.embedded.node.remoteshell import wire

WITH_VALUE = frozenset("BbcDEeFIiJLlmOopQRSWw")
"""ssh's options that a value follows."""

CONNECT_SECONDS = 30.0
RETRY_SECONDS = 0.1
FAILED = 255
"""ssh's own exit code when it is not the command that failed."""


class Call(NamedTuple):
    """One ssh command line. `host` is empty where there is none."""

    host: str
    command: str
    without_input: bool = False


def parse(arguments: Sequence[str]) -> Call:
    """The host and the command of ssh's arguments; options are allowed before and after the host, as ssh has them."""
    rest = list(arguments)
    host, without_input = "", False
    while rest:
        word = rest.pop(0)
        if word == "--":
            if not host and rest:
                host = rest.pop(0)
            break
        if word.startswith("-") and len(word) > 1:
            for position, letter in enumerate(word[1:], 1):
                without_input |= letter == "n"
                if letter in WITH_VALUE:
                    if position == len(word) - 1 and rest:
                        rest.pop(0)
                    break
            continue
        if host:
            rest.insert(0, word)
            break
        host = word
    host = host.removeprefix("ssh://").rpartition("@")[2]
    return Call(re.sub(r":\d+$", "", host), " ".join(rest), without_input)


def pod_name(host: str, hosts_file: str, directory: str) -> str | None:
    """The host name of the job's pod that is meant, or None for a host that is no pod of this job."""
    label = host.partition(".")[0]
    if Path(directory, wire.socket_name(label)).exists():
        return label
    for line in hosts_file.splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        # The pods of a job have qualified names; the machine's own lines, which follow, do not end in them.
        if names and names[0].endswith(".svc.cluster.local") and (host == address or host in names):
            return names[-1]
    return None


def main(words: Sequence[str], here: str) -> int:
    """Runs one ssh command line. `here` is the directory of this program, for whoever looks for another ssh on PATH."""
    call = parse(words)
    directory = os.environ.get(wire.DIRECTORY, "")
    me = os.uname().nodename
    if not call.host or not directory:
        _machines_own(words, call.host, here)
    own = call.host in ("localhost", me) or call.host.startswith(f"{me}.")
    pod = me if own else pod_name(call.host, _hosts(), directory)
    if pod is None:
        _machines_own(words, call.host, here)
    if call.without_input:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if pod == me:
        _note(pod)
        shell = ["sh", "-c", call.command] if call.command else ["sh"]
        os.execvp("sh", shell)  # noqa: S606 - running the command is what ssh is for
    return _run_there(pod, call, directory)


def _run_there(pod: str, call: Call, directory: str) -> int:
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            sock = wire.connect(directory, pod)
            break
        except OSError as error:
            if time.monotonic() > deadline:
                print(
                    f"ssh: pod {pod} does not answer after {CONNECT_SECONDS:.0f} s ({error.strerror}): its container"
                    " must run sshd, as the node job of the MPI runtimes does",
                    file=sys.stderr,
                )
                return FAILED
            time.sleep(RETRY_SECONDS)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    variables = {name: value for name in (wire.REACHED,) if (value := os.environ.get(name))}
    with sock:
        wire.send(sock, {"command": call.command, "variables": variables}, (0, 1, 2))
        # The command has the streams now. If it closes them, whoever reads them must see their end.
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1):
            os.dup2(null, stream)
        while (message := wire.receive(sock)) is not None:
            if "pid" in message:
                _note(pod)
            if "exit" in message:
                return int(message["exit"])
    print(f"ssh: the connection to pod {pod} was closed: the pod has ended", file=sys.stderr)
    return FAILED


def _note(pod: str) -> None:
    """Leaves the name of a pod that has been reached."""
    if directory := os.environ.get(wire.REACHED):
        try:
            Path(directory, pod).touch()
        except OSError:
            pass  # the launcher that counts is gone


def _hosts() -> str:
    try:
        return Path("/etc/hosts").read_text(errors="replace")
    except OSError:
        return ""


def _machines_own(words: Sequence[str], host: str, here: str) -> NoReturn:
    """Becomes the machine's own ssh."""
    path = os.pathsep.join(entry for entry in os.environ.get("PATH", os.defpath).split(os.pathsep) if entry != here)
    program = shutil.which("ssh", path=path)
    if program is None:
        print(f"ssh: {host or 'no host'}: no pod of this job, and this machine has no ssh", file=sys.stderr)
        sys.exit(FAILED)
    os.environ["PATH"] = path
    os.execv(program, ["ssh", *words])  # noqa: S606
