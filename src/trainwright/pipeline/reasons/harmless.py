"""Lines of launchers that look like a failure and mean nothing once the job is complete. Pure.

In: a line that no rank said. Out: the sentence that says why it does not matter, or None.
"""

from __future__ import annotations

_SENTENCES = (
    (
        # The agent that arrives last asks the store of node 0 once more, and node 0 may be gone by then.
        "Error waiting on exit barrier",
        "torchrun's error about its exit barrier is harmless: the agent of node 0 left before it had answered all"
        " others, after every rank had ended well",
    ),
)


def comfort(line: str) -> str | None:
    """What to tell a user about an alarming line, when the job completed all the same."""
    for words, sentence in _SENTENCES:
        if words in line:
            return sentence
    return None
