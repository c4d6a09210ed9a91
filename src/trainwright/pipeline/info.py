"""The state of one build: a TrainJob, its runtime, and the JobSet template on its way to becoming a JobSet.

`make_info` copies the runtime's template, merges the TrainJob's overrides into it, gives each replicatedJob its role,
its pod count and the node its resources. After that the plugins change it, phase by phase.
Neither the TrainJob nor the runtime is ever changed: a plugin that rewrites the user's command does so in
`Info.command`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import msgspec

from trainwright.api.runtime import JobSetTemplate, MLPolicy, PodGroupPolicy, TrainingRuntime
from trainwright.api.trainjob import Trainer, TrainJob, TrainJobSpec
from trainwright.pipeline.elasticity import NodeRange
from trainwright.pipeline.errors import TemplateInvalid, TwoWorkloads
from trainwright.pipeline.generations import fit, merge, patches_of
from trainwright.pipeline.plan import KeyMaterial, MaskedKeys, Observed
from trainwright.pipeline.podset import (
    INITIALIZERS,
    NODE,
    TRAINER,
    Container,
    PodSet,
)
from trainwright.pipeline.provenance import DEFAULT, NO_TRACE, PLUGIN, RUNTIME, TRAIN_JOB, Origin, Tracer
from trainwright.pipeline.resources import Resources, merge_requirements, pod_requests
from trainwright.pipeline.sparse import amount, sparse
from trainwright.schema.jsonobject import Json
from trainwright.schema.quantity import Quantity

NUM_PROC_PER_NODE_ANNOTATION = "trainer.kubeflow.org/num-proc-per-node"
TRAINER_PORT = 29500
REMEMBERED_TEMPLATES = 64

_NO_TRAINER = Trainer()
_NO_POLICY = MLPolicy()
_NO_GANG = PodGroupPolicy()


class Info:
    """What plugins see and change."""

    def __init__(
        self,
        job: TrainJob,
        runtime: TrainingRuntime,
        labels: dict[str, str],
        annotations: dict[str, str],
        spec: Json,
        observed: Observed,
        keys: KeyMaterial,
        trace: Tracer,
    ) -> None:
        if job.spec is None:
            raise TemplateInvalid("the TrainJob has no spec")
        self.job = job
        self.job_spec: TrainJobSpec = job.spec
        self.runtime = runtime
        self.observed = observed
        self.keys = keys
        self.trace = trace
        self.labels = labels
        """Labels of the JobSet."""
        self.annotations = annotations
        """Annotations of the JobSet."""
        self.spec = spec
        """The JobSet's spec; `pod_sets` are views into it."""
        self.pod_sets = [PodSet(item, local=observed.local_node) for item in spec.get("replicatedJobs") or ()]
        trainer = job.spec.trainer or _NO_TRAINER
        self.trainer_spec: Trainer = trainer
        self.command = trainer.command
        """The trainer's command; None leaves the template's."""
        self.command_origin = Origin(TRAIN_JOB, job.metadata.name, "spec.trainer.command")
        self.args = trainer.args
        """The trainer's arguments; None leaves the template's."""
        self.node_range: NodeRange | None = None
        """Between how many nodes an elastic job trains; None for any other job."""
        self._claimed_by: str | None = None
        self.warnings: list[str] = []
        """What a user should know though nothing is wrong; plugins may add to it."""
        self.unmatched: list[str] = []
        """What overrides name and the template does not have: admission refuses it, and no plan is made of it."""
        policy = runtime.spec.ml_policy if runtime.spec else None
        self.has_ml_policy = policy is not None
        self.ml_policy: MLPolicy = policy or _NO_POLICY
        self.pod_group_policy: PodGroupPolicy = (runtime.spec.pod_group_policy if runtime.spec else None) or _NO_GANG

    @property
    def name(self) -> str:
        return self.job.metadata.name

    @property
    def document(self) -> Json:
        """The JobSet so far, for provenance."""
        return {"metadata": {"labels": self.labels, "annotations": self.annotations}, "spec": self.spec}

    @property
    def workload_is_running(self) -> bool:
        """The workload exists, and neither it nor the TrainJob is suspended: it is left alone."""
        workload = self.observed.workload
        return workload is not None and not workload.status.is_suspended and not self.job.is_suspended

    @property
    def workload_plugin(self) -> str | None:
        """Who builds the workload: the plugin that built the one there is, else the one that claimed it. None leaves
        it to the JobSet plugin.
        """
        workload = self.observed.workload
        return workload.plugin if workload is not None else self._claimed_by

    def claim_workload(self, plugin: str) -> bool:
        """Build this TrainJob's workload in place of the JobSet plugin. False when the TrainJob has one already that
        another plugin built: it keeps it, whatever plugins there are now.
        """
        if self._claimed_by not in (None, plugin):
            raise TwoWorkloads(str(self._claimed_by), plugin)
        self._claimed_by = plugin
        return self.workload_plugin == plugin

    @property
    def trainer(self) -> PodSet | None:
        """The first pod set that trains."""
        return next((pod_set for pod_set in self.pod_sets if pod_set.role == TRAINER), None)

    @property
    def trainer_container(self) -> Container | None:
        return self.trainer.container(NODE) if self.trainer else None

    @property
    def first_node(self) -> str:
        """The host name of rank 0: always the job named `node`, under the TrainJob's own name."""
        return f"{self.name}-{NODE}-0-0.{self.name}"

    @property
    def gang(self) -> list[PodSet]:
        """The pods that run together. Initializers end before the others start, so they are no part of it."""
        return [pod_set for pod_set in self.pod_sets if pod_set.role not in INITIALIZERS]

    @property
    def gang_size(self) -> Json:
        """The pods that must start together and what they ask for, as a PodGroup spells it."""
        total: dict[str, Quantity] = {}
        for pod_set in self.gang:
            for name, request in pod_requests(pod_set.pod_spec).items():
                requests = request * pod_set.needed
                total[name] = total[name] + requests if name in total else requests
        return {
            "minMember": sum(pod_set.needed for pod_set in self.gang),
            "minResources": {name: str(requests) for name, requests in total.items()},
        }

    def pod_set(self, name: str) -> PodSet | None:
        return next((pod_set for pod_set in self.pod_sets if pod_set.name == name), None)

    @property
    def num_proc_per_node(self) -> int | str | None:
        """The TrainJob's processes per node: a number, or `auto`, `cpu`, `gpu` in an older job."""
        value = self.trainer_spec.num_proc_per_node
        if value is None:
            value = self.job.metadata.annotation(NUM_PROC_PER_NODE_ANNOTATION)
        return int(value) if isinstance(value, str) and value.isdecimal() else value

    @property
    def node_resources(self) -> Resources:
        """What one training node gets, for counting processes: the TrainJob's word alone, else the template's."""
        if self.trainer_spec.resources_per_node is not None:
            return Resources.of(self.trainer_spec.resources_per_node)
        for pod_set in self.pod_sets:
            if (pod_set.name == NODE or pod_set.role == TRAINER) and (container := pod_set.container(NODE)):
                return Resources.of(container.json.get("resources"))
        return Resources({}, {})

    def set_num_nodes(self, pod_set: PodSet) -> None:
        """Give the pod set as many pods as the TrainJob has nodes, if it says how many."""
        if self.trainer_spec.num_nodes is not None:
            pod_set.count = self.trainer_spec.num_nodes
            self.came_from("spec.trainer.numNodes")

    def set_trainer_env(self, container: Container) -> None:
        """Upsert the TrainJob's env."""
        for index, variable in enumerate(self.trainer_spec.env or ()):
            container.set_env(trainjob_env(variable))
            self.came_from(f"spec.trainer.env[{index}]")

    def rewrite_command(self, command: list[str], plugin: str) -> None:
        """Run this in place of the TrainJob's command, which itself stays as it is."""
        self.command = command
        self.command_origin = Origin(PLUGIN, plugin, "enforce_ml_policy")

    def came_from(self, field: str) -> None:
        """Say that what was just set is this field of the TrainJob."""
        if self.trace is not NO_TRACE:
            self.trace.mark(Origin(TRAIN_JOB, self.name, field))


def make_info(
    job: TrainJob,
    runtime: TrainingRuntime,
    observed: Observed | None = None,
    keys: KeyMaterial | None = None,
    trace: Tracer = NO_TRACE,
) -> Info:
    """The template with the TrainJob's overrides in it, before any plugin."""
    template = runtime.spec.template if runtime.spec else None
    if template is None or not isinstance(template.spec, dict):
        raise TemplateInvalid("unsupported runtimeTemplateSpec: the runtime has no JobSet template")
    if job.spec is None:
        raise TemplateInvalid("the TrainJob has no spec")
    metadata = template.metadata or {}
    labels = dict(metadata.get("labels") or {})
    annotations = dict(metadata.get("annotations") or {})
    spec: Json = msgspec.json.decode(_sparse_templates.encoded(template))
    tracing = trace is not NO_TRACE
    if tracing:
        trace.follow(_document(labels, annotations, spec))
        trace.mark(Origin(RUNTIME, runtime.metadata.name, "spec.template"), _document(labels, annotations, spec))
    unmatched: list[str] = []
    job_names = [str(item.get("name")) for item in spec.get("replicatedJobs") or ()]
    roles = [PodSet(item).role for item in spec.get("replicatedJobs") or ()]
    for patch in patches_of(job.spec, job_names):
        labels.update(patch.labels)
        annotations.update(patch.annotations)
        if patch.spec:
            fitted, left_out = fit(patch.spec, spec)
            spec = merge(spec, fitted)
            unmatched += left_out
        if tracing:
            trace.follow(_document(labels, annotations, spec))
            trace.mark(patch.origin, _document(patch.labels, patch.annotations, patch.spec))
    info = Info(job, runtime, labels, annotations, spec, observed or Observed(), keys or MaskedKeys(), trace)
    info.unmatched = unmatched
    if TRAINER not in roles:
        _choose_trainer(info)
    trace.follow(info.document if tracing else None)
    _set_counts(info)
    _set_resources(info)
    return info


class _SparseTemplates:
    """Templates of runtimes as builds begin with them, encoded: a thousand TrainJobs share one runtime, which never
    changes, and to decode is the cheapest way to copy.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[JobSetTemplate, bytes]] = OrderedDict()  # by identity

    def encoded(self, template: JobSetTemplate) -> bytes:
        known = self._known.get(id(template))
        if known is None:
            assert template.spec is not None
            known = self._known[id(template)] = (template, msgspec.json.encode(sparse(template.spec)))
            if len(self._known) > REMEMBERED_TEMPLATES:
                self._known.popitem(last=False)
        return known[1]


_sparse_templates = _SparseTemplates()


def _choose_trainer(info: Info) -> None:
    """A runtime that labels no trainer has one all the same: the job `node`. A patch that takes the label away leaves
    none.
    """
    if info.trainer is None:
        for pod_set in info.pod_sets:
            if pod_set.name == NODE:
                pod_set.role = TRAINER


def _set_counts(info: Info) -> None:
    """Every job gets a count; the trainer's is the ML policy's numNodes, whatever the template's parallelism."""
    num_nodes = info.ml_policy.num_nodes
    for pod_set in info.pod_sets:
        if info.has_ml_policy and pod_set.role == TRAINER:
            pod_set.count = max(num_nodes if num_nodes is not None else 1, 1)
            if num_nodes is not None:
                info.trace.mark(Origin(RUNTIME, info.runtime.metadata.name, "spec.mlPolicy.numNodes"))
        else:
            pod_set.count = max(pod_set.count, 1)
        info.trace.mark(Origin(DEFAULT))


def _set_resources(info: Info) -> None:
    requirements = info.trainer_spec.resources_per_node
    if requirements is None:
        return
    launcher_is_node = info.ml_policy.mpi is not None and info.ml_policy.mpi.run_launcher_as_node
    nodes = [
        container
        for pod_set in info.pod_sets
        if (info.has_ml_policy and pod_set.role == TRAINER) or (launcher_is_node and pod_set.name == NODE)
        if (container := pod_set.container(NODE)) is not None
    ]
    for container in nodes:
        merge_requirements(container.json, requirements)
        info.came_from("spec.trainer.resourcesPerNode")
    if not nodes:
        info.warnings.append(
            "spec.trainer.resourcesPerNode has no effect: the runtime has no mlPolicy or no container for it"
        )


def trainjob_env(variable: Json) -> Json:
    """An env entry of a TrainJob as it goes into a container: a value, even an empty one, or exactly one source."""
    source = variable.get("valueFrom")
    if source is None:
        return {"name": variable["name"], "value": variable.get("value") or ""}
    copied = dict(source)
    if field := copied.get("fieldRef"):
        copied["fieldRef"] = {"fieldPath": field.get("fieldPath", "")}
    if resource := copied.get("resourceFieldRef"):
        copied["resourceFieldRef"] = {
            "containerName": resource.get("containerName", ""),
            "resource": resource.get("resource", ""),
            "divisor": amount(resource.get("divisor") or "0"),
        }
    return {"name": variable["name"], "valueFrom": copied}


def _document(labels: Any, annotations: Any, spec: Any) -> Json:
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}
