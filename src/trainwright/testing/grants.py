"""Checks least privilege: compares what roles grant with what the audit log shows was used.

In: the rules of the roles bound to a user, and that user's requests. Out: unused grants, as (group, resource, verb,
name). A grant counts as used when a request that it allows was authorized, whatever its result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trainwright.schema.jsonobject import Json
from trainwright.testing.audit import Request


@dataclass(frozen=True, order=True)
class Grant:
    group: str
    resource: str
    verb: str
    name: str = ""  # empty: any name
    namespace: str = ""  # empty: any namespace

    def allows(self, request: Request) -> bool:
        """An apply that creates needs `create` besides `patch`; the audit log shows it as a patch with 201."""
        creates = request.verb == "patch" and request.code == 201
        return (
            self.group == request.group
            and self.resource == request.full_resource
            and (self.verb == request.verb or (creates and self.verb == "create"))
            and self.name in ("", request.name)
            and self.namespace in ("", request.namespace)
        )

    def __str__(self) -> str:
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        only = f" (only {self.name})" if self.name else ""
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {what}{only}{where}"


class TooBroad(Exception):
    """A rule with a `*`, whose grants cannot be counted."""


def grants(role: Json) -> set[Grant]:
    """Every grant of a Role or ClusterRole."""
    namespace = role["metadata"].get("namespace", "") if role["kind"] == "Role" else ""
    found = set()
    for rule in role.get("rules", []):
        for group in rule.get("apiGroups", []):
            for resource in rule.get("resources", []):
                for verb in rule["verbs"]:
                    if "*" in (group, resource, verb):
                        raise TooBroad(
                            f"{role['kind']} {role['metadata']['name']} grants {verb} {resource} in {group!r}"
                        )
                    for name in rule.get("resourceNames") or [""]:
                        found.add(Grant(group, resource, verb, name, namespace))
    return found


def unused(roles: Iterable[Json], requests: Iterable[Request], *, apart: Iterable[str] = ()) -> list[Grant]:
    """Grants that no request used; resources named in `apart` do not count."""
    used = [request for request in requests if request.code not in (401, 403)]
    every = {grant for role in roles for grant in grants(role) if grant.resource not in set(apart)}
    return sorted(grant for grant in every if not any(grant.allows(request) for request in used))
