"""Requests that are questions: who am I, may I, is this token good. Nothing of them is stored."""

from __future__ import annotations

from collections.abc import Callable

from trainwright.embedded.apiserver import errors
from trainwright.embedded.apiserver.access.authentication import Authenticator
from trainwright.embedded.apiserver.access.rbac import MASTERS, Attributes, Authorizer
from trainwright.embedded.apiserver.access.tokens import (
    AUDIENCE,
    ServiceAccountTokens,
    TokenError,
    user_from,
)
from trainwright.embedded.apiserver.access.users import User
from trainwright.embedded.apiserver.api import Api
from trainwright.embedded.apiserver.errors import bad_request
from trainwright.embedded.apiserver.http.decoding import read_object
from trainwright.embedded.apiserver.http.requests import Answer, Call, json_answer
from trainwright.schema import errors as field
from trainwright.schema.gotext import json_text
from trainwright.schema.jsonobject import Json


class Reviews:
    def __init__(
        self, api: Api, authenticator: Authenticator, authorizer: Authorizer, tokens: ServiceAccountTokens
    ) -> None:
        self.api = api
        self.authenticator = authenticator
        self.authorizer = authorizer
        self.tokens = tokens
        self._reviews: dict[str, Callable[[Call, Json], Json]] = {
            "selfsubjectreviews": self._self,
            "selfsubjectaccessreviews": self._self_access,
            "subjectaccessreviews": self._access,
            "localsubjectaccessreviews": self._access,
            "selfsubjectrulesreviews": self._rules,
            "tokenreviews": self._token,
        }

    def answer(self, call: Call) -> Answer:
        options = call.write_options("CreateOptions")
        obj = read_object(call, call.served, options.validation)
        call.served.field_manager().update(None, obj, options.manager, self.api.now())
        obj["status"] = self._reviews[call.served.plural](call, obj)
        if call.served.plural == "selfsubjectreviews":
            obj["metadata"]["creationTimestamp"] = self.api.now()
        elif call.served.plural == "selfsubjectrulesreviews":
            obj["spec"] = {}  # the question is not repeated
        return json_answer(201, obj)

    def _self(self, call: Call, obj: Json) -> Json:
        return {"userInfo": call.user.info()}

    def _self_access(self, call: Call, obj: Json) -> Json:
        return self._decide(call.user, obj.get("spec") or {})

    def _access(self, call: Call, obj: Json) -> Json:
        spec = obj.get("spec") or {}
        faults: list[field.FieldError] = []
        if not spec.get("user") and not spec.get("groups"):
            faults.append(field.invalid("spec.user", "", "at least one of user or group must be specified"))
        wanted = (spec.get("resourceAttributes") or {}).get("namespace", "")
        path = spec.get("nonResourceAttributes")
        if call.served.namespaced and path is not None:
            shown = json_text({"Path": path.get("path", ""), "Verb": path.get("verb", "")})
            text = f"{shown}: disallowed on this kind of request"
            faults.append(field.invalid("spec.nonResourceAttributes", field.OMITTED, text))
        elif call.served.namespaced and wanted != call.namespace:
            text = "must match metadata.namespace"
            faults.append(field.invalid("spec.resourceAttributes.namespace", wanted, text))
        if faults:
            raise errors.invalid(call.served.group, "", "", faults)
        user = User(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), spec.get("extra") or {})
        return self._decide(user, spec)

    def _decide(self, user: User, spec: Json) -> Json:
        resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if (resource is None) == (path is None):
            if resource is None:
                text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
                fault = field.invalid("spec.resourceAttributes", None, text)
            else:
                text = "cannot be specified in combination with resourceAttributes"
                shown = json_text({"Path": (path or {}).get("path", ""), "Verb": (path or {}).get("verb", "")})
                fault = field.invalid("spec.nonResourceAttributes", field.OMITTED, f"{shown}: {text}")
            raise errors.invalid("authorization.k8s.io", "", "", [fault])
        if resource is not None:
            wanted = Attributes(
                user,
                resource.get("verb", ""),
                resource.get("group", ""),
                resource.get("resource", ""),
                resource.get("subresource", ""),
                resource.get("namespace", ""),
                resource.get("name", ""),
            )
        else:
            wanted = Attributes(user, (path or {}).get("verb", ""), path=(path or {}).get("path", "/"))
        allowed, reason = self.authorizer.decide(wanted)
        return {"allowed": allowed, "reason": reason} if reason else {"allowed": allowed}

    def _rules(self, call: Call, obj: Json) -> Json:
        namespace = (obj.get("spec") or {}).get("namespace", "")
        if not namespace:
            raise bad_request("no namespace on request")
        rules = self.authorizer.rules_of(call.user, namespace)
        resource = [_resource_rule(rule) for rule in rules if not rule.get("nonResourceURLs")]
        paths = [
            {"verbs": r["verbs"], "nonResourceURLs": r["nonResourceURLs"]} for r in rules if r.get("nonResourceURLs")
        ]
        if MASTERS in call.user.groups:
            resource.insert(0, {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
            paths.insert(0, {"verbs": ["*"], "nonResourceURLs": ["*"]})
        if "system:authenticated" in call.user.groups:
            for group, plurals in (
                ("authorization.k8s.io", ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
                ("authentication.k8s.io", ["selfsubjectreviews"]),
            ):
                resource.append({"verbs": ["create"], "apiGroups": [group], "resources": plurals})
            urls = [
                "/api",
                "/api/*",
                "/apis",
                "/apis/*",
                "/healthz",
                "/livez",
                "/openapi",
                "/openapi/*",
                "/readyz",
                "/version",
                "/version/",
            ]
            paths.append({"verbs": ["get"], "nonResourceURLs": urls})
        return {"resourceRules": resource, "nonResourceRules": paths, "incomplete": False}

    def _token(self, call: Call, obj: Json) -> Json:
        spec = obj.get("spec") or {}
        token = spec.get("token", "")
        if not token:
            raise bad_request("token is required for TokenReview in authentication")
        audiences = spec.get("audiences") or [AUDIENCE]
        try:
            claims = self.tokens.claims_of(token)
        except TokenError as error:
            user = self.authenticator.user_of_token(token)
            if user is None:
                return {"user": {}, "error": f"[invalid bearer token, {error}]"}
            return {"authenticated": True, "user": user.info(), "audiences": [AUDIENCE]}
        common = [audience for audience in audiences if audience in claims["aud"]]
        if not common:
            text = (
                f"token audiences {_go_list(claims['aud'])} is invalid for the target audiences {_go_list(audiences)}"
            )
            return {"user": {}, "error": f"[invalid bearer token, {text}]"}
        return {"authenticated": True, "user": user_from(claims).info(), "audiences": common}


def _resource_rule(rule: Json) -> Json:
    return {name: rule[name] for name in ("verbs", "apiGroups", "resources", "resourceNames") if rule.get(name)}


def _go_list(values: list[str]) -> str:
    return "[" + " ".join(f'"{value}"' for value in values) + "]"
