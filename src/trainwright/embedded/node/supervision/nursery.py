"""The process that supervisors are forked from: `python -S -m trainwright.embedded.node.supervision.nursery DIR`.

It has imported what a supervisor needs before a pod is there: a fork takes milliseconds, and pods share the memory of
the interpreter. A supervisor that starts from nothing takes sixty milliseconds of CPU.

In, on standard input: a pod's directory on each line. Out, on standard output: `<code> <directory>` for each, as soon
as the supervisor has its first record on disk (code 0) or has given up; what it says goes to `supervisor.log`. Ends
with its input. Supervisors do not: they are children of init by then. DIR, the directory of the pods, is for whoever
looks at a list of processes: supervisors have the same command line. Standard library only.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
from typing import NoReturn

from trainwright.embedded.node.supervision import supervisor

REQUESTS, REPLIES = 0, 1


class Nursery:
    def __init__(self) -> None:
        self._starting: dict[int, str] = {}  # by the process that forks the supervisor and waits for its record
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)

    def run(self) -> None:
        signal.set_wakeup_fd(self._wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        rest = b""
        while True:
            ready, _, _ = select.select([REQUESTS, self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, 4096)
                self._reap()
            if REQUESTS in ready:
                data = os.read(REQUESTS, 65536)
                if not data:
                    return
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._start(os.fsdecode(line))

    def _start(self, path: str) -> None:
        pid = os.fork()
        if pid == 0:
            self._become_supervisor(path)
        self._starting[pid] = path

    def _become_supervisor(self, path: str) -> NoReturn:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(self._woken)
        os.close(self._wake)
        log = os.open(os.path.join(path, "supervisor.log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.close(null)
        os.close(log)
        code = supervisor.main(path)
        sys.stderr.flush()
        os._exit(code)  # an error has gone up to the interpreter, which says what it was

    def _reap(self) -> None:
        while self._starting:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            reply = f"{os.waitstatus_to_exitcode(status)} {self._starting.pop(pid)}\n"
            try:
                os.write(REPLIES, os.fsencode(reply))
            except BrokenPipeError:
                pass  # the node has died; the end of our input is next


def main() -> int:
    gc.collect()
    gc.freeze()
    Nursery().run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
