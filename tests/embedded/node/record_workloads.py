"""Write `recorded_workloads.json` anew from real controllers: `python tests/embedded/node/record_workloads.py`.

JobSet v0.12, kube-controller-manager, kube-scheduler and kube-apiserver 1.36 decide (built by
`tests/kube/binaries/build.py`, which needs Go); our node runs the pods, as it does in the embedded cluster.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TESTS))

from embedded.node.workload_cases import RECORDING, observe  # noqa: E402
from kube.binaries import build  # noqa: E402
from trainwright.client import Client, kubeconfig  # noqa: E402
from trainwright.embedded.node.node import LocalNode, NodeConfig  # noqa: E402
from trainwright.testing.controlplane import RealControlPlane  # noqa: E402

PARTS = ("kube-controller-manager", "jobset", "kube-scheduler")


class Built:
    program = staticmethod(build.program)
    manifests = staticmethod(build.manifests)


async def record(plane: RealControlPlane, directory: Path) -> None:
    pair = plane.authority.for_server("node")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(pair.certificate, pair.key)
    scratch = directory / "scratch"
    scratch.mkdir()
    async with Client.to(kubeconfig.load(plane.admin_kubeconfig)) as client:
        node = LocalNode(client, NodeConfig(directory / "node", token="", tls=tls))
        running = asyncio.create_task(node.run())
        try:
            traces = await observe(client, scratch)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await node.end_pods(0)
    RECORDING.write_text(json.dumps(traces, indent=1, sort_keys=True) + "\n")


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        # Without service accounts' tokens in pods, which no case is about.
        with RealControlPlane(
            Built(), path / "plane", with_parts=PARTS, without_admission=("ServiceAccount",)
        ) as plane:
            asyncio.run(record(plane, path))
    print(f"written: {RECORDING}")


if __name__ == "__main__":
    main()
