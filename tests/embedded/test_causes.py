"""`why` names the cause, on the local cluster: each job below really fails or waits for it.

All jobs are started at once, and asked about one by one. `tests/unit/pipeline/reasons/test_table.py` counts the causes
that are brought about here, in `test_reasons.py` and on a real control plane, and says why of those that are not.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from commandline import CommandLine, plain_job
from trainwright.api.resources import TRAIN_JOBS, TRAINING_RUNTIMES
from trainwright.client import kubeconfig
from trainwright.client.client import Client
from trainwright.schema.jsonobject import Json
from waiting import eventually

SECONDS = 60.0
SCRIPTS: Mapping[str, tuple[str, str]] = {
    "ImportFailed": ("import nowhere_to_be_found", "No module named 'nowhere_to_be_found'"),
    "DiskFull": ("with open('/dev/full', 'w') as file:\n    file.write('a checkpoint')", "No space left on device"),
    "HostMemoryFull": (
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (2**29, 2**29))\nbytearray(2**31)",
        "MemoryError",
    ),
    "PermissionDenied": (
        "import os\nif os.getuid() == 0:\n    os.setuid(65534)\nopen('/proc/1/environ').read()",
        "Permission denied: '/proc/1/environ'",
    ),
    "WrongArguments": (
        "import argparse\nargparse.ArgumentParser('train.py').parse_args(['--lrr', '0.1'])",
        "unrecognized arguments: --lrr 0.1",
    ),
    "PortInUse": (
        "import socket\none, two = socket.socket(), socket.socket()\none.bind(('127.0.0.1', 0))\n"
        "two.bind(one.getsockname())",
        "Address already in use",
    ),
    "PeerLost": (
        "import socket\nwith socket.socket() as one:\n    one.bind(('127.0.0.1', 0))\n    where = one.getsockname()\n"
        "socket.create_connection(where)",
        "Connection refused",
    ),
    "Crashed": ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
    "EndedFromOutside": ("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)", "SIGTERM"),
    "ExitCode": ("raise SystemExit(3)", "exit code 3"),
    "GpuNotUsable": ("import torch\ntorch.zeros(1, device='cuda')", ""),
    "RendezvousTimeout": (
        "from datetime import timedelta\nfrom torch.distributed import TCPStore\n"
        "TCPStore('127.0.0.1', 0, 2, True, timeout=timedelta(seconds=1))",
        "1/2 clients joined",
    ),
    "WorldSizeMismatch": (
        "import os\nos.environ.update(RANK='0', WORLD_SIZE='1', MASTER_ADDR='127.0.0.1', MASTER_PORT='0')\n"
        "from torch.distributed.device_mesh import init_device_mesh\ninit_device_mesh('cpu', (4,))",
        "4 ranks",
    ),
}
"""By code: what a rank runs, and words of the headline."""
CONTAINER = "image: python"
POD = "restartPolicy: Never"
ASLEEP = "import time\ntime.sleep(600)"
FIELDS: Mapping[str, tuple[str, str, str, str]] = {
    "ConfigMapMissing": (CONTAINER, "envFrom: [{configMapRef: {name: nowhere}}]", ASLEEP, "nowhere"),
    "SecretMissing": (CONTAINER, "envFrom: [{secretRef: {name: nowhere}}]", ASLEEP, "nowhere"),
    "ProbeFails": (
        CONTAINER,
        "readinessProbe: {exec: {command: ['false']}, periodSeconds: 1}",
        ASLEEP,
        "its readiness probe does not succeed",
    ),
    "ClaimMissing": (POD, "volumes: [{name: d, persistentVolumeClaim: {claimName: nowhere}}]", ASLEEP, '"nowhere"'),
    "NoMatchingNode": (POD, "nodeSelector: {zone: nowhere}", ASLEEP, "node affinity/selector"),
    "SchedulingGated": (POD, "schedulingGates: [{name: example.com/wait}]", ASLEEP, "example.com/wait"),
    "PodDeadline": (POD, "activeDeadlineSeconds: 1", ASLEEP, "DeadlineExceeded"),
    "CrashLoop": (POD, "restartPolicy: OnFailure", "raise SystemExit(3)", "fails again and again"),
}
"""By code: behind which line of the runtime a field stands, the field, what a rank runs, and words of the headline."""
ASKED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "TooLittleMemory": (("--memory", "999Ti"), "memory"),
    "NoGpu": (("--gpus", "99"), "nvidia.com/gpu"),
}


@pytest.fixture(scope="module")
def jobs(shared: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """A cluster with one job for each cause, each named by its code in small letters."""
    folder = tmp_path_factory.mktemp("causes")
    for code, (script, _) in SCRIPTS.items():
        (folder / f"{code.lower()}.yaml").write_text(plain_job(code.lower(), script))
    for code, (line, field, script, _) in FIELDS.items():
        job = plain_job(code.lower(), script)
        assert job.count(line) == 1
        indent = " " * (len(job.partition(line)[0].rpartition("\n")[2]))
        new = field if field.startswith("restartPolicy") else f"{line}\n{indent}{field}"
        again = job.replace(line, new).replace("backoffLimit: 0", "backoffLimit: 9") if code == "CrashLoop" else ""
        (folder / f"{code.lower()}.yaml").write_text(again or job.replace(line, new))
    (folder / "deadlineexceeded.yaml").write_text(plain_job("deadlineexceeded", ASLEEP, activeDeadlineSeconds=1))
    (folder / "suspended.yaml").write_text(plain_job("suspended", ASLEEP, suspend="true"))
    missing = plain_job("programmissing", "pass").replace("[python3, -u, -c]", "[no-such-program]")
    (folder / "programmissing.yaml").write_text(missing)
    asyncio.run(_create(shared, [item for file in folder.glob("*.yaml") for item in _documents(file)]))
    (folder / "train.py").write_text("pass\n")
    for code, (words, _) in ASKED.items():
        shared("run", "train.py", "--runtime", "plain", "--name", code.lower(), "--detach", *words, cwd=folder)
    yield shared
    shared("delete", *(code.lower() for code in WORDS))


def _documents(file: Path) -> list[Json]:
    return list(yaml.safe_load_all(file.read_text()))


async def _create(cluster: CommandLine, objects: list[Json]) -> None:
    """All at once: a command for each would take longer than all of the tests."""
    async with Client.to(kubeconfig.load(cluster.kubeconfig)) as client:
        for kind in (TRAINING_RUNTIMES, TRAIN_JOBS):
            items = [item for item in objects if item["kind"] == kind.kind]
            await asyncio.gather(*(client.create(kind, item, "default") for item in items))


WORDS = {
    **{code: words for code, (_, words) in SCRIPTS.items()},
    **{code: words for code, (*_, words) in FIELDS.items()},
    **{code: words for code, (_, words) in ASKED.items()},
    "DeadlineExceeded": "deadline",
    "Suspended": "suspended by spec.suspend",
    "ProgramMissing": "no-such-program",
}


@pytest.mark.parametrize("code", sorted(WORDS))
def test_why_names_the_cause(jobs: CommandLine, code: str) -> None:
    if code == "NoGpu" and Path("/dev/nvidia0").exists():
        pytest.skip("this machine has GPUs")
    if code == "PermissionDenied" and os.getuid() != 0 and os.access("/proc/1/environ", os.R_OK):
        pytest.skip("this user may read everything")
    seen: list[str] = []

    def found() -> bool:
        told = jobs.parsed("why", code.lower(), "-o", "json")
        seen.append(f"{told.get('code')}: {told.get('headline')}")
        return told.get("code") == code and WORDS[code].lower() in told["headline"].lower() and bool(told["mend"])

    try:
        eventually(f"why says {code}", found, SECONDS)
    except AssertionError:
        raise AssertionError(f"{code} is not found; last seen: {seen[-1]}") from None
