"""A web server for files: ranges, validators, redirects, and the ways a network fails, each on demand.

It runs in threads of the test's process and counts every byte of every body that it sends. Faults are taken one for
each request, in order; afterwards a file is served as it should be.
"""

from __future__ import annotations

import hashlib
import re
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from trainwright.testing.certificates import Authority

PIECE = 256 * 1024
WAIT_SECONDS = 60


@dataclass(frozen=True)
class Answer:
    """An answer that is no file."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Cut:
    """The connection ends after so many bytes of the body."""

    after: int


class Gate:
    """The body stops after so many bytes until the test opens the gate (or the client is gone)."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.reached = threading.Event()
        self.opened = threading.Event()

    def wait_until_reached(self) -> None:
        assert self.reached.wait(WAIT_SECONDS), "nobody asked for so much"


Fault = Answer | Cut | Gate
Route = Callable[["Request"], Answer | None]


@dataclass
class File:
    content: bytes
    validator: bool = True
    ranges: bool = True
    length: bool = True
    headers: dict[str, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    faults_at: dict[int, Fault] = field(default_factory=dict)
    """Faults of the request that begins at this byte; of large files, whose requests come in no order."""

    @property
    def etag(self) -> str:
        return f'"{hashlib.md5(self.content, usedforsecurity=False).hexdigest()}"'


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: str
    headers: Mapping[str, str]

    @property
    def first_byte(self) -> int:
        found = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        return int(found.group(1)) if found else 0


class FileServer:
    """Files by path. `routes` are asked first and may answer anything."""

    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.routes: list[Route] = []
        self.requests: list[Request] = []
        self.sent: Counter[str] = Counter()
        self.url = ""
        self._lock = threading.Lock()

    def put(self, path: str, content: bytes, *faults: Fault, **how: object) -> File:
        self.files[path] = File(content, faults=list(faults), **how)  # type: ignore[arg-type]
        return self.files[path]

    def asked(self, path: str) -> list[Request]:
        return [request for request in self.requests if request.path == path]

    def forget(self) -> None:
        """Count from here."""
        self.requests.clear()
        self.sent.clear()

    def count(self, path: str, size: int) -> None:
        with self._lock:
            self.sent[path] += size


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    files: FileServer

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        request = Request(self.command, unquote(address.path), address.query, dict(self.headers.items()))
        self.files.requests.append(request)
        for route in list(self.files.routes):
            if answer := route(request):
                self._answer(answer)
                return
        file = self.files.files.get(request.path)
        if file is None:
            self._answer(Answer(404))
            return
        if file.faults:
            fault: Fault | None = file.faults.pop(0)
        else:
            fault = file.faults_at.pop(request.first_byte, None)
        if isinstance(fault, Answer):
            self._answer(fault)
        else:
            self._file(request, file, fault)

    do_HEAD = do_PUT = do_GET

    def _answer(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _file(self, request: Request, file: File, fault: Cut | Gate | None) -> None:
        size, start, end, status = len(file.content), 0, len(file.content), 200
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("Range", ""))
        unchanged = request.headers.get("If-Range", file.etag) == file.etag
        if wanted and file.ranges and unchanged:
            start, last = int(wanted.group(1)), wanted.group(2)
            end = min(size, int(last) + 1) if last else size
            if start >= size:
                self._answer(Answer(416, {"Content-Range": f"bytes */{size}"}))
                return
            status = 206
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        if file.validator:
            self.send_header("ETag", file.etag)
        for name, value in file.headers.items():
            self.send_header(name, value)
        if file.length:
            self.send_header("Content-Length", str(end - start))
        else:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if self.command != "HEAD":
            self._body(request, file, memoryview(file.content)[start:end], fault)

    def _body(self, request: Request, file: File, body: memoryview, fault: Cut | Gate | None) -> None:
        at = 0
        while at < len(body):
            until = min(len(body), at + PIECE)
            if fault and at < fault.after:
                until = min(until, fault.after)
            elif fault and at == fault.after:
                if isinstance(fault, Cut):
                    self.connection.shutdown(socket.SHUT_RDWR)
                    raise ConnectionAbortedError
                fault.reached.set()
                fault.opened.wait(WAIT_SECONDS)
                fault = None
            piece = body[at:until]
            if not file.length:
                self.wfile.write(b"%x\r\n" % len(piece))
            self.wfile.write(piece)
            if not file.length:
                self.wfile.write(b"\r\n")
            self.files.count(request.path, len(piece))
            at = until
        if not file.length:
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    tls: ssl.SSLContext | None = None

    def finish_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        """In the connection's own thread: the handshake, and the end of clients that go away."""
        try:
            if self.tls is not None:
                request = self.tls.wrap_socket(request, server_side=True)
            super().finish_request(request, client_address)
        except OSError:
            pass  # cut off, by the client or on purpose
        finally:
            request.close()


@contextmanager
def file_server(authority: Authority | None = None) -> Iterator[FileServer]:
    """A server on a free port of loopback; with an authority it speaks TLS."""
    files = FileServer()
    handler = type("Handler", (_Handler,), {"files": files})
    server = _Server(("127.0.0.1", 0), handler)
    if authority is not None:
        pair = authority.for_server("localhost")
        server.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.tls.load_cert_chain(pair.certificate, pair.key)
    files.url = f"{'https' if authority else 'http'}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield files
    finally:
        server.shutdown()
        server.server_close()


def noise(size: int, seed: int = 0) -> bytes:
    """Bytes that are the same in every run and nowhere alike."""
    block = hashlib.shake_256(seed.to_bytes(8, "big")).digest(min(size, 2**20))
    pieces = []
    for number in range(-(-size // 2**20)):
        pieces.append(number.to_bytes(8, "big") + block[8:])
    return b"".join(pieces)[:size]
