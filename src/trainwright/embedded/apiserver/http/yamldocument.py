"""YAML as Go's library reads it: `y` and `on` are booleans, `1e3` is a number, `12:30` and dates are texts.

In: bytes. Out: the first document as a JSON-like value with text keys, and the keys that were set twice. Loaded only
when a body is YAML.
"""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

import yaml

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
_BOOLEAN = re.compile(r"^(?:y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$")
_INTEGER = re.compile(r"^[-+]?(?:0[bB][01_]+|0[oO]?[0-7_]+|0[xX][0-9a-fA-F_]+|[1-9][0-9_]*|0)$")
_FLOAT = re.compile(
    r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$|^[-+]?\.(?:inf|Inf|INF)$|^\.(?:nan|NaN|NAN)$"
)


class _Loader(_BASE):  # type: ignore[misc]
    """Safe: makes nothing but maps, lists and scalars."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [pair for pair in pairs if pair[0] in (_TAG + "null", _MERGE)]
        for first, pairs in _BASE.yaml_implicit_resolvers.items()
    }

    def __init__(self, stream: bytes) -> None:
        super().__init__(stream)
        self.twice: list[str] = []

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:
                continue
            key = self.construct_object(key_node, deep=True)
            shown = json.dumps(key, ensure_ascii=False) if isinstance(key, str) else _text(key)
            if shown in seen:
                self.twice.append(f"line {key_node.start_mark.line + 1}: key {shown} already set in map")
            seen.add(shown)
        self.flatten_mapping(node)
        return {
            _text(self.construct_object(key, deep=True)): self.construct_object(value, deep=deep)
            for key, value in node.value
        }

    def construct_boolean(self, node: Any) -> bool:
        return str(node.value).lower() in ("y", "yes", "true", "on")

    def construct_integer(self, node: Any) -> int:
        text = str(node.value).replace("_", "")
        sign, digits = (text[0], text[1:]) if text[0] in "+-" else ("", text)
        if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
            digits = f"0o{digits[1:]}"
        return int(sign + digits, 0)

    def construct_number(self, node: Any) -> float:
        text = str(node.value).lower()
        if text.endswith((".inf", ".nan")):
            shown = "NaN" if "nan" in text else ("-Inf" if text[0] == "-" else "+Inf")
            raise ValueError(f"json: unsupported value: {shown}")
        return float(text)


_Loader.add_implicit_resolver(_TAG + "bool", _BOOLEAN, list("yYnNtTfFoO"))
_Loader.add_implicit_resolver(_TAG + "int", _INTEGER, list("-+0123456789"))
_Loader.add_implicit_resolver(_TAG + "float", _FLOAT, list("-+0123456789."))
_Loader.add_constructor(_TAG + "bool", _Loader.construct_boolean)
_Loader.add_constructor(_TAG + "int", _Loader.construct_integer)
_Loader.add_constructor(_TAG + "float", _Loader.construct_number)


def loader() -> Any:
    return _Loader


def first(body: bytes) -> tuple[Any, list[str]]:
    """The first document; further ones are not looked at."""
    reader = _Loader(body)
    try:
        value = reader.get_data() if reader.check_data() else None
        return value, reader.twice
    finally:
        reader.dispose()


def _text(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)
