"""The command `trainwright completion`: prints the script of a shell, or names for it."""

from __future__ import annotations

import sys
from importlib import import_module

from trainwright.cli.failure import Failure


def completion(shell: str | None, source: str | None) -> int:
    if source is not None:
        return _list(source)
    if shell is None:
        raise Failure("which shell? bash, zsh or fish", 2)
    from trainwright.cli.completion.words import all_commands

    sys.stdout.write(import_module(f"trainwright.cli.completion.{shell}").script(list(all_commands())))
    return 0


def _list(source: str) -> int:
    """Prints names. Whatever goes wrong, the user is in the middle of a line: nothing is said."""
    from trainwright.cli.completion.names import names_of

    try:
        print("\n".join(names_of(source)))
    except Exception:  # noqa: BLE001 - see above
        return 1
    return 0
