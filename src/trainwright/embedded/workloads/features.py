"""JobSet's feature gates that can be switched here, at the defaults of JobSet v0.12: all off.

`InPlaceRestart` needs an agent in the pods, which nobody runs here: it stays off, and a JobSet that asks for it is
refused in JobSet's words.
"""

from __future__ import annotations

import msgspec

KNOWN = {"RestartJob": "restart_job", "ElasticJobSet": "elastic_job_set"}


class UnknownGate(ValueError):
    """A gate that cannot be switched here; the message lists those that can."""


class Features(msgspec.Struct, frozen=True):
    """Which gates are on."""

    restart_job: bool = False
    elastic_job_set: bool = False


DEFAULTS = Features()


def parse(text: str) -> Features:
    """`RestartJob=true,ElasticJobSet=false`, as Kubernetes programs take it."""
    values: dict[str, bool] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.partition("=")
        if name not in KNOWN or value not in ("true", "false"):
            known = ", ".join(f"{name}=true|false" for name in KNOWN)
            raise UnknownGate(f"feature gate {part!r} is not known; there are: {known}")
        values[KNOWN[name]] = value == "true"
    return Features(**values)
