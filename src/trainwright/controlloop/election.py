"""Leader election by a Lease, as client-go does it, with a hard stop when the Lease is lost.

`lead(task)` waits until it holds the Lease, runs the task, and renews the Lease meanwhile. When no renewal has
succeeded for `renew_deadline`, it cancels the task and stands for election again: the process stays, with its stores,
its webhooks and its servers, and acts as soon as the API server is back and nobody else leads. A paused process may
notice too late, so `Fence` checks every write: past the deadline nothing is sent.

Clocks of other holders are never compared with ours: a Lease counts as held for its duration since we saw it change.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import msgspec

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import LEASES
from trainwright.api.times import rfc3339, rfc3339_micro
from trainwright.client import AlreadyExists, Client, ClientError, NotFound
from trainwright.client.errors import is_away
from trainwright.client.requests import Request
from trainwright.client.transport import Answer, Stream, Transport
from trainwright.clock import Clock
from trainwright.controlloop.metrics import Metrics, NoMetrics
from trainwright.schema.jsonobject import Json

log = logging.getLogger(__name__)

RELEASE_SECONDS = 5.0


class LostLease(Exception):
    """This process was the leader and may not be any more."""


class NotLeading(ClientError):
    """A write was not sent, because this process does not hold the Lease any more."""


class ElectionConfig(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    identity: str
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry_period < self.renew_deadline < self.lease_duration:
            raise ValueError("leader election needs 0 < retryPeriod < renewDeadline < leaseDuration")


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: _LeaseSpec = _LeaseSpec()


class Election:
    def __init__(
        self,
        client: Client,
        config: ElectionConfig,
        clock: Clock,
        *,
        metrics: Metrics | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._config = config
        self._clock = clock
        self._metrics = metrics or NoMetrics()
        self._jitter = jitter
        self._seen: _Lease | None = None
        self._seen_at = 0.0
        self._renewed_at: float | None = None  # when the last successful renewal was begun
        self._blind_since: float | None = None  # since when the API server has not answered, by the wall clock

    @property
    def is_leading(self) -> bool:
        """Whether this process holds the Lease and no other can, if clocks run at about the same rate."""
        return self._renewed_at is not None and self._clock.now() < self._renewed_at + self._config.renew_deadline

    async def lead(self, task: Callable[[], Awaitable[None]]) -> None:
        """Runs `task` while leading, each time anew; raises whatever `task` raises."""
        while True:
            try:
                await self._lead_once(task)
            except LostLease as lost:
                log.warning("%s; nothing is written until this process leads again", lost)
            else:
                return

    async def _lead_once(self, task: Callable[[], Awaitable[None]]) -> None:
        self._metrics.leading(self._config.name, False)
        await self._acquire()
        log.info("leading %s/%s as %s", self._config.namespace, self._config.name, self._config.identity)
        self._metrics.leading(self._config.name, True)
        renewing = asyncio.ensure_future(self._renew())
        working = asyncio.ensure_future(task())
        try:
            done, _ = await asyncio.wait({renewing, working}, return_when=asyncio.FIRST_COMPLETED)
            for finished in done:
                finished.result()
        finally:
            for future in (working, renewing):
                future.cancel()
            await asyncio.gather(working, renewing, return_exceptions=True)
            self._metrics.leading(self._config.name, False)
            await self._release()

    async def _acquire(self) -> None:
        while not await self._try(renew=False):
            await self._clock.sleep(self._config.retry_period * (1 + 0.2 * self._jitter()))

    async def _renew(self) -> None:
        while True:
            await self._clock.sleep(self._config.retry_period)
            await self._try(renew=True)
            if not self.is_leading:
                since = f" since {rfc3339(self._blind_since)}" if self._blind_since is not None else ""
                why = f"the API server has not answered{since}" if since else "another process holds it"
                raise LostLease(f"lost the Lease {self._config.namespace}/{self._config.name}: {why}")

    async def _try(self, *, renew: bool) -> bool:
        """One attempt to take or renew the Lease. Returns False when it failed."""
        begun = self._clock.now()
        try:
            held = await self._take(renew)
        except ClientError as error:
            log.debug("lease %s: %s", self._config.name, error)
            if self._blind_since is None and is_away(error):
                self._blind_since = self._clock.wall()
                log.warning("lease %s: %s", self._config.name, error)
            return False
        if self._blind_since is not None:
            log.info("the API server answers again, after %.0f s", self._clock.wall() - self._blind_since)
            self._blind_since = None
        if held:
            self._renewed_at = begun
        elif renew:
            self._renewed_at = None  # another process holds it
        return held

    async def _take(self, renew: bool) -> bool:
        config = self._config
        try:
            lease = await self._client.get(LEASES, config.name, config.namespace, decode=_Lease)
        except NotFound:
            return await self._create()
        if self._seen is None or self._seen != lease:
            self._seen, self._seen_at = lease, self._clock.now()
        ours = lease.spec.holder_identity == config.identity
        duration = float(lease.spec.lease_duration_seconds or config.lease_duration)
        if lease.spec.holder_identity and not ours and self._clock.now() < self._seen_at + duration:
            return False
        if renew and not ours:
            return False  # another process took it: this one must stop leading, even if that Lease has expired
        spec = self._spec(
            acquired=lease.spec.acquire_time if ours else None,
            transitions=(lease.spec.lease_transitions or 0) + (0 if ours else 1),
        )
        await self._write(lease, spec)
        return True

    async def _create(self) -> bool:
        config = self._config
        body = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": config.name, "namespace": config.namespace},
            "spec": self._spec(acquired=None, transitions=0),
        }
        try:
            await self._client.create(LEASES, body, config.namespace, decode=bytes)
        except AlreadyExists:
            return False
        return True

    async def _release(self) -> None:
        """Releases the Lease, so that the next leader need not wait. Failures are ignored: the Lease also expires."""
        if not self.is_leading:
            return
        self._renewed_at = None
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                lease = await self._client.get(LEASES, self._config.name, self._config.namespace, decode=_Lease)
                if lease.spec.holder_identity == self._config.identity:
                    spec = self._spec(acquired=None, transitions=lease.spec.lease_transitions or 0)
                    await self._write(lease, {**spec, "holderIdentity": "", "leaseDurationSeconds": 1})
        except (ClientError, TimeoutError) as error:
            log.debug("lease %s was not released: %s", self._config.name, error)

    async def _write(self, lease: _Lease, spec: Json) -> None:
        config = self._config
        body = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {
                "name": config.name,
                "namespace": config.namespace,
                "resourceVersion": lease.metadata.resource_version,
            },
            "spec": spec,
        }
        await self._client.update(LEASES, body, name=config.name, namespace=config.namespace, decode=bytes)

    def _spec(self, *, acquired: str | None, transitions: int) -> Json:
        now = rfc3339_micro(self._clock.wall())
        return {
            "holderIdentity": self._config.identity,
            "leaseDurationSeconds": max(1, round(self._config.lease_duration)),
            "acquireTime": acquired or now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }


class Fence:
    """A transport that sends writes only while `is_open()`. Reads always pass."""

    def __init__(self, transport: Transport, is_open: Callable[[], bool]) -> None:
        self._transport = transport
        self._is_open = is_open

    async def send(self, request: Request, *, deadline: float) -> Answer:
        if request.is_write and not self._is_open():
            raise NotLeading(f"{request.method} {request.path} was not sent: this process does not lead any more")
        return await self._transport.send(request, deadline=deadline)

    def stream(self, request: Request, *, deadline: float, idle: float) -> AbstractAsyncContextManager[Stream]:
        return self._transport.stream(request, deadline=deadline, idle=idle)

    async def open(self) -> None:
        """Does nothing: the inner transport is opened and closed by its owner."""

    async def close(self) -> None:
        """See `open`."""
