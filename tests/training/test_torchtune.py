"""The shipped runtime of torchtune, as it is: its initializers fetch a model and a dataset, its trainer fine-tunes.

Model and dataset are tiny and made by the test; the configuration is Llama 3.2 1B's, with arguments of the TrainJob for
the shape of the model and for a machine without GPUs.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from commandline import CommandLine
from training.frameworks import SCRIPTS, environment

JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: fine-tune
spec:
  runtimeRef:
    name: torchtune-llama3.2-1b
  initializer:
    dataset:
      storageUri: file://{made}/dataset
    model:
      storageUri: file://{made}/model
  trainer:
    numProcPerNode: 1
    resourcesPerNode:
      limits:
        nvidia.com/gpu: 0
    env:
      - {{name: HF_HOME, value: {made}/cache}}
      - {{name: HF_HUB_OFFLINE, value: "1"}}
    command: [tune, run]
    args:
      - model=torchtune.models.llama3_2.llama3_2
      - model.vocab_size=128264
      - model.num_layers=2
      - model.num_heads=4
      - model.num_kv_heads=2
      - model.embed_dim=32
      - model.max_seq_len=256
      - model.intermediate_dim=64
      - dataset=torchtune.datasets.instruct_dataset
      - dataset.source=parquet
      - dataset.data_dir=/workspace/dataset/data
      - dataset.split=train
      - optimizer=torch.optim.AdamW
      - optimizer.lr=0.02
      - optimizer_in_bwd=False
      - batch_size=8
      - epochs=4
      - seed=1
      - device=cpu
      - dtype=fp32
      - log_peak_memory_stats=False
      - metric_logger=torchtune.training.metric_logging.StdoutLogger
"""


@pytest.mark.timeout(330)
def test_torchtune_fine_tunes_what_its_initializers_fetched(trainwright: CommandLine, tmp_path: Path) -> None:
    variables = environment("torchtune")
    made = tmp_path / "made"
    python = f"{variables['VIRTUAL_ENV']}/bin/python"
    subprocess.run([python, SCRIPTS / "tiny_llama.py", made], check=True, capture_output=True, timeout=120)
    (tmp_path / "job.yaml").write_text(JOB.format(made=made))
    output = trainwright("run", str(tmp_path / "job.yaml"), env=variables, seconds=280)
    losses = [float(loss) for loss in re.findall(r"Step \d+ \| loss:([\d.]+)", output)]
    assert len(losses) == 20, output
    assert losses[-1] < losses[0] / 4, output
    assert "Complete" in output
    assert "dataset-initializer" in output
    assert "model-initializer" in output
