"""Why a TrainJob cannot be turned into objects.

PipelineError             the message is for the user: it ends in `status.message` and an event
├── RuntimeNotSupported   `runtimeRef` names a kind that is no runtime: final, the job has Failed
├── RuntimeNotFound       the runtime is not there (yet)
├── WorkloadLost          the workload vanished unseen: final, the job has Failed
├── TemplateInvalid       the runtime's template cannot carry this TrainJob
├── NameTaken             an object of this name exists and belongs to somebody else
├── TwoWorkloads          two plugins build the workload of one TrainJob
├── WorkloadUnknown       there is a workload, and nobody can say what became of it
├── PluginFailed          a plugin raised, or gave what cannot be used; the message names it and its phase
└── PluginUnusable        a plugin cannot take part at all; said at the start, before any job
"""

from __future__ import annotations


class PipelineError(Exception):
    """The base of this layer's errors."""


class RuntimeNotSupported(PipelineError):
    """`runtimeRef` names neither a TrainingRuntime nor a ClusterTrainingRuntime."""

    def __init__(self, group_kind: str) -> None:
        super().__init__(f"unsupported runtime: {group_kind}")
        self.group_kind = group_kind


class RuntimeNotFound(PipelineError):
    """The runtime that `runtimeRef` names does not exist."""

    def __init__(self, kind: str, name: str) -> None:
        cause = f'{kind}.trainer.kubeflow.org "{name}" not found'
        if kind == "TrainingRuntime":
            super().__init__(f"TrainingRuntime specified in TrainJob is not found: {cause}")
        else:
            super().__init__(f"not found ClusterTrainingRuntime specified in TrainJob: {cause}")
        self.cause = cause


class WorkloadLost(PipelineError):
    """The workload existed and is gone, and nobody saw how it ended: final, because training must not run twice."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f'the workload of TrainJob "{name}" is gone, and how it ended was not seen. Training that may be complete'
            " is not started again by itself: to run it again, delete the TrainJob and create it anew"
        )


class TemplateInvalid(PipelineError):
    """The runtime has no JobSet template, or one that a patch cannot be merged into."""


class NameTaken(PipelineError):
    """Writing would take over an object that is not this TrainJob's."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(
            f'{kind} "{name}" exists already and does not belong to this TrainJob; '
            "delete it or give the TrainJob another name"
        )


class TwoWorkloads(PipelineError):
    """A TrainJob has one workload; which of two would report its status is not ours to guess."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(
            f"plugins {first} and {second} both build the workload of this TrainJob; "
            "disable one of them (plugins.disabledPlugins)"
        )


class WorkloadUnknown(PipelineError):
    """The workload exists and its status cannot be told: nothing is built or deleted until it can."""


class PluginFailed(PipelineError):
    """A plugin raised where it should have decided; other jobs go on."""

    def __init__(self, plugin: str, phase: str, cause: BaseException | str) -> None:
        super().__init__(f"plugin {plugin} failed in {phase}: {str(cause) or type(cause).__name__}")
        self.plugin = plugin
        self.phase = phase


class PluginUnusable(PipelineError):
    """A plugin that cannot take part; said at the start, before any job."""

    def __init__(self, plugin: str, cause: str) -> None:
        super().__init__(f"plugin {plugin}: {cause}")
        self.plugin = plugin
        self.cause = cause
