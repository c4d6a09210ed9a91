"""A run of a plan leaves large cycles; looking for them all the time takes half of the time."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def seldom_collected() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()
