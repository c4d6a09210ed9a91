"""The operator's log: lines for people, or one JSON object a line for whoever collects them.

    2026-01-01 12:00:00,000 WARNING trainwright.controlloop.controller: trainjob_controller ns/job: …
    {"time":"2026-01-01T12:00:00.000Z","level":"warning","logger":"…","message":"…","controller":"…","namespace":"ns",…}

A message that concerns an object has its fields beside it: whoever logs gives them as `extra={"fields": {…}}`.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import msgspec

from trainwright.api.configuration import LoggingConfig

TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line: dict[str, object] = {
            "time": time,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            line |= {name: value for name, value in fields.items() if name not in line}
        if record.exc_info and record.exc_info[0] is not None:
            line["stack"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


def begin() -> None:
    """Until the configuration is read: text, unless whoever calls has said otherwise."""
    logging.basicConfig(level=logging.INFO, format=TEXT)


def configure(config: LoggingConfig) -> None:
    """As the configuration says, for every logger of this process."""
    root = logging.getLogger()
    root.setLevel(config.level.upper())
    if config.format == "json":
        for handler in root.handlers:
            handler.setFormatter(JsonLines())
