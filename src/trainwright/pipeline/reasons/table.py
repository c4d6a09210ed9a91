"""All causes, in the order of the troubleshooting page: by area."""

from __future__ import annotations

from typing import Final

from trainwright.pipeline.reasons import (
    failures,
    images,
    jobs,
    logcauses,
    queues,
    quiet,
    scheduling,
    signals,
    volumes,
    waiting,
    webhooks,
)
from trainwright.pipeline.reasons.cause import Cause

_LOGS = tuple(dict.fromkeys([*(pattern.cause for pattern in logcauses.PATTERNS), logcauses.EXCEPTION]))
_ENDS = (signals.OUT_OF_MEMORY, signals.CRASHED, signals.EXIT_CODE, signals.ENDED_FROM_OUTSIDE)

AREAS: Final[tuple[tuple[str, tuple[Cause, ...]], ...]] = (
    ("The program failed", (*_LOGS, *_ENDS)),
    ("The job runs and does not go on", quiet.CAUSES),
    ("The pods wait for a node", scheduling.CAUSES),
    ("The pods wait on their node", (*waiting.CAUSES, *images.CAUSES, *volumes.CAUSES)),
    ("The pods were refused or taken away", failures.CAUSES),
    ("The job waits in a queue", queues.CAUSES),
    ("The API server does not accept something", webhooks.CAUSES),
    ("The TrainJob and its operator", jobs.CAUSES),
)
CAUSES: Final = {cause.code: cause for _, causes in AREAS for cause in causes}
