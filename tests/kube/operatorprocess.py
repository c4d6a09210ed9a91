"""The operator as a process of its own: `operatorprocess.py CONFIG KUBECONFIG`, as `trainwright operator` runs it.

Its certificate is for 127.0.0.1, where the API server of a test calls it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from trainwright.operator.certificates.material import Policy
from trainwright.operator.run import run_operator

if __name__ == "__main__":
    sys.exit(
        run_operator(
            config=Path(sys.argv[1]),
            kubeconfig=Path(sys.argv[2]),
            namespace="kubeflow-system",
            policy=Policy("operator.test.svc", addresses=("127.0.0.1",)),
            take_over=True,
        )
    )
