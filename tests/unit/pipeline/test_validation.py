"""The rules of the webhooks: what they refuse, in which words and at which field."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from trainwright.api.metadata import ObjectMeta
from trainwright.api.resources import JOB_SETS
from trainwright.api.trainjob import JobStatus, RuntimeRef, TrainJob
from trainwright.pipeline import Observed, Workload, WorkloadStatus
from trainwright.pipeline.validation import (
    Verdict,
    needs_runtime,
    runtime_not_found,
    validate_runtime,
    validate_trainjob,
)
from trainwright.plugins import load
from trainwright.schema.jsonobject import Json
from unit.pipeline.objects import job_of_runtime, runtime, trainjob

FRAMEWORK = load(discovered={})
REF = '{"name":"r","apiGroup":"trainer.kubeflow.org","kind":"ClusterTrainingRuntime"}'


def judge(job: TrainJob, of: Any, old: TrainJob | None = None, observed: Observed | None = None) -> Verdict:
    return validate_trainjob(job, of, old, observed or Observed(), FRAMEWORK)


def errors(job: TrainJob, of: Any, old: TrainJob | None = None, **observed: Any) -> list[str]:
    return [str(error) for error in judge(job, of, old, Observed(**observed)).errors]


TORCH, MPI = (
    runtime(policy={"torch": {}}),
    runtime(job_of_runtime("node", ""), job_of_runtime("launcher"), policy={"mpi": {}}),
)


@pytest.mark.parametrize(
    ("job", "of", "expected"),
    [
        (trainjob(), TORCH, []),
        (
            trainjob({"env": [{"name": "PET_NNODES"}, {"name": "A"}, {"name": "PET_MASTER_ADDR", "value": "x"}]}),
            TORCH,
            [
                'spec.trainer.env: Invalid value: [{"name":"PET_NNODES"},{"name":"A"},'
                '{"name":"PET_MASTER_ADDR","value":"x"}]: must not have reserved envs, '
                "invalid envs configured: [PET_MASTER_ADDR PET_NNODES]"
            ],
        ),
        (
            trainjob({"env": [{"name": "OMPI_MCA_plm_rsh_args", "value": "x"}]}),
            MPI,
            [
                'spec.trainer.env: Invalid value: [{"name":"OMPI_MCA_plm_rsh_args","value":"x"}]: '
                "must not have reserved envs, invalid envs configured: [OMPI_MCA_plm_rsh_args]"
            ],
        ),
        (
            trainjob({"env": [{"name": "A"}, {"name": "DMLC_TASK_ID"}]}),
            runtime(policy={"xgboost": {}}),
            ["spec.trainer.env[1]: Forbidden: DMLC_TASK_ID is reserved for the XGBoost runtime"],
        ),
        (trainjob({"env": [{"name": "JAX_PROCESS_ID", "value": "0"}]}), runtime(policy={"jax": {}}), []),
        (
            trainjob({"numNodes": 2}),
            runtime(job_of_runtime("launcher"), policy={"mpi": {"runLauncherAsNode": True}}),
            [
                "spec.trainer.numNodes: Invalid value: 2: must have 1 when MPI trainingRuntime with enabled "
                "runLauncherAsNode does not have either launcher and node"
            ],
        ),
        (
            trainjob({"numProcPerNode": "many"}),
            TORCH,
            ['spec.trainer.numProcPerNode: Invalid value: "many": must have an int value or [auto cpu gpu]'],
        ),
        (
            trainjob({"numProcPerNode": "auto"}),
            MPI,
            ['spec.trainer.numProcPerNode: Invalid value: "auto": must have an int value for MPI TrainJob'],
        ),
        (
            trainjob(),
            runtime(job_of_runtime(initContainers=[{"name": "flux-installer"}]), policy={"flux": {}}),
            [
                'spec.trainer.initContainers: Invalid value: "flux-installer": '
                "InitContainer 'flux-installer' is reserved"
            ],
        ),
        (
            trainjob(initializer={"dataset": {}, "model": {}}),
            runtime(
                job_of_runtime(), job_of_runtime("model-initializer", "model-initializer", containers=[{"name": "x"}])
            ),
            [
                f"spec.runtimeRef: Invalid value: {REF}: must have dataset-initializer job when trainJob is "
                "configured with input datasetConfig",
                f"spec.runtimeRef: Invalid value: {REF}: must have container with name - model-initializer in the "
                "model-initializer job",
            ],
        ),
        (
            trainjob(initializer={"dataset": {}}),
            runtime(job_of_runtime(), job_of_runtime("dataset-initializer", "dataset-initializer")),
            [
                f"spec.runtimeRef: Invalid value: {REF}: must have volumeMount with name - initializer in container "
                "dataset-initializer of the dataset-initializer job"
            ],
        ),
    ],
)
def test_rules_of_the_plugins(job: TrainJob, of: Any, expected: list[str]) -> None:
    assert errors(job, of) == expected


def tune(name: str = "torchtune-llama3.2-1b", **trainer: Any) -> list[str]:
    job = trainjob({"command": ["tune", "run"], **trainer}, runtimeRef={"name": name})
    return errors(job, TORCH)


def test_torchtune_knows_what_it_cannot_do() -> None:
    qlora = ["model.quantize_base=True"]
    assert tune("torchtune-foo-1b") == [
        'spec.runtimeRef.name: Invalid value: "torchtune-foo-1b": must have a supported pretrained model, '
        "invalid model configured: foo/1B"
    ]
    assert tune(numNodes=2, args=["model.lora_attn_modules=[q]"]) == [
        "spec.trainer.numNodes: Invalid value: 2: must be 1 for llama3_2/1B model",
        "spec.trainer.numNodes: Invalid value: 2: "
        "LoRA fine-tuning is not supported for multi-node training in TorchTune",
    ]
    assert tune("torchtune-qwen2.5-1.5b", args=qlora, numProcPerNode=1) == [
        'spec.runtimeRef.name: Invalid value: "torchtune-qwen2.5-1.5b": QLoRA is not supported for qwen2_5/1.5B model'
    ]
    gpus = {"requests": {"cpu": 1}, "limits": {"nvidia.com/gpu": 2}}
    assert tune(args=qlora, numProcPerNode=2, resourcesPerNode=gpus) == [
        "spec.trainer.numProcPerNode: Invalid value: 2: must be auto or 1 for llama3_2/1B model when using QLoRA",
        'spec.trainer.resourcesPerNode: Invalid value: {"limits":{"nvidia.com/gpu":"2"},"requests":{"cpu":"1"}}: '
        "must have gpu resource with value 1 for llama3_2/1B model when using QLoRA",
    ]
    assert tune(args=["output_dir=/x", "a=b"]) == [
        'spec.trainer.args[0]: Invalid value: "output_dir=/x": must not set immutable config "output_dir" in trainer '
        "args; it is managed by the runtime"
    ]


def patch(manager: str = "a.io/x", job: str = "node", **pod_spec: Any) -> dict[str, Any]:
    jobs = [{"name": job, "template": {"spec": {"template": {"spec": pod_spec}}}}]
    return {"manager": manager, "time": "t", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}


PREFIX = '[{"manager":"a.io/x","time":"t","trainingRuntimeSpec":{"template":{"spec":{"replicatedJobs":[{"name":'


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (patch(job="zz"), "must not have replicated job that doesn't exist in the runtime job template"),
        (patch(containers=[{"name": "zz"}]), "must not have container that doesn't exist in the runtime job node"),
        (
            patch(initContainers=[{"name": "zz"}]),
            "must not have initContainer that doesn't exist in the runtime job node",
        ),
        (
            patch(containers=[{"name": "node", "env": [{"name": "A"}]}]),
            "must not have envs for the dataset-initializer, model-initializer, node containers",
        ),
    ],
)
def test_patches_fit_the_template_they_change(change: dict[str, Any], detail: str) -> None:
    (error,) = errors(trainjob(runtimePatches=[change]), runtime())
    assert error.startswith(f"spec.runtimePatches: Invalid value: {PREFIX}")
    assert error.endswith(f"]: {detail}")


@pytest.mark.parametrize(
    ("manager", "expected"),
    [
        ("a/b", []),
        ("example.io/a/b", []),
        ("nodomain", ['"nodomain": must be a domain-prefixed path (such as "acme.io/foo")']),
        ("example.io/", ['"example.io/": must be a domain-prefixed path (such as "acme.io/foo")']),
        ("/m", ['"/m": must be a domain-prefixed path (such as "acme.io/foo")']),
        ("a.io/<", ["\"<\": Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"]),
    ],
)
def test_a_manager_is_a_domain_and_a_path(manager: str, expected: list[str]) -> None:
    found = errors(trainjob(runtimePatches=[patch(manager)]), runtime())
    assert found == [f"spec.runtimePatches.manager: Invalid value: {text}" for text in expected]


def test_a_manager_of_capitals_is_told_the_rule() -> None:
    (error,) = errors(trainjob(runtimePatches=[patch("Example.io/m")]), runtime())
    assert error.startswith('spec.runtimePatches.manager: Invalid value: "Example.io": a lowercase RFC 1123 subdomain')


@pytest.mark.parametrize(
    ("field", "title", "item"),
    [
        ("podTemplateOverrides", "PodTemplateOverrides", {"spec": {"containers": [{"name": "zz"}]}}),
        ("podSpecOverrides", "PodSpecOverrides", {"containers": [{"name": "zz"}]}),
    ],
)
def test_legacy_overrides_keep_their_rules(field: str, title: str, item: dict[str, Any]) -> None:
    def overridden(target: str, **more: Any) -> TrainJob:
        spec: Json = {field: [{"targetJobs": [{"name": target}], **more}]}
        return trainjob(**spec)

    (missing,) = errors(overridden("nope"), runtime())
    assert missing.endswith("must not have targetJob that doesn't exist in the runtime job template")
    assert missing.startswith(f"spec.{field}: Invalid value: ")
    (unknown,) = errors(overridden("node", **item), runtime())
    assert unknown.endswith("must not have container that doesn't exist in the runtime job node")
    assert errors(overridden("node"), runtime(), trainjob()) == [
        f"spec.{field}: Forbidden: {title} can only be modified when the TrainJob is suspended"
    ]


def test_v2_0_allowed_one_override_for_a_job() -> None:
    twice = [{"targetJobs": [{"name": "node"}]}, {"targetJobs": [{"name": "node"}]}]
    assert errors(trainjob(podSpecOverrides=twice), runtime()) == ['spec.podSpecOverrides: Duplicate value: "node"']
    assert errors(trainjob(podTemplateOverrides=twice), runtime()) == []


ACTIVE = Workload(
    JOB_SETS,
    ObjectMeta(name="tj"),
    "JobSet",
    WorkloadStatus(jobs=[JobStatus("node", active=1), JobStatus("b")]),
)


def test_another_spelling_of_a_patch_is_no_change() -> None:
    old, new = patch(nodeSelector={"a": "b"}), patch(nodeSelector={"a": "b"}, tolerations=[])
    assert errors(trainjob(runtimePatches=[new]), runtime(), trainjob(runtimePatches=[old])) == []


def test_patches_change_only_while_nothing_runs() -> None:
    changed: Json = {"runtimePatches": [patch(nodeSelector={"a": "b"})]}
    running = "RuntimePatches can only be modified when the TrainJob is suspended before or after the update"
    active = "RuntimePatches cannot be modified when the JobSet's ReplicatedJob node is still active"
    assert errors(trainjob(**changed), runtime(), trainjob()) == [f"spec.runtimePatches: Forbidden: {running}"]
    for before, after in ((True, False), (False, True), (True, True)):
        new, old = trainjob(suspend=after, **changed), trainjob(suspend=before)
        assert errors(new, runtime(), old) == []
        assert errors(new, runtime(), old, workload=ACTIVE) == [f"spec.runtimePatches: Forbidden: {active}"]


def test_volcano_wants_a_queue_and_a_priority_that_exist() -> None:
    of = runtime(job_of_runtime(priorityClassName="hp"), gang={"volcano": {}})
    queue = {"template": {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": ""}}}}
    job = trainjob(runtimePatches=[{"manager": "a.io/x", "trainingRuntimeSpec": queue}])
    assert errors(job, of, priority_classes=frozenset({"x"})) == [
        'spec.annotations[scheduling.volcano.sh/queue-name]: Invalid value: "": Volcano queue name must not be empty',
        'spec.templateSpec.priorityClassName: Invalid value: "hp": PriorityClass "hp" doesn\'t exist: '
        'PriorityClass.scheduling.k8s.io "hp" not found',
    ]
    assert errors(trainjob(), of, priority_classes=frozenset({"hp"})) == []
    assert errors(trainjob(), of, priority_classes=None) == []


ANNOTATION = "trainer.kubeflow.org/num-proc-per-node"


def annotated(value: str, **trainer: Any) -> TrainJob:
    return trainjob(trainer, metadata={"annotations": {ANNOTATION: value}})


def test_the_annotation_keeps_the_rules_of_the_field_it_stands_for() -> None:
    field = f"metadata.annotations[{ANNOTATION}]"
    assert errors(annotated("auto"), TORCH) == []
    assert f'{field}: Invalid value: "3": must be one of auto, cpu, gpu' in errors(annotated("3"), TORCH)
    beside = errors(annotated("cpu", numProcPerNode=2), TORCH)
    assert beside == [f'{field}: Invalid value: "cpu": must not stand beside spec.trainer.numProcPerNode']
    assert errors(annotated("cpu"), TORCH, annotated("auto")) == [f"{field}: Invalid value: field is immutable"]


def test_what_changes_nothing_is_never_judged_by_the_runtime() -> None:
    job = trainjob({"numNodes": 1})
    finished = trainjob(
        status={
            "conditions": [
                {"type": "Complete", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "t"}
            ]
        }
    )
    assert needs_runtime(job, None)
    assert not needs_runtime(job, job)
    assert needs_runtime(trainjob({"numNodes": 1}, suspend=True), job)
    assert not needs_runtime(trainjob(suspend=True), finished)
    assert not needs_runtime(trainjob(suspend=True, metadata={"deletionTimestamp": "t"}), job)
    assert needs_runtime(annotated("cpu"), annotated("auto"))


def test_a_missing_runtime_is_named_in_the_words_of_its_kind() -> None:
    assert str(runtime_not_found(RuntimeRef("x"))) == (
        'spec.RuntimeRef: Invalid value: {"name":"x","apiGroup":"trainer.kubeflow.org",'
        '"kind":"ClusterTrainingRuntime"}: '
        'ClusterTrainingRuntime.trainer.kubeflow.org "x" not found: specified clusterTrainingRuntime must be created '
        "before the TrainJob is created"
    )
    assert str(runtime_not_found(RuntimeRef("x", kind="TrainingRuntime"))).startswith(
        "spec.runtimeRef: Invalid value: "
    )


def test_runtimes_are_judged_by_their_roles() -> None:
    twice = {**job_of_runtime(), "replicas": 2}
    lacking = job_of_runtime("init", "model-initializer", containers=[{"name": "other", "image": "i"}])
    free = {**job_of_runtime("free", ""), "replicas": 3}
    path = "spec.template.spec.replicatedJobs"
    found = [str(error) for error in validate_runtime(runtime(twice, lacking, free)).errors]
    assert found == [
        f"{path}[0].replicas: Invalid value: 2: always must be 1",
        f"{path}[1].template.spec.template.spec.containers: "
        'Invalid value: [{"name":"other","image":"i","resources":{}}]: '
        "must contain the required container for the ancestor: model-initializer",
    ]


def test_deprecated_runtimes_warn_and_opted_out_ones_are_not_judged() -> None:
    def labelled(**labels: str) -> Any:
        base = runtime({**job_of_runtime(), "replicas": 2})
        named = {f"trainer.kubeflow.org/{key.replace('_', '-')}": value for key, value in labels.items()}
        return msgspec.structs.replace(base, metadata=msgspec.structs.replace(base.metadata, labels=named))

    assert validate_runtime(labelled(webhook_validation="disabled")).errors == []
    (warning,) = validate_runtime(labelled(support="deprecated")).warnings
    assert warning.startswith('ClusterTrainingRuntime "r" is deprecated and will be removed in a future release')
    (warning,) = judge(trainjob(), labelled(support="deprecated")).warnings
    assert warning.startswith('Referenced ClusterTrainingRuntime "r" is deprecated')


def test_older_spellings_are_taken_with_a_warning() -> None:
    warnings = judge(trainjob(podTemplateOverrides=[{"targetJobs": []}], labels={"a": "b"}), runtime()).warnings
    assert [text.split(" ")[0] for text in warnings] == ["spec.podTemplateOverrides", "spec.labels"]


def test_older_spellings_of_a_runtime_are_taken_with_a_warning() -> None:
    older = runtime(policy={"torch": {"numProcPerNode": "auto", "elasticPolicy": {}}})
    (warning,) = validate_runtime(older).warnings
    assert warning.startswith("spec.mlPolicy.torch.numProcPerNode")


METRICS = [
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
]


def test_an_elastic_policy_has_an_effect_and_no_warning() -> None:
    policy = {"minNodes": 2, "maxNodes": 4, "maxRestarts": 1, "metrics": METRICS}
    elastic = runtime(policy={"torch": {"elasticPolicy": policy}})
    assert validate_runtime(elastic) == ([], [])
    assert judge(trainjob(trainer={"numNodes": 3}), elastic) == ([], [])
    assert judge(trainjob(), elastic) == ([], [])


@pytest.mark.parametrize("nodes", [1, 5])
def test_an_elastic_job_begins_within_its_limits(nodes: int) -> None:
    elastic = runtime(policy={"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 4}}})
    (fault,) = judge(trainjob(trainer={"numNodes": nodes}), elastic).errors
    assert fault.field == "spec.trainer.numNodes"
    assert "must be between 2 and 4, as spec.mlPolicy.torch.elasticPolicy of the runtime says" in str(fault)


def test_the_limits_of_an_elastic_runtime_make_sense() -> None:
    wrong = runtime(policy={"torch": {"elasticPolicy": {"minNodes": 4, "maxNodes": 2, "maxRestarts": -1}}})
    faults = [fault.field.rpartition(".")[2] for fault in validate_runtime(wrong).errors]
    assert faults == ["maxNodes", "maxRestarts"]


def test_an_elastic_job_cannot_set_what_torchrun_meets_by() -> None:
    elastic = runtime(policy={"torch": {"elasticPolicy": {}}})
    job = trainjob(trainer={"env": [{"name": "PET_RDZV_ID", "value": "x"}, {"name": "PET_RDZV_CONF", "value": "y"}]})
    (fault,) = judge(job, elastic).errors
    assert "[PET_RDZV_ID]" in str(fault)
