"""Matching of requests and webhooks: rules, selectors, match conditions.

In: one webhook of a configuration, compiled once, and a request. Out: whether to call the webhook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.types import Type
from trainwright.schema.errors import SchemaError
from trainwright.schema.jsonobject import Json
from trainwright.schema.selectors import LabelSelector, selector_of

if TYPE_CHECKING:
    from trainwright.schema.cel import Program

VARIABLES = {"object": None, "oldObject": None, "request": None, "authorizer": None}


class Webhook:
    """One webhook, with its selectors and conditions compiled."""

    def __init__(self, configuration: str, spec: Json) -> None:
        self.configuration = configuration
        self.name: str = spec.get("name", "")
        self.rules: list[Json] = spec.get("rules") or []
        self.client_config: Json = spec.get("clientConfig") or {}
        self.fails_closed = spec.get("failurePolicy", "Fail") != "Ignore"
        self.seconds = float(spec.get("timeoutSeconds") or 10)
        self.versions: list[str] = spec.get("admissionReviewVersions") or ["v1"]
        self.reinvoke = spec.get("reinvocationPolicy") == "IfNeeded"
        self.equivalent = spec.get("matchPolicy", "Equivalent") != "Exact"
        self._namespaces: LabelSelector = selector_of(spec.get("namespaceSelector") or {})
        self._objects: LabelSelector = selector_of(spec.get("objectSelector") or {})
        self._conditions: list[tuple[str, Program]] = []
        for condition in spec.get("matchConditions") or ():
            from trainwright.schema.cel import compile_expression  # imported when the first condition needs it

            try:
                program = compile_expression(condition.get("expression", ""), VARIABLES)
            except SchemaError:
                continue  # such a condition is refused when the configuration is written
            self._conditions.append((condition.get("name", ""), program))

    def wants(self, served: Type, operation: str, subresource: str) -> bool:
        """Whether the rules match, which do not depend on the object."""
        versions = {served.version}
        if self.equivalent:
            versions |= {version.rpartition("/")[2] for version in served.sibling_versions}
        return any(_rule_covers(rule, served, versions, operation, subresource) for rule in self.rules)

    def selects(self, namespace_labels: dict[str, str] | None, obj: Json | None, old: Json | None) -> bool:
        """Whether the selectors match. `namespace_labels` is None for cluster-scoped objects, except namespaces."""
        if namespace_labels is not None and not self._namespaces.matches(namespace_labels):
            return False
        if self._objects.everything:
            return True
        return any(
            self._objects.matches(candidate["metadata"].get("labels") or {})
            for candidate in (obj, old)
            if candidate is not None
        )

    def meets_conditions(self, request: Json) -> bool:
        """Whether the conditions hold. Raises 403 if one cannot be evaluated and the webhook fails closed."""
        variables: dict[str, Any] = {
            "object": request.get("object"),
            "oldObject": request.get("oldObject"),
            "request": request,
            "authorizer": None,
        }
        if not self._conditions:
            return True
        from trainwright.schema.cel import CelError

        failed: list[str] = []
        for name, program in self._conditions:
            try:
                if program(variables) is not True:
                    return False
            except CelError as error:
                failed.append(f"expression '{program.text}' resulted in error: {error} ({name})")
        if not failed:
            return True
        if self.fails_closed:
            raise StatusError(403, f'failed to evaluate match conditions of webhook "{self.name}": {"; ".join(failed)}')
        return False


def _rule_covers(rule: Json, served: Type, versions: set[str], operation: str, subresource: str) -> bool:
    operations = rule.get("operations") or ()
    if operation not in operations and "*" not in operations:
        return False
    groups = rule.get("apiGroups") or ()
    if served.group not in groups and "*" not in groups:
        return False
    known = rule.get("apiVersions") or ()
    if "*" not in known and not versions & set(known):
        return False
    scope = rule.get("scope") or "*"
    if scope == "Namespaced" and not served.namespaced:
        return False
    if scope == "Cluster" and served.namespaced:
        return False
    return any(_resource_covers(entry, served.plural, subresource) for entry in rule.get("resources") or ())


def _resource_covers(entry: str, plural: str, subresource: str) -> bool:
    resource, _, sub = entry.partition("/")
    if resource not in ("*", plural):
        return False
    return sub in ("*", subresource) if sub else not subresource
