"""The name under which the operator writes: the reference's, so that either takes over the other's fields."""

from __future__ import annotations

FIELD_MANAGER = "trainer"
