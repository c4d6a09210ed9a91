"""What a user reads while bytes arrive, in virtual time."""

from __future__ import annotations

import io

from trainwright.clock import VirtualClock
from trainwright.initializers.progress import Progress, amount, duration

MIB = 2**20


async def test_plain_lines_tell_bytes_percent_rate_and_time_left() -> None:
    clock, out = VirtualClock(), io.StringIO()
    progress = Progress("model", out, clock, live=False)
    progress.expect(4, 400 * MIB)
    progress.had(100 * MIB)
    progress.finished_file()
    async with progress.shown():
        for _ in range(10):
            await clock.advance(1)
            progress.got(10 * MIB)
        await clock.advance(1)
    assert out.getvalue() == "model: 1 of 4 files, 190.0 MiB of 400.0 MiB (47 %), 9.0 MiB/s, 23 s left\n"


async def test_on_a_terminal_one_line_is_written_over_itself() -> None:
    clock, out = VirtualClock(), io.StringIO()
    progress = Progress("model", out, clock, live=True)
    progress.expect(1, 2 * MIB)
    async with progress.shown():
        await clock.advance(0.5)
        progress.say("a sentence of its own")
        await clock.advance(0.2)
    live = "model: 0 of 1 file, 0 B of 2.0 MiB (0 %), 0 B/s"
    clear = "\r\x1b[K"
    assert out.getvalue() == f"{live}{clear}{live}{clear}model: a sentence of its own\n{live}{clear}"


def test_the_summary_says_what_was_fetched_and_what_was_there() -> None:
    clock, out = VirtualClock(), io.StringIO()
    progress = Progress("dataset", out, clock, live=False)
    progress.expect(2, 3 * MIB)
    progress.had(MIB)
    progress.summary("/there")
    progress.got(2 * MIB)
    progress.summary("/there")
    assert out.getvalue().splitlines() == [
        "dataset: 2 files with 1.0 MiB in /there; nothing had to be fetched",
        "dataset: 2 files with 3.0 MiB in /there; fetched 2.0 MiB in 0.0 s (2.0 GiB/s)",
    ]


def test_a_sentence_is_said_once() -> None:
    out = io.StringIO()
    progress = Progress("dataset", out, VirtualClock(), live=False)
    for _ in range(8):
        progress.say("the network is away")
    assert out.getvalue() == "dataset: the network is away\n"


def test_unknown_sizes_have_no_percent() -> None:
    progress = Progress("dataset", io.StringIO(), VirtualClock(), live=False)
    progress.expect(1, None)
    progress.got(10)
    assert progress.line() == "dataset: 0 of 1 file, 10 B, 0 B/s"


def test_figures_for_people() -> None:
    assert [amount(size) for size in (0, 1023, 1536, 5 * MIB, 3 * 2**30, 2**41)] == [
        "0 B", "1023 B", "1.5 KiB", "5.0 MiB", "3.0 GiB", "2.0 TiB",
    ]  # fmt: skip
    assert [duration(seconds) for seconds in (0.42, 12, 127, 3780)] == ["0.4 s", "12 s", "2:07 min", "1:03:00 h"]
