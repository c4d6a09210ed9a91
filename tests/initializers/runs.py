"""Initializers as tests run them: within this process, or as the command that a pod runs."""

from __future__ import annotations

import io
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from commandline import COMMAND
from trainwright.clock import SystemClock
from trainwright.initializers.progress import Progress
from trainwright.initializers.run import initialize
from trainwright.initializers.settings import Step, settings


async def fetch(
    uri: str,
    target: Path,
    *,
    step: Step = "dataset",
    cache: Path | None = None,
    retry_seconds: float = 5,
    **variables: str,
) -> str:
    """Run one to its end in this process; what it said."""
    out, clock = io.StringIO(), SystemClock()
    given = settings(step, variables, uri=uri, target=target, cache=str(cache or "none"), retry_seconds=retry_seconds)
    await initialize(given, Progress(step, out, clock, live=False), clock)
    return out.getvalue()


def start(*arguments: str | Path, variables: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """`trainwright initialize …` with no variables but these and those that a process cannot do without."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "SSL_CERT_FILE")}
    return subprocess.Popen(
        [*COMMAND, "initialize", *map(str, arguments)],
        env={**kept, **(variables or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: str | Path, code: int = 0, variables: Mapping[str, str] | None = None) -> str:
    """The same, to its end; `code` is the exit code it must have. A failure says one line."""
    process = start(*arguments, variables=variables)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, f"exit {process.returncode}, not {code}:\n{out}{err}"
    assert (err.count("\n") == 1 and err.startswith("trainwright: ")) if code else not err, err
    return out + err


def tree(directory: Path) -> dict[str, bytes]:
    """The files below a directory, without the initializer's own records."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.relative_to(directory).parts[0] != ".trainwright"
    }


def wait_for(what: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
