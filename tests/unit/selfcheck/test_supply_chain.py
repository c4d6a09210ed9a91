"""What is shipped is known: pinned with hashes, licensed, and the same bytes from the same sources."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

from sbom import components, document

ROOT = Path(__file__).resolve().parents[3]
FREE = ("MIT", "BSD", "Apache", "Mozilla", "PSF", "Python Software Foundation", "MPL", "ISC", "Unlicense", "0BSD")


def wheel(directory: Path) -> tuple[str, str]:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=environment)
    [built] = directory.glob("*.whl")
    return built.name, hashlib.sha256(built.read_bytes()).hexdigest()


def test_two_builds_of_the_wheel_are_equal(tmp_path: Path) -> None:
    assert wheel(tmp_path / "one") == wheel(tmp_path / "two")


def test_the_bill_of_materials_names_every_requirement_with_its_hashes_and_a_free_licence() -> None:
    listed = document()["components"]
    pinned = re.findall(r"(?m)^[A-Za-z0-9._-]+==", (ROOT / "requirements" / "runtime.txt").read_text())
    assert len(listed) == len(pinned) > 5
    for component in listed:
        assert component["hashes"], component["name"]
        [entry] = component["licenses"]
        name = entry["license"]["name"]
        assert name == "not installed here" or any(free in name for free in FREE), component


def test_a_requirement_without_a_hash_would_be_seen() -> None:
    [component] = components("thing==1.0 \\\n    # via nothing\n")
    assert component["hashes"] == []


def test_nothing_is_installed_into_the_image_without_a_hash() -> None:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    installs = re.findall(r"pip (?:install|wheel)[^&\n]*", text)
    assert len(installs) == 4
    for command in installs:
        assert "--require-hashes" in command or "--no-deps" in command, command
        assert "--require-hashes" in command or "--no-build-isolation" in command or "--no-index" in command, command
