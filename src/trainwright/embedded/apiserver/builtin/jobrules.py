"""Rules for a job's numbers and policies: pod failures, success, indexes."""

from __future__ import annotations

import re

from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.gotext import json_text, quote
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1123_subdomain_faults, label_key_faults

ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
STATUSES = ("False", "True", "Unknown")
NO_VALUE = field.OMITTED
MOST_RULES = 20
MOST_EXIT_CODES = 255
INTEGER = re.compile(r"[+-]?[0-9]+")
HTTP_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def validate_numbers(spec: Json) -> list[FieldError]:
    """Counts must not be negative, and those of an indexed job must keep its status within bounds."""
    names = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    found = [
        field.invalid(f"spec.{name}", spec[name], "must be greater than or equal to 0")
        for name in (*names, "backoffLimitPerIndex", "maxFailedIndexes")
        if spec.get(name) is not None and spec[name] < 0
    ]
    limit, failed, mode = spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes"), spec.get("completionMode")
    if failed is not None and limit is None:
        found.append(field.required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if mode == "Indexed":
        found += _indexed(spec)
    elif mode in (None, "NonIndexed"):
        for name, value in (("backoffLimitPerIndex", limit), ("maxFailedIndexes", failed)):
            if value is not None:
                found.append(field.invalid(f"spec.{name}", value, "requires indexed completion mode"))
    else:
        found.append(field.not_supported("spec.completionMode", mode, ["NonIndexed", "Indexed"]))
    return found


def _indexed(spec: Json) -> list[FieldError]:
    found: list[FieldError] = []
    completions, failed = spec.get("completions"), spec.get("maxFailedIndexes")
    parallelism = spec.get("parallelism") or 0
    if completions is None:
        found.append(field.required("spec.completions", "when completion mode is Indexed"))
    if parallelism > 100_000:
        text = "must be less than or equal to 100000 when completion mode is Indexed"
        found.append(field.invalid("spec.parallelism", parallelism, text))
    if completions is not None and failed is not None and failed > completions:
        found.append(field.invalid("spec.maxFailedIndexes", failed, "must be less than or equal to completions"))
    if failed is not None and failed > 100_000:
        found.append(field.invalid("spec.maxFailedIndexes", failed, "must be less than or equal to 100000"))
    if completions is None or completions <= 100_000 or spec.get("backoffLimitPerIndex") is None:
        return found
    many = "must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index"
    if failed is None:
        found.append(field.required("spec.maxFailedIndexes", "must be specified when completions is above 100000"))
    elif failed > 10_000:
        found.append(field.invalid("spec.maxFailedIndexes", failed, many))
    if parallelism > 10_000:
        found.append(field.invalid("spec.parallelism", parallelism, many))
    return found


def validate_policies(spec: Json) -> list[FieldError]:
    found: list[FieldError] = []
    replacement = spec.get("podReplacementPolicy")
    choices = ["Failed"] if spec.get("podFailurePolicy") is not None else ["Failed", "TerminatingOrFailed"]
    if replacement is not None and replacement not in choices:
        found.append(field.not_supported("spec.podReplacementPolicy", replacement, choices))
    failure = spec.get("podFailurePolicy")
    if failure is not None:
        rules = failure.get("rules") or []
        if len(rules) > MOST_RULES:
            found.append(field.too_many("spec.podFailurePolicy.rules", len(rules), MOST_RULES))
        for index, rule in enumerate(rules):
            found += _failure_rule(rule, f"spec.podFailurePolicy.rules[{index}]", spec)
    if spec.get("successPolicy") is not None:
        found += _success(spec["successPolicy"], spec)
    return found + _managed_by(spec.get("managedBy"))


def _managed_by(manager: str | None) -> list[FieldError]:
    if manager is None:
        return []
    found: list[FieldError] = []
    domain, slash, path = manager.partition("/")
    if not manager:
        found.append(field.required("spec.managedBy"))
    elif not slash or not domain or not path:
        text = 'must be a domain-prefixed path (such as "acme.io/foo")'
        found.append(field.invalid("spec.managedBy", manager, text))
    else:
        found += [field.invalid("spec.managedBy", domain, text) for text in dns1123_subdomain_faults(domain)]
        if not HTTP_PATH.fullmatch(path):
            text = f"Invalid path (regex used for validation is '{HTTP_PATH.pattern}')"
            found.append(field.invalid("spec.managedBy", path, text))
    if len(manager.encode()) > 63:
        found.append(field.too_long("spec.managedBy", 63))
    return found


def _failure_rule(rule: Json, at: str, spec: Json) -> list[FieldError]:
    found: list[FieldError] = []
    action = rule.get("action", "")
    if not action:
        found.append(field.required(f"{at}.action", f"valid values: {_quoted(ACTIONS)}"))
    elif action not in ACTIONS:
        found.append(field.not_supported(f"{at}.action", action, ACTIONS))
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        text = "requires the backoffLimitPerIndex to be set"
        found.append(field.invalid(f"{at}.action", action, text))
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
    if codes is not None:
        found += _exit_codes(codes, f"{at}.onExitCodes", spec)
    found += _pod_conditions(conditions or [], f"{at}.onPodConditions")
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
    if not operator:
        found.append(field.required(f"{at}.operator", f"valid values: {_quoted(('In', 'NotIn'))}"))
    elif operator not in ("In", "NotIn"):
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
    elif len(values) > MOST_EXIT_CODES:
        found.append(field.too_many(f"{at}.values", len(values), MOST_EXIT_CODES))
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


def _pod_conditions(patterns: list[Json], at: str) -> list[FieldError]:
    found: list[FieldError] = []
    if len(patterns) > MOST_RULES:
        found.append(field.too_many(at, len(patterns), MOST_RULES))
    for index, pattern in enumerate(patterns):
        kind, status = pattern.get("type", ""), pattern.get("status", "")
        found += [field.invalid(f"{at}[{index}].type", kind, text) for text in label_key_faults(kind)]
        if status not in STATUSES:
            found.append(field.not_supported(f"{at}[{index}].status", status, STATUSES))
    return found


def success_policy_text(policy: Json | None) -> str:
    """A success policy as messages print it, with Go's names."""
    if policy is None:
        return "null"
    rules = [
        f'{{"SucceededIndexes":{json_text(r.get("succeededIndexes"))},'
        f'"SucceededCount":{json_text(r.get("succeededCount"))}}}'
        for r in policy.get("rules") or ()
    ]
    return f'{{"Rules":[{",".join(rules)}]}}'


def _success(policy: Json, spec: Json) -> list[FieldError]:
    at = "spec.successPolicy"
    rules = policy.get("rules") or []
    if spec.get("completionMode") != "Indexed":
        return [field.invalid(at, NO_VALUE, f"{success_policy_text(policy)}: requires indexed completion mode")]
    if not rules:
        text = "at least one rules must be specified when the successPolicy is specified"
        return [field.required(f"{at}.rules", text)]
    found = [field.too_many(f"{at}.rules", len(rules), MOST_RULES)] if len(rules) > MOST_RULES else []
    for index, rule in enumerate(rules):
        found += _success_rule(rule, f"{at}.rules[{index}]", spec.get("completions") or 0)
    return found


def _success_rule(rule: Json, at: str, completions: int) -> list[FieldError]:
    found: list[FieldError] = []
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    total = completions
    if indexes is None and count is None:
        text = "at least one of succeededCount or succeededIndexes must be specified"
        found.append(field.required(at, text))
    if indexes is not None:
        intervals, fault = indexes_of(indexes, completions)
        total = 0 if fault else sum(last - first + 1 for first, last in intervals)
        if fault:
            text = f"error parsing succeededIndexes: {fault}"
            found.append(field.invalid(f"{at}.succeededIndexes", indexes, text))
    if count is not None:
        where = f"{at}.succeededCount"
        if count < 0:
            found.append(field.invalid(where, count, "must be greater than or equal to 0"))
        if count > completions:
            text = f"must be less than or equal to {completions} (the number of specified completions)"
            found.append(field.invalid(where, count, text))
        if indexes is not None and count > total:
            words = "the number of indexes in the specified succeededIndexes field"
            found.append(field.invalid(where, count, f"must be less than or equal to {total} ({words})"))
    return found


def indexes_of(text: str, completions: int) -> tuple[list[tuple[int, int]], str]:
    """The intervals of `0,2-4`, and the fault of the text if they do not ascend below the number of completions."""
    found: list[tuple[int, int]] = []
    for part in text.split(",") if text else ():
        ends = part.split("-")
        if len(ends) > 2:
            words = "violates the requirement that an index interval can have at most two parts separated by '-'"
            return found, f"the fragment {quote(part)} {words}"
        numbers: list[int] = []
        for end in ends:
            if len(end) > 19 or not INTEGER.fullmatch(end):
                return found, f"cannot convert string to integer for index: {quote(end)}"
            numbers.append(int(end))
            if numbers[-1] >= completions:
                return found, f"too large index: {quote(end)}"
        first, last = numbers[0], numbers[-1]
        if len(numbers) == 2 and first >= last:
            return found, f"non-increasing order, previous: {first}, current: {last}"
        if found and found[-1][1] >= first:
            return found, f"non-increasing order, previous: {found[-1][1]}, current: {first}"
        found.append((first, last))
    return found, ""


def _quoted(values: tuple[str, ...]) -> str:
    return "[" + " ".join(quote(value) for value in values) + "]"
