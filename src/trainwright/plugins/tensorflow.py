"""TensorFlow: the variable TF_CONFIG, by which tf.distribute finds the workers and this worker's place among them.

The Trainer API has no policy for it, so a runtime says by its label that it is TensorFlow's. TensorFlow's server takes
its port on every address: a node that runs many pods on one machine is told that each pod in TF_CONFIG needs its own.
"""

from __future__ import annotations

import json

from trainwright.api.trainjob import TrainJob
from trainwright.api.wellknown import PEER_VARIABLES
from trainwright.pipeline.info import TRAINER_PORT, Info
from trainwright.pipeline.podset import COMPLETION_INDEX, env_from_field, env_var

FRAMEWORK = "trainer.kubeflow.org/framework"
TENSORFLOW = "tensorflow"
INDEX = "TF_WORKER_INDEX"


class TensorFlow:
    """Runtimes labelled as TensorFlow's that choose no other framework. A TrainJob's own TF_CONFIG wins."""

    name = "TensorFlow"

    def enforce_ml_policy(self, info: Info, job: TrainJob) -> None:
        policy = info.ml_policy
        others = (policy.torch, policy.mpi, policy.jax, policy.xgboost, policy.flux)
        is_tensorflow = (info.runtime.metadata.labels or {}).get(FRAMEWORK) == TENSORFLOW
        if not is_tensorflow or any(other is not None for other in others):
            return
        if info.trainer is None or (container := info.trainer_container) is None:
            return
        container.set_env(
            env_from_field(INDEX, COMPLETION_INDEX),
            env_var("TF_CONFIG", config(info.name, info.trainer.name, info.trainer.count)),
        )
        container.set_ports({"containerPort": TRAINER_PORT})
        info.trainer.tell_local_node(PEER_VARIABLES, "TF_CONFIG")


def config(name: str, job: str, workers: int) -> str:
    """The cluster and this worker's place in it; Kubernetes puts the number in place of `$(TF_WORKER_INDEX)`."""
    hosts = [f"{name}-{job}-0-{number}.{name}:{TRAINER_PORT}" for number in range(workers)]
    task = f'{{"type": "worker", "index": $({INDEX})}}'
    return f'{{"cluster": {json.dumps({"worker": hosts})}, "task": {task}}}'
