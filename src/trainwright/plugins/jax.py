"""JAX: three variables for `jax.distributed.initialize`, and the coordinator's port.

JAX reads the coordinator's address from its variable by itself; the number of processes and the process's own number
are for the training code to pass on.
"""

from __future__ import annotations

from trainwright.api.trainjob import TrainJob
from trainwright.api.wellknown import PORT_VARIABLES
from trainwright.pipeline.info import TRAINER_PORT, Info
from trainwright.pipeline.podset import COMPLETION_INDEX, env_from_field, env_var


class JAX:
    """Runtimes with `mlPolicy.jax`. Its variables are not reserved: a TrainJob that sets them has the last word."""

    name = "JAX"

    def enforce_ml_policy(self, info: Info, job: TrainJob) -> None:
        if info.ml_policy.jax is None:
            return
        if info.trainer is not None:
            info.set_num_nodes(info.trainer)
        if info.trainer is not None and (container := info.trainer_container) is not None:
            container.set_env(
                env_var("JAX_NUM_PROCESSES", str(info.trainer.count)),
                env_from_field("JAX_PROCESS_ID", COMPLETION_INDEX),
                env_var("JAX_COORDINATOR_ADDRESS", f"{info.first_node}:{TRAINER_PORT}"),
            )
            container.set_ports({"containerPort": TRAINER_PORT})
            info.trainer.tell_local_node(PORT_VARIABLES, "JAX_COORDINATOR_ADDRESS")
