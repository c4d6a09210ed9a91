"""The configuration file's YAML: text in, `Configuration` out; a field given twice is refused like an unknown one."""

from __future__ import annotations

from typing import Any

import yaml

from trainwright.api.configuration import Configuration, ConfigurationError, configuration_of


def parse(text: str, *, feature_gates: str = "") -> Configuration:
    """The configuration of a file's text, with `A=true,B=false` of the command line over its feature gates."""
    try:
        document = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader that also refuses duplicate keys
    except (yaml.YAMLError, _Duplicate) as error:
        raise ConfigurationError(f"failed to decode config file: {error}") from error
    return configuration_of(document, feature_gates=feature_gates)


class _Duplicate(Exception):
    """A key stands twice in one mapping."""


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise _Duplicate(f"line {key_node.start_mark.line + 1}: duplicate field {key!r}")
            seen.add(key)
        return dict(super().construct_mapping(node, deep))
