"""The kinds of objects that commands know, by all their names: `tj`, `trainjob`, `runtimes`, `po`.

In: the words of a command, such as `tj a b`, `tj/a` or only `a`. Out: a kind and the names of objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trainwright.api.resources import CLUSTER_TRAINING_RUNTIMES, PODS, TRAIN_JOBS, TRAINING_RUNTIMES, Resource
from trainwright.cli.console.nearness import near
from trainwright.cli.failure import Failure


class Kind(NamedTuple):
    plural: str
    resources: tuple[Resource, ...]

    @property
    def singular(self) -> str:
        """The kinds of its objects, for a message."""
        return " or ".join(resource.kind for resource in self.resources)


TRAINJOBS = Kind("trainjobs", (TRAIN_JOBS,))
RUNTIMES = Kind("runtimes", (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES))
CLUSTER_RUNTIMES = Kind("runtimes", (CLUSTER_TRAINING_RUNTIMES,))
NAMESPACE_RUNTIMES = Kind("runtimes", (TRAINING_RUNTIMES,))
POD_KIND = Kind("pods", (PODS,))

NAMES = {
    **dict.fromkeys(("trainjobs", "trainjob", "tj"), TRAINJOBS),
    **dict.fromkeys(("runtimes", "runtime", "rt"), RUNTIMES),
    **dict.fromkeys(("clustertrainingruntimes", "clustertrainingruntime", "ctr"), CLUSTER_RUNTIMES),
    **dict.fromkeys(("trainingruntimes", "trainingruntime", "tr"), NAMESPACE_RUNTIMES),
    **dict.fromkeys(("pods", "pod", "po"), POD_KIND),
}


def kind_of(word: str) -> Kind | None:
    """The kind of a word; kubectl's `trainjobs.trainer.kubeflow.org` is one too."""
    return NAMES.get(word.lower().partition(".")[0])


def kind_and_names(words: Sequence[str]) -> tuple[Kind, list[str]]:
    """`KIND NAME…`, `KIND/NAME…`, or names of TrainJobs."""
    if words and "/" in words[0]:
        kinds = {word.partition("/")[0] for word in words}
        found = {kind_of(word) for word in kinds}
        unknown = next((word for word in kinds if kind_of(word) is None), None)
        if unknown is not None:
            raise Failure(f"there is no kind {unknown}{near(unknown, NAMES) or _known()}", 2)
        if len(found) > 1 or not all("/" in word for word in words):
            raise Failure("write KIND/NAME for objects of one kind, or KIND NAME…", 2)
        return next(kind for kind in found if kind), [word.partition("/")[2] for word in words]
    kind = kind_of(words[0]) if words else TRAINJOBS
    return (kind, list(words[1:])) if kind else (TRAINJOBS, list(words))


def job_names(words: Sequence[str]) -> list[str]:
    """The names of TrainJobs, for commands that act on nothing else."""
    kind, names = kind_and_names(words)
    if kind != TRAINJOBS:
        raise Failure(f"this command is for TrainJobs, not for {kind.plural}", 2)
    return list(dict.fromkeys(names))


def near_kind(word: str) -> str:
    """`; did you mean X?` for a name that is nearly a kind."""
    return near(word, [name for name in NAMES if len(name) > 3], 0.75)


def _known() -> str:
    return f"; there are {', '.join(dict.fromkeys(kind.plural for kind in NAMES.values()))}"
