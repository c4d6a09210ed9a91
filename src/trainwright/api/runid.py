"""The id of a run: one execution of one TrainJob. It names the run's directory, so it is checked before every use.

`trainwright run` chooses an id before it creates anything and puts it on the TrainJob, as the annotation
`wellknown.RUN`. A TrainJob without one (kubectl, the Kubeflow SDK) has an id that follows from its name and uid.
"""

from __future__ import annotations

import os
import re
from typing import Final

LONGEST: Final = 72
SUFFIX_LETTERS: Final = 5
_RUN_ID: Final = re.compile(rf"[a-z0-9](?:[-a-z0-9.]{{0,{LONGEST - 2}}}[a-z0-9])?", re.ASCII)
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes' letters for generated names: no vowels and nothing that looks like another letter."""


def is_run_id(text: str) -> bool:
    """Whether the text may name a run: such a text is one component of a path, and is neither `.` nor `..`."""
    return _RUN_ID.fullmatch(text) is not None


def fresh_suffix() -> str:
    """By the system's own randomness; `secrets` would import hashes and a generator that nothing else here needs."""
    letters: list[str] = []
    while len(letters) < SUFFIX_LETTERS:
        letters += (_ALPHABET[byte] for byte in os.urandom(64) if byte < len(_ALPHABET))  # each letter is as likely
    return "".join(letters[:SUFFIX_LETTERS])


def fresh_id(name: str) -> str:
    """A new id for a run of the TrainJob `name`."""
    return _with_suffix(name, fresh_suffix())


def derived_id(name: str, uid: str, letters: int = SUFFIX_LETTERS) -> str:
    """The id of a TrainJob for which nobody chose one."""
    return _with_suffix(name, uid.replace("-", "").lower()[:letters])


def _with_suffix(name: str, suffix: str) -> str:
    return f"{name[: LONGEST - len(suffix) - 1].rstrip('-.')}-{suffix}"
