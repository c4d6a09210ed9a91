"""An application: a handler for each path, called with the whole body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from trainwright.http import connection
from trainwright.http import request as incoming
from trainwright.http.headers import Headers
from trainwright.http.response import Response, text

LARGEST_BODY = 2**20


class Request:
    """`body` is empty when the request is larger than the application allows."""

    __slots__ = ("body", "headers", "is_too_large", "method", "path", "query")

    def __init__(self, method: str, path: str, headers: Headers, query: str = "") -> None:
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = b""
        self.is_too_large = False


Handler = Callable[[Request], Awaitable[Response]]


class Application:
    """Handlers by path and method; `fallback` for every other path."""

    def __init__(
        self,
        routes: Mapping[str, Mapping[str, Handler]],
        *,
        fallback: Handler | None = None,
        largest_body: int = LARGEST_BODY,
    ) -> None:
        self._routes = routes
        self._fallback = fallback
        self.largest_body = largest_body

    async def __call__(self, raw: incoming.Request) -> Response:
        request = Request(raw.method, raw.path, raw.headers, raw.query)
        try:
            request.body = await raw.read(self.largest_body, connection.READ_SECONDS)
        except incoming.TooLarge:
            request.is_too_large = True
        except incoming.BrokenBody:
            return text("400: Bad Request", 400)
        except incoming.Busy:
            return text("503: too many large requests at once; try again", 503)
        except TimeoutError:
            return text("408: Request Timeout", 408)
        return await self.answer(request)

    async def answer(self, request: Request) -> Response:
        methods = self._routes.get(request.path)
        if methods is None:
            return await self._fallback(request) if self._fallback is not None else text("404: Not Found", 404)
        handler = methods.get("GET" if request.method == "HEAD" else request.method)
        return await handler(request) if handler is not None else text("405: Method Not Allowed", 405)
