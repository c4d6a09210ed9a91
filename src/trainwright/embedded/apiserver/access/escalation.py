"""Nobody grants what they do not have: the check of every write to a role or a binding, as kube-apiserver makes it.

A role may hold only rules that its writer holds, unless they may `escalate` it. A binding may refer only to a role
whose rules its writer holds, unless they may `bind` it. Administrators (group system:masters) may do both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.access.rbac import GROUP, MASTERS, Attributes, Authorizer
from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.storage.equality import same
from trainwright.embedded.apiserver.types import Type
from trainwright.schema.jsonobject import Json

ROLES = ("roles", "clusterroles")
BINDINGS = ("rolebindings", "clusterrolebindings")


class Escalation:
    """`check` is called with every object about to be stored, and how it was before."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def check(self, user: User, served: Type, obj: Json, old: Json | None) -> None:
        """Raises 403, or 404 for a binding to a role that does not exist."""
        if served.group != GROUP or MASTERS in user.groups:
            return
        metadata = obj["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata.get("name", "")
        if served.plural in ROLES:
            if old is not None and same(obj.get("rules"), old.get("rules")):
                return
            rules = list(obj.get("rules") or ())
            exempt = Attributes(user, "escalate", GROUP, served.plural, namespace=namespace, name=name)
        elif served.plural in BINDINGS:
            if old is not None and all(same(obj.get(field), old.get(field)) for field in ("roleRef", "subjects")):
                return
            reference = obj.get("roleRef") or {}
            plural = "clusterroles" if reference.get("kind") == "ClusterRole" else "roles"
            role = reference.get("name", "")
            exempt = Attributes(user, "bind", GROUP, plural, namespace=namespace, name=role)
            found = self._authorizer.rules_of_role(reference, namespace)
            if found is None and not self._authorizer.allowed(exempt):
                raise errors.not_found(GROUP, plural, role)
            rules = found or []
        else:
            return
        if self._authorizer.allowed(exempt):
            return
        held = self._authorizer.rules_of(user, namespace)
        missing = [rule for rule in rules if not all(_is_held(part, held) for part in _parts(rule))]
        if missing:
            groups = json.dumps(list(user.groups)).replace('", "', '" "')
            lines = "\n".join(sorted({_text(rule) for rule in missing}))
            raise errors.forbidden(
                served.group,
                served.plural,
                name,
                f'user "{user.name}" (groups={groups}) is attempting to grant RBAC permissions not currently held:\n'
                + lines,
            )


def _parts(rule: Json) -> Iterator[Json]:
    """The rule as single permissions."""
    for verb in rule.get("verbs") or ():
        for url in rule.get("nonResourceURLs") or ():
            yield {"verbs": [verb], "nonResourceURLs": [url]}
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                one = {"verbs": [verb], "apiGroups": [group], "resources": [resource]}
                names = rule.get("resourceNames") or ()
                yield from ({**one, "resourceNames": [name]} for name in names) if names else (one,)


def _is_held(part: Json, held: list[Json]) -> bool:
    return any(_covers(rule, part) for rule in held)


def _covers(rule: Json, part: Json) -> bool:
    if not _has(rule, "verbs", part["verbs"][0]):
        return False
    if "nonResourceURLs" in part:
        url = part["nonResourceURLs"][0]
        return any(
            known == url or (known.endswith("*") and url.startswith(known[:-1]))
            for known in rule.get("nonResourceURLs") or ()
        )
    if not _has(rule, "apiGroups", part["apiGroups"][0]) or not _has_resource(rule, part["resources"][0]):
        return False
    names = rule.get("resourceNames") or ()
    return not names or ("resourceNames" in part and part["resourceNames"][0] in names)


def _has(rule: Json, field: str, value: str) -> bool:
    values = rule.get(field) or ()
    return value in values or "*" in values


def _has_resource(rule: Json, resource: str) -> bool:
    values = rule.get("resources") or ()
    _, slash, subresource = resource.partition("/")
    return "*" in values or resource in values or bool(slash and f"*/{subresource}" in values)


def _text(rule: Json) -> str:
    """As Go's client prints a rule."""
    names = {
        "apiGroups": "APIGroups",
        "resources": "Resources",
        "resourceNames": "ResourceNames",
        "nonResourceURLs": "NonResourceURLs",
        "verbs": "Verbs",
    }
    shown = [f"{go}:{json.dumps(rule[field]).replace(', ', ' ')}" for field, go in names.items() if rule.get(field)]
    return "{" + ", ".join(shown) + "}"
