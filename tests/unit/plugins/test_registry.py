"""Plugins are found, ordered and sorted into phases; broken ones are refused by name."""

from __future__ import annotations

import functools
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trainwright.api.trainjob import TrainJob
from trainwright.pipeline import MaskedKeys, Observed, PluginFailed, build
from trainwright.pipeline.errors import PluginUnusable
from trainwright.pipeline.framework import Framework
from trainwright.pipeline.info import Info
from trainwright.plugins import load
from trainwright.plugins.found import Place
from trainwright.plugins.registry import Registry
from unit.pipeline.objects import env, objects, runtime, trainjob

BUILT_IN = ["PlainML", "Torch", "MPI", "JAX", "XGBoost", "TensorFlow"]
BUILT_IN += ["Flux", "CoScheduling", "Volcano", "JobSet", "KubernetesGang"]


class Stamp:
    """Writes its own name into a variable: who came last can be read off."""

    def __init__(self, name: str) -> None:
        self.name = name

    def enforce_ml_policy(self, info: Info, job: TrainJob) -> None:
        container = info.trainer_container
        assert container is not None
        container.set_env({"name": "LAST", "value": self.name})


def names(**options: Any) -> list[str]:
    discovered = {name: functools.partial(Stamp, name) for name in options.pop("discovered", ())}
    return [plugin.name for plugin in load(discovered=discovered, **options).plugins]


def test_built_in_plugins_have_one_order() -> None:
    assert names() == BUILT_IN


def test_progress_reporting_is_there_when_its_server_is() -> None:
    assert names(progress_server="https://x") == [*BUILT_IN, "TrainJobStatus"]


def test_installed_plugins_come_after_the_built_in_ones_by_name() -> None:
    assert names(discovered=["b", "a"]) == [*BUILT_IN, "a", "b"]


@pytest.mark.parametrize(
    ("enabled", "disabled", "expected"),
    [
        ([], ["Torch"], [name for name in BUILT_IN if name != "Torch"] + ["a"]),
        (["JobSet", "PlainML"], ["*"], ["JobSet", "PlainML"]),
        (["a", "*"], [], ["a", *BUILT_IN]),
        (["Torch"], [], [*(name for name in BUILT_IN if name != "Torch"), "a", "Torch"]),
        ([], ["*"], []),
        (["a", "*", "JobSet"], ["Flux"], ["a", *BUILT_IN[:6], "CoScheduling", "Volcano", "KubernetesGang", "JobSet"]),
    ],
)
def test_the_configuration_chooses_and_places(enabled: list[str], disabled: list[str], expected: list[str]) -> None:
    assert names(enabled=enabled, disabled=disabled, discovered=["a"]) == expected


@pytest.mark.parametrize(
    ("enabled", "disabled", "words"),
    [
        (["Nope"], [], "plugin Nope: there is no such plugin; there are PlainML"),
        ([], ["Nope"], "plugin Nope: there is no such plugin"),
        (["Torch"], ["Torch"], "plugin Torch: it is both in enabledPlugins and in disabledPlugins"),
        (["TrainJobStatus"], [], "needs the feature gate TrainJobStatus=true"),
    ],
)
def test_a_choice_that_cannot_be_made_is_explained(enabled: list[str], disabled: list[str], words: str) -> None:
    with pytest.raises(PluginUnusable, match=words):
        names(enabled=enabled, disabled=disabled)


def test_two_plugins_cannot_share_a_name() -> None:
    with pytest.raises(PluginUnusable, match="takes the name of another plugin"):
        load(discovered={"x": lambda: Stamp("Torch")})


def test_something_without_extension_points_is_no_plugin() -> None:
    with pytest.raises(PluginUnusable, match="none of the methods of an extension point"):
        load(discovered={"x": lambda: object()})  # type: ignore[dict-item, return-value]


def test_the_order_of_discovery_does_not_matter() -> None:
    made = []
    for order in (["a", "b"], ["b", "a"]):
        framework = load(discovered={name: functools.partial(Stamp, name) for name in order})
        made.append(build(trainjob(), runtime(), Observed(), framework, MaskedKeys()))
    assert made[0] == made[1]
    assert env(objects(made[0])["JobSet/tj"])["LAST"] == "b"


class Broken:
    name = "Broken"

    def enforce_pod_spec(self, info: Info, job: TrainJob) -> None:
        raise KeyError("what")


def test_a_plugin_that_raises_is_named_with_its_phase() -> None:
    with pytest.raises(PluginFailed, match=r"^plugin Broken failed in enforce_pod_spec: 'what'$"):
        build(trainjob(), runtime(), Observed(), Framework([Broken()]), MaskedKeys())


class Installed:
    """A package with one plugin, as pip would leave it."""

    def __init__(self, folder: Path, value: str = "extra_plugin:Stamp") -> None:
        self.folder = folder
        self.value = value
        self.source = "class Stamp:\n    name = 'Stamp'\n    def build(self, info, job): return []\n"
        self.install("1.0")

    def install(self, version: str) -> None:
        for old in self.folder.glob("*.dist-info"):
            shutil.rmtree(old)
        info = self.folder / f"extra-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: extra\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[trainwright.plugins]\nstamp = {self.value}\n")
        (self.folder / "extra_plugin.py").write_text(self.source)


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield tmp_path
    sys.modules.pop("extra_plugin", None)


def test_plugins_are_found_by_entry_point(on_path: Path) -> None:
    Installed(on_path)
    (found,) = [found for found in Registry().load().found if found.place is Place.ENTRY_POINT]
    assert (found.name, found.where) == ("Stamp", "stamp = extra_plugin:Stamp of extra 1.0")
    assert load().plugins[-1].name == "Stamp"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (
            "no_such_module_here:X",
            "plugin stamp: no_such_module_here:X cannot be imported: ModuleNotFoundError: No mod",
        ),
        ("extra_plugin:Missing", "plugin stamp: extra_plugin:Missing cannot be imported: AttributeError: "),
        ("extra_plugin:__name__", "plugin stamp: it cannot be made: TypeError: 'str' object is not callable"),
    ],
)
def test_an_installed_plugin_that_cannot_be_used_is_named(on_path: Path, value: str, why: str) -> None:
    Installed(on_path, value)
    with pytest.raises(PluginUnusable, match=f"^{re.escape(why)}"):
        load()


def test_the_digest_tells_installed_plugins_apart_by_version_and_by_source(on_path: Path) -> None:
    assert load().digest == ""
    package = Installed(on_path)
    digests = [load().digest]
    package.install("1.1")
    digests.append(load().digest)
    package.source += "# edited in place\n"
    package.install("1.1")
    digests.append(load().digest)
    assert len(set(digests)) == 3
    assert all(re.fullmatch(r"[0-9a-f]{16}", digest) for digest in digests)
    assert load().digest == digests[2]
    assert load(disabled=["Stamp"]).digest == "", "what is off is no part of it"
