"""Objects as text: YAML as `kubectl` prints it, or JSON.

In: objects. Out: text with sorted keys: the same object is always the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import yaml

from trainwright.schema.jsonobject import Json

try:
    from yaml import CSafeDumper as _Base
except ImportError:  # PyYAML built without libyaml: slower, same text
    from yaml import SafeDumper as _Base  # type: ignore[assignment]


class _Dumper(_Base):
    """Writes no anchors, and text of several lines as a block."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text.rstrip("\n") or text.endswith("\n") else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def to_yaml(objects: Sequence[Json]) -> str:
    """A YAML stream with one document for each object; empty if there are none."""
    if not objects:
        return ""
    return yaml.dump_all(
        objects, Dumper=_Dumper, sort_keys=True, default_flow_style=False, width=4096, allow_unicode=True
    )


def to_json(objects: Sequence[Json]) -> str:
    """The object, or a List of several."""
    document = objects[0] if len(objects) == 1 else {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
