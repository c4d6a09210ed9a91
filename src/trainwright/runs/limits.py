"""The state directory's settings.toml: how much is kept of finished runs, and when a silent run is said to hang.

[runs]
limit = "10GB"   # all runs together; the oldest finished ones are deleted first
days = 90        # a run that ended longer ago is deleted

[hang]
after = 120      # seconds without output and progress; 0 for never
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kMGTkmgt]?)(i?)[bB]?\s*", re.ASCII)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


HANG_AFTER_SECONDS = 120.0


class SettingsInvalid(Exception):
    """settings.toml cannot be used; the message says why."""


@dataclass(frozen=True)
class Limits:
    bytes: int = 10_000_000_000
    days: float = 90.0


def limits_of(state: Path) -> Limits:
    """The limits of a state directory: its settings, else the defaults. Raises `SettingsInvalid`."""
    path = state / "settings.toml"
    section = _section(path, "runs", ("limit", "days"))
    return Limits(
        bytes=_size_of(section["limit"], path) if "limit" in section else Limits.bytes,
        days=_days_of(section["days"], path) if "days" in section else Limits.days,
    )


def hang_after_of(state: Path) -> float:
    """After how many seconds a silent run of this state directory is said to hang. Raises `SettingsInvalid`."""
    path = state / "settings.toml"
    value = _section(path, "hang", ("after",)).get("after", HANG_AFTER_SECONDS)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise SettingsInvalid(f"{path}: hang.after must be a number of seconds, not {value!r}")
    return float(value)


def _section(path: Path, name: str, known: tuple[str, ...]) -> dict[str, Any]:
    try:
        section = tomllib.loads(path.read_text()).get(name, {})
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsInvalid(f"{path}: {error}") from None
    if not isinstance(section, dict):
        raise SettingsInvalid(f"{path}: [{name}] must be a table")
    unknown = section.keys() - set(known)
    if unknown:
        there = f"there {'is' if len(known) == 1 else 'are'} {' and '.join(known)}"
        raise SettingsInvalid(f"{path}: [{name}] has no setting {', '.join(sorted(unknown))}; {there}")
    return section


def _size_of(value: Any, path: Path) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise SettingsInvalid(f'{path}: runs.limit must be a size such as "10GB", not {value!r}')
    number, unit, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** _POWERS[unit.lower()])


def _days_of(value: Any, path: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise SettingsInvalid(f"{path}: runs.days must be a number of days, not {value!r}")
    return float(value)
