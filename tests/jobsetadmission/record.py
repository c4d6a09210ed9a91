"""`python tests/jobsetadmission/record.py`: asks JobSet's own webhooks about every case and keeps their answers.

It needs the real control plane of `tests/kube/binaries`: etcd, kube-apiserver and JobSet, twice, with and without
gates.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from jobsetadmission.asking import ask  # noqa: E402 - this file is run as a script
from jobsetadmission.cases import cases  # noqa: E402
from kube.binaries import build  # noqa: E402
from trainwright.schema.jsonobject import Json  # noqa: E402
from trainwright.testing.controlplane import RealControlPlane  # noqa: E402
from trainwright.testing.processes import Process  # noqa: E402
from trainwright.testing.rest import Rest  # noqa: E402

ANSWERS = HERE / "answers.json"
GATES = {"RestartJob": True, "ElasticJobSet": True}


class Plane(RealControlPlane):
    """A bare control plane with JobSet, whose gates may be on."""

    gates = False

    def _part(self, name: str, *arguments: str, program: str | None = None) -> Process:
        if name == "jobset" and self.gates:
            configuration = self.directory / "jobset.yaml"
            written = yaml.safe_load(configuration.read_text())
            configuration.write_text(yaml.safe_dump({**written, "featureGates": GATES}))
        return super()._part(name, *arguments, program=program)


class Asked:
    """The administrator's REST client as `asking` wants it: patches are merge patches."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    def raw(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        code, answer = self._rest.raw(method, path, body, content_type=content)
        return code, json.loads(answer)


def answers(directory: Path, *, gates: bool) -> dict[str, Json]:
    plane = Plane(build, directory, with_parts=("jobset",), without_admission=("ServiceAccount",))
    plane.gates = gates
    with plane as running:
        server = Asked(running.admin)
        return {case.name: ask(server, case) for case in cases() if case.gates is gates}


def recorded() -> dict[str, Json]:
    found: dict[str, Json] = {}
    for gates in (False, True):
        with tempfile.TemporaryDirectory() as directory:
            found |= answers(Path(directory), gates=gates)
    return found


if __name__ == "__main__":
    found = recorded()
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(found[name], sort_keys=True)}" for name in sorted(found))
    ANSWERS.write_text("{\n" + lines + "\n}\n")
    refused = sum(any(part["code"] >= 400 for part in each.values()) for each in found.values())
    print(f"{len(found)} cases, {refused} refused")
