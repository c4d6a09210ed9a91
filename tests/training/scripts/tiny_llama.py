"""Writes a tiny model with Llama 3.2's architecture and a dataset to fine-tune it on: `tiny_llama.py DIRECTORY`.

`DIRECTORY/model` has the files of a repository on the Hugging Face hub, `DIRECTORY/dataset` those of a dataset.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import torch
from safetensors.torch import save_file
from torchtune.models.convert_weights import tune_to_hf
from torchtune.models.llama3_2 import llama3_2

SHAPE = {"vocab_size": 128264, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2, "embed_dim": 32, "max_seq_len": 256}


def main(directory: Path) -> None:
    model, dataset = directory / "model", directory / "dataset" / "data"
    (model / "original").mkdir(parents=True)
    dataset.mkdir(parents=True)
    torch.manual_seed(0)
    weights = tune_to_hf(
        llama3_2(**SHAPE, intermediate_dim=64).state_dict(),
        num_heads=SHAPE["num_heads"],
        num_kv_heads=SHAPE["num_kv_heads"],
        dim=SHAPE["embed_dim"],
    )
    save_file({name: weight.contiguous() for name, weight in weights.items()}, model / "model.safetensors")
    config = {
        "hidden_size": SHAPE["embed_dim"],
        "num_attention_heads": SHAPE["num_heads"],
        "num_key_value_heads": SHAPE["num_kv_heads"],
        "vocab_size": SHAPE["vocab_size"],
    }
    (model / "config.json").write_text(json.dumps(config))
    tokens = (f"{base64.b64encode(bytes([byte])).decode()} {byte}\n" for byte in range(256))
    (model / "original" / "tokenizer.model").write_text("".join(tokens))
    rows = {"input": ["say it", "again"] * 20, "output": ["train", "train"] * 20}
    pyarrow.parquet.write_table(pyarrow.table(rows), dataset / "train.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
