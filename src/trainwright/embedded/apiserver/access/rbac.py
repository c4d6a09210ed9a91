"""What a user may do: the rules of stored Roles and ClusterRoles, through their bindings.

The kubeconfig's user (group system:masters) may do everything. Every authenticated user may read discovery, version,
health and OpenAPI, and ask what it may do itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.errors import StatusError, details_of
from trainwright.embedded.apiserver.http.requests import Query, Request
from trainwright.embedded.apiserver.http.router import Target, split_version
from trainwright.embedded.apiserver.storage.store import Key
from trainwright.schema.jsonobject import Json
from trainwright.schema.selectors import SelectorError, parse_field_selector

if TYPE_CHECKING:
    from trainwright.embedded.apiserver.api import Api

GROUP = "rbac.authorization.k8s.io"
PUBLIC = ("/api", "/apis", "/healthz", "/livez", "/readyz", "/version", "/openapi")
SELF_REVIEWS = ("selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews")
MASTERS = "system:masters"
_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Attributes(msgspec.Struct, frozen=True):
    """One request, as the authorizer sees it."""

    user: User
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


def attributes(request: Request, user: User, target: Target) -> Attributes:
    served = target.served
    verb = _verb(request.method, named=bool(target.name), watch=target.watch)
    namespace = target.namespace
    if served.resource == "namespaces" and target.name:
        namespace = target.name
    name = target.name
    if not name and verb in ("list", "watch", "deletecollection"):
        name = _selected_name(request.query)  # of a create it says nothing
    return Attributes(user, verb, served.group, served.plural, target.subresource, namespace, name)


def unknown_attributes(request: Request, user: User, parts: list[str]) -> Attributes:
    """The same for a path that names no resource of this server, as far as it can be read."""
    group, _, rest = split_version(parts)
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    resource, name, subresource = (*rest, "", "", "")[:3]
    watch = not name and request.query.flag("watch")
    verb = _verb(request.method, named=bool(name), watch=watch)
    return Attributes(user, verb, group, resource, subresource, namespace, name)


def _verb(method: str, *, named: bool, watch: bool) -> str:
    verb = _VERBS.get(method, method.lower())
    if verb == "get":
        return "watch" if watch else "get" if named else "list"
    return "deletecollection" if verb == "delete" and not named else verb


def _selected_name(query: Query) -> str:
    """A list of one name (`fieldSelector=metadata.name=x`) is a request for that name: `resourceNames` hold for it."""
    try:
        terms = parse_field_selector(query.get("fieldSelector")).terms
    except SelectorError:
        return ""  # refused later, with its own words
    return next((term.value for term in terms if term.field == "metadata.name" and term.equal), "")


class Grant(NamedTuple):
    """One rule, and the binding that gives it."""

    rule: Json
    source: str


class Authorizer:
    def __init__(self, api: Api) -> None:
        self._api = api

    def check(self, wanted: Attributes) -> None:
        if not self.allowed(wanted):
            raise _forbidden(wanted)

    def check_path(self, user: User, path: str, verb: str) -> None:
        wanted = Attributes(user, verb, path=path)
        if not self.allowed(wanted):
            text = f'forbidden: User "{user.name}" cannot {verb} path "{path}"'
            raise StatusError(403, text, details={})

    def allowed(self, wanted: Attributes) -> bool:
        return self.decide(wanted)[0]

    def decide(self, wanted: Attributes) -> tuple[bool, str]:
        """Whether, and by which binding; without any, which roles were missing."""
        if MASTERS in wanted.user.groups:
            return True, ""
        authenticated = "system:authenticated" in wanted.user.groups
        if wanted.path:
            public = wanted.path.startswith(PUBLIC) if authenticated else wanted.path.startswith(PUBLIC[2:6])
            if public and wanted.verb in ("get", "head"):
                return True, ""
        elif authenticated and wanted.resource in SELF_REVIEWS and wanted.verb == "create":
            return True, ""
        missing: list[str] = []
        for granted in self._grants(wanted.user, wanted.namespace, missing):
            if _covers(granted.rule, wanted):
                return True, f"RBAC: allowed by {granted.source}"
        return False, f"RBAC: {_joined(missing)}" if missing else ""

    def rules_of(self, user: User, namespace: str) -> list[Json]:
        """Every rule that is bound to the user, cluster-wide and in this namespace."""
        return [granted.rule for granted in self._grants(user, namespace, [])]

    def rules_of_role(self, reference: Json, namespace: str) -> list[Json] | None:
        """The rules of the role that a binding in this namespace refers to; None if there is no such role."""
        return self._role_rules(reference, namespace)

    def _grants(self, user: User, namespace: str, missing: list[str]) -> Iterator[Grant]:
        for place in ("", namespace) if namespace else ("",):
            kind = "RoleBinding" if place else "ClusterRoleBinding"
            for binding in self._objects("rolebindings" if place else "clusterrolebindings", place):
                subject = next((s for s in binding.get("subjects") or () if _is_subject(s, user, place)), None)
                if subject is None:
                    continue
                reference = binding.get("roleRef") or {}
                rules = self._role_rules(reference, place)
                if rules is None:
                    role = "clusterrole" if reference.get("kind") == "ClusterRole" else "role"
                    missing.append(f'{role}.{GROUP} "{reference.get("name", "")}" not found')
                    continue
                name = binding["metadata"]["name"] + (f"/{place}" if place else "")
                role_text = f'{reference.get("kind")} "{reference.get("name")}"'
                source = f'{kind} "{name}" of {role_text} to {_described(subject, place)}'
                for rule in rules:
                    yield Grant(rule, source)

    def _objects(self, plural: str, namespace: str) -> list[Json]:
        table = self._api.state.tables.get(f"{plural}.{GROUP}")
        return [] if table is None else [stored.decode() for stored in table.select(namespace)]

    def _role_rules(self, reference: Json, namespace: str) -> list[Json] | None:
        cluster = reference.get("kind") == "ClusterRole"
        plural = "clusterroles" if cluster else "roles"
        stored = self._api.state.get(Key(f"{plural}.{GROUP}", "" if cluster else namespace, reference.get("name", "")))
        return None if stored is None else list(stored.decode().get("rules") or ())


def _described(subject: Json, namespace: str) -> str:
    if subject.get("kind") == "ServiceAccount":
        return f'ServiceAccount "{subject.get("name")}/{subject.get("namespace") or namespace}"'
    return f'{subject.get("kind")} "{subject.get("name")}"'


def _joined(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _is_subject(subject: Json, user: User, namespace: str) -> bool:
    kind, name = subject.get("kind"), subject.get("name")
    if kind == "User":
        return bool(name == user.name)
    if kind == "Group":
        return name in user.groups
    if kind == "ServiceAccount":
        return user.name == f"system:serviceaccount:{subject.get('namespace') or namespace}:{name}"
    return False


def _covers(rule: Json, wanted: Attributes) -> bool:
    verbs = rule.get("verbs") or ()
    if wanted.verb not in verbs and "*" not in verbs:
        return False
    if wanted.path:
        return any(_url_matches(url, wanted.path) for url in rule.get("nonResourceURLs") or ())
    groups = rule.get("apiGroups") or ()
    if wanted.group not in groups and "*" not in groups:
        return False
    full = f"{wanted.resource}/{wanted.subresource}" if wanted.subresource else wanted.resource
    resources = rule.get("resources") or ()
    matched = "*" in resources or full in resources
    if not matched and wanted.subresource:
        matched = f"*/{wanted.subresource}" in resources
    if not matched:
        return False
    names = rule.get("resourceNames") or ()
    return not names or wanted.name in names


def _url_matches(pattern: str, path: str) -> bool:
    if pattern == "*":
        return True
    if pattern.endswith("*"):
        return path.startswith(pattern[:-1])
    return pattern == path


def _forbidden(wanted: Attributes) -> StatusError:
    full = f"{wanted.resource}/{wanted.subresource}" if wanted.subresource else wanted.resource
    qualified = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    shown = f'{qualified} "{wanted.name}"' if wanted.name else qualified
    scope = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    text = (
        f'{shown} is forbidden: User "{wanted.user.name}" cannot {wanted.verb} resource "{full}" in API group'
        f' "{wanted.group}" {scope}'
    )
    return StatusError(403, text, details=details_of(wanted.name, wanted.group, wanted.resource))
