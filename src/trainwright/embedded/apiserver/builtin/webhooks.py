"""Webhook configurations: defaults and rules. They are called by admission/webhooks.py."""

from __future__ import annotations

from trainwright.embedded.apiserver.builtin.strategy import BuiltinStrategy
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError, SchemaError
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1123_subdomain_faults
from trainwright.schema.selectors import label_selector_faults

OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")


class WebhookConfigurations(BuiltinStrategy):
    any_finalizer = True
    unconditional_update = False
    tracks_generation = True

    def generation_content(self, obj: Json) -> object:
        return obj.get("webhooks")

    def default(self, obj: Json) -> None:
        for webhook in obj.get("webhooks") or ():
            webhook.setdefault("failurePolicy", "Fail")
            webhook.setdefault("matchPolicy", "Equivalent")
            webhook.setdefault("namespaceSelector", {})
            webhook.setdefault("objectSelector", {})
            webhook.setdefault("timeoutSeconds", 10)
            if self.kind == "MutatingWebhookConfiguration":
                webhook.setdefault("reinvocationPolicy", "Never")
            for rule in webhook.get("rules") or ():
                rule.setdefault("scope", "*")
            service = (webhook.get("clientConfig") or {}).get("service")
            if service is not None:
                service.setdefault("port", 443)

    def validate(self, obj: Json) -> list[FieldError]:
        found: list[FieldError] = []
        names: set[str] = set()
        for index, webhook in enumerate(obj.get("webhooks") or ()):
            at = f"webhooks[{index}]"
            found += self._webhook(webhook, at)
            name = webhook.get("name", "")
            if name in names:
                found.append(field.duplicate(f"{at}.name", name))
            names.add(name)
        return found

    def _webhook(self, webhook: Json, at: str) -> list[FieldError]:
        found: list[FieldError] = []
        name = webhook.get("name", "")
        faults = dns1123_subdomain_faults(name) if name else ["a webhook needs a name"]
        found += [field.invalid(f"{at}.name", name, text) for text in faults]
        if not faults and name.count(".") < 2:
            text = "should be a domain with at least three segments separated by dots"
            found.append(field.invalid(f"{at}.name", name, text))
        if webhook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            choices = ["None", "NoneOnDryRun"]
            found.append(
                field.not_supported(f"{at}.sideEffects", webhook["sideEffects"], choices)
                if webhook.get("sideEffects")
                else field.required(f"{at}.sideEffects", "must specify one of None, NoneOnDryRun")
            )
        versions = webhook.get("admissionReviewVersions") or []
        if not versions:
            found.append(field.required(f"{at}.admissionReviewVersions", "must specify one of v1, v1beta1"))
        elif not {"v1", "v1beta1"} & set(versions):
            text = "must include at least one of v1, v1beta1"
            found.append(field.invalid(f"{at}.admissionReviewVersions", versions, text))
        for index, version in enumerate(versions):
            if version in versions[:index]:
                found.append(field.invalid(f"{at}.admissionReviewVersions[{index}]", version, "duplicate version"))
        if webhook.get("failurePolicy") not in ("Ignore", "Fail"):
            found.append(field.not_supported(f"{at}.failurePolicy", webhook.get("failurePolicy"), ["Fail", "Ignore"]))
        if webhook.get("matchPolicy") not in ("Exact", "Equivalent"):
            found.append(field.not_supported(f"{at}.matchPolicy", webhook.get("matchPolicy"), ["Equivalent", "Exact"]))
        seconds = webhook.get("timeoutSeconds", 10)
        if not 1 <= seconds <= 30:
            text = "the timeout value must be between 1 and 30 seconds"
            found.append(field.invalid(f"{at}.timeoutSeconds", seconds, text))
        for name in ("namespaceSelector", "objectSelector"):
            found += label_selector_faults(webhook.get(name) or {}, f"{at}.{name}")
        config = webhook.get("clientConfig") or {}
        if bool(config.get("url")) == bool(config.get("service")):
            found.append(field.required(f"{at}.clientConfig", "exactly one of url or service is required"))
        elif config.get("url") and not config["url"].startswith("https://"):
            text = "'https' is the only allowed URL scheme"
            found.append(field.invalid(f"{at}.clientConfig.url", config["url"], text))
        conditions: set[str] = set()
        for index, condition in enumerate(webhook.get("matchConditions") or ()):
            found += _condition_faults(condition, f"{at}.matchConditions[{index}]")
            if condition.get("name") in conditions:
                found.append(field.duplicate(f"{at}.matchConditions[{index}].name", condition["name"]))
            conditions.add(condition.get("name", ""))
        for index, rule in enumerate(webhook.get("rules") or ()):
            for member in ("operations", "apiGroups", "apiVersions", "resources"):
                if not rule.get(member):
                    found.append(field.required(f"{at}.rules[{index}].{member}"))
            found += _operation_faults(rule.get("operations") or [], f"{at}.rules[{index}].operations")
        return found


def _operation_faults(operations: list[str], at: str) -> list[FieldError]:
    found: list[FieldError] = []
    if "*" in operations and len(operations) > 1:
        found.append(field.invalid(at, operations, "if '*' is present, must not specify other operations"))
    for index, operation in enumerate(operations):
        if operation not in OPERATIONS:
            found.append(field.not_supported(f"{at}[{index}]", operation, list(OPERATIONS)))
    return found


def _condition_faults(condition: Json, at: str) -> list[FieldError]:
    expression = condition.get("expression", "")
    found: list[FieldError] = []
    if not condition.get("name"):
        found.append(field.required(f"{at}.name"))
    if not expression.strip():
        found.append(field.required(f"{at}.expression"))
        return found
    from trainwright.schema.cel import compile_expression  # the engine is loaded when a condition needs it

    try:
        compile_expression(expression, dict.fromkeys(("object", "oldObject", "request", "authorizer")))
    except SchemaError as error:
        found.append(field.invalid(f"{at}.expression", expression, f"compilation failed: {error}"))
    return found
