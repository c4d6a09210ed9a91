"""The plugins of every suite: they watch the tests themselves."""

from __future__ import annotations

pytest_plugins = ["pytester", "selfcheck.secondtries", "selfcheck.leftovers"]
