"""`python tests/kube/serve.py [PART …]`: a real control plane to look at, until Ctrl-C.

Parts are kube-controller-manager, jobset, kube-scheduler and kwok (all of them when none is named; `none` for a bare
API server). With `cleaners` kube-controller-manager only collects garbage and deletes namespaces.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from kube.binaries import build  # noqa: E402 - this file is run as a script
from trainwright.testing.controlplane import ALL_PARTS, CLEANERS, CONTROLLERS, RealControlPlane  # noqa: E402


def main(parts: list[str]) -> None:
    cleaners = "cleaners" in parts
    wanted = ["kube-controller-manager"] if cleaners else [part for part in parts if part != "none"]
    with tempfile.TemporaryDirectory(prefix="real-control-plane-") as directory:
        with RealControlPlane(
            build,
            Path(directory),
            with_parts=wanted if parts else ALL_PARTS,
            controllers=CLEANERS if cleaners else CONTROLLERS,
            without_admission=("ServiceAccount",) if cleaners else (),
        ) as plane:
            print(
                f"ready in {plane.seconds_to_ready:.1f} s; Ctrl-C ends it\nexport KUBECONFIG={plane.admin_kubeconfig}"
            )
            sys.stdout.flush()
            signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main(sys.argv[1:])
