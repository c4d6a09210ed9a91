"""TrainJobStatus: lets training code report its progress to the operator.

Every container of the trainer gets the address of its TrainJob's status, the authority to trust and a token of its
own that is good for nothing else. On when the feature gate of the same name is.

The operator's role needs: create, get, list, patch and watch of `configmaps`.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.api.resources import CONFIG_MAPS
from trainwright.api.trainjob import TrainJob
from trainwright.api.wellknown import OPTIONAL_VOLUMES
from trainwright.pipeline.errors import TemplateInvalid
from trainwright.pipeline.info import Info
from trainwright.pipeline.plan import Apply, Repair
from trainwright.pipeline.podset import env_var
from trainwright.pipeline.workload import Watch
from trainwright.schema.jsonobject import Json

VOLUME = "kubeflow-trainer-token"
DIRECTORY = "/var/run/secrets/kubeflow/trainer"
TOKEN_SECONDS = 3600


class TrainJobStatus:
    """`server` is where the progress server listens, as `https://host:port`."""

    name = "TrainJobStatus"

    def __init__(self, server: str) -> None:
        self.server = server

    def enforce_pod_spec(self, info: Info, job: TrainJob) -> None:
        if info.trainer is None:
            return
        for container in info.trainer.containers:
            container.set_env(
                env_var("KUBEFLOW_TRAINER_SERVER_URL", f"{self.server}/apis/{_status_path(info)}"),
                env_var("KUBEFLOW_TRAINER_SERVER_CA_CERT", f"{DIRECTORY}/ca.crt"),
                env_var("KUBEFLOW_TRAINER_SERVER_TOKEN", f"{DIRECTORY}/token"),
            )
            container.set_volume_mounts({"name": VOLUME, "mountPath": DIRECTORY, "readOnly": True})
        info.trainer.set_volumes(_volume(info))
        info.trainer.tell_local_node(OPTIONAL_VOLUMES, VOLUME)  # nobody asked for it: no pod may fail for it

    def build(self, info: Info, job: TrainJob) -> Iterator[Apply]:
        if not info.observed.ca_certificate:
            if info.workload_is_running:  # an operator that has just started has not read its certificate yet
                return
            raise TemplateInvalid("failed to find status server ca.crt in tls secret")
        yield Apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": _config_map_name(info)},
                "data": {"ca.crt": info.observed.ca_certificate},
            },
            repair=Repair.CHANGED,
        )

    def watches(self) -> Iterator[Watch]:
        yield Watch(CONFIG_MAPS)


def _status_path(info: Info) -> str:
    namespace = info.job.metadata.namespace
    return f"trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs/{info.name}/status"


def _config_map_name(info: Info) -> str:
    return f"{info.name}-tls-config"


def _volume(info: Info) -> Json:
    token = {"audience": _status_path(info), "expirationSeconds": TOKEN_SECONDS, "path": "token"}
    authority = {"name": _config_map_name(info), "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    return {"name": VOLUME, "projected": {"sources": [{"serviceAccountToken": token}, {"configMap": authority}]}}
