"""`sshd [-D] [-p PORT]` inside a pod of the local node: runs what `ssh` of the job's other pods asks for.

It answers on a unix socket in the job's directory, which only the user who runs the cluster can enter, and accepts and
closes connections on the TCP port where the runtime's readiness probe looks. A command has sshd's own environment,
which is the container's, and its caller's standard streams. When the caller dies first, the command's process group is
ended; what a command has sent to the background stays, as with any sshd, and ends with the pod.
Standard library only.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence

from trainwright.embedded.node.remoteshell import wire

GRACE_SECONDS = 2.0
SIGNALLED = 128


class Session:
    """One command of one caller."""

    def __init__(self, sock: socket.socket, pid: int) -> None:
        self.sock = sock
        self.pid = pid
        self.kill_at: float | None = None


class Server:
    def __init__(self, directory: str, host: str, listen: tuple[str, int] | None) -> None:
        self._selector = selectors.DefaultSelector()
        self._sessions: dict[int, Session] = {}
        self._ending: dict[int, float] = {}
        self._woken, wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        self._register(self._woken, self._read_signals)
        self._unix = wire.listen(directory, host)
        self._register(self._unix, self._accept)
        self._port: socket.socket | None = None
        if listen is not None:
            self._port = port = socket.create_server(listen, reuse_port=False)
            self._register(port, lambda: port.accept()[0].close())
        self._over = False

    def _register(self, source: int | socket.socket, callback: Callable[[], None]) -> None:
        self._selector.register(source, selectors.EVENT_READ, callback)

    def run(self) -> None:
        """Serves until SIGTERM; then every command is ended."""
        while not self._over:
            for key, _ in self._selector.select(self._seconds_to_wait()):
                callback: Callable[[], None] = key.data
                callback()
            self._kill_overdue()
        for session in self._sessions.values():
            _kill_group(session.pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_SECONDS
        while self._sessions and time.monotonic() < deadline:
            self._reap()
            time.sleep(0.02)
        for session in self._sessions.values():
            _kill_group(session.pid, signal.SIGKILL)

    def _seconds_to_wait(self) -> float | None:
        if not self._ending:
            return None
        return max(0.0, min(self._ending.values()) - time.monotonic())

    def _kill_overdue(self) -> None:
        present = time.monotonic()
        for pid in [pid for pid, at in self._ending.items() if at <= present]:
            del self._ending[pid]
            _kill_group(pid, signal.SIGKILL)

    def _read_signals(self) -> None:
        received = os.read(self._woken, 4096)
        self._over = self._over or signal.SIGTERM in received or signal.SIGINT in received
        self._reap()

    def _accept(self) -> None:
        sock, _ = self._unix.accept()
        sock.settimeout(10)  # a caller sends its request in one go
        try:
            request = wire.receive_with_streams(sock)
        except (OSError, ValueError):
            request = None
        if request is None:
            sock.close()
            return
        message, streams = request
        try:
            pid = _fork(str(message.get("command") or ""), dict(message.get("variables") or {}), streams)
        except OSError as error:
            os.write(streams[2], f"sshd: {error}\n".encode())
            sock.close()
            return
        finally:
            for stream in streams:
                os.close(stream)
        sock.setblocking(False)
        self._sessions[pid] = Session(sock, pid)
        self._register(sock, lambda: self._caller_left(pid))
        _tell(sock, {"pid": pid})

    def _caller_left(self, pid: int) -> None:
        """The caller has closed its end: nobody waits for the command any more."""
        session = self._sessions[pid]
        self._selector.unregister(session.sock)
        _kill_group(pid, signal.SIGTERM)
        self._ending[pid] = time.monotonic() + GRACE_SECONDS

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            session = self._sessions.pop(pid, None)
            if session is None:
                continue
            code = os.waitstatus_to_exitcode(status)
            _tell(session.sock, {"exit": SIGNALLED - code if code < 0 else code})
            if self._ending.pop(pid, None) is None:
                self._selector.unregister(session.sock)
            else:
                _kill_group(pid, signal.SIGKILL)  # whoever of the group has not ended with its leader
            session.sock.close()


def _fork(command: str, variables: dict[str, str], streams: list[int]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        # Above 2 first: a caller without standard input sends descriptors that lie in each other's way.
        high = [os.dup(stream) if stream < wire.STREAMS else stream for stream in streams]
        for target, stream in enumerate(high):
            os.dup2(stream, target, inheritable=True)
        os.closerange(wire.STREAMS, 256)
        shell = ["sh", "-c", command] if command else ["sh"]
        os.execvpe("sh", shell, {**os.environ, **variables})  # noqa: S606 - running the command is what sshd is for
    except OSError as error:
        os.write(2, f"sshd: {error}\n".encode())
    finally:
        os._exit(127)


def _tell(sock: socket.socket, message: dict[str, int]) -> None:
    try:
        wire.send(sock, message)
    except OSError:
        pass  # the caller has left


def _kill_group(pid: int, number: signal.Signals) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def listening_address(arguments: Sequence[str], configured: str) -> tuple[str, int] | None:
    """The TCP address to answer on: what the node has found out, with the port that `-p` or `-o Port=` names."""
    address, _, port = configured.rpartition(":")
    for word, value in zip(arguments, [*arguments[1:], ""], strict=True):
        if word == "-p" and value.isdigit():
            port = value
        elif word.startswith("-p") and word[2:].isdigit():
            port = word[2:]
        elif word == "-o" and value.lower().startswith("port") and value[4:].strip(" =").isdigit():
            port = value[4:].strip(" =")
    return (address, int(port)) if address and port.isdigit() else None


def main(words: Sequence[str], here: str) -> int:
    """Serves until SIGTERM."""
    directory = os.environ.get(wire.DIRECTORY)
    if not directory:
        print(f"sshd: this pod has no remote shell ({wire.DIRECTORY} is not set)", file=sys.stderr)
        return 1
    address = listening_address(words, os.environ.get(wire.LISTEN, ""))
    try:
        server = Server(directory, os.uname().nodename, address)
    except OSError as error:
        where = f"{address[0]} port {address[1]}" if address else directory
        print(f"sshd: cannot listen on {where}: {error.strerror}", file=sys.stderr)
        return 1
    foreground = any(word.startswith("-") and not word.startswith("--") and "D" in word[1:] for word in words)
    if not foreground and os.fork():
        os._exit(0)  # sshd without -D goes to the background once it listens
    server.run()
    return 0
