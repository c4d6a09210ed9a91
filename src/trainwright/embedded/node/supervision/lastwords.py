"""The last words of a container that failed: what of its output is worth keeping in its status.

In: the container's log. Out: at most 4 KiB for the `message` of its terminated state, as a kubelet fills it from the
log (`terminationMessagePolicy: FallbackToLogsOnError`). A kubelet takes the last lines alone, which are often those of
a launcher and not of the program that failed. So the tracebacks before them are kept too, in short: their beginning,
last frames and exception. Standard library only: the supervisor imports this.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

MAX_BYTES = 4096
"""What a kubelet allows for one container."""
READ_BYTES = 256 * 1024
TAIL_LINES = 24
"""A launcher's table of two failed ranks has so many."""
TAIL_BYTES = 1600
LINE_LENGTH = 400
TRACEBACKS = 6
"""Of how many exceptions the words are kept."""
FRAMES = 4
"""How many lines are kept of the frames of a traceback: the last ones."""
KERNEL_SECONDS = 30.0
KERNEL_LOG = "/dev/kmsg"

BEGIN = re.compile(r"^(\[[\w.-]+\]:? ?)?Traceback \(most recent call last\):")
FRAME = re.compile(r'^\S*\s+File "')
INSTALLED = re.compile(r"/(?:site|dist)-packages/|/lib/python\d")
ERROR = re.compile(
    r"\berror\b|\b\w+Error\b|\bfatal\b|\bkilled\b|No space left|can't open|cannot |No module named|[Oo]ut of memory|"
    r"already in use|denied|[Tt]imed out|WARN",
    re.IGNORECASE,
)
"""Lines outside a traceback that may say what went wrong."""


def of_log(path: Path, *, was_killed: bool = False) -> str:
    """The last words of the container with this log; with those of the kernel, if it was killed."""
    words = excerpt(list(_lines(path)))
    if was_killed and (said := kernel_words(KERNEL_LOG)):
        words = f"{words}\nkernel: {said}" if words else f"kernel: {said}"
    return words


def excerpt(lines: Sequence[str]) -> str:
    """The tracebacks, the lines that look like errors, and the last lines, in their order."""
    tail = _fitting(range(len(lines) - 1, max(-1, len(lines) - 1 - TAIL_LINES), -1), lines, TAIL_BYTES)
    chosen = set(tail)
    room = MAX_BYTES - sum(_size(lines[index]) for index in tail) - 16
    for block in _tracebacks(lines):
        size = sum(_size(lines[index]) for index in block if index not in chosen)
        if size <= room:
            chosen.update(block)
            room -= size
    errors = [index for index, line in enumerate(lines) if index not in chosen and ERROR.search(line[:LINE_LENGTH])]
    chosen.update(_fitting(reversed(errors[-TAIL_LINES:]), lines, room))
    return "\n".join(_cut(lines[index]) for index in sorted(chosen))


def _fitting(indexes: Iterable[int], lines: Sequence[str], room: int) -> list[int]:
    found = []
    for index in indexes:
        room -= _size(lines[index])
        if room < 0:
            break
        found.append(index)
    return found


def _tracebacks(lines: Sequence[str]) -> Iterator[list[int]]:
    """The lines to keep of the first tracebacks. The first ones: what comes later is often a consequence."""
    found = 0
    for start, line in enumerate(lines):
        begin = BEGIN.match(line)
        if begin is None:
            continue
        mark = begin[1] or ""
        frames: list[int] = []
        for index in range(start + 1, min(start + 400, len(lines))):
            if not lines[index].startswith(mark):
                continue  # another rank speaks in between
            text = lines[index][len(mark) :]
            if text.strip() and not text.startswith((" ", "\t")):
                yield sorted({start, *_own_frame(lines, frames), *frames[-FRAMES:], index})
                found += 1
                break
            frames.append(index)
        if found == TRACEBACKS:
            return


def _own_frame(lines: Sequence[str], frames: Sequence[int]) -> Sequence[int]:
    """The last frame that is not in an installed package, with its source."""
    for position in range(len(frames) - 1, -1, -1):
        line = lines[frames[position]]
        if FRAME.search(line) and not INSTALLED.search(line):
            return frames[position : position + 2]
    return ()


def _lines(path: Path) -> Iterator[str]:
    """The last lines of a log in CRI's format, parts joined."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - READ_BYTES))
            records = file.read().split(b"\n")
    except OSError:
        return
    if size > READ_BYTES:
        records = records[1:]  # cut in the middle
    parts = b""
    for record in records:
        pieces = record.split(b" ", 3)
        if len(pieces) == 4:
            parts += pieces[3]
            if pieces[2] != b"P":
                yield _shown(parts)
                parts = b""
    if parts:
        yield _shown(parts)


def _shown(line: bytes) -> str:
    """The line as a terminal would leave it: a progress bar writes over itself."""
    return line.decode("utf-8", "replace").rstrip("\r\n").rsplit("\r", 1)[-1]


def _cut(line: str) -> str:
    return line if len(line) <= LINE_LENGTH else f"{line[: LINE_LENGTH - 1]}…"


def _size(line: str) -> int:
    return len(_cut(line).encode()) + 1


def kernel_words(path: str, seconds: float = KERNEL_SECONDS) -> str:
    """What the kernel says of a process that it killed for want of memory in the last moments; empty if nothing, or if
    its log may not be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ""
    said = ""
    try:
        while record := os.read(descriptor, 8192):
            for line in record.decode("utf-8", "replace").splitlines():
                head, _, text = line.partition(";")
                fields = head.split(",")
                if len(fields) > 2 and "Killed process" in text and _age(fields[2]) <= seconds:
                    said = text
    except OSError:  # EAGAIN at the end; EPIPE when a record was overwritten
        pass
    finally:
        os.close(descriptor)
    return said


def _age(stamp: str) -> float:
    """How many seconds ago a record was written; its stamp is microseconds since the machine started."""
    try:
        with open("/proc/uptime") as file:
            return float(file.read().split()[0]) - int(stamp) / 1e6
    except (OSError, ValueError):
        return 0.0
