"""What an initializer is told: the reference's environment variables, and a few of our own.

In: which step it is, the environment, and what the command line says, which wins. Out: `Settings`. An empty
variable is an unset one, as in the reference. The variables that only one source reads are left to it, in
`variables`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trainwright.initializers.errors import Misconfigured
from trainwright.initializers.names import printable

Step = Literal["dataset", "model"]

STORAGE_URI = "STORAGE_URI"
IGNORE_PATTERNS = "IGNORE_PATTERNS"
ACCESS_TOKEN = "ACCESS_TOKEN"  # noqa: S105 - the name of a variable
CACHE_DIR = "TRAINWRIGHT_CACHE_DIR"
RETRY_SECONDS = "TRAINWRIGHT_RETRY_SECONDS"
DEFAULT_RETRY_SECONDS = 300.0
NO_CACHE = "none"

TARGETS: Mapping[Step, Path] = {"dataset": Path("/workspace/dataset"), "model": Path("/workspace/model")}


class Variables:
    """An environment in which an empty value counts as absent, and white space around a value is removed.

    Secrets often end in a line break that nobody typed on purpose.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def get(self, *names: str) -> str | None:
        """The first of these that is set."""
        for name in names:
            if value := self._environment.get(name, "").strip():
                if any(ord(char) < ord(" ") for char in value):
                    raise Misconfigured(f"{name} has a line break or another control character in it")
                return value
        return None


@dataclass(frozen=True, slots=True)
class Settings:
    step: Step
    uri: str
    target: Path
    ignore: tuple[str, ...]
    cache: Path | None
    cache_is_wanted: bool
    """Whether the user named the cache. Then a cache that cannot be used is an error; otherwise it is skipped."""
    retry_seconds: float
    variables: Variables


def settings(
    step: Step,
    environment: Mapping[str, str],
    *,
    uri: str | None = None,
    target: Path | None = None,
    cache: str | None = None,
    retry_seconds: float | None = None,
) -> Settings:
    """The settings of one run; what is given here wins over the environment."""
    variables = Variables(environment)
    uri = uri or variables.get(STORAGE_URI)
    if not uri:
        raise Misconfigured(f"no source is given: set {STORAGE_URI}, such as hf://org/name, or name it after the step")
    patterns = tuple(item.strip() for item in (variables.get(IGNORE_PATTERNS) or "").split(",") if item.strip())
    named = cache or variables.get(CACHE_DIR)
    directory = Path(named) if named else _default_cache(variables)
    return Settings(
        step=step,
        uri=uri,
        target=target or TARGETS[step],
        ignore=patterns,
        cache=None if named == NO_CACHE else directory,
        cache_is_wanted=bool(named),
        retry_seconds=retry_seconds if retry_seconds is not None else _seconds(variables),
        variables=variables,
    )


def _default_cache(variables: Variables) -> Path | None:
    """The user's cache directory. A cluster's pod has none of its own: what it keeps would end with it."""
    if variables.get("KUBERNETES_SERVICE_HOST"):
        return None
    caches = variables.get("XDG_CACHE_HOME")
    home = variables.get("HOME")
    root = Path(caches) if caches else Path(home) / ".cache" if home else None
    return root / "trainwright" / "initializers" if root and root.is_absolute() else None


def _seconds(variables: Variables) -> float:
    text = variables.get(RETRY_SECONDS)
    if text is None:
        return DEFAULT_RETRY_SECONDS
    try:
        seconds = float(text)
        if not 0 <= seconds < float("inf"):
            raise ValueError
    except ValueError:
        raise Misconfigured(f"{RETRY_SECONDS} is {printable(text)!r}: it has to be a number of seconds") from None
    return seconds
