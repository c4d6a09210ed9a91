"""The progress server: training code posts how far it is, and it appears in `status.trainerStatus`.

A TrainJob is known by its uid, so that one of the same name begins anew. One write per TrainJob at a time: reports that
arrive meanwhile wait together, and the newest of them, by `lastUpdatedTime`, is the next write. So a job that reports
often delays only itself, and a report that arrives late never replaces a newer one.
"""

from __future__ import annotations

import asyncio
import logging
import re

import msgspec

from trainwright.api.resources import TRAIN_JOBS
from trainwright.api.times import seconds_of
from trainwright.client import ApiError, Client, ClientError, Invalid, NotFound
from trainwright.client.errors import BadRequest, Status
from trainwright.controlloop import Clock
from trainwright.http.application import Application, Request
from trainwright.http.response import JSON, Response
from trainwright.operator.progress.reports import ReportInvalid, TrainerStatus, read_report
from trainwright.operator.serving.reviewing import TooManyReviews
from trainwright.operator.serving.tokens import Tokens, bearer

log = logging.getLogger(__name__)

FIELD_MANAGER = "trainer-status"
PATH = re.compile(r"/apis/trainer\.kubeflow\.org/v1alpha1/namespaces/([^/]+)/trainjobs/([^/]+)/status")
LARGEST_BODY = 65536
WRITE_INTERVAL_SECONDS = 0.2
"""Between two writes for one TrainJob."""
AHEAD_SECONDS = 300.0
"""By which a pod's clock may be ahead of the API server's."""
REMEMBERED = 10_000
"""TrainJobs whose newest report is remembered."""


class Refusal(Exception):
    """An answer that is not 200."""

    def __init__(self, code: int, message: str, reason: str) -> None:
        super().__init__(message)
        self.code, self.message, self.reason = code, message, reason

    def response(self) -> Response:
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
        self._turns: dict[str, _Turn] = {}

    async def write(self, namespace: str, name: str, uid: str, status: TrainerStatus) -> None:
        """Returns when this report, or a newer one, is stored; raises what the API server said to the write.

        `ReportInvalid` for one that is dated in the future: nothing would ever be newer.
        """
        if self._is_ahead(status.last_updated_time):
            raise ReportInvalid(f"lastUpdatedTime {status.last_updated_time} is in the future")
        turn = self._turn(uid)
        if _is_older(status, turn.newest):
            return
        if turn.next_batch is None:
            turn.next_batch = _Batch(status)
        else:
            turn.next_batch.add(status)
        batch = turn.next_batch
        async with turn.lock:
            if not batch.is_written:
                await self._write_batch(namespace, name, uid, turn, batch)
        if batch.error is not None:
            raise batch.error

    async def _write_batch(self, namespace: str, name: str, uid: str, turn: _Turn, batch: _Batch) -> None:
        """Writes the batch, unless it is cancelled: then the next of those who wait for it does."""
        if (wait := turn.next_write_at - self._clock.now()) > 0:
            await self._clock.sleep(wait)
        if turn.next_batch is batch:
            turn.next_batch = None  # reports that arrive from now on wait for the write after this one
        try:
            await self._apply(namespace, name, uid, batch.newest)
        except ClientError as error:
            batch.error = error
        else:
            turn.newest = batch.newest.last_updated_time or turn.newest
        batch.is_written = True
        turn.next_write_at = self._clock.now() + WRITE_INTERVAL_SECONDS

    def _is_ahead(self, time: str | None) -> bool:
        return time is not None and _moment(time) > self._client.server_time.now() + AHEAD_SECONDS

    def _turn(self, uid: str) -> _Turn:
        found = self._turns.get(uid)
        if found is None:
            if len(self._turns) >= REMEMBERED:  # forgetting one costs at most one late report taking effect
                self._turns = {key: turn for key, turn in self._turns.items() if turn.lock.locked()}
            found = self._turns[uid] = _Turn()
        return found

    async def _apply(self, namespace: str, name: str, uid: str, status: TrainerStatus) -> None:
        # Server-side apply would create a TrainJob that is gone; with a uid it fails instead.
        found = await self._client.get(TRAIN_JOBS, name, namespace, decode=_Stored)
        if found.metadata.uid != uid:
            raise NotFound(Status(message=f'TrainJob "{name}" was replaced', reason="NotFound", code=404))
        stored = found.status.trainer_status if found.status else None
        newest = stored.last_updated_time if stored is not None else None
        if not self._is_ahead(newest) and _is_older(status, newest):
            return
        body = {
            "apiVersion": TRAIN_JOBS.api_version,
            "kind": TRAIN_JOBS.kind,
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
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

    def application(self) -> Application:
        return Application({}, fallback=self._guarded, largest_body=LARGEST_BODY)

    async def _guarded(self, request: Request) -> Response:
        try:
            return await self._report(request)
        except Refusal as refusal:
            return refusal.response()
        except Exception as error:
            log.error("progress report: %r", error, exc_info=error)
            return Refusal(500, "Internal Server Error", "InternalError").response()

    async def _report(self, request: Request) -> Response:
        named = PATH.fullmatch(request.path)
        if named is None or request.method != "POST":
            raise Refusal(404, "Not found", "NotFound")
        if request.is_too_large:
            raise Refusal(413, "Payload too large", "RequestEntityTooLarge")
        namespace, name = named[1], named[2]
        try:
            uid = await self._tokens.reporter_of(bearer(request.headers.get("Authorization")), namespace, name)
        except TooManyReviews:
            raise Refusal(429, "Too many requests", "TooManyRequests") from None
        except ClientError as error:
            log.warning("progress report for %s/%s: the token could not be checked: %s", namespace, name, error)
            raise Refusal(500, "Internal error", "InternalError") from error
        if not uid:
            raise Refusal(403, "Forbidden", "Forbidden")
        try:
            report = read_report(request.body)
        except ReportInvalid as error:
            raise Refusal(422, "Invalid payload", "Invalid") from error
        if report.trainer_status is not None:
            await self._store(namespace, name, uid, report.trainer_status)
        return _json(msgspec.json.encode(report))

    async def _store(self, namespace: str, name: str, uid: str, status: TrainerStatus) -> None:
        try:
            await self._writer.write(namespace, name, uid, status)
        except ReportInvalid as error:
            raise Refusal(422, str(error), "Invalid") from error
        except NotFound as error:
            raise Refusal(404, "Train job not found", "NotFound") from error
        except (Invalid, BadRequest) as error:
            raise Refusal(422, str(error), "Invalid") from error
        except ClientError as error:
            level = logging.DEBUG if isinstance(error, ApiError) and error.code == 409 else logging.WARNING
            log.log(level, "progress report for %s/%s: %s", namespace, name, error)
            raise Refusal(500, "Internal error", "InternalError") from error


def _is_older(status: TrainerStatus, than: str | None) -> bool:
    """RFC 3339 times, compared as times; what has none is never older."""
    return _moment(status.last_updated_time) < _moment(than) if status.last_updated_time and than else False


def _moment(text: str | None) -> float:
    try:
        return seconds_of(text or "")
    except ValueError:
        return float("inf")  # not a time: the CRD's schema will say so


def _json(body: bytes, status: int = 200) -> Response:
    return Response(status, body, JSON)
