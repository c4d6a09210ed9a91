"""A Job's successPolicy: which succeeded indexes are enough."""

from __future__ import annotations

from collections.abc import Set

from trainwright.embedded.workloads.job import indexes
from trainwright.schema.jsonobject import Json


def met(policy: Json | None, completions: int, succeeded: Set[int]) -> str | None:
    """The message for the rule that is met, or None."""
    for position, rule in enumerate((policy or {}).get("rules") or ()):
        named, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        relevant = succeeded & indexes.parse(named, completions) if named is not None else succeeded
        needed = count if count is not None else len(indexes.parse(named, completions))
        if len(relevant) >= needed:
            return f"Matched rules at index {position}"
    return None
