"""The network that `up --network` gives pods, kept in the cluster's directory for later starts.

In: `shared` or `isolated`. Out: the file `network`, and for `isolated` the tier in which every pod has a network of its
own, or a `Failure` that says why this machine does not allow it.
"""

from __future__ import annotations

from pathlib import Path

from trainwright.cli.failure import Failure
from trainwright.embedded.node.supervision import tiers
from trainwright.embedded.node.supervision.tiers import Tier

FILE = "network"
SHARED, ISOLATED = "shared", "isolated"
CHOICES = (SHARED, ISOLATED)


def keep(directory: Path, chosen: str) -> None:
    """Writes the choice, whole at every moment."""
    new = directory / f".{FILE}"
    new.write_text(f"{chosen}\n")
    new.replace(directory / FILE)


def is_isolated(directory: Path) -> bool:
    """Whether the last `up --network` asked for a network for each pod."""
    try:
        return (directory / FILE).read_text().strip() == ISOLATED
    except FileNotFoundError:
        return False


def isolated() -> Tier:
    """The tier of pods with networks of their own. Raises `Failure` where that cannot be had."""
    tier = tiers.probe(networks=True)
    if not tier.has_networks:
        raise Failure(f"--network {ISOLATED}: {tier.reason}; pods share the machine's network with: --network {SHARED}")
    return tier
