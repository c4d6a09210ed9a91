"""ConfigMaps, secrets and controller revisions."""

from __future__ import annotations

import base64
import binascii

from trainwright.embedded.apiserver.builtin.columns import (
    CONFIG_MAP_COLUMNS,
    CONTROLLER_REVISION_COLUMNS,
    SECRET_COLUMNS,
)
from trainwright.embedded.apiserver.builtin.kind import BuiltinKind
from trainwright.embedded.apiserver.http.bodies import json_kind, parse_json
from trainwright.schema import errors as field
from trainwright.schema.errors import FieldError
from trainwright.schema.jsonobject import Json
from trainwright.schema.names import config_key_faults

MEBIBYTE = 1024 * 1024


def _size(encoded: str) -> int:
    try:
        return len(base64.b64decode(encoded))
    except (binascii.Error, ValueError):
        return len(encoded)


class ConfigMaps(BuiltinKind):
    plural, kind = "configmaps", "ConfigMap"
    short_names = ("cm",)
    columns = CONFIG_MAP_COLUMNS
    metadata_repeats = 1

    def validate(self, obj: Json) -> list[FieldError]:
        found: list[FieldError] = []
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        total = 0
        for key in data:
            found += [field.invalid(f"data[{key}]", key, text) for text in config_key_faults(key)]
            if key in binary:
                text = "duplicate of key present in binaryData"
                found.append(field.invalid(f"data[{key}]", key, text))
            total += len(data[key].encode())
        for key in binary:
            found += [field.invalid(f"binaryData[{key}]", key, text) for text in config_key_faults(key)]
            total += _size(binary[key])
        if total > MEBIBYTE:
            found.append(field.too_long("", MEBIBYTE))
        return found

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        found: list[FieldError] = []
        if old.get("immutable"):
            if not obj.get("immutable"):
                found.append(field.forbidden("immutable", "field is immutable when `immutable` is set"))
            for name in ("data", "binaryData"):
                if (obj.get(name) or {}) != (old.get(name) or {}):
                    found.append(field.forbidden(name, "field is immutable when `immutable` is set"))
        return found + self.validate(obj)


REQUIRED_KEYS = {
    "kubernetes.io/basic-auth": (),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def _json_fault(text: bytes) -> str:
    """The fault of registry credentials, which must be a JSON object, or nothing."""
    try:
        value, _ = parse_json(text)
    except ValueError as error:
        return str(error)
    if value is None or isinstance(value, dict):
        return ""
    return f"json: cannot unmarshal {json_kind(value)} into Go value of type map[string]interface {{}}"


class Secrets(BuiltinKind):
    plural, kind = "secrets", "Secret"
    columns = SECRET_COLUMNS
    metadata_repeats = 1

    def decode(self, obj: Json) -> tuple[Json, list[str]]:
        decoded, unknown = super().decode(obj)
        texts = decoded.pop("stringData", None)
        if texts:
            data = decoded.setdefault("data", {})
            for key, text in texts.items():
                data[key] = base64.b64encode(text.encode()).decode()
        return decoded, unknown

    def default(self, obj: Json) -> None:
        obj.setdefault("type", "Opaque")

    def validate(self, obj: Json) -> list[FieldError]:
        found: list[FieldError] = []
        data = obj.get("data") or {}
        total = 0
        for key in data:
            found += [field.invalid(f"data[{key}]", key, text) for text in config_key_faults(key)]
            total += _size(data[key] or "")
        if total > MEBIBYTE:
            found.append(field.too_long("data", MEBIBYTE))
        return found + self._typed(obj, data)

    def _typed(self, obj: Json, data: Json) -> list[FieldError]:
        kind = obj.get("type", "")
        found: list[FieldError] = []
        if kind == "kubernetes.io/service-account-token":
            account = (obj["metadata"].get("annotations") or {}).get("kubernetes.io/service-account.name", "")
            if not account:
                found.append(field.required("metadata.annotations[kubernetes.io/service-account.name]"))
        elif kind in ("kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson"):
            key = ".dockercfg" if kind.endswith("cfg") else ".dockerconfigjson"
            if key not in data:
                found.append(field.required(f"data[{key}]"))
            else:
                fault = _json_fault(base64.b64decode(data[key] or ""))
                if fault:
                    found.append(field.invalid(f"data[{key}]", "<secret contents redacted>", fault))
        elif kind == "kubernetes.io/basic-auth":
            if "username" not in data and "password" not in data:
                found.append(field.required("data[username]"))
                found.append(field.required("data[password]"))
        elif kind in REQUIRED_KEYS:
            for key in REQUIRED_KEYS[kind]:
                missing = key not in data if kind.endswith("tls") else not data.get(key)
                if missing:
                    found.append(field.required(f"data[{key}]"))
        return found

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        found: list[FieldError] = []
        if obj.get("type") != old.get("type"):
            found.append(field.invalid("type", obj.get("type"), "field is immutable"))
        if old.get("immutable"):
            if not obj.get("immutable"):
                found.append(field.forbidden("immutable", "field is immutable when `immutable` is set"))
            if (obj.get("data") or {}) != (old.get("data") or {}):
                found.append(field.forbidden("data", "field is immutable when `immutable` is set"))
        return found + self.validate(obj)

    def prepare_update(self, obj: Json, old: Json) -> None:
        if not obj.get("type"):
            obj["type"] = old.get("type", "Opaque")

    def fields(self, obj: Json) -> dict[str, str]:
        return {"type": obj.get("type", "")}


class ControllerRevisions(BuiltinKind):
    """A ControllerRevision's data is immutable."""

    group, plural, kind = "apps", "controllerrevisions", "ControllerRevision"
    columns = CONTROLLER_REVISION_COLUMNS

    def validate(self, obj: Json) -> list[FieldError]:
        found: list[FieldError] = []
        if obj.get("revision", 0) < 0:
            found.append(field.invalid("revision", obj["revision"], "must be greater than or equal to 0"))
        if obj.get("data") is None:
            found.append(field.required("data", "data is mandatory"))
        elif not isinstance(obj["data"], dict):
            found.append(field.required("data", "data must be a valid JSON object"))
        return found

    def validate_update(self, obj: Json, old: Json) -> list[FieldError]:
        found: list[FieldError] = []
        if obj.get("data") != old.get("data"):
            found.append(field.invalid("data", obj.get("data"), "field is immutable"))
        return self.validate(obj) + found
