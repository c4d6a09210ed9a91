"""The control plane is said to be away when it is, and at no other time."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from trainwright.cli.clusters.directory import ClusterDirectory
from trainwright.cli.clusters.target import Target
from trainwright.cli.jobview.view import JobView
from trainwright.client.errors import Forbidden
from trainwright.client.mirror import RECONNECT_SECONDS
from waiting import until


class Server(ThreadingHTTPServer):
    """An API server without objects, whose watches break as told."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int = 0, status: int = 200) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.status = status
        self.lists = 0
        self.slow = threading.Event()
        """Lists of pods wait for it."""
        self.slow.set()


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if "watch=" in self.path:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"ffff\r\n{")  # and no more: the connection breaks in the middle of an event
            self.close_connection = True
            return
        self.server.lists += 1
        if "/pods" in self.path:
            self.server.slow.wait(10)
        body: dict[str, Any] = {"metadata": {"resourceVersion": "1"}, "items": []}
        if self.server.status != 200:
            body = {"kind": "Status", "status": "Failure", "code": self.server.status, "message": "told so"}
        data = json.dumps(body).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        return


@contextmanager
def serving(port: int = 0, status: int = 200) -> Iterator[Server]:
    with Server(port, status) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.slow.set()
            server.shutdown()


@asynccontextmanager
async def viewing(state: Path, server: Server) -> AsyncIterator[JobView]:
    cluster = ClusterDirectory(state)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_address[1]}"}}],
        "users": [{"name": "u", "user": {}}],
    }
    cluster.kubeconfig.write_text(json.dumps(config))
    async with JobView(Target(cluster), "default", "job") as view:
        yield view


async def never_away(view: JobView, enough: Callable[[], bool]) -> None:
    """Looks at every change until there was enough of it."""
    while not enough():
        async with asyncio.timeout(20):
            await view.changed()
        assert not view.is_away


async def test_a_watch_that_breaks_is_no_reason_to_say_that_the_server_is_away(tmp_path: Path) -> None:
    with serving() as server:
        async with viewing(tmp_path, server) as view:
            await never_away(view, lambda: server.lists >= 12)


async def test_a_watch_that_has_not_begun_is_no_reason_either(tmp_path: Path) -> None:
    with serving() as server:
        server.slow.clear()
        async with viewing(tmp_path, server) as view:
            await never_away(view, lambda: server.lists >= 9)
            assert not view.connected, "the list of pods has not been answered"
            server.slow.set()


async def test_a_server_that_is_gone_is_away_until_it_is_back(tmp_path: Path) -> None:
    with serving() as server:
        port = server.server_address[1]
        async with viewing(tmp_path, server) as view:
            await until("the first lists", lambda: server.lists >= 3)
            server.shutdown()
            server.server_close()
            await until("it to be away", lambda: view.is_away)
            with serving(int(port)):
                await until("it to be back", lambda: not view.is_away)


async def test_a_server_that_fails_is_away_and_one_that_refuses_ends_the_view(tmp_path: Path) -> None:
    with serving(status=503) as server:
        async with viewing(tmp_path, server) as view:
            await until("it to be away", lambda: view.is_away)
            server.status = 403
            with pytest.raises(Forbidden):
                await asyncio.wait_for(_changes(view), 10 * RECONNECT_SECONDS + 10)


async def _changes(view: JobView) -> None:
    while True:
        await view.changed()
