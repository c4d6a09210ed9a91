"""Rules for a job's policies: pod failures, success, indexes."""

from __future__ import annotations

import re

from ....schema import errors as field
from ....schema.errors import FieldError
from ....schema.gotext import json_text
from ..errors import Json

ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
NO_VALUE = field.OMITTED


def validate_indexes(spec: Json) -> list[FieldError]:
    """backoffLimitPerIndex, maxFailedIndexes and completions belong together."""
    found: list[FieldError] = []
    limit, failed, completions = spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes"), spec.get("completions")
    if limit is not None and spec.get("completionMode") != "Indexed":
        found.append(field.invalid("spec.backoffLimitPerIndex", limit, "requires indexed completion mode"))
    if failed is not None:
        if limit is None:
            found.append(field.required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
        if spec.get("completionMode") != "Indexed":
            found.append(field.invalid("spec.maxFailedIndexes", failed, "requires indexed completion mode"))
        if completions is not None and failed > completions:
            found.append(field.invalid("spec.maxFailedIndexes", failed, "must be less than or equal to completions"))
    return found


def validate_policies(spec: Json) -> list[FieldError]:
    found: list[FieldError] = []
    replacement = spec.get("podReplacementPolicy")
    choices = ["Failed"] if spec.get("podFailurePolicy") is not None else ["Failed", "TerminatingOrFailed"]
    if replacement is not None and replacement not in choices:
        found.append(field.not_supported("spec.podReplacementPolicy", replacement, choices))
    failure = spec.get("podFailurePolicy")
    if failure is not None:
        for index, rule in enumerate(failure.get("rules") or ()):
            found += _failure_rule(rule, f"spec.podFailurePolicy.rules[{index}]", spec)
    if spec.get("successPolicy") is not None:
        found += _success(spec["successPolicy"], spec)
    manager = spec.get("managedBy")
    if manager is not None and not re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[-A-Za-z0-9/_.]+", manager):
        found.append(field.invalid("spec.managedBy", manager, 'must be a domain-prefixed path (such as "acme.io/foo")'))
    return found


def _failure_rule(rule: Json, at: str, spec: Json) -> list[FieldError]:
    found: list[FieldError] = []
    action = rule.get("action", "")
    if not action:
        found.append(field.required(f"{at}.action", f"valid values: {list(ACTIONS)}"))
    elif action not in ACTIONS:
        found.append(field.not_supported(f"{at}.action", action, ACTIONS))
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        text = "requires the backoffLimitPerIndex to be set"
        found.append(field.invalid(f"{at}.action", action, text))
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
    if codes is not None:
        found += _exit_codes(codes, f"{at}.onExitCodes", spec)
    if codes is not None and conditions:
        text = "specifying both OnExitCodes and OnPodConditions is not supported"
        found.append(field.invalid(at, NO_VALUE, text))
    if codes is None and not conditions:
        text = "specifying one of OnExitCodes and OnPodConditions is required"
        found.append(field.invalid(at, NO_VALUE, text))
    return found


def _exit_codes(codes: Json, at: str, spec: Json) -> list[FieldError]:
    found: list[FieldError] = []
    operator, values = codes.get("operator", ""), codes.get("values") or []
    if operator not in ("In", "NotIn"):
        found.append(field.not_supported(f"{at}.operator", operator, ["In", "NotIn"]))
    name = codes.get("containerName")
    if name is not None:
        pod = spec["template"]["spec"]
        names = {c.get("name") for c in (*(pod.get("containers") or ()), *(pod.get("initContainers") or ()))}
        if name not in names:
            text = "must be one of the container or initContainer names in the pod template"
            found.append(field.invalid(f"{at}.containerName", name, text))
    if not values:
        found.append(field.invalid(f"{at}.values", values, "at least one value is required"))
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            found.append(field.invalid(f"{at}.values[{index}]", value, "must not be 0 for the In operator"))
        if value in seen:
            found.append(field.duplicate(f"{at}.values[{index}]", value))
        seen.add(value)
    if values != sorted(values):
        found.append(field.invalid(f"{at}.values", values, "must be ordered"))
    return found


def _success(policy: Json, spec: Json) -> list[FieldError]:
    at = "spec.successPolicy"
    rules = policy.get("rules") or []
    if spec.get("completionMode") != "Indexed":
        named = [
            {"SucceededIndexes": rule.get("succeededIndexes"), "SucceededCount": rule.get("succeededCount")}
            for rule in rules
        ]
        shown = ",".join(
            f'{{"SucceededIndexes":{json_text(r["SucceededIndexes"])},"SucceededCount":{json_text(r["SucceededCount"])}}}'
            for r in named
        )
        return [field.invalid(at, NO_VALUE, f'{{"Rules":[{shown}]}}: requires indexed completion mode')]
    if not rules:
        return [
            field.required(f"{at}.rules", "at least one rules must be specified when the successPolicy is specified")
        ]
    found: list[FieldError] = []
    for index, rule in enumerate(rules):
        indexes = rule.get("succeededIndexes")
        if indexes is not None:
            fault = _indexes_fault(indexes, spec.get("completions") or 0)
            if fault:
                text = f"error parsing succeededIndexes: {fault}"
                found.append(field.invalid(f"{at}.rules[{index}].succeededIndexes", indexes, text))
        if indexes is None and rule.get("succeededCount") is None:
            text = "at least one of succeededCount or succeededIndexes must be specified"
            found.append(field.required(f"{at}.rules[{index}]", text))
    return found


def _indexes_fault(text: str, completions: int) -> str:
    """`0,2-4` below the number of completions, ascending."""
    last = -1
    for part in text.split(","):
        first, dash, end = part.partition("-")
        for number in (first, end) if dash else (first,):
            if not number.isdigit():
                return f'cannot convert string to integer for index: "{number}"'
            if int(number) >= completions:
                return f'too large index: "{number}"'
        if int(first) <= last:
            return f"non-increasing order, previous: {last}, current: {first}"
        last = int(end) if dash else int(first)
    return ""
