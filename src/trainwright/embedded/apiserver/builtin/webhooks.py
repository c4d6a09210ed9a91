"""Webhook configurations: defaults and rules. admission/webhooks.py calls the webhooks."""

from __future__ import annotations

from trainwright.embedded.apiserver.builtin.columns import WEBHOOK_CONFIGURATION_COLUMNS
from trainwright.embedded.apiserver.builtin.kind import BuiltinKind
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError, SchemaError
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import dns1123_subdomain_faults
from trainwright.schema.selectors import label_selector_faults

OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")


class WebhookConfigurations(BuiltinKind):
    """The rules that both kinds of webhook configurations share."""

    group = "admissionregistration.k8s.io"
    namespaced = False
    categories = ("api-extensions",)
    columns = WEBHOOK_CONFIGURATION_COLUMNS
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
            found += webhook_faults(webhook, at)
            name = webhook.get("name", "")
            if name in names:
                found.append(field.duplicate(f"{at}.name", name))
            names.add(name)
        return found


class ValidatingWebhookConfigurations(WebhookConfigurations):
    plural, kind = "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"


class MutatingWebhookConfigurations(WebhookConfigurations):
    plural, kind = "mutatingwebhookconfigurations", "MutatingWebhookConfiguration"

    def default(self, obj: Json) -> None:
        super().default(obj)
        for webhook in obj.get("webhooks") or ():
            webhook.setdefault("reinvocationPolicy", "Never")


def webhook_faults(webhook: Json, at: str) -> list[FieldError]:
    """All faults of one webhook, in kube-apiserver's order."""
    found = [*_name_faults(webhook.get("name", ""), f"{at}.name"), *_side_effect_faults(webhook, f"{at}.sideEffects")]
    found += _version_faults(webhook.get("admissionReviewVersions") or [], f"{at}.admissionReviewVersions")
    for member, choices in (("failurePolicy", ["Fail", "Ignore"]), ("matchPolicy", ["Equivalent", "Exact"])):
        if webhook.get(member) not in choices:
            found.append(field.not_supported(f"{at}.{member}", webhook.get(member), choices))
    seconds = webhook.get("timeoutSeconds", 10)
    if not 1 <= seconds <= 30:
        text = "the timeout value must be between 1 and 30 seconds"
        found.append(field.invalid(f"{at}.timeoutSeconds", seconds, text))
    for member in ("namespaceSelector", "objectSelector"):
        found += label_selector_faults(webhook.get(member) or {}, f"{at}.{member}")
    found += _client_faults(webhook.get("clientConfig") or {}, f"{at}.clientConfig")
    found += _conditions_faults(webhook.get("matchConditions") or [], f"{at}.matchConditions")
    for index, rule in enumerate(webhook.get("rules") or ()):
        found += _rule_faults(rule, f"{at}.rules[{index}]")
    return found


def _name_faults(name: str, at: str) -> list[FieldError]:
    faults = dns1123_subdomain_faults(name) if name else ["a webhook needs a name"]
    if not faults and name.count(".") < 2:
        faults = ["should be a domain with at least three segments separated by dots"]
    return [field.invalid(at, name, text) for text in faults]


def _side_effect_faults(webhook: Json, at: str) -> list[FieldError]:
    effects = webhook.get("sideEffects")
    if not effects:
        return [field.required(at, "must specify one of None, NoneOnDryRun")]
    if effects not in ("None", "NoneOnDryRun"):
        return [field.not_supported(at, effects, ["None", "NoneOnDryRun"])]
    return []


def _version_faults(versions: list[str], at: str) -> list[FieldError]:
    if not versions:
        return [field.required(at, "must specify one of v1, v1beta1")]
    found: list[FieldError] = []
    if not {"v1", "v1beta1"} & set(versions):
        found.append(field.invalid(at, versions, "must include at least one of v1, v1beta1"))
    for index, version in enumerate(versions):
        if version in versions[:index]:
            found.append(field.invalid(f"{at}[{index}]", version, "duplicate version"))
    return found


def _client_faults(config: Json, at: str) -> list[FieldError]:
    if bool(config.get("url")) == bool(config.get("service")):
        return [field.required(at, "exactly one of url or service is required")]
    if config.get("url") and not config["url"].startswith("https://"):
        return [field.invalid(f"{at}.url", config["url"], "'https' is the only allowed URL scheme")]
    return []


def _conditions_faults(conditions: list[Json], at: str) -> list[FieldError]:
    found: list[FieldError] = []
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        found += _condition_faults(condition, f"{at}[{index}]")
        if condition.get("name") in names:
            found.append(field.duplicate(f"{at}[{index}].name", condition["name"]))
        names.add(condition.get("name", ""))
    return found


def _rule_faults(rule: Json, at: str) -> list[FieldError]:
    members = ("operations", "apiGroups", "apiVersions", "resources")
    missing = [field.required(f"{at}.{member}") for member in members if not rule.get(member)]
    return missing + _operation_faults(rule.get("operations") or [], f"{at}.operations")


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
    from trainwright.schema.cel import compile_expression  # imported when the first condition needs it

    try:
        compile_expression(expression, dict.fromkeys(("object", "oldObject", "request", "authorizer")))
    except SchemaError as error:
        found.append(field.invalid(f"{at}.expression", expression, f"compilation failed: {error}"))
    return found
