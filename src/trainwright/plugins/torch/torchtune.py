"""torchtune's command line: which recipe and configuration fit the nodes, the devices and the user's arguments.

A part of the Torch plugin, taken when the TrainJob's command is exactly `tune run`. The model is read off the
runtime's name (`torchtune-llama3.2-1b` is `llama3_2/1B`), the method (full, LoRA, QLoRA) off the arguments, and paths
that the runtime manages are taken over from its own command.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trainwright.pipeline.info import TRAINER_PORT, Info
from trainwright.pipeline.podset import NODE, TRAINER
from trainwright.pipeline.typed import invalid_value, requirements_text
from trainwright.schema.errors import FieldError, invalid

COMMAND = ["tune", "run"]
MANAGED = ("output_dir", "tokenizer.path", "checkpointer.checkpoint_dir", "tokenizer.merges_file")
"""Configuration keys that belong to the runtime: it knows where its volumes are."""

LLAMA_1B, LLAMA_3B, LLAMA_70B, QWEN = "llama3_2/1B", "llama3_2/3B", "llama3_3/70B", "qwen2_5/1.5B"
MODELS = (LLAMA_1B, LLAMA_3B, LLAMA_70B, QWEN)


class Method(NamedTuple):
    """Which weights are trained, as the arguments say."""

    lora: bool
    qlora: bool

    @classmethod
    def of(cls, args: Sequence[str]) -> Method:
        dora = any(_is_true(arg, "model.use_dora") for arg in args)
        return cls(
            lora=any("model.lora_attn_modules" in arg for arg in args),
            qlora=not dora and any(_is_true(arg, "model.quantize_base") for arg in args),
        )


def is_tune_run(command: Sequence[str] | None) -> bool:
    return command is not None and list(command) == COMMAND


def command_line(info: Info, processes: int | str) -> list[str]:
    """The full `tune run …` command for these nodes and processes."""
    nodes = info.trainer.count if info.trainer else 1
    gpus = info.node_resources.gpus
    command = [*COMMAND]
    if nodes > 1 or (processes > 1 if isinstance(processes, int) else processes == "auto" and gpus > 1):
        command.append(f"--rdzv_endpoint={info.first_node}:{TRAINER_PORT}")
    recipe, config = _recipe(info, nodes, processes)
    return [*command, recipe, "--config", config, *_managed_settings(info)]


def model_of(runtime_name: str) -> str:
    """The model a runtime serves, by its name; empty when the name does not say."""
    parts = runtime_name.split("-")
    return f"{parts[1].replace('.', '_')}/{parts[2].upper()}" if len(parts) == 3 else ""


def validate(info: Info) -> Iterator[FieldError]:
    """What torchtune cannot do with this TrainJob."""
    trainer = info.trainer_spec
    args = trainer.args or []
    name = info.job_spec.runtime_ref.name
    model = model_of(name)
    nodes = trainer.num_nodes if trainer.num_nodes is not None else 1
    processes = info.num_proc_per_node if info.num_proc_per_node is not None else "auto"
    method = Method.of(args)
    _, config = _recipe(info, nodes, processes)
    if model not in MODELS:
        detail = f"must have a supported pretrained model, invalid model configured: {model}"
        yield invalid("spec.runtimeRef.name", name, detail)
    if nodes > 1 and model != LLAMA_70B:
        yield invalid("spec.trainer.numNodes", nodes, f"must be 1 for {model} model")
    if "_qlora" in config and model == QWEN:
        yield invalid("spec.runtimeRef.name", name, f"QLoRA is not supported for {model} model")
    if "_qlora" in config and "_qlora_single_device" not in config and model in (LLAMA_1B, LLAMA_3B):
        detail = f"must be auto or 1 for {model} model when using QLoRA"
        yield invalid("spec.trainer.numProcPerNode", processes, detail)
        detail = f"must have gpu resource with value 1 for {model} model when using QLoRA"
        yield invalid_value("spec.trainer.resourcesPerNode", requirements_text(trainer.resources_per_node), detail)
    if nodes > 1 and (method.lora or method.qlora):
        detail = "LoRA fine-tuning is not supported for multi-node training in TorchTune"
        yield invalid("spec.trainer.numNodes", nodes, detail)
    for index, arg in enumerate(args):
        key = arg.split("=", 1)[0]
        if key in MANAGED:
            detail = f'must not set immutable config "{key}" in trainer args; it is managed by the runtime'
            yield invalid(f"spec.trainer.args[{index}]", arg, detail)


def _recipe(info: Info, nodes: int, processes: int | str) -> tuple[str, str]:
    model = model_of(info.job_spec.runtime_ref.name)
    method = Method.of(info.trainer_spec.args or [])
    if nodes == 1 and (processes == 1 or info.node_resources.gpus == 1):
        suffix = "_qlora" if method.qlora else "_lora" if method.lora else "_full"
        recipe = "lora_finetune_single_device" if method.qlora or method.lora else "full_finetune_single_device"
        return recipe, f"{model}{suffix}_single_device"
    if nodes == 1 and (method.qlora or method.lora):
        return "lora_finetune_distributed", f"{model}{'_qlora' if method.qlora else '_lora'}"
    return "full_finetune_distributed", f"{model}{'_full_multinode' if nodes > 1 else '_full'}"


def _managed_settings(info: Info) -> list[str]:
    containers = (pod_set.container(NODE) for pod_set in info.pod_sets if pod_set.role == TRAINER)
    words = (word for container in containers if container is not None for word in container.command)
    return [word for word in words if word.split("=", 1)[0] in MANAGED]


def _is_true(arg: str, key: str) -> bool:
    name, equals, value = arg.partition("=")
    return bool(equals) and key in name and value.strip().lower() == "true"
