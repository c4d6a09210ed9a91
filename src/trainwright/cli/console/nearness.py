"""`did you mean`: the known word that is nearest to one that was typed."""

from __future__ import annotations

from collections.abc import Iterable


def near(word: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """`; did you mean X?` for a word that is nearly one of those that are known, or nothing. Dashes do not count."""
    from difflib import get_close_matches

    names = {name.lstrip("-"): name for name in known}
    found = get_close_matches(word.lstrip("-"), names, 1, likeness)
    return f"; did you mean {names[found[0]]}?" if found else ""
