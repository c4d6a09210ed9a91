"""The manifests that come with the package, as objects."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from trainwright.schema.jsonobject import Json


def crds() -> Iterator[Json]:
    """Our own types, and those of JobSet and the gang schedulers."""
    return objects("crds")


def objects(where: str) -> Iterator[Json]:
    """The objects of a file, or of a folder's files in their order."""
    import yaml  # only here, so that a start without manifests does not pay for it

    path = Path(str(files("trainwright") / "manifests" / where))
    for file in sorted(path.rglob("*.yaml")) if path.is_dir() else [path]:
        for document in yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader):
            if document:
                yield document
