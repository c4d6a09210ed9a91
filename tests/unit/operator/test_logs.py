"""The operator's log as JSON: one object a line, with the fields of what it is about."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from trainwright.api.configuration import ConfigurationError, LoggingConfig
from trainwright.api.resources import TRAIN_JOBS
from trainwright.operator import logs
from trainwright.operator.configfile import parse
from unit.operator.world import World, train_job


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, as it was afterwards."""
    logger = logging.getLogger()
    level, handlers = logger.level, [(each, each.formatter) for each in logger.handlers]
    yield logger
    logger.setLevel(level)
    for handler, formatter in handlers:
        handler.setFormatter(formatter)


def line(record: logging.LogRecord) -> dict[str, object]:
    text = logs.JsonLines().format(record)
    assert "\n" not in text
    found: dict[str, object] = json.loads(text)
    return found


def record(message: str, *values: object, **more: object) -> logging.LogRecord:
    made = logging.getLogger("trainwright.test").makeRecord(
        "trainwright.test", logging.WARNING, "f", 1, message, values, None
    )
    for name, value in more.items():
        setattr(made, name, value)
    return made


def test_a_line_has_time_level_logger_and_message() -> None:
    found = line(record("%s is\n%d", "this", 1))
    assert found.pop("time")
    assert found == {"level": "warning", "logger": "trainwright.test", "message": "this is\n1"}


def test_fields_stand_beside_the_message_and_cannot_replace_it() -> None:
    found = line(record("m", fields={"namespace": "ns", "message": "forged", "odd": object}))
    assert (found["namespace"], found["message"]) == ("ns", "m")


def test_an_exception_keeps_its_stack_in_its_line() -> None:
    try:
        raise ValueError("no")
    except ValueError as error:
        found = line(record("m", exc_info=(ValueError, error, error.__traceback__)))
    assert str(found["stack"]).endswith("ValueError: no")


async def test_a_reconcile_that_fails_names_its_object(root: logging.Logger, caplog: pytest.LogCaptureFixture) -> None:
    async with World() as world:
        world.refuse(500, "etcd is on fire", method="PATCH", path=".*/jobsets/job")
        await world.add(TRAIN_JOBS, train_job())
        await world.settle(5)
    told = [line(each) for each in caplog.records if each.name.endswith("controlloop.controller")]
    first = next(each for each in told if each.get("object") == "job")
    assert (first["controller"], first["namespace"]) == ("trainjob_controller", "ns")
    assert "etcd is on fire" in str(first["error"])


def test_level_and_format_are_those_of_the_configuration(root: logging.Logger) -> None:
    handler = logging.StreamHandler()
    root.addHandler(handler)
    try:
        logs.configure(LoggingConfig(format="json", level="debug"))
        assert root.level == logging.DEBUG
        assert isinstance(handler.formatter, logs.JsonLines)
    finally:
        root.removeHandler(handler)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("logging: {format: xml}", 'logging.format: Invalid value: "xml": must be one of text, json'),
        ("logging: {level: loud}", 'logging.level: Invalid value: "loud": must be one of debug, info'),
        ("tracing: {endpoint: collector}", 'tracing.endpoint: Invalid value: "collector": must be a URL'),
        ("tracing: {samplingRatePerMillion: -1}", "must be between 0 and 1000000"),
    ],
)
def test_a_wrong_setting_is_named(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        parse(text)
    assert words in str(raised.value)
