"""The TrainJobs that `delete`, `suspend` and `resume` act on: by name, by file, by label, or all of a namespace."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from trainwright.api.phases import name_of
from trainwright.api.resources import TRAIN_JOBS
from trainwright.cli.clusters.target import Target
from trainwright.cli.failure import Failure
from trainwright.cli.jobview.kinds import job_names
from trainwright.cli.jobview.naming import job_named
from trainwright.client.client import Client


class Choice:
    """What the user said. Names are known at once; labels and `--all` need the cluster."""

    def __init__(
        self,
        verb: str,
        target: Target,
        namespace: str,
        *,
        words: Sequence[str],
        files: Sequence[str] = (),
        selector: str | None = None,
        every: bool = False,
    ) -> None:
        self._verb = verb
        self._namespace = namespace
        self._selector = selector
        self._every = every
        names = [job_named(target, name, namespace) for name in job_names(words)]
        self._names = [*names, *(name for file in files for name in _names_in(file))]
        if sum(map(bool, (self._names, selector, every))) > 1:
            raise Failure("names, -l and --all exclude each other: choose one", 2)
        if not (self._names or selector or every):
            raise Failure(f"which TrainJob? Write: trainwright {verb} NAME…, or -l LABELS, or --all", 2)

    async def names(self, client: Client) -> list[str]:
        if self._names:
            return list(dict.fromkeys(self._names))
        listed = await client.list(TRAIN_JOBS, self._namespace, label_selector=self._selector)
        return sorted(name_of(job) for job in listed.items or ())

    def is_confirmed(self, names: Sequence[str], *, yes: bool) -> bool:
        """Whether the user wants it: `--all` asks, where somebody can be asked."""
        if not self._every or yes or not names:
            return True
        question = f"{self._verb} {_count(names)} of namespace {self._namespace}: {', '.join(names)}"
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise Failure(f"this would {question}. Nobody can be asked here: give --yes")
        try:
            return input(f"{question[0].upper()}{question[1:]}? [y/N] ").strip().lower() in ("y", "yes")
        except EOFError:
            return False

    @property
    def none_found(self) -> str:
        what = f" with {self._selector}" if self._selector else ""
        return f"no TrainJobs in namespace {self._namespace}{what}"


def _count(names: Sequence[str]) -> str:
    return "1 TrainJob" if len(names) == 1 else f"{len(names)} TrainJobs"


def _names_in(file: str) -> list[str]:
    from trainwright.cli.files import documents

    found = [document.name for document in documents.read([file]) if document.kind == TRAIN_JOBS.kind]
    if not found:
        raise Failure(f"{file}: no TrainJob in it")
    return found
