"""Write the generated files anew: `python tools/generate.py`, or `make generate`.

Always: our CRDs from the types in `trainwright.api`. With Go at hand also what comes from other projects' modules:
the schemas of Kubernetes' built-in kinds and the CRDs of JobSet and both PodGroups; without it these stay as they
are, and a line says so.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gomodules
import openapi

ROOT = Path(__file__).resolve().parents[1]
KUBERNETES_JSON = ROOT / "src/trainwright/schema/kubernetes.json"


def main() -> int:
    try:
        write_kubernetes_schemas()
    except gomodules.NoGo as reason:
        print(f"skipped: schemas of built-in kinds and third-party CRDs stay as they are ({reason})")
    return 0


def write_kubernetes_schemas() -> None:
    document = openapi.extract(gomodules.directory(gomodules.KUBERNETES))
    write(KUBERNETES_JSON, json.dumps(document, separators=(",", ":")) + "\n")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    same = path.exists() and path.read_text() == text
    if not same:
        path.write_text(text)
    print(f"{'unchanged' if same else 'written'}: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    sys.exit(main())
