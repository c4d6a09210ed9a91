"""`Json`: a JSON object as Python decodes it. Objects that we only pass through stay in this form."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
