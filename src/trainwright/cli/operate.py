"""`trainwright operator`: the operator in a cluster, as its Deployment starts it."""

from __future__ import annotations

from pathlib import Path

from trainwright.operator.run import run_operator


def operate(config: Path | None, kubeconfig: Path | None, feature_gates: str) -> int:
    return run_operator(config=config, kubeconfig=kubeconfig, feature_gates=feature_gates)
