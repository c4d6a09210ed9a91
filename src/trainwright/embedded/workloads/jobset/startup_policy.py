"""startupPolicy: whether replicated jobs start in the order they are listed, each when the one before has started."""

from __future__ import annotations

from typing import Any

JSON = dict[str, Any]


def is_in_order(spec: JSON) -> bool:
    return bool(spec["startupPolicy"].get("startupPolicyOrder") == "InOrder")


def has_started(replicated: JSON, status: JSON) -> bool:
    """Every Job of it is ready or has ended, in whatever way."""
    return bool(replicated["replicas"] == status["failed"] + status["ready"] + status["succeeded"])
