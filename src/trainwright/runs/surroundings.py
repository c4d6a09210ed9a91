"""What surrounded a run: its Python, the packages beside it, and which variables were set; never their values.

Written once, when the run is submitted: an environment changes, and a comparison of runs should tell what was there.
Packages are read from the names of directories, so that it takes milliseconds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from trainwright.runs import files
from trainwright.runs.directory import RunDirectory

FILE = "surroundings.json"
MOST = 5000
_DISTRIBUTION = re.compile(r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)\.(?:dist|egg)-info$")


class Surroundings(msgspec.Struct, frozen=True, omit_defaults=True):
    python: str = ""
    """Its version."""
    packages: dict[str, str] = {}
    variables: list[str] = []
    """Names alone: values may be secrets."""

    @classmethod
    def of(cls, python: str, environment: Mapping[str, str] | None) -> Surroundings:
        """Those of an interpreter, by its path, and of a process's environment."""
        found = dict(_packages(Path(python))) if python else {}
        return cls(_version(Path(python)) if python else "", dict(sorted(found.items())), sorted(environment or ()))

    def write(self, run: RunDirectory) -> None:
        files.replace(run.path / FILE, msgspec.json.encode(self), durable=False)

    @classmethod
    def read(cls, run: RunDirectory) -> Surroundings | None:
        """None where nobody wrote them, or nobody can read them."""
        try:
            return msgspec.json.decode((run.path / FILE).read_bytes(), type=cls)
        except (OSError, msgspec.DecodeError, msgspec.ValidationError):
            return None


def _libraries(python: Path) -> Iterable[Path]:
    prefix = python.parent.parent
    for pattern in ("lib/python3*/site-packages", "lib/python3*/dist-packages", "local/lib/python3*/dist-packages"):
        yield from sorted(prefix.glob(pattern))


def _packages(python: Path) -> Iterable[tuple[str, str]]:
    count = 0
    for library in _libraries(python):
        try:
            names = os.listdir(library)
        except OSError:
            continue
        for name in names:
            if (found := _DISTRIBUTION.match(name)) and (count := count + 1) <= MOST:
                yield found["name"].lower().replace("_", "-"), found["version"]


def _version(python: Path) -> str:
    try:
        for line in (python.parent.parent / "pyvenv.cfg").read_text().splitlines():
            name, _, value = line.partition("=")
            if name.strip() in ("version", "version_info"):
                return value.strip()
    except OSError:
        pass
    for library in _libraries(python):
        if found := re.fullmatch(r"python(3[.\d]*)", library.parent.name):
            return found[1]
    return ""
