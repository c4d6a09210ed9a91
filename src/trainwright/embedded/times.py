"""Kubernetes' spelling of time, from and to seconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(seconds: float) -> str:
    """`2026-01-01T00:00:00Z`, as metav1.Time is written."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(seconds: float) -> str:
    """`2026-01-01T00:00:00.000000Z`, as metav1.MicroTime is written."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_of(text: str) -> float:
    """The instant of any RFC 3339 text."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
