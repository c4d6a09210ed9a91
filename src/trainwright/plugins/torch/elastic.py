"""torchrun's elasticity: nodes join and leave a c10d rendezvous while the job trains.

In: `mlPolicy.torch.elasticPolicy` and the TrainJob. Out: the variables that torchrun reads, the failure policy of the
nodes' Job, and a HorizontalPodAutoscaler where the policy has metrics. The rendezvous lives in the agent of node 0.

A node that fails is replaced, so often as `maxRestarts` says for each node; an agent restarts its workers as often,
whenever one of them fails or a node leaves. When node 0 is lost, all agents end and are replaced, and training goes on
from the last checkpoint. The job is complete when node 0 is: its agent waits for the others before it ends, and a node
that joins after that finds nobody.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.api.resources import HORIZONTAL_POD_AUTOSCALERS, TRAIN_JOBS
from trainwright.api.runtime import ElasticPolicy
from trainwright.api.wellknown import ELASTIC
from trainwright.pipeline.elasticity import NodeRange
from trainwright.pipeline.info import TRAINER_PORT, Info
from trainwright.pipeline.podset import PodSet, env_from_field, env_var
from trainwright.schema.errors import FieldError, invalid
from trainwright.schema.jsonobject import Json

RESERVED = ("PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT", "PET_RDZV_ID", "PET_MAX_RESTARTS")
RENDEZVOUS_PORT = "PET_RDZV_ENDPOINT"
MAX_RESTARTS = 3
"""As torch.distributed.launcher has it."""
RENDEZVOUS = "last_call_timeout=2,keep_alive_interval=2,keep_alive_max_attempt=3"
"""torchrun waits 30 s for a last node at every change by default; a lost node is noticed after 6 s."""
POLICY = "spec.mlPolicy.torch.elasticPolicy"


def policy_of(info: Info) -> ElasticPolicy | None:
    return info.ml_policy.torch.elastic_policy if info.ml_policy.torch is not None else None


def node_range(info: Info) -> NodeRange | None:
    """Between how many nodes the job trains; None for a job that is not elastic."""
    policy = policy_of(info)
    if policy is None:
        return None
    least = max(1, policy.min_nodes or 1)
    most = policy.max_nodes or max(least, info.trainer_spec.num_nodes or 1)
    return NodeRange(least, most)


def max_restarts(info: Info) -> int:
    policy = policy_of(info)
    return policy.max_restarts if policy is not None and policy.max_restarts is not None else MAX_RESTARTS


def variables(info: Info) -> list[Json]:
    """What torchrun reads in place of PET_MASTER_ADDR and PET_MASTER_PORT."""
    return [
        env_var("PET_RDZV_BACKEND", "c10d"),
        env_var("PET_RDZV_ENDPOINT", f"{info.first_node}:{TRAINER_PORT}"),
        env_var("PET_RDZV_ID", info.name),
        env_var("PET_RDZV_CONF", RENDEZVOUS),
        env_var("PET_MAX_RESTARTS", str(max_restarts(info))),
        env_var("PET_MONITOR_INTERVAL", "1"),
        env_from_field("PET_LOCAL_ADDR", "status.podIP"),
        # Shared, the store of the rendezvous loses every agent when one joins (torch 2.13).
        env_var("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1"),
    ]


def set_failure_policy(info: Info, nodes: PodSet) -> None:
    """A lost node is replaced, and does not end the job; what the template says of single indexes stays."""
    job = nodes.job_spec
    nodes.set_job_label(ELASTIC, "true")
    nodes.set_pod_label(ELASTIC, "true")
    nodes.pod_spec["restartPolicy"] = "Never"
    if "backoffLimitPerIndex" not in job:
        job.pop("backoffLimit", None)
        job["backoffLimitPerIndex"] = max_restarts(info)
        job["maxFailedIndexes"] = 0
    job.setdefault("successPolicy", {"rules": [{"succeededIndexes": "0"}]})
    disruptions = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
    job.setdefault("podFailurePolicy", disruptions)


def autoscaler(info: Info) -> Json | None:
    """The HorizontalPodAutoscaler of an elastic job whose policy has metrics."""
    policy, nodes = policy_of(info), info.node_range
    if policy is None or nodes is None or not policy.metrics:
        return None
    target = {"apiVersion": TRAIN_JOBS.api_version, "kind": TRAIN_JOBS.kind, "name": info.name}
    return {
        "apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version,
        "kind": HORIZONTAL_POD_AUTOSCALERS.kind,
        "metadata": {"name": info.name},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": nodes.minimum,
            "maxReplicas": nodes.maximum,
            "metrics": policy.metrics,
        },
    }


def faults(info: Info) -> Iterator[FieldError]:
    """What is wrong with the limits, or with the nodes that a TrainJob begins with."""
    nodes, wanted = node_range(info), info.trainer_spec.num_nodes
    if nodes is None:
        return
    if nodes.maximum < nodes.minimum:
        yield invalid("spec.runtimeRef", info.job_spec.runtime_ref.name, f"{POLICY} of the runtime has {_wrong(nodes)}")
    elif wanted is not None and not nodes.contains(wanted):
        said = f"must be between {nodes.minimum} and {nodes.maximum}, as {POLICY} of the runtime says"
        yield invalid("spec.trainer.numNodes", wanted, said)


def _wrong(nodes: NodeRange) -> str:
    return f"maxNodes {nodes.maximum}, which is less than minNodes {nodes.minimum}"
