"""One request of a browser: is it ours to answer, who asks, and what is the answer.

    /                      the page; also for every path that is one of its views
    /static/…              its files
    /healthz               that this server runs
    /session               a form with the key, from the file that `trainwright ui` opens
    /api/session           sign in and out
    /api/me                who the viewer is, what may be changed, and the CSRF token
    /api/stream/…          server-sent events: jobs, job, lines
    /api/…                 answers in JSON, one function each in `answers.py`

Every answer has a Content-Security-Policy under which no inline script runs. Every change needs the session's CSRF
token in a header, which a page of another site cannot read and a form cannot send.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

import msgspec

from trainwright.client.errors import ApiError, ClientError, Forbidden, NotFound, Unauthorized
from trainwright.dashboard import answers, streams
from trainwright.dashboard.answers import Asked, Missing
from trainwright.dashboard.assets import Asset, Assets
from trainwright.dashboard.guard import SAFE, Door, Guard, set_cookie
from trainwright.dashboard.sse import Events, stream
from trainwright.http.dates import DateHeader
from trainwright.http.request import BrokenBody, Busy, Request, TooLarge
from trainwright.http.response import JSON, TEXT, HeaderFields, Response, StreamedResponse
from trainwright.runs import BrokenRecord, RunsHome

log = logging.getLogger(__name__)

LARGEST_BODY = 64 * 1024
READ_SECONDS = 10.0
WRONG_SECONDS = 1.0
"""How long the answer to a wrong key or token takes."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SAFETY: HeaderFields = (
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
_date = DateHeader()


class Site:
    """Answers requests. `home` has the runs of this machine, `flag` chooses its cluster on a command line."""

    def __init__(
        self, guard: Guard, door: Door, *, home: RunsHome | None = None, flag: str = "", where: str = ""
    ) -> None:
        self._guard = guard
        self._door = door
        self._home = home
        self._flag = flag
        self._where = where
        self.assets = Assets()

    async def __call__(self, request: Request) -> Response | StreamedResponse:
        path = request.path
        if path == "/healthz":
            return answered("ok\n", 200, TEXT)
        if refused := self._guard.refusal(request):
            return failed(403, refused)
        if path == "/session" and request.method == "POST":
            return await self._enter_by_form(request)
        if path.startswith("/api/"):
            return await self._api(request, path)
        if request.method not in SAFE:
            return failed(405, "only GET is answered here")
        asset = self.assets.get(path) if path.startswith("/static/") else self.assets.page
        return _file(request, asset) if asset is not None else failed(404, "there is no such file")

    # Sessions

    async def _enter_by_form(self, request: Request) -> Response:
        """The form of a file that only the user can read. The cookie is Strict: the page's own requests have it."""
        try:
            form = parse_qs((await request.read(LARGEST_BODY, READ_SECONDS)).decode("ascii", "replace"))
        except (TooLarge, BrokenBody, Busy, TimeoutError):
            return failed(400, "the form could not be read")
        entered = await self._door.enter((form.get("key") or [""])[0])
        if entered is None:
            await asyncio.sleep(WRONG_SECONDS)
            return answered("", 303, TEXT, ("Location", "/"))
        return answered("", 303, TEXT, ("Location", "/"), self._cookie(request, entered[1]))

    async def _session(self, request: Request, body: Mapping[str, Any]) -> Response:
        if request.method == "DELETE":
            self._door.leave(request)
            return answered({"ok": True}, 200, JSON, self._cookie(request, ""))
        entered = await self._door.enter(str(body.get("secret") or ""))
        if entered is None:
            await asyncio.sleep(WRONG_SECONDS)
            return failed(401, "The API server does not accept this token." if self._door.kind == "token" else
                          "That is not the key. Run trainwright ui again to see it.")  # fmt: skip
        return answered({"ok": True}, 200, JSON, self._cookie(request, entered[1]))

    def _cookie(self, request: Request, value: str) -> tuple[str, str]:
        secure = request.headers.get("X-Forwarded-Proto", "").lower() == "https"
        return "Set-Cookie", set_cookie(self._door.cookie, value, secure=secure)

    # The API

    async def _api(self, request: Request, path: str) -> Response | StreamedResponse:
        viewer = self._door.viewer(request)
        body: Mapping[str, Any] = {}
        if request.method not in SAFE:
            try:
                body = await _json(request)
            except ValueError as error:
                return failed(400, str(error))
        if path == "/api/session" and request.method == "POST":
            return await self._session(request, body)
        if viewer is None:
            return answered({"error": "sign in first", "door": self._door.kind}, 401, JSON)
        given = request.headers.get("X-CSRF-Token", "")
        if request.method not in SAFE and not hmac.compare_digest(given.encode(), viewer.csrf.encode()):
            return failed(403, "the CSRF token is missing or not this session's: load the page again")
        if path == "/api/session" and request.method == "DELETE":
            return await self._session(request, body)
        query = {name: values[-1] for name, values in parse_qs(request.query).items()}
        asked = Asked(viewer, query, body, self._home, self._flag, self._where, self._door.kind)
        if path.startswith("/api/stream/"):
            return self._stream(path.removeprefix("/api/stream/"), asked)
        handler = (answers.CHANGES if request.method == "POST" else answers.READS).get(path.removeprefix("/api/"))
        if handler is None or request.method not in (*SAFE, "POST"):
            return failed(404, "there is no such answer")
        return await _answer(handler, asked)

    def _stream(self, name: str, asked: Asked) -> Response | StreamedResponse:
        viewer, query = asked.viewer, asked.query
        key = (query.get("namespace", ""), query.get("name", ""))

        def events() -> Events:
            if name == "jobs":
                return streams.jobs(viewer, key[0])
            if name == "job":
                return streams.JobStream(viewer, key, self._home, self._flag).events()
            return streams.lines(viewer, key, self._home)

        if name not in ("jobs", "job", "lines"):
            return failed(404, "there is no such stream")
        return stream(events, (*_fields("text/event-stream"), ("X-Accel-Buffering", "no")))


async def _answer(handler: Callable[[Asked], Awaitable[Any]], asked: Asked) -> Response:
    """Errors of the API server become messages; what nobody foresaw is logged here, and only here."""
    try:
        return answered(await handler(asked), 200, JSON)
    except (Missing, NotFound, BrokenRecord) as error:
        return failed(404, str(error))
    except Unauthorized as error:  # a viewer's token has ended; one's own kubeconfig is not the page's to ask for
        again = {"door": asked.door} if asked.door == "token" else {}
        return answered({"error": str(error), **again}, 401, JSON)
    except Forbidden as error:
        return failed(403, str(error))
    except answers.Unwise as error:
        return failed(409, str(error))
    except ApiError as error:
        return failed(502, f"the API server refused the request: {error}")
    except ClientError as error:
        return failed(503, f"the API server does not answer: {error}")
    except Exception:  # the boundary: one request that fails must not end the others
        log.exception("a request of the page failed")
        return failed(500, "this server failed to answer; its log says more")


async def _json(request: Request) -> Mapping[str, Any]:
    """The body of a change. Only JSON: a form of another site cannot send it."""
    if request.headers.get("Content-Type", "").partition(";")[0].strip() != JSON:
        raise ValueError("a change is sent as application/json")
    try:
        value = msgspec.json.decode(await request.read(LARGEST_BODY, READ_SECONDS) or b"{}")
    except (TooLarge, BrokenBody, Busy, TimeoutError, msgspec.DecodeError) as error:
        raise ValueError("the body could not be read") from error
    if not isinstance(value, dict):
        raise ValueError("the body is not a JSON object")
    return value


def answered(body: Any, status: int, content_type: str, *more: tuple[str, str]) -> Response:
    data = body.encode() if isinstance(body, str) else msgspec.json.encode(body)
    return Response(status, data, content_type, (*_fields(content_type), *more))


def failed(status: int, why: str) -> Response:
    return answered({"error": why}, status, JSON)


def _file(request: Request, asset: Asset) -> Response:
    fields: list[tuple[str, str]] = [
        ("Content-Type", asset.content_type),
        ("Date", _date.at(time.time())),
        ("Cache-Control", "no-cache"),
        ("ETag", asset.tag),
        ("Vary", "Accept-Encoding"),
        *SAFETY,
    ]
    if request.headers.get("If-None-Match") == asset.tag:
        return Response(304, b"", asset.content_type, fields)
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return Response(200, asset.compressed, asset.content_type, [*fields, ("Content-Encoding", "gzip")])
    return Response(200, asset.plain, asset.content_type, fields)


def _fields(content_type: str) -> HeaderFields:
    return (("Content-Type", content_type), ("Date", _date.at(time.time())), ("Cache-Control", "no-store"), *SAFETY)
