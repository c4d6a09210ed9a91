"""A Job's successPolicy: which succeeded indexes are enough."""

from __future__ import annotations

from collections.abc import Set

from trainwright.embedded.workloads.job import indexes
from trainwright.schema.jsonobject import Json


def met(policy: Json | None, completions: int, succeeded: Set[int]) -> str | None:
    """The message for the rule that is met, or None."""
    if not succeeded:
        return None
    for position, rule in enumerate((policy or {}).get("rules") or ()):
        named, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        if named is not None:
            required = indexes.parse(named, completions)
            there = len(required & succeeded)
            is_met = bool(required) and (there == len(required) or (count is not None and there >= count))
        else:
            is_met = count is not None and len(succeeded) >= count
        if is_met:
            return f"Matched rules at index {position}"
    return None
