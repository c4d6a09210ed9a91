"""PlainML: a number of nodes and the user's variables, with no framework behind them."""

from __future__ import annotations

from trainwright.api.trainjob import TrainJob
from trainwright.pipeline.info import Info


class PlainML:
    """Serves every runtime that chooses no framework, and the two whose own plugins leave count and env to it."""

    name = "PlainML"

    def enforce_ml_policy(self, info: Info, job: TrainJob) -> None:
        policy = info.ml_policy
        if policy.torch is not None or policy.mpi is not None or policy.jax is not None:
            return
        if info.trainer is not None:
            info.set_num_nodes(info.trainer)
        if info.trainer_container is not None:
            info.set_trainer_env(info.trainer_container)
