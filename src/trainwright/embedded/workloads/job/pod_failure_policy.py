"""A Job's podFailurePolicy: the action for one failed pod."""

from __future__ import annotations

from typing import Literal, NamedTuple

from trainwright.embedded.workloads.objects import ApiObject
from trainwright.schema.jsonobject import Json

Action = Literal["FailJob", "FailIndex", "Ignore", "Count"]


class Match(NamedTuple):
    """The action of the rule that matched. `message` says why, for a rule that fails the Job."""

    action: Action
    message: str = ""


def match(policy: Json | None, pod: ApiObject) -> Match:
    """The action of the first rule that matches the failed pod; without a match the failure counts."""
    for position, rule in enumerate((policy or {}).get("rules") or ()):
        action: Action = rule.get("action", "Count")
        where = f"matching {action} rule at index {position}"
        of_pod = f"{pod.metadata.namespace}/{pod.name}"
        if exit_codes := rule.get("onExitCodes"):
            status = _container(pod, exit_codes)
            if status is not None:
                code = status["state"]["terminated"]["exitCode"]
                return Match(
                    action, f"Container {status.get('name', '')} for pod {of_pod} failed with exit code {code} {where}"
                )
        elif patterns := rule.get("onPodConditions"):
            condition = _condition(pod, patterns)
            if condition is not None:
                return Match(action, f"Pod {of_pod} has condition {condition.get('type', '')} {where}")
    return Match("Count")


def _container(pod: ApiObject, requirement: Json) -> Json | None:
    """The first terminated container whose exit code matches the requirement. 0 never matches."""
    for field in ("containerStatuses", "initContainerStatuses"):
        for status in pod.status.get(field) or ():
            code = ((status.get("state") or {}).get("terminated") or {}).get("exitCode")
            if not code or requirement.get("containerName") not in (None, status.get("name")):
                continue
            if (code in (requirement.get("values") or ())) == (requirement.get("operator") == "In"):
                found: Json = status
                return found
    return None


def _condition(pod: ApiObject, patterns: list[Json]) -> Json | None:
    for condition in pod.status.get("conditions") or ():
        if any(_is_like(pattern, condition) for pattern in patterns):
            found: Json = condition
            return found
    return None


def _is_like(pattern: Json, condition: Json) -> bool:
    if pattern.get("type") != condition.get("type"):
        return False
    return bool(pattern.get("status", "True") == condition.get("status"))
