"""What the user asked `trainwright run` for, apart from the program itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from trainwright.cli.failure import Failure
from trainwright.cli.launch.program import is_text
from trainwright.schema.quantity import QuantityError, parse_quantity

GPU = "nvidia.com/gpu"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of one run. None stands for the runtime's own value, or for a default that depends on the cluster."""

    nodes: int | None = None
    procs: int | None = None
    runtime: str | None = None
    cpus: str | None = None
    memory: str | None = None
    gpus: int | None = None
    name: str | None = None
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    """What `--env` names, with values."""
    workdir: Path | None = None
    """The working directory; None when none was chosen and nothing shall travel."""
    python: str | None = None
    retries: int = 0
    hang_after: float | None = None
    image: str | None = None
    output_claim: str | None = None

    def resources(self) -> dict[str, dict[str, str]]:
        """`resourcesPerNode`: memory and GPUs are reserved and limited, CPUs are only reserved, for a limit throttles.

        Raises `Failure` for what is no quantity.
        """
        requests: dict[str, str] = {}
        limits: dict[str, str] = {}
        if self.cpus is not None:
            requests["cpu"] = _quantity("--cpus", self.cpus)
        if self.memory is not None:
            requests["memory"] = limits["memory"] = _quantity("--memory", self.memory)
        if self.gpus:
            requests[GPU] = limits[GPU] = str(self.gpus)
        return {key: value for key, value in (("requests", requests), ("limits", limits)) if value}


def _quantity(flag: str, text: str) -> str:
    try:
        amount = parse_quantity(text)
    except QuantityError:
        amount = None
    if amount is None or amount.nano <= 0:
        raise Failure(f"{flag} {text}: not an amount; write it as Kubernetes does, such as 4 or 16Gi", 2)
    return text


def variables(named: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that `--env NAME` and `--env NAME=VALUE` name; one without a value has the caller's."""
    found: dict[str, str] = {}
    for item in named:
        name, equals, value = item.partition("=")
        if not _VARIABLE.fullmatch(name):
            raise Failure(f"--env {item}: {name!r} is not the name of a variable; write NAME or NAME=VALUE", 2)
        if equals:
            found[name] = value
        elif name in environment:
            found[name] = environment[name]
        else:
            raise Failure(f"--env {name}: the variable {name} is not set here; set it, or write --env {name}=VALUE", 2)
        if not is_text(found[name]):
            raise Failure(f"--env {name}: its value is not UTF-8", 2)
    return found
