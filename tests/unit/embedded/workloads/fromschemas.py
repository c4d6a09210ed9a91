"""Random objects by a schema, in which every optional field may be there, null or absent.

In: a seeded generator and the schema of a kind. Out: JSON that its API server would store, or a Go client would write.
Words that decide anything (phases, operators, effects, policies) are drawn from those that exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from trainwright.schema import kubernetes
from trainwright.schema.jsonobject import Json

WORDS: Mapping[str, tuple[str, ...]] = {
    "action": ("FailJob", "FailIndex", "Ignore", "Count", "FailJobSet", "RestartJobSet", "RestartJob"),
    "completionMode": ("Indexed", "NonIndexed"),
    "completedIndexes": ("0", "0-2", "0,1"),
    "failedIndexes": ("1", "0-2"),
    "succeededIndexes": ("0", "1-2"),
    "effect": ("NoSchedule", "NoExecute", "PreferNoSchedule"),
    "operator": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "All", "Any"),
    "phase": ("Pending", "Running", "Succeeded", "Failed", "Unknown"),
    "podReplacementPolicy": ("Failed", "TerminatingOrFailed"),
    "preemptionPolicy": ("Never", "PreemptLowerPriority"),
    "restartPolicy": ("Never", "OnFailure", "Always"),
    "restartStrategy": ("Recreate", "BlockingRecreate"),
    "startupPolicyOrder": ("InOrder", "AnyOrder"),
    "status": ("True", "False", "Ready", "Complete"),
    "topologyKey": ("kubernetes.io/hostname", "zone"),
    "type": ("Complete", "Failed", "Suspended", "Ready", "FailureTarget", "SuccessCriteriaMet", "Completed"),
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
    "values": ("1", "2", "a"),
}
TEXTS = ("a", "b", "node", "1", "default")
OFTEN = (
    "conditions",
    "containerStatuses",
    "state",
    "terminated",
    "rules",
    "replicatedJobs",
    "failurePolicy",
    "containers",
)


def make(rng: Random, schema: Json, name: str = "", depth: int = 0) -> Any:
    """A value of the schema."""
    if "$ref" in schema:
        return make(rng, kubernetes.definition(schema["$ref"]), name, depth)
    if "allOf" in schema and len(schema["allOf"]) == 1 and not schema.get("properties"):
        return make(rng, schema["allOf"][0], name, depth)
    kind = schema.get("type")
    if schema.get("enum"):
        return rng.choice(schema["enum"])
    if schema.get("x-kubernetes-int-or-string") or schema.get("format") in ("quantity", "int-or-string"):
        return rng.choice(["1", "100m", "2Gi", 3])
    if kind == "array":
        return [make(rng, schema["items"], name, depth + 1) for _ in range(rng.randint(0, 2))]
    if kind == "object" or "properties" in schema:
        if "properties" in schema:
            return members(rng, schema, depth)
        values = schema.get("additionalProperties")
        if isinstance(values, dict):
            return {rng.choice(("a", "cpu", "memory")): make(rng, values, name, depth + 1)}
        return {}
    if kind in ("integer", "number"):
        return rng.randint(0, 3)
    if kind == "boolean":
        return rng.random() < 0.5
    if schema.get("format") == "date-time":
        return "2026-01-01T00:00:00Z"
    return rng.choice(WORDS.get(name, TEXTS))


def members(rng: Random, schema: Json, depth: int) -> Json:
    required = set(schema.get("required") or ())
    made: Json = {}
    for name, member in schema["properties"].items():
        if name in required:
            made[name] = make(rng, member, name, depth + 1)
            continue
        chance = rng.random()
        there = 0.7 if name in OFTEN or depth < 2 else 0.25
        if depth < 12 and chance < there:
            made[name] = make(rng, member, name, depth + 1)
        elif chance > 0.85:
            made[name] = None
    return made


def built_in(rng: Random, api_version: str, kind: str) -> Json:
    made: Json = make(rng, kubernetes.definition(kubernetes.definition_name(api_version, kind)))
    return made
