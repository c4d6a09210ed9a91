"""kubectl as a user types it, against one kubeconfig, with a home (and so a discovery cache) of its own."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TIMED_OUT = 124  # as timeout(1) exits


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


class Kubectl:
    def __init__(self, program: Path, kubeconfig: Path | None, home: Path) -> None:
        self.program = program
        self.kubeconfig = kubeconfig
        self.home = home
        home.mkdir(parents=True, exist_ok=True)

    def __call__(self, *arguments: str, stdin: str = "", seconds: float = 60) -> Result:
        try:
            done = subprocess.run(
                [self.program, *arguments],
                input=stdin,
                capture_output=True,
                text=True,
                env=self.environment(),
                cwd=self.home,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Result(TIMED_OUT, "", f"kubectl did not end within {seconds:.0f} s")
        return Result(done.returncode, done.stdout, done.stderr)

    def until(
        self, arguments: Sequence[str], pattern: str, during: Sequence[Sequence[str]] = (), seconds: float = 30
    ) -> Result:
        """Run a command that does not end by itself, and others meanwhile; end it when it has printed `pattern`."""
        process = subprocess.Popen(
            [self.program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment(),
            cwd=self.home,
        )
        printed: list[str] = []
        changed = threading.Condition()

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                with changed:
                    printed.append(line)
                    changed.notify_all()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            with changed:
                changed.wait_for(lambda: printed, timeout=seconds)
            for others in during:
                self(*others)
            end = time.monotonic() + seconds
            with changed:
                seen = changed.wait_for(lambda: re.search(pattern, "".join(printed)), max(0.0, end - time.monotonic()))
        finally:
            process.terminate()
            process.wait()
            reader.join(5)
            if process.stdout:
                process.stdout.close()
        return Result(0 if seen else 1, "".join(printed), "")

    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "KUBECONFIG": "" if self.kubeconfig is None else str(self.kubeconfig),
            "KUBE_EDITOR": "sed -i s/edit-me/edited/",
            "TZ": "UTC",
        }
