"""A real API server process for tests: started, killed and started again."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

START_SECONDS = 30.0


class ApiServerProcess:
    """`python -m trainwright.embedded.apiserver` on one directory."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        self.options = options
        self.process: subprocess.Popen[str] | None = None
        self.url = ""
        self.token = ""

    def start(self) -> float:
        """Start the server and return how many seconds passed until it answered."""
        began = time.monotonic()
        command = [sys.executable, "-m", "trainwright.embedded.apiserver", "--dir", str(self.directory), *self.options]
        log = (self.directory.parent / f"{self.directory.name}.log").open("a")
        environment = {**os.environ, "PYTHONPATH": "src"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
        log.close()
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("https://"), self.log()
        took = time.monotonic() - began
        config = json.loads((self.directory / "kubeconfig").read_text())
        self.token = config["users"][0]["user"]["token"]
        return took

    def log(self) -> str:
        return (self.directory.parent / f"{self.directory.name}.log").read_text()

    def kill(self) -> None:
        """Kill the server, as a crash would."""
        assert self.process is not None
        with self.process:  # waits, and closes its pipe
            self.process.kill()

    def stop(self) -> None:
        if self.process is None:
            return
        with self.process:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()

    @property
    def ca(self) -> Path:
        return self.directory / "ca.crt"

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.ca)

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Send one request as the administrator; return the status and the decoded body."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)  # noqa: S310  our own loopback URL
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", "application/json")
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(request, context=self.context(), timeout=30) as answer:  # noqa: S310
                return answer.status, _decode(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _decode(error.read())


def _decode(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace")


@contextmanager
def api_server_process(directory: Path, *options: str) -> Iterator[ApiServerProcess]:
    server = ApiServerProcess(directory, *options)
    server.start()
    try:
        yield server
    finally:
        server.stop()
