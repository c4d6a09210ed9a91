"""Why a TrainJob cannot be turned into objects.

PipelineError             the message is for the user: it ends in `status.message` and an event
├── RuntimeNotSupported   `runtimeRef` names a kind that is no runtime: final, the job has Failed
├── RuntimeNotFound       the runtime is not there (yet)
├── TemplateInvalid       the runtime's template cannot carry this TrainJob
├── NameTaken             an object of this name exists and belongs to somebody else (I2)
└── PluginFailed          a plugin raised; the message names it and its phase
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


class TemplateInvalid(PipelineError):
    """The runtime has no JobSet template, or one that a patch cannot be merged into."""


class NameTaken(PipelineError):
    """Writing would take over an object that is not this TrainJob's."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(
            f'{kind} "{name}" exists already and does not belong to this TrainJob; '
            "delete it or give the TrainJob another name"
        )


class PluginFailed(PipelineError):
    """A plugin raised where it should have decided; other jobs go on."""

    def __init__(self, plugin: str, phase: str, cause: BaseException) -> None:
        super().__init__(f"plugin {plugin} failed in {phase}: {cause or type(cause).__name__}")
        self.plugin = plugin
        self.phase = phase


class PluginUnusable(PipelineError):
    """A plugin that cannot take part; said at the start, before any job."""

    def __init__(self, plugin: str, cause: str) -> None:
        super().__init__(f"plugin {plugin}: {cause}")
        self.plugin = plugin
