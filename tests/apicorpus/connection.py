"""HTTP to the server under test: requests on kept connections, and watches.

Errors: `NoToken` (a scenario acts as a user whose token was not given); the connection's own are BROKEN.
"""

from __future__ import annotations

import http.client
import json
import queue
import ssl
import threading
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

BROKEN = (OSError, http.client.HTTPException)
Headers = http.client.HTTPMessage


class NoToken(Exception):
    """The step needs a user that this run cannot be."""


class Response(NamedTuple):
    """A whole answer."""

    status: int
    headers: Headers
    data: bytes


@dataclass(frozen=True)
class Started:
    """The head of a watch's answer."""

    status: int
    headers: Headers


@dataclass(frozen=True)
class Event:
    """One line of a watch, decoded."""

    value: Any


@dataclass(frozen=True)
class Refusal:
    """The body of an answer that is no stream."""

    data: bytes


@dataclass(frozen=True)
class Ended:
    """Nothing follows: `count` were read, the `timeout` passed, the server `closed`, it `refused`, or an error."""

    why: str


Stream = queue.Queue[Started | Event | Refusal | Ended]


class Client:
    """One server, several users, and one kept connection for each thread."""

    def __init__(
        self, server: str, tokens: Mapping[str, str], ca: str | None = None, *, insecure: bool = False
    ) -> None:
        url = urllib.parse.urlsplit(server)
        self._host, self._port, self._base = url.hostname or "", url.port, url.path.rstrip("/")
        self._tokens = tokens
        self._context: ssl.SSLContext | None = None
        if url.scheme == "https":
            self._context = ssl.create_default_context(cafile=ca)
            if insecure:
                self._context.check_hostname = False
                self._context.verify_mode = ssl.CERT_NONE
        self._kept: dict[int, http.client.HTTPConnection] = {}

    def close(self) -> None:
        """Close the connections of every thread."""
        while self._kept:
            self._kept.popitem()[1].close()

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        who: str = "admin",
    ) -> Response:
        """Send a request and read its whole answer, on a fresh connection if the kept one is broken."""
        sent = self.headers(who, headers)
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        thread = threading.get_ident()
        kept = self._kept.pop(thread, None)
        if kept is not None:
            try:
                return self._exchange(thread, kept, method, path, body, sent)
            except BROKEN:
                pass
        return self._exchange(thread, self._connect(60), method, path, body, sent)

    def _exchange(
        self,
        thread: int,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str],
    ) -> Response:
        try:
            connection.request(method, self._base + path, body=body, headers=headers)
            answer = connection.getresponse()
            response = Response(answer.status, answer.headers, answer.read())
        except BROKEN:
            connection.close()
            raise
        if answer.will_close:
            connection.close()
        else:
            self._kept[thread] = connection
        return response

    def watch(self, path: str, headers: Mapping[str, str], count: int | None, seconds: float, stream: Stream) -> None:
        """Read a watch into a queue, at most so many events and so long; `Ended` is its last item."""
        connection = self._connect(seconds)
        deadline = time.monotonic() + seconds
        try:
            connection.request("GET", self._base + path, headers=dict(headers))
            socket = connection.sock
            answer = connection.getresponse()
            stream.put(Started(answer.status, answer.headers))
            if answer.status != 200:
                stream.put(Refusal(answer.read()))
                stream.put(Ended("refused"))
                return
            read = 0
            while count is None or read < count:
                left = deadline - time.monotonic()
                if left <= 0:
                    stream.put(Ended("timeout"))
                    return
                socket.settimeout(left)
                line = answer.readline()
                if not line:
                    stream.put(Ended("closed"))
                    return
                if line.strip():
                    stream.put(Event(json.loads(line)))
                    read += 1
            stream.put(Ended("count"))
        except OSError as error:
            stream.put(Ended("timeout" if "timed out" in str(error) else f"error {error!r}"))
        except (http.client.HTTPException, ValueError) as error:
            stream.put(Ended(f"error {error!r}"))
        finally:
            connection.close()

    def _connect(self, seconds: float) -> http.client.HTTPConnection:
        if self._context is not None:
            return http.client.HTTPSConnection(self._host, self._port or 443, context=self._context, timeout=seconds)
        return http.client.HTTPConnection(self._host, self._port or 80, timeout=seconds)

    def headers(self, who: str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """The headers of a request by this user."""
        headers = {"Accept": "application/json", "User-Agent": "corpus-replay"}
        if who == "bad":
            headers["Authorization"] = "Bearer this-token-is-not-known"
        elif who != "anonymous":
            if who not in self._tokens:
                raise NoToken(f"no token for user {who!r} (--token-for {who}=…)")
            if self._tokens[who]:
                headers["Authorization"] = f"Bearer {self._tokens[who]}"
        return {**headers, **(extra or {})}
