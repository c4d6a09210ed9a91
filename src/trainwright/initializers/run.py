"""One initializer from its settings to its end.

The way of a run: choose the source by the URI's scheme; take the target for us alone; list the source and refuse
unsafe names; see what is there and whether the rest has room; fetch several files at once, into the cache or beside
the target; put each in place when it is whole. Killed at any point and started again, it goes on where it was.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack

from trainwright.clock import Clock
from trainwright.initializers.errors import Changed, Damaged, InitializerError, Misconfigured, NoSpace
from trainwright.initializers.fetch import CONNECTIONS, Fetcher
from trainwright.initializers.folder import Folder, failure
from trainwright.initializers.http import Http
from trainwright.initializers.names import check_together, printable
from trainwright.initializers.partial import Partial
from trainwright.initializers.plan import check_space, make_plan
from trainwright.initializers.progress import Progress
from trainwright.initializers.retry import Patience, persist
from trainwright.initializers.schemes import scheme_of, source_of
from trainwright.initializers.settings import CACHE_DIR, Settings
from trainwright.initializers.source import Item, Source
from trainwright.initializers.store import Store
from trainwright.initializers.target import Target
from trainwright.initializers.together import together

_LISTINGS = 3
"""How often a source is listed that changes while it is fetched."""


async def initialize(settings: Settings, progress: Progress, clock: Clock) -> None:
    """Fetch everything that the URI names into the target; raises an `InitializerError` when that cannot be done."""
    async with AsyncExitStack() as stack:
        ca_file = settings.variables.get("AWS_CA_BUNDLE") if scheme_of(settings) == "s3" else None
        http = await stack.enter_async_context(Http(ca_file))
        source = source_of(settings, http, clock)
        folder = _cache_folder(settings, progress) if source.is_cached else None
        cache = Store(stack.enter_context(folder), clock) if folder else None
        waiting = f"another initializer is filling {settings.target}; waiting for it"
        target = await stack.enter_async_context(Target.opened(settings.target, clock, lambda: progress.say(waiting)))
        run = _Run(settings, source, target, cache, progress, clock)
        await stack.enter_async_context(progress.shown())
        try:
            await _until_unchanged(run, progress)
        except OSError as error:  # of the file system: those of the network have become `Transient`
            raise failure(error, error.filename or settings.target) from error
    progress.summary(str(settings.target))


async def _until_unchanged(run: _Run, progress: Progress) -> None:
    """A source that changes while it is fetched is listed again, a few times."""
    for listing in range(1, _LISTINGS + 1):
        try:
            await run.go()
            return
        except Changed as changed:
            if listing == _LISTINGS:
                raise
            progress.say(f"{changed}; listing it again")


class _Run:
    """One attempt: items of a source, put into a target."""

    def __init__(
        self,
        settings: Settings,
        source: Source,
        target: Target,
        cache: Store | None,
        progress: Progress,
        clock: Clock,
    ) -> None:
        self._source = source
        self._target = target
        self._cache = cache
        self._progress = progress
        self._parts = Store(target.parts, clock)
        self._clock = clock
        self._retry_seconds = settings.retry_seconds
        self._fetcher = Fetcher(source, progress, clock, settings.retry_seconds)

    async def go(self) -> None:
        patience = Patience(self._source.uri, self._retry_seconds, self._clock, self._progress.say)
        items = await persist(patience, self._source.items)
        check_together(item.name for item in items)
        if not items:
            self._progress.say(f"{self._source.uri}: every file is left out by its patterns: nothing to fetch")
        sizes = [item.size for item in items]
        self._progress.expect(len(items), None if None in sizes else sum(size or 0 for size in sizes))
        plan = make_plan(items, self._target, self._parts, self._cache, self._progress.say)
        for item in plan.there:
            self._progress.had(item.size or 0)
            self._progress.finished_file()
        queue = iter(plan.missing)
        async with together() as group:
            for _ in plan.missing[:CONNECTIONS]:
                group.create_task(self._work(queue, plan.cache))
        await self._target.settle()

    async def _work(self, queue: Iterator[Item], cache: Store | None) -> None:
        for item in queue:
            if cache is None or not item.resumable or not await self._through_cache(item, cache):
                await self._directly(item)
            self._progress.finished_file()

    async def _directly(self, item: Item) -> None:
        check_space(self._target.folder, self._parts.missing_bytes(item), printable(item.name))
        fetch = functools.partial(self._fetcher.fetch, item)
        async with self._parts.handing_over(item, fetch, self._waiting(item)):
            await self._target.move_in(item, item.key)

    async def _through_cache(self, item: Item, cache: Store) -> bool:
        """A copy of what the cache has, or will have; False when the cache has no room for it.

        A file in the cache that is damaged is fetched again, once.
        """
        check_space(self._target.folder, item.size or 0, printable(item.name))
        for _ in range(2):
            if cache.folder.free() < cache.missing_bytes(item):
                return False
            fetched = False

            async def fetch(partial: Partial) -> None:
                nonlocal fetched
                fetched = True
                await self._fetcher.fetch(item, partial)

            try:
                async with cache.holding(item, fetch, self._waiting(item)):
                    if not fetched:
                        self._progress.had(item.size or 0)
                    if await self._target.copy_in(item, cache.folder, item.key, await self._fetcher.digest(item)):
                        return True
            except NoSpace as full:
                self._progress.say(f"{full}; doing without the cache")
                return False
            self._progress.say(f"{printable(item.name)}: the copy in the cache is damaged; fetching it again")
            self._progress.lost(item.size or 0)
            await cache.drop(item, self._waiting(item))
        raise Damaged(f"{printable(item.name)}: what {cache.folder.path} keeps is not what was written: is it failing?")

    def _waiting(self, item: Item) -> Callable[[], None]:
        return lambda: self._progress.say(f"{printable(item.name)}: it is being fetched already; waiting for it")


def _cache_folder(settings: Settings, progress: Progress) -> Folder | None:
    """The cache's directory; None if it cannot be used and the user did not ask for it."""
    if settings.cache is None:
        return None
    try:
        folder = Folder.at(settings.cache, mode=0o700)
        if os.access(settings.cache, os.W_OK | os.X_OK):
            return folder
        os.close(folder.descriptor)
        raise Misconfigured(f"{settings.cache} cannot be written to")
    except InitializerError as error:
        if settings.cache_is_wanted:
            raise
        progress.say(f"no cache is used: {error}; {CACHE_DIR} names another one")
        return None
