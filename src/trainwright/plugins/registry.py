"""Which plugins run, and in which order.

The built-in ones are a table; their order is the order inside every phase and never changes from start to start (D8).
Others come from the entry-point group `trainwright.plugins`. The configuration switches plugins on and off and places
them.
"""

from __future__ import annotations

from trainwright.pipeline.framework import Framework, Plugin
from trainwright.plugins.jobset import JobSet
from trainwright.plugins.plainml import PlainML
from trainwright.plugins.torch import Torch


def load() -> Framework:
    """The built-in plugins in their order."""
    plugins: list[Plugin] = [PlainML(), Torch(), JobSet()]
    return Framework(plugins)
