"""The directories of the Go modules whose schemas we take, found with `go mod download`.

Without Go they are skipped, and a sentence says so."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

KUBERNETES = "k8s.io/kubernetes@v1.36.4"
API = "k8s.io/api@v0.36.4"
APIMACHINERY = "k8s.io/apimachinery@v0.36.4"
JOBSET = "sigs.k8s.io/jobset@v0.12.0"
SCHEDULER_PLUGINS = "sigs.k8s.io/scheduler-plugins@v0.35.4-devel"
VOLCANO = "volcano.sh/volcano@v1.10.0"


class NoGo(Exception):
    """Go is not installed, or its registry cannot be reached; the message says which."""


def directory(module: str) -> Path:
    """The unpacked directory of `path@version`, downloaded into Go's own cache when it is not there yet."""
    go = shutil.which("go")
    if go is None:
        raise NoGo("Go is not installed")
    with tempfile.TemporaryDirectory() as empty:
        # Outside any module: the versions are ours, not those of a go.mod that happens to be near.
        answer = subprocess.run([go, "mod", "download", "-json", module], cwd=empty, capture_output=True, text=True)
    try:
        found = json.loads(answer.stdout)
    except ValueError:
        raise NoGo(f"go mod download {module}: {answer.stderr.strip() or answer.stdout.strip()}") from None
    if "Dir" not in found:
        raise NoGo(f"go mod download {module}: {found.get('Error', 'no directory in the answer')}")
    return Path(found["Dir"])
