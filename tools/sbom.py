"""Writes a bill of materials (CycloneDX 1.5, JSON) of what Trainwright needs to run: name, version, licence, hashes.

In: requirements/runtime.txt, pinned with hashes, and the metadata of the installed packages for their licences. Out:
one JSON document on standard output, the same for the same inputs.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(requirements: str) -> list[dict[str, Any]]:
    """One entry for each pinned requirement, in order."""
    found: list[dict[str, Any]] = []
    for line in requirements.splitlines():
        if pinned := PINNED.match(line):
            name, version = pinned[1].lower(), pinned[2]
            found.append(
                {
                    "type": "library",
                    "name": name,
                    "version": version,
                    "purl": f"pkg:pypi/{name}@{version}",
                    "licenses": [{"license": {"name": licence_of(name)}}],
                    "hashes": [],
                }
            )
        for digest in HASH.findall(line):
            found[-1]["hashes"].append({"alg": "SHA-256", "content": digest})
    return found


def licence_of(name: str) -> str:
    try:
        metadata = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed here"
    if expression := metadata.get_all("License-Expression"):
        return str(expression[0])
    classified = [
        value.rpartition(" :: ")[2]
        for value in metadata.get_all("Classifier") or ()
        if value.startswith("License :: ") and value != "License :: OSI Approved"
    ]
    return ", ".join(classified) or str((metadata.get_all("License") or ["unknown"])[0]).splitlines()[0]


def document() -> dict[str, Any]:
    version = importlib.metadata.version("trainwright")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "trainwright", "version": version}},
        "components": components((ROOT / "requirements" / "runtime.txt").read_text()),
    }


if __name__ == "__main__":
    json.dump(document(), sys.stdout, indent=2)
    print()
