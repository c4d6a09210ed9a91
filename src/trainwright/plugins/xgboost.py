"""XGBoost: the DMLC_* variables that join the workers into one tracker's ring."""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.api.trainjob import TrainJob
from trainwright.api.wellknown import PORT_VARIABLES
from trainwright.pipeline.info import TRAINER_PORT, Info
from trainwright.pipeline.podset import COMPLETION_INDEX, env_from_field, env_var
from trainwright.schema.errors import FieldError, forbidden

RESERVED = ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER")


class XGBoost:
    """Runtimes with `mlPolicy.xgboost`: one worker for each GPU of a node, or one for the node."""

    name = "XGBoost"

    def enforce_ml_policy(self, info: Info, job: TrainJob) -> None:
        if info.ml_policy.xgboost is None or info.trainer is None:
            return
        info.set_num_nodes(info.trainer)
        if (container := info.trainer_container) is not None:
            workers = info.trainer.count * max(info.node_resources.gpus, 1)
            container.set_env(
                env_var("DMLC_TRACKER_URI", info.first_node),
                env_var("DMLC_TRACKER_PORT", str(TRAINER_PORT)),
                env_from_field("DMLC_TASK_ID", COMPLETION_INDEX),
                env_var("DMLC_NUM_WORKER", str(workers)),
            )
            container.set_ports({"containerPort": TRAINER_PORT})
            info.trainer.tell_local_node(PORT_VARIABLES, "DMLC_TRACKER_PORT")

    def validate(self, info: Info, job: TrainJob, old: TrainJob | None) -> Iterator[FieldError]:
        if info.ml_policy.xgboost is None:
            return
        for index, variable in enumerate(info.trainer_spec.env or ()):
            if variable["name"] in RESERVED:
                yield forbidden(f"spec.trainer.env[{index}]", f"{variable['name']} is reserved for the XGBoost runtime")
