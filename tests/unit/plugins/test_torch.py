"""The Torch plugin: PET variables and torchtune command lines."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.pipeline import TemplateInvalid
from unit.pipeline.objects import container, env, job_of_runtime, jobset, plan, pods, runtime, trainjob

INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
TORCH = {"numNodes": 1, "torch": {}}


def test_torchrun_finds_its_cluster_in_the_environment() -> None:
    made = jobset(trainjob({"numNodes": 2, "env": [{"name": "A", "value": "1"}]}), runtime(policy=TORCH))
    assert list(env(made).items()) == [
        ("A", "1"),
        ("PET_NNODES", "2"),
        ("PET_NPROC_PER_NODE", "1"),
        ("PET_NODE_RANK", INDEX),
        ("PET_MASTER_ADDR", "tj-node-0-0.tj"),
        ("PET_MASTER_PORT", "29500"),
    ]
    assert container(made)["ports"] == [{"containerPort": 29500}]


def test_a_job_without_trainer_is_served_like_any_other() -> None:
    assert env(jobset(trainjob(), runtime(policy=TORCH)))["PET_NNODES"] == "1"


GPU, CPU = {"limits": {"nvidia.com/gpu": 4}}, {"limits": {"cpu": "2500m"}}


@pytest.mark.parametrize(
    ("value", "resources", "expected"),
    [
        (None, None, "1"),
        (None, CPU, "3"),
        (None, GPU, "auto"),
        (5, GPU, "5"),
        ("auto", GPU, "auto"),
        ("auto", CPU, "3"),
        ("cpu", {**GPU, "requests": {"cpu": 2}}, "2"),
        ("gpu", CPU, "gpu"),
        ("7", CPU, "7"),
    ],
)
def test_processes_of_a_node_in_every_generation(value: Any, resources: Any, expected: str) -> None:
    trainer: dict[str, Any] = {} if resources is None else {"resourcesPerNode": resources}
    of = runtime(policy=TORCH)
    spelled_in_spec = trainjob({**trainer, "numProcPerNode": value} if value is not None else trainer)
    assert env(jobset(spelled_in_spec, of))["PET_NPROC_PER_NODE"] == expected
    if isinstance(value, str):
        moved = trainjob(trainer, metadata={"annotations": {"trainer.kubeflow.org/num-proc-per-node": value}})
        assert env(jobset(moved, of))["PET_NPROC_PER_NODE"] == expected
        older_runtime = runtime(policy={"torch": {"numProcPerNode": value}})
        assert env(jobset(trainjob(trainer), older_runtime))["PET_NPROC_PER_NODE"] == expected


def test_the_trainjobs_resources_replace_the_templates_for_counting() -> None:
    base = job_of_runtime(containers=[{"name": "node", "image": "i", "resources": GPU}])
    made = jobset(trainjob({"resourcesPerNode": CPU}), runtime(base, policy=TORCH))
    assert env(made)["PET_NPROC_PER_NODE"] == "3"


def test_env_injection_reaches_regular_and_init_containers() -> None:
    base = job_of_runtime(
        containers=[{"name": "node", "image": "i"}, {"name": "side", "image": "i"}],
        initContainers=[{"name": "pre", "image": "i"}],
    )
    targets = [{"jobName": "node", "containerNames": ["pre", "side"]}]
    of = runtime(base, policy={"torch": {"envInjection": {"targets": targets}}})
    made = jobset(trainjob({"command": ["tune", "run"]}), of)
    names = ["PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"]
    assert list(env(made, name="side")) == names
    assert [variable["name"] for variable in pods(made)["initContainers"][0]["env"]] == names


def test_a_missing_injection_target_is_named() -> None:
    targets = [{"jobName": "node", "containerNames": ["zz"]}]
    with pytest.raises(TemplateInvalid, match='podSet "node" container "zz" not found'):
        plan(trainjob(), runtime(policy={"torch": {"envInjection": {"targets": targets}}}))


def tune(args: list[str], of: str = "torchtune-llama3.2-1b", **trainer: Any) -> list[str]:
    words = ["tune", "run", "x", "output_dir=/o", "other=1", "tokenizer.path=/t"]
    base = job_of_runtime(containers=[{"name": "node", "image": "i", "command": words}])
    job = trainjob({"command": ["tune", "run"], "args": args, **trainer}, runtimeRef={"name": of})
    made = jobset(job, runtime(base, policy=TORCH))
    assert "PET_MASTER_ADDR" not in env(made)
    command: list[str] = container(made)["command"]
    assert command[:2] == ["tune", "run"]
    assert command[-2:] == ["output_dir=/o", "tokenizer.path=/t"]
    return command[2:-2]


LORA, QLORA, DORA = "model.lora_attn_modules=[q]", "model.quantize_base=True", "model.use_dora= true "
ONE = {"numProcPerNode": 1}
TWO = {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}}
RENDEZVOUS = "--rdzv_endpoint=tj-node-0-0.tj:29500"


@pytest.mark.parametrize(
    ("args", "trainer", "expected"),
    [
        ([], ONE, ["full_finetune_single_device", "--config", "llama3_2/1B_full_single_device"]),
        ([LORA], ONE, ["lora_finetune_single_device", "--config", "llama3_2/1B_lora_single_device"]),
        ([QLORA], ONE, ["lora_finetune_single_device", "--config", "llama3_2/1B_qlora_single_device"]),
        ([QLORA, DORA, LORA], ONE, ["lora_finetune_single_device", "--config", "llama3_2/1B_lora_single_device"]),
        ([], TWO, [RENDEZVOUS, "full_finetune_distributed", "--config", "llama3_2/1B_full"]),
        ([LORA], TWO, [RENDEZVOUS, "lora_finetune_distributed", "--config", "llama3_2/1B_lora"]),
        ([QLORA], TWO, [RENDEZVOUS, "lora_finetune_distributed", "--config", "llama3_2/1B_qlora"]),
        (
            [LORA],
            {**ONE, "numNodes": 2},
            [RENDEZVOUS, "full_finetune_distributed", "--config", "llama3_2/1B_full_multinode"],
        ),
        ([], {**ONE, "numNodes": 0}, ["full_finetune_distributed", "--config", "llama3_2/1B_full"]),
    ],
)
def test_torchtune_gets_the_recipe_that_fits(args: list[str], trainer: dict[str, Any], expected: list[str]) -> None:
    assert tune(args, **trainer) == expected


def test_the_model_is_read_off_the_runtimes_name() -> None:
    assert tune([], "torchtune-qwen2.5-1.5b", **ONE)[-1] == "qwen2_5/1.5B_full_single_device"
    assert tune([], "something", **ONE)[-1] == "_full_single_device"


METRICS = [
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
]


def elastic(**policy: Any) -> dict[str, Any]:
    return {"torch": {"elasticPolicy": policy}}


def test_an_elastic_job_meets_at_node_0_and_may_change_its_nodes() -> None:
    made = jobset(trainjob(), runtime(policy=elastic(minNodes=2, maxNodes=4, maxRestarts=5)))
    variables = env(made)
    assert variables["PET_NNODES"] == "2:4"
    assert variables["PET_RDZV_BACKEND"] == "c10d"
    assert variables["PET_RDZV_ENDPOINT"] == "tj-node-0-0.tj:29500"
    assert variables["PET_RDZV_ID"] == "tj"
    assert variables["PET_MAX_RESTARTS"] == "5"
    assert variables["PET_LOCAL_ADDR"] == "status.podIP"
    assert variables["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "1"
    assert not variables.keys() & {"PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NODE_RANK"}
    assert made["metadata"]["annotations"]["trainwright.dev/elastic"] == "2:4"
    [node] = made["spec"]["replicatedJobs"]
    assert node["template"]["spec"]["parallelism"] == node["template"]["spec"]["completions"] == 2


def test_a_lost_node_of_an_elastic_job_is_replaced() -> None:
    node = job_of_runtime()
    node["template"]["spec"]["backoffLimit"] = 0
    made = jobset(trainjob({"numNodes": 3}), runtime(node, policy=elastic(maxNodes=4)))
    spec = made["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert "backoffLimit" not in spec
    assert (spec["backoffLimitPerIndex"], spec["maxFailedIndexes"]) == (3, 0)
    assert spec["successPolicy"] == {"rules": [{"succeededIndexes": "0"}]}
    assert spec["podFailurePolicy"]["rules"][0]["action"] == "Ignore"
    assert pods(made)["restartPolicy"] == "Never"
    assert spec["parallelism"] == 3


def test_what_the_runtime_says_of_single_nodes_stays() -> None:
    node = job_of_runtime()
    node["template"]["spec"] |= {"backoffLimitPerIndex": 9, "successPolicy": {"rules": [{"succeededCount": 1}]}}
    spec = jobset(trainjob(), runtime(node, policy=elastic()))["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (spec["backoffLimitPerIndex"], spec.get("maxFailedIndexes")) == (9, None)
    assert spec["successPolicy"] == {"rules": [{"succeededCount": 1}]}


def test_a_gang_of_an_elastic_job_asks_for_the_fewest_nodes() -> None:
    of = runtime(policy=elastic(minNodes=2, maxNodes=4), gang={"coscheduling": {}})
    made = {it.object["kind"]: it.object for it in plan(trainjob({"numNodes": 4}), of).objects}
    assert made["PodGroup"]["spec"]["minMember"] == 2
    assert made["JobSet"]["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] == 4


def test_metrics_make_an_autoscaler_of_the_trainjob() -> None:
    of = runtime(policy=elastic(minNodes=2, maxNodes=4, metrics=METRICS))
    made = {it.object["kind"]: it.object for it in plan(trainjob(), of).objects}
    assert made["HorizontalPodAutoscaler"]["spec"] == {
        "scaleTargetRef": {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "tj"},
        "minReplicas": 2,
        "maxReplicas": 4,
        "metrics": METRICS,
    }
    assert "HorizontalPodAutoscaler" not in {
        it.object["kind"] for it in plan(trainjob(), runtime(policy=elastic())).objects
    }
