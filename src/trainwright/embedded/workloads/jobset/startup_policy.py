"""startupPolicy: whether replicated jobs start in the order they are listed, each when the one before has started."""

from __future__ import annotations

from trainwright.schema.jsonobject import Json


def is_in_order(spec: Json) -> bool:
    return bool(spec["startupPolicy"].get("startupPolicyOrder") == "InOrder")


def has_started(replicated: Json, status: Json) -> bool:
    """Whether every Job of the replicated job is ready or has ended."""
    return bool(replicated["replicas"] == status["failed"] + status["ready"] + status["succeeded"])
