"""Jobs that run and do not go on: a hang, and a rank that falls behind.

In: pods with the condition `trainwright.dev/Quiet`, which the local node sets when a container has said nothing for a
while; the job's last report; lines of the ranks. Out: a hang, unless the training has reported progress meanwhile, or
a straggler, when others go on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from trainwright.api.times import seconds_of
from trainwright.api.wellknown import QUIET
from trainwright.pipeline.reasons.cause import Cause, Finding
from trainwright.pipeline.reasons.evidence import Evidence, condition_of, index_of, name_of, phase_name, status_of
from trainwright.pipeline.reasons.failures import rank_of_pod, who
from trainwright.pipeline.reasons.ranks import speaker
from trainwright.schema.jsonobject import Json

HANG = Cause(
    "Hang",
    "The job runs and does nothing that can be seen",
    "No rank has printed a line and the training has reported no progress for a while (two minutes unless you set"
    " another time). A collective operation that one rank never reaches, a lock, or a data source that does not answer"
    " look like this; so does a long step that is silent.",
    "See where each rank is: trainwright why JOB shows the stacks; end it with: trainwright delete JOB",
    "Set the time with `trainwright run --hang-after 60`, with the annotation trainwright.dev/hang-after on the"
    " TrainJob, or with `[hang] after = 60` in settings.toml; 0 turns it off. Stacks need py-spy (`pip install py-spy`)"
    " and the right to trace processes; without it, `from trainwright import progress` in your code lets Python's own"
    " faulthandler print them into the log.",
)
STRAGGLER = Cause(
    "Straggler",
    "One rank is behind the others",
    "The other ranks go on, and one has said nothing for a while, or is several steps behind: a slow disk or GPU, more"
    " data than the others have, or a rank that hangs while the others do not wait for it.",
    "See what it does: trainwright why JOB, and trainwright logs JOB --rank N",
)
CAUSES = (HANG, STRAGGLER)
STACK = re.compile(r"(?:rank (?P<rank>\d+)|process \d+)[^:]*: (?P<frames>.+)")
FRAME = re.compile(r"(?P<name>.+?) \((?P<path>[^()]+):(?P<line>\d+)\)")
INSTALLED = re.compile(r"/(?:site|dist)-packages/|/lib/python\d|\(<")
COLLECTIVE = re.compile(
    r"torch/distributed|\b(?:all_?reduce|all_?gather|reduce_?scatter|broadcast|barrier|all_?to_?all|monitored_barrier)\b",
    re.IGNORECASE,
)
STEP = re.compile(r"\b(?:step|iter(?:ation)?|batch|global_step)[ :=#/]*(\d+)", re.IGNORECASE)
BEHIND = 2
"""Steps that a rank may be behind the others: in a synchronous training it is one."""


def find(evidence: Evidence) -> Iterator[Finding]:
    running = sorted((pod for pod in evidence.pods if phase_name(pod) == "Running"), key=index_of)
    quiet = [(pod, said) for pod in running if (said := condition_of(pod, QUIET))]
    if quiet and not _has_reported_since(evidence, quiet[0][1]):
        if len(quiet) == len(running):
            yield _hang(quiet)
        elif all(_is_lasting(said, evidence.now) for _, said in quiet):
            yield _quiet_one(quiet, len(running))
    elif found := _behind(evidence, running):
        yield found


def _hang(quiet: Sequence[tuple[Json, Json]]) -> Finding:
    """All are silent. Those that are not inside a collective operation are what the others wait for."""
    known = [(place, pod) for pod, said in quiet for place in places(said, pod)]
    busy = [(place, pod) for place, pod in known if not place.is_collective]
    silent = f"no output and no progress for {_seconds(quiet)} s"
    if known and 0 < len(busy) < len(known):
        shown, rest = busy, f", {silent}; the others wait for {'it' if len(busy) == 1 else 'them'}"
    else:
        shown, rest = known, f": {silent}"
    if shown:
        ranks = _listed([place.rank for place, _ in shown], [place.who for place, _ in shown])
        first, pod = shown[0]
        at = f" at {first.at}" if first.at and len({place.at for place, _ in shown}) == 1 else ""
        what, rank = f"{ranks} {'hangs' if len(shown) == 1 else 'hang'}{at}{rest}", first.rank
    else:
        pod = quiet[0][0]
        pods = [one for one, _ in quiet]
        what, rank = f"{_names(pods)} {'hangs' if len(pods) == 1 else 'hang'}: {silent}", rank_of_pod(pod)
    return Finding(
        cause=HANG,
        what=what,
        kind="Pod",
        name=name_of(pod),
        rank=rank,
        details=tuple(line for _, said in quiet for line in _stacks(said)),
    )


class Place(NamedTuple):
    """Where a process is in its code."""

    who: str
    rank: int | None
    at: str
    """`train.py:14 in load`: the innermost call in the user's own code; empty when there is none."""
    is_collective: bool
    """Whether it waits in an operation that all ranks take part in."""


def places(said: Json, pod: Json) -> Iterator[Place]:
    """Where the processes of a quiet pod are, by the stacks that its node found."""
    for line in _stacks(said):
        found = STACK.fullmatch(line)
        if found is None:
            continue
        frames = found["frames"].split(" <- ")
        own = next((frame for frame in frames if not INSTALLED.search(frame) and FRAME.fullmatch(frame)), "")
        call = FRAME.fullmatch(own)
        at = f"{call['path'].rsplit('/', 1)[-1]}:{call['line']} in {call['name']}" if call else ""
        rank = int(found["rank"]) if found["rank"] else None
        who_ = f"rank {rank}" if rank is not None else who(pod)
        inner = frames[: frames.index(own)] if own else frames
        yield Place(who_, rank, at, any(COLLECTIVE.search(frame) for frame in inner))


def _quiet_one(quiet: Sequence[tuple[Json, Json]], count: int) -> Finding:
    pods = [pod for pod, _ in quiet]
    what = (
        f"{_names(pods)} has printed nothing for {_seconds(quiet)} s while {count - len(quiet)} of {count} pods go on"
    )
    return Finding(
        cause=STRAGGLER,
        what=what if len(pods) == 1 else what.replace(" has ", " have ", 1),
        kind="Pod",
        name=name_of(pods[0]),
        rank=rank_of_pod(pods[0]),
        details=tuple(line for _, said in quiet for line in _stacks(said)),
    )


def _behind(evidence: Evidence, running: Sequence[Json]) -> Finding | None:
    """A rank whose last step is several behind, by the lines that ranks print."""
    steps: dict[int, tuple[int, Json]] = {}
    for pod in running:
        for container in (pod.get("spec") or {}).get("containers") or ():
            for rank, step in last_steps(evidence.logs.get(f"{name_of(pod)}/{container.get('name')}", ()), pod).items():
                steps[rank] = (step, pod)
    if len(steps) < 2:
        return None
    rank, (least, pod) = min(steps.items(), key=lambda item: item[1][0])
    others = [step for other, (step, _) in steps.items() if other != rank]
    if min(others) - least < BEHIND:
        return None
    behind = min(others) - least
    what = f"rank {rank} is {behind} steps behind: it printed step {least} last, the others {min(others)} or more"
    return Finding(cause=STRAGGLER, what=what, kind="Pod", name=name_of(pod), rank=rank)


def last_steps(lines: Sequence[str], pod: Json) -> Mapping[int, int]:
    """The last step that each rank printed."""
    speaks = speaker(pod)
    found: dict[int, int] = {}
    for line in lines:
        _, rank, text, _ = speaks.attribute(line)
        if rank is not None and (step := STEP.search(text)):
            found[rank] = int(step[1])
    return found


def _has_reported_since(evidence: Evidence, said: Json) -> bool:
    """Whether the training has reported progress since the pod became quiet, less the time it took to notice."""
    report = (status_of(evidence.job).get("trainerStatus") or {}).get("lastUpdatedTime")
    since = said.get("lastTransitionTime")
    return bool(report and since and seconds_of(str(report)) >= seconds_of(str(since)) - _threshold(said))


def _is_lasting(said: Json, now: float) -> bool:
    """Whether the others have had as long again to fall silent too: then they go on."""
    since = said.get("lastTransitionTime")
    return not now or not since or now - seconds_of(str(since)) > _threshold(said)


def _threshold(said: Json) -> float:
    found = re.search(r"for (\d+) s", str(said.get("message") or ""))
    return float(found[1]) if found else 0.0


def _seconds(quiet: Sequence[tuple[Json, Json]]) -> int:
    return int(min(_threshold(said) for _, said in quiet))


def _names(pods: Sequence[Json]) -> str:
    return _listed([rank_of_pod(pod) for pod in pods], [who(pod) for pod in pods])


def _listed(ranks: Sequence[int | None], names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    numbers = [str(rank) for rank in ranks if rank is not None]
    if len(numbers) == len(names):
        return f"ranks {', '.join(numbers[:8])}{' and more' if len(numbers) > 8 else ''}"
    return f"{names[0]} and {len(names) - 1} more"


def _stacks(said: Json) -> Sequence[str]:
    return str(said.get("message") or "").splitlines()[1:]
