"""The progress server: training code posts how far it is, and it appears in `status.trainerStatus`.

One write per TrainJob at a time: reports that arrive meanwhile wait together, and the newest of them, by
`lastUpdatedTime`, is the next write. So a job that reports often delays only itself, and a report that arrives late
never replaces a newer one.
"""

from __future__ import annotations

import asyncio
import logging

import msgspec
from aiohttp import web

from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.times import seconds_of
from trainwright.client import ApiError, Client, ClientError, Invalid, NotFound
from trainwright.client.errors import BadRequest
from trainwright.controlloop import Clock
from trainwright.operator.reports import ReportInvalid, TrainerStatus, read_report
from trainwright.operator.tokens import Tokens, bearer

log = logging.getLogger(__name__)

FIELD_MANAGER = "trainer-status"
PATH = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs/{name}/status"
LARGEST_BODY = 65536
WRITE_INTERVAL_SECONDS = 0.2
"""Between two writes for one TrainJob."""
REMEMBERED = 10_000
"""TrainJobs whose newest report is remembered."""


class Refusal(Exception):
    """An answer that is not 200."""

    def __init__(self, code: int, message: str, reason: str) -> None:
        super().__init__(message)
        self.code, self.message, self.reason = code, message, reason

    def response(self) -> web.Response:
        body = {"metadata": {}, "status": "Failure", "message": self.message, "reason": self.reason, "code": self.code}
        return _json(msgspec.json.encode(body), self.code)


class _Batch:
    """Reports that are written together: the newest of them stands for all."""

    def __init__(self, status: TrainerStatus) -> None:
        self.newest = status
        self.is_written = False
        self.error: ClientError | None = None

    def add(self, status: TrainerStatus) -> None:
        if not _is_older(status, self.newest.last_updated_time):
            self.newest = status


class _Turn:
    """One TrainJob's turn to be written: who has the lock writes, the others wait in the next batch."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.next_batch: _Batch | None = None
        self.next_write_at = float("-inf")
        self.newest: str | None = None
        """`lastUpdatedTime` of the newest report that was written."""


class ProgressWriter:
    """Writes reports, one at a time for each TrainJob, newest first."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._turns: dict[tuple[str, str], _Turn] = {}

    async def write(self, namespace: str, name: str, status: TrainerStatus) -> None:
        """Returns when this report, or a newer one, is stored; raises what the API server said to the write."""
        turn = self._turn(namespace, name)
        if _is_older(status, turn.newest):
            return
        if turn.next_batch is None:
            turn.next_batch = _Batch(status)
        else:
            turn.next_batch.add(status)
        batch = turn.next_batch
        async with turn.lock:
            if not batch.is_written:
                await self._write_batch(namespace, name, turn, batch)
        if batch.error is not None:
            raise batch.error

    async def _write_batch(self, namespace: str, name: str, turn: _Turn, batch: _Batch) -> None:
        """Writes the batch, unless it is cancelled: then the next of those who wait for it does."""
        if (wait := turn.next_write_at - self._clock.now()) > 0:
            await self._clock.sleep(wait)
        if turn.next_batch is batch:
            turn.next_batch = None  # reports that arrive from now on wait for the write after this one
        try:
            await self._apply(namespace, name, batch.newest)
        except ClientError as error:
            batch.error = error
        else:
            turn.newest = batch.newest.last_updated_time or turn.newest
        batch.is_written = True
        turn.next_write_at = self._clock.now() + WRITE_INTERVAL_SECONDS

    def _turn(self, namespace: str, name: str) -> _Turn:
        found = self._turns.get((namespace, name))
        if found is None:
            if len(self._turns) >= REMEMBERED:  # forgetting one costs at most one late report taking effect
                self._turns = {key: turn for key, turn in self._turns.items() if turn.lock.locked()}
            found = self._turns[(namespace, name)] = _Turn()
        return found

    async def _apply(self, namespace: str, name: str, status: TrainerStatus) -> None:
        # Server-side apply would create a TrainJob that is gone; a uid that is read first makes it fail instead.
        found = await self._client.get(TRAIN_JOBS, name, namespace, decode=_Stored)
        stored = found.status.trainer_status if found.status else None
        if stored is not None and _is_older(status, stored.last_updated_time):
            return
        body = {
            "apiVersion": TRAIN_JOBS.api_version,
            "kind": TRAIN_JOBS.kind,
            "metadata": {"name": name, "namespace": namespace, "uid": found.metadata.uid},
            "status": {"trainerStatus": msgspec.to_builtins(status)},
        }
        await self._client.apply(
            TRAIN_JOBS,
            body,
            name=name,
            namespace=namespace,
            field_manager=FIELD_MANAGER,
            subresource="status",
            decode=bytes,
        )


class _StoredMeta(msgspec.Struct):
    uid: str


class _StoredStatus(msgspec.Struct, rename="camel"):
    trainer_status: TrainerStatus | None = None


class _Stored(msgspec.Struct):
    metadata: _StoredMeta
    status: _StoredStatus | None = None


class ProgressServer:
    def __init__(self, tokens: Tokens, writer: ProgressWriter) -> None:
        self._tokens = tokens
        self._writer = writer

    def application(self) -> web.Application:
        app = web.Application(client_max_size=LARGEST_BODY)
        app.router.add_post(PATH, self._guarded)
        app.router.add_route("*", "/{anything:.*}", _not_found)
        return app

    async def _guarded(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._report(request)
        except Refusal as refusal:
            return refusal.response()
        except Exception as error:
            log.error("progress report: %r", error, exc_info=error)
            return Refusal(500, "Internal Server Error", "InternalError").response()

    async def _report(self, request: web.Request) -> web.Response:
        if (request.content_length or 0) > LARGEST_BODY:
            raise Refusal(413, "Payload too large", "RequestEntityTooLarge")
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        try:
            allowed = await self._tokens.may_report(bearer(request.headers.get("Authorization")), namespace, name)
        except ClientError as error:
            log.warning("progress report for %s/%s: the token could not be checked: %s", namespace, name, error)
            raise Refusal(500, "Internal error", "InternalError") from error
        if not allowed:
            raise Refusal(403, "Forbidden", "Forbidden")
        try:
            report = read_report(await request.read())
        except (ReportInvalid, web.HTTPRequestEntityTooLarge) as error:
            raise Refusal(422, "Invalid payload", "Invalid") from error
        if report.trainer_status is not None:
            await self._store(namespace, name, report.trainer_status)
        return _json(msgspec.json.encode(report))

    async def _store(self, namespace: str, name: str, status: TrainerStatus) -> None:
        try:
            await self._writer.write(namespace, name, status)
        except NotFound as error:
            raise Refusal(404, "Train job not found", "NotFound") from error
        except (Invalid, BadRequest) as error:
            raise Refusal(422, str(error), "Invalid") from error
        except ClientError as error:
            level = logging.DEBUG if isinstance(error, ApiError) and error.code == 409 else logging.WARNING
            log.log(level, "progress report for %s/%s: %s", namespace, name, error)
            raise Refusal(500, "Internal error", "InternalError") from error


async def _not_found(request: web.Request) -> web.StreamResponse:
    return Refusal(404, "Not found", "NotFound").response()


def _is_older(status: TrainerStatus, than: str | None) -> bool:
    """RFC 3339 times, compared as times; what has none is never older."""
    return _moment(status.last_updated_time) < _moment(than) if status.last_updated_time and than else False


def _moment(text: str | None) -> float:
    try:
        return seconds_of(text or "")
    except ValueError:
        return float("inf")  # not a time: the CRD's schema will say so


def _json(body: bytes, status: int = 200) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/json")
