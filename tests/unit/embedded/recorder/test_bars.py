"""Progress bars of common libraries are understood as they write them.

The files in `bars/` are the output of small trainings, byte for byte, with tqdm 4.70, transformers 5.22, lightning 2.6
and keras 3.15, each in a pipe.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from trainwright.embedded.recorder.bars import Bars, Seen

RECORDED = Path(__file__).parent / "bars"


def read(name: str, size: int = 1) -> list[Seen]:
    """What is seen on the way through a recording, if it comes in pieces of this size."""
    text, bars = (RECORDED / f"{name}.txt").read_bytes().decode(), Bars()
    steps: list[Seen] = []
    for start in range(0, len(text), size):
        bars.read(text[start : start + size])
        if bars.seen is not None and (not steps or steps[-1] != bars.seen):
            steps.append(bars.seen)
    return steps


@pytest.mark.parametrize("size", [1, 13, 200, 100_000])
def test_the_end_does_not_depend_on_how_the_output_is_cut(size: int) -> None:
    for name in ("tqdm", "hf", "lightning", "keras"):
        assert read(name, size)[-1] == read(name)[-1], name


def test_tqdm_says_step_time_left_and_what_its_postfix_says() -> None:
    steps = [seen for seen in read("tqdm") if seen.total == 40]
    assert steps[0] == Seen(percent=0, step=0, total=40)
    percents = [seen.percent or 0 for seen in steps]
    assert percents == sorted(percents)
    assert (steps[-1].percent, steps[-1].step, steps[-1].remaining_seconds) == (100, 40, 0)
    assert steps[-1].metrics == {"loss": "0.025", "lr": "0.0003"}


def test_a_download_is_no_training() -> None:
    assert {seen.total for seen in read("tqdm")} == {40, 300}


def test_the_trainer_of_hugging_face_says_its_steps_and_its_log_lines() -> None:
    steps = read("hf")
    assert {seen.total for seen in steps} == {48}, "the bar of each evaluation, 8 steps, is inside of the training's"
    assert [seen.step or 0 for seen in steps] == sorted(seen.step or 0 for seen in steps)
    last = steps[-1]
    assert (last.percent, last.metrics["loss"], last.metrics["epoch"]) == (100, "0.694", "3")
    assert float(last.metrics["eval_loss"]) > 0


def test_lightning_says_the_epoch_and_no_percentage_of_a_whole_it_does_not_know() -> None:
    steps = read("lightning")
    assert {seen.percent for seen in steps} == {None}
    assert [seen.metrics["epoch"] for seen in steps] == sorted(seen.metrics["epoch"] for seen in steps)
    last = steps[-1]
    assert (last.step, last.total, last.metrics["epoch"]) == (32, 32, "2")
    assert last.metrics["train_loss"] == "0.0504"
    assert last.metrics["val_loss"] == "0.0274"


def test_keras_says_the_percentage_of_all_its_epochs() -> None:
    first = [seen for seen in read("keras") if seen.total == 9]
    percents = [seen.percent or 0 for seen in first]
    assert percents == sorted(percents)
    assert (percents[0], percents[-1]) == (3, 100), "9 steps in each of 3 epochs"
    assert first[-1].metrics["val_loss"] == "1.8298"
    quiet = [seen for seen in read("keras") if seen.total == 2]
    assert [seen.percent for seen in quiet] == [50, 100], "verbose=2 has a line for each epoch"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Epoch 2/4:  50%|#####     | 5/10 [00:01<00:01,  5.00it/s]", (37, 5, 10)),
        ("[default0]:  50%|#####     | 5/10 [00:01<00:01,  5.00it/s]", (50, 5, 10)),
        ("  1%|          | 1.00k/100k [01:00<1:39:00, 16.7it/s]", (1, 1000, 100000)),
    ],
)
def test_other_forms(line: str, expected: tuple[int, int, int]) -> None:
    bars = Bars()
    bars.read(f"\r{line}")
    assert bars.seen is not None
    assert (bars.seen.percent, bars.seen.step, bars.seen.total) == expected


@pytest.mark.parametrize(
    "line",
    [
        "Validation: 50%|#####     | 5/10 [00:01<00:01,  5.00it/s]",
        "[default1]: 50%|#####     | 5/10 [00:01<00:01,  5.00it/s]",
        "3/4 of the users like it",
        "12/31 - a date",
        "on 12/31 we start",
        "{'name': 'x'}",
        "accuracy 45%| or so",
        "100%|" + "#" * 100_000,
        "1" * 5000 + "/" + "1" * 5000,
        "Epoch 1/3",
    ],
)
def test_what_is_no_bar_says_nothing(line: str) -> None:
    bars = Bars()
    bars.read(f"\n{line}\n")
    assert bars.seen is None
