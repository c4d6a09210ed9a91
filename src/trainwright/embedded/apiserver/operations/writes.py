"""Writes as values: what is to be changed, on whose behalf and under which conditions, before anything is tried."""

from __future__ import annotations

import msgspec


class WriteOptions(msgspec.Struct, frozen=True):
    """What query parameters say about a write."""

    manager: str = "unknown"
    dry_run: bool = False
    validation: str = "Warn"
    force: bool = False
