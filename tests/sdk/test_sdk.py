"""`kubeflow` 0.5.0 on the local cluster: every call of TrainerClient that speaks to Kubernetes, on real local pods."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubeflow.common.types import KubernetesBackendConfig
from kubeflow.trainer import CustomTrainer, TrainerClient, options

from commandline import CommandLine, command_line, plain_job
from waiting import eventually

SECONDS = 90


def hello() -> None:
    import os
    import time

    print("hello from node", os.environ["PET_NODE_RANK"], "of", os.environ["PET_NNODES"], flush=True)
    time.sleep(6)
    print("goodbye", flush=True)


def fail() -> None:
    raise SystemExit("this is meant to fail")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with command_line(tmp_path_factory.mktemp("sdk") / "cluster") as line:
        line("up", "--detach")
        yield line


@pytest.fixture(scope="module")
def client(cluster: CommandLine) -> TrainerClient:
    return TrainerClient(KubernetesBackendConfig(namespace="default", config_file=str(cluster.kubeconfig)))


@pytest.fixture(scope="module")
def job(client: TrainerClient) -> str:
    """One job that the tests of this file look at from all sides."""
    trainer = CustomTrainer(func=hello, num_nodes=2, resources_per_node={"cpu": 1}, env={"GREETING": "yes"})
    return str(client.train(runtime="torch-distributed", trainer=trainer))


def test_list_runtimes_shows_those_that_ship(client: TrainerClient) -> None:
    names = {runtime.name for runtime in client.list_runtimes()}
    assert {"torch-distributed", "deepspeed-distributed", "jax-distributed", "torchtune-llama3.2-1b"} <= names


def test_get_runtime_knows_its_framework(client: TrainerClient) -> None:
    runtime = client.get_runtime("torch-distributed")
    assert (runtime.name, runtime.trainer.framework) == ("torch-distributed", "torch")


@pytest.mark.timeout(240)
def test_a_custom_trainer_runs_and_completes(client: TrainerClient, job: str) -> None:
    assert client.wait_for_job_status(job, {"Running"}, timeout=SECONDS, polling_interval=1).status == "Running"
    followed = list(client.get_job_logs(job, step="node-1", follow=True))
    assert followed == ["hello from node 1 of 2", "goodbye"]
    done = client.wait_for_job_status(job, timeout=SECONDS, polling_interval=1)
    assert (done.status, done.num_nodes) == ("Complete", 2)
    assert [(step.name, step.status) for step in done.steps] == [("node-0", "Succeeded"), ("node-1", "Succeeded")]


@pytest.mark.timeout(240)
def test_get_job_list_jobs_and_logs_see_it(client: TrainerClient, job: str) -> None:
    client.wait_for_job_status(job, timeout=SECONDS, polling_interval=1)
    assert client.get_job(job).name == job
    assert job in [found.name for found in client.list_jobs()]
    assert job in [found.name for found in client.list_jobs(runtime=client.get_runtime("torch-distributed"))]
    assert list(client.get_job_logs(job)) == ["hello from node 0 of 2", "goodbye"]


@pytest.mark.timeout(240)
def test_get_job_events_tells_its_story(client: TrainerClient, job: str) -> None:
    client.wait_for_job_status(job, timeout=SECONDS, polling_interval=1)
    events = client.get_job_events(job)
    assert {"TrainJob", "JobSet", "Pod"} & {event.involved_object_kind for event in events}


@pytest.mark.timeout(240)
def test_options_name_label_and_patch_a_job(client: TrainerClient, cluster: CommandLine) -> None:
    patch = options.RuntimePatch(
        training_runtime_spec=options.TrainingRuntimeSpecPatch(
            template=options.JobSetTemplatePatch(
                spec=options.JobSetSpecPatch(
                    replicated_jobs=[
                        options.ReplicatedJobPatch(
                            name="node",
                            template=options.JobTemplatePatch(
                                spec=options.JobSpecPatch(
                                    template=options.PodTemplatePatch(
                                        spec=options.PodSpecPatch(node_selector={"kubernetes.io/os": "linux"})
                                    )
                                )
                            ),
                        )
                    ]
                )
            )
        )
    )
    name = client.train(
        trainer=CustomTrainer(func=hello),
        options=[options.Name("named"), options.Labels({"team": "ml"}), options.Annotations({"why": "a test"}), patch],
    )
    assert name == "named"
    assert client.wait_for_job_status(name, timeout=SECONDS, polling_interval=1).status == "Complete"
    client.delete_job(name)


@pytest.mark.timeout(240)
def test_a_failing_function_fails_the_job(client: TrainerClient) -> None:
    name = client.train(trainer=CustomTrainer(func=fail))
    with pytest.raises(RuntimeError, match="Failed"):
        client.wait_for_job_status(name, timeout=SECONDS * 2, polling_interval=1)
    assert any("this is meant to fail" in line for line in client.get_job_logs(name))
    client.delete_job(name)


@pytest.mark.timeout(240)
def test_delete_job_takes_it_away(client: TrainerClient, job: str) -> None:
    client.wait_for_job_status(job, timeout=SECONDS, polling_interval=1)
    client.delete_job(job)
    eventually("the job to be gone", lambda: job not in [found.name for found in client.list_jobs()])


@pytest.mark.timeout(240)
def test_update_trainjob_status_reaches_the_jobs_status(cluster: CommandLine, tmp_path: Path) -> None:
    """Inside a pod, with the Python that has the SDK."""
    script = """
        from kubeflow.trainer import update_trainjob_status
        print("reported:", update_trainjob_status(42, 120, {"loss": 0.123, "accuracy": 0.95}))
    """
    file = tmp_path / "job.yaml"
    file.write_text(plain_job("reporting", script).replace("[python3,", f"[{sys.executable},"))
    assert "reported: True" in cluster("run", str(file))
    status = json.loads(cluster("get", "trainjobs", "reporting", "-o", "json"))["status"]["trainerStatus"]
    assert (status["progressPercentage"], status["estimatedRemainingSeconds"]) == (42, 120)
    assert [(metric["name"], metric["value"]) for metric in status["metrics"]] == [
        ("loss", "0.123"),
        ("accuracy", "0.95"),
    ]
