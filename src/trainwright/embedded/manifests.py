"""The manifests that come with the package, as objects."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from trainwright.schema.jsonobject import Json
from trainwright.version import __version__


def crds() -> Iterator[Json]:
    """Our own types, and those of JobSet and the gang schedulers."""
    return objects("crds")


def digest(*places: str) -> str:
    """The digest of the files at these places, and of the version that reads them."""
    found = hashlib.sha256(__version__.encode())
    for file in (file for where in places for file in _files(where)):
        found.update(b"%s\0%d\0" % (file.name.encode(), file.stat().st_size))
        found.update(file.read_bytes())
    return found.hexdigest()


def objects(where: str) -> Iterator[Json]:
    """The objects of a file, or of a folder's files in their order."""
    import yaml  # only here, so that a start without manifests does not pay for it

    for file in _files(where):
        for document in yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader):
            if document:
                yield document


def _files(where: str) -> list[Path]:
    path = Path(str(files("trainwright") / "manifests" / where))
    return sorted(path.rglob("*.yaml")) if path.is_dir() else [path]
