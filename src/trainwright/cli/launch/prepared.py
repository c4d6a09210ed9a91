"""A run that can be submitted, whether it comes from a program or from a file."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from trainwright.cli.launch.submission import Submission


class Prepared(msgspec.Struct, frozen=True):
    """The objects of a run, and what its record says about where it comes from."""

    submission: Submission
    environment: Mapping[str, str] | None = None
    """The caller's variables, for a run of a program on the local cluster."""
    workdir: str = ""
    python: str = ""
    notes: tuple[str, ...] = ()
    """What the user should know before it runs."""
