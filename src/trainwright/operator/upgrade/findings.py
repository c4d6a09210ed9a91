"""What is found about one object."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Effect(StrEnum):
    CHANGES = "changes"
    """Something that people may notice becomes different, and nothing is lost."""
    BREAKS = "breaks"
    """It does not work any more, and somebody has to act first."""
    STAYS = "stays"
    """It is left behind, and harms nobody."""


class Finding(msgspec.Struct, frozen=True):
    object: str
    """Kind, namespace and name, as `TrainJob team/job`."""
    effect: Effect
    text: str


class Report(msgspec.Struct, frozen=True, rename="camel"):
    train_jobs: int
    unfinished: int
    runtimes: int
    upgrade: list[Finding]
    """What this version does to them."""
    back: list[Finding]
    """What Kubeflow Trainer could not go on with, should it ever take the cluster back."""


def name_of(kind: str, namespace: str, name: str) -> str:
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
