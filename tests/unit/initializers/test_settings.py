"""The environment, read as the reference reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainwright.initializers.errors import Misconfigured
from trainwright.initializers.schemes import scheme_of
from trainwright.initializers.settings import Step, settings


@pytest.mark.parametrize("step", ["dataset", "model"])
def test_targets_are_the_reference_s(step: Step) -> None:
    found = settings(step, {"STORAGE_URI": "hf://a/b", "OUTPUT_PATH": "/elsewhere"})
    assert found.target == Path("/workspace") / step


@pytest.mark.parametrize("environment", [{}, {"STORAGE_URI": ""}])
def test_a_source_is_needed(environment: dict[str, str]) -> None:
    with pytest.raises(Misconfigured, match="no source is given: set STORAGE_URI"):
        settings("model", environment)
    assert settings("model", environment, uri="hf://a/b").uri == "hf://a/b"


@pytest.mark.parametrize(
    ("text", "patterns"),
    [(None, ()), ("", ()), (" , ,", ()), ("*.bin", ("*.bin",)), (" *.bin , a/* ,", ("*.bin", "a/*"))],
)
def test_ignore_patterns(text: str | None, patterns: tuple[str, ...]) -> None:
    environment = {"STORAGE_URI": "hf://a/b", **({} if text is None else {"IGNORE_PATTERNS": text})}
    assert settings("model", environment).ignore == patterns


@pytest.mark.parametrize(
    ("environment", "cache"),
    [
        ({"HOME": "/home/me"}, "/home/me/.cache/trainwright/initializers"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "/caches"}, "/caches/trainwright/initializers"),
        ({"HOME": "/home/me", "TRAINWRIGHT_CACHE_DIR": "/shared"}, "/shared"),
        ({"HOME": "/home/me", "TRAINWRIGHT_CACHE_DIR": "none"}, None),
        ({"HOME": "/root", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}, None),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "TRAINWRIGHT_CACHE_DIR": "/shared"}, "/shared"),
        ({}, None),
    ],
)
def test_the_cache_is_the_user_s_and_a_cluster_s_pod_has_none(environment: dict[str, str], cache: str | None) -> None:
    found = settings("model", {"STORAGE_URI": "hf://a/b", **environment}).cache
    assert found == (Path(cache) if cache else None)


def test_the_command_line_wins() -> None:
    environment = {"STORAGE_URI": "hf://a/b", "TRAINWRIGHT_CACHE_DIR": "/a", "TRAINWRIGHT_RETRY_SECONDS": "1"}
    found = settings("model", environment, uri="s3://c", target=Path("t"), cache="/b", retry_seconds=2)
    assert (found.uri, found.target, found.cache, found.retry_seconds) == ("s3://c", Path("t"), Path("/b"), 2)
    assert settings("model", environment).retry_seconds == 1


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf"])
def test_a_deadline_is_a_number(text: str) -> None:
    with pytest.raises(Misconfigured, match="TRAINWRIGHT_RETRY_SECONDS is"):
        settings("model", {"STORAGE_URI": "hf://a/b", "TRAINWRIGHT_RETRY_SECONDS": text})


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        ("cache://schema/table", "the data cache is not supported: name the dataset itself by hf://"),
        ("http://host/file", "only https:// is fetched"),
        ("ftp://host/file", "not a source of a dataset: a URI begins with hf://, s3://, https:// or file://"),
        ("org/name", "not a source"),
        ("hf://", "not a source"),
        ("https:/host", "not a source"),
    ],
)
def test_other_schemes_are_refused_with_what_to_do(uri: str, sentence: str) -> None:
    with pytest.raises(Misconfigured, match=sentence):
        scheme_of(settings("dataset", {}, uri=uri))
    assert scheme_of(settings("dataset", {}, uri="HF://org/name")) == "hf"
