"""The nodes that `up --nodes` shows this machine as, kept in the cluster's directory for later starts.

In: a number, or a YAML file as `embedded/node/shapes.py` describes it. Out: `nodes.json`. `--nodes 1` goes back to one.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from trainwright.cli.failure import Failure
from trainwright.embedded.node import shapes
from trainwright.embedded.node.shapes import NodeShape, ShapeError

FILE = "nodes.json"


def wanted(text: str) -> list[NodeShape]:
    """What the flag asks for."""
    try:
        if text.isdecimal():
            return shapes.equal(int(text))
        return shapes.read(_document(Path(text)), text)
    except ShapeError as error:
        raise Failure(f"--nodes {text}: {error}" if text.isdecimal() else str(error)) from None


def _document(path: Path) -> object:
    import yaml

    try:
        document: object = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    except OSError as error:
        reason = error.strerror or str(error)
        raise Failure(f"--nodes takes a number, or a file: {path}: {reason}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Failure(f"{path}: is not YAML: {error}") from None
    return document


def keep(directory: Path, chosen: list[NodeShape]) -> None:
    """Writes the choice, whole at every moment."""
    new = directory / f".{FILE}"
    new.write_bytes(msgspec.json.encode(chosen))
    new.replace(directory / FILE)


def kept(directory: Path) -> tuple[NodeShape, ...]:
    """The choice of the last `up --nodes`; none means one node."""
    try:
        return tuple(msgspec.json.decode((directory / FILE).read_bytes(), type=list[NodeShape]))
    except FileNotFoundError:
        return ()
    except msgspec.MsgspecError as error:
        path = directory / FILE
        raise Failure(f"{path} cannot be read ({error}); write it anew with: trainwright up --nodes 1") from None
