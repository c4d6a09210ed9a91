"""Service accounts and the RBAC kinds."""

from __future__ import annotations

from trainwright.embedded.apiserver.builtin.columns import ROLE_BINDING_COLUMNS, ROLE_COLUMNS, SERVICE_ACCOUNT_COLUMNS
from trainwright.embedded.apiserver.builtin.kind import BuiltinKind
from trainwright.embedded.apiserver.metadata import path_segment_faults
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.gotext import json_text
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1123_subdomain_faults

RBAC = "rbac.authorization.k8s.io"
TOKEN_SUBRESOURCE = {
    "token": {"verbs": ["create"], "group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}
}


class ServiceAccounts(BuiltinKind):
    plural, kind = "serviceaccounts", "ServiceAccount"
    short_names = ("sa",)
    subresources = TOKEN_SUBRESOURCE
    columns = SERVICE_ACCOUNT_COLUMNS
    returns_deleted = True


class Roles(BuiltinKind):
    group, plural, kind = RBAC, "roles", "Role"
    columns = ROLE_COLUMNS
    create_on_update = True
    metadata_repeats = 1

    def name_faults(self, name: str) -> list[str]:
        return path_segment_faults(name)

    def validate(self, obj: Json) -> list[FieldError]:
        found: list[FieldError] = []
        for index, rule in enumerate(obj.get("rules") or ()):
            found += self._rule(rule, f"rules[{index}]")
        return found

    def _rule(self, rule: Json, at: str) -> list[FieldError]:
        found: list[FieldError] = []
        if not rule.get("verbs"):
            found.append(field.required(f"{at}.verbs", "verbs must contain at least one value"))
        urls = rule.get("nonResourceURLs") or []
        if urls:
            if self.namespaced:
                text = "namespaced rules cannot apply to non-resource URLs"
                found.append(field.invalid(f"{at}.nonResourceURLs", urls, text))
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                text = "rules cannot apply to both regular resources and non-resource URLs"
                found.append(field.invalid(f"{at}.nonResourceURLs", urls, text))
            return found
        if not rule.get("apiGroups"):
            found.append(field.required(f"{at}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            found.append(field.required(f"{at}.resources", "resource rules must supply at least one resource"))
        return found


class ClusterRoles(Roles):
    plural, kind = "clusterroles", "ClusterRole"
    namespaced = False


class RoleBindings(BuiltinKind):
    group, plural, kind = RBAC, "rolebindings", "RoleBinding"
    columns = ROLE_BINDING_COLUMNS
    role_kinds: tuple[str, ...] = ("Role", "ClusterRole")
    create_on_update = True
    metadata_repeats = 1

    def name_faults(self, name: str) -> list[str]:
        return path_segment_faults(name)

    def default(self, obj: Json) -> None:
        reference = obj.setdefault("roleRef", {})
        if not reference.get("apiGroup"):
            reference["apiGroup"] = RBAC
        for subject in obj.get("subjects") or ():
            if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = RBAC

    def validate(self, obj: Json) -> list[FieldError]:
        found: list[FieldError] = []
        reference = obj.get("roleRef") or {}
        if reference.get("apiGroup") != RBAC:
            found.append(field.not_supported("roleRef.apiGroup", reference.get("apiGroup", ""), [RBAC]))
        if reference.get("kind") not in self.role_kinds:
            found.append(field.not_supported("roleRef.kind", reference.get("kind", ""), self.role_kinds))
        if not reference.get("name"):
            found.append(field.required("roleRef.name"))
        for index, subject in enumerate(obj.get("subjects") or ()):
            at = f"subjects[{index}]"
            if not subject.get("name"):
                found.append(field.required(f"{at}.name"))
            kind = subject.get("kind", "")
            if kind not in ("ServiceAccount", "User", "Group"):
                found.append(field.not_supported(f"{at}.kind", kind, ["ServiceAccount", "User", "Group"]))
            if kind == "ServiceAccount" and subject.get("name"):
                faults = dns1123_subdomain_faults(subject["name"])
                found += [field.invalid(f"{at}.name", subject["name"], text) for text in faults]
            if kind == "ServiceAccount" and not subject.get("namespace") and not self.namespaced:
                found.append(field.required(f"{at}.namespace"))
        return found

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        found = self.validate(obj)
        if obj.get("roleRef") != old.get("roleRef"):
            reference = obj.get("roleRef") or {}
            shown = {"APIGroup": "apiGroup", "Kind": "kind", "Name": "name"}
            text = json_text({go: reference.get(name, "") for go, name in shown.items()})
            found.append(field.invalid("roleRef", field.OMITTED, f"{text}: cannot change roleRef"))
        return found


class ClusterRoleBindings(RoleBindings):
    plural, kind = "clusterrolebindings", "ClusterRoleBinding"
    namespaced = False
    role_kinds = ("ClusterRole",)
