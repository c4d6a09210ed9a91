"""`trainwright operator`: the operator in a cluster, as its Deployment starts it."""

from __future__ import annotations

from pathlib import Path

from trainwright.operator.run import run_operator


def operate(
    config: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    feature_gates: list[str],
    metrics_auth: bool,
    take_over: bool,
) -> int:
    return run_operator(
        config=config,
        kubeconfig=kubeconfig,
        context=context,
        feature_gates=",".join(feature_gates),
        metrics_auth=metrics_auth,
        take_over=take_over,
    )
