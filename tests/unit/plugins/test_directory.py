"""A directory of plugins: what is taken from it, what is refused by name, and what stays when a file breaks."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import pytest

from trainwright.pipeline import MaskedKeys, Observed, build
from trainwright.pipeline.errors import PluginUnusable
from trainwright.plugins.found import Place
from trainwright.plugins.registry import Loaded, Registry
from unit.pipeline.objects import env, objects, runtime, trainjob
from unit.plugins.test_registry import BUILT_IN, Stamp


def plugin(name: str, value: str = "1") -> str:
    """A file with one plugin, which writes a variable of its own name."""
    return f"""
from trainwright.pipeline.podset import env_var

class It:
    name = {name!r}

    def enforce_pod_spec(self, info, job):
        for pod_set in info.pod_sets:
            for container in pod_set.containers:
                container.set_env(env_var({name.upper()!r}, {value!r}))

PLUGINS = [It]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o777)  # as the kubelet mounts a ConfigMap
    return tmp_path


def modules(folder: Path) -> list[str]:
    """The modules that are kept for files of the directory."""
    return [name for name, module in sys.modules.items() if str(folder) in str(getattr(module, "__file__", ""))]


def registry(folder: Path, **options: list[str]) -> Registry:
    return Registry(directory=str(folder), discovered={}, **options)  # type: ignore[arg-type]


def extra(loaded: Loaded) -> list[str]:
    """The plugins that run besides the built-in ones."""
    return [it.name for it in loaded.framework.plugins if it.name not in BUILT_IN]


def faults(loaded: Loaded) -> dict[str, str]:
    return {fault.name: fault.why for fault in loaded.broken}


def variables(loaded: Loaded) -> dict[str, object]:
    plan = build(trainjob(), runtime(), Observed(), loaded.framework, MaskedKeys())
    return env(objects(plan)["JobSet/tj"])


def test_files_come_after_all_others_by_the_name_of_the_file(folder: Path) -> None:
    (folder / "20-a.py").write_text(plugin("a"))
    (folder / "10-b.py").write_text(plugin("b"))
    loaded = Registry(directory=str(folder), discovered={"z": lambda: Stamp("Z")}).load()
    assert extra(loaded) == ["Z", "b", "a"]
    assert [(it.name, it.where) for it in loaded.found if it.place is Place.FILE] == [
        ("b", f"{folder}/10-b.py"),
        ("a", f"{folder}/20-a.py"),
    ]
    assert loaded.broken == ()


def test_one_file_may_have_several_plugins(folder: Path) -> None:
    second = plugin("b").replace("class It", "class Other").replace("PLUGINS = [It]", "PLUGINS = (Other, It)")
    (folder / "two.py").write_text(plugin("a") + second)
    assert extra(registry(folder).load()) == ["b", "a"]


def test_the_configuration_chooses_and_places_files_too(folder: Path) -> None:
    (folder / "a.py").write_text(plugin("a"))
    (folder / "b.py").write_text(plugin("b"))
    assert extra(registry(folder, disabled=["a"]).load()) == ["b"]
    assert extra(registry(folder, enabled=["b", "*"]).load()) == ["b", "a"]
    assert extra(registry(folder, disabled=["*"], enabled=["a", "JobSet"]).load()) == ["a"]


def test_a_name_that_a_file_may_bring_later_is_no_error(folder: Path) -> None:
    late = registry(folder, enabled=["late"])
    assert late.load().missing == ("late",)
    (folder / "late.py").write_text(plugin("late"))
    loaded = late.look()
    assert loaded is not None
    assert (extra(loaded), loaded.missing) == (["late"], ())
    with pytest.raises(PluginUnusable, match="it is both in enabledPlugins and in disabledPlugins"):
        registry(folder, enabled=["late"], disabled=["late"]).load()


def test_a_new_a_changed_and_a_removed_file_are_seen_at_the_next_look(folder: Path) -> None:
    files = registry(folder)
    digests = [files.load().framework.digest]
    (folder / "a.py").write_text(plugin("a", "first"))
    loaded = files.look()
    assert loaded is not None
    assert variables(loaded)["A"] == "first"
    digests.append(loaded.framework.digest)
    before = loaded
    (folder / "a.py").write_text(plugin("a", "other"))  # of the same length
    loaded = files.look()
    assert loaded is not None
    assert variables(loaded)["A"] == "other"
    assert len(modules(folder)) == 1
    assert variables(before)["A"] == "first", "a framework is a value: who has the old one builds as before"
    digests.append(loaded.framework.digest)
    (folder / "a.py").unlink()
    loaded = files.look()
    assert loaded is not None
    assert extra(loaded) == []
    assert modules(folder) == []
    assert digests[0] == loaded.framework.digest == ""
    assert len(set(digests)) == 3


def test_a_change_that_no_stat_tells_is_seen_at_the_next_look(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.stat

    def coarse(path: Path) -> os.stat_result:
        """On a file system whose clock did not tick between two writes."""
        times = {"st_mtime_ns": 0, "st_ctime_ns": 0}
        return os.stat_result((*real(path)[:7], 0, 0, 0), times)

    (folder / "a.py").write_text(plugin("a", "first"))
    files = registry(folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", coarse)
        files.load()
        with (folder / "a.py").open("r+") as opened:
            opened.write(plugin("a", "other"))
        loaded = files.look()
    assert loaded is not None
    assert variables(loaded)["A"] == "other"


def test_contents_are_not_read_again_while_nothing_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a.py").write_text(plugin("a"))
    (folder / "broken.py").write_text("raise KeyError")
    files = registry(folder)
    files.load()
    assert files.look() is None, "once more, for a write within the clock's tick"

    def refuse(path: Path, *flags: int) -> int:
        raise AssertionError(f"{path} was opened")

    monkeypatch.setattr(os, "open", refuse)
    assert files.look() is None


def test_a_file_that_is_written_again_as_it_was_changes_nothing(folder: Path) -> None:
    (folder / "a.py").write_text(plugin("a"))
    files = registry(folder)
    first = files.load().framework.plugins[-1]
    (folder / "a.py").write_text(plugin("a"))
    assert files.look() is None
    assert files._loaded().framework.plugins[-1] is first


BROKEN = {
    "syntax": ("class It:\n    name = \n", "line 2: invalid syntax"),
    "import": ("x = 1\nimport no_such_module\n", "line 2: ModuleNotFoundError: No module named 'no_such_module'"),
    "raises": ("\n\ndef f():\n    1 / 0\nf()", "line 4: ZeroDivisionError: division by zero"),
    "exits": ("import sys\nsys.exit(3)\n", "line 2: SystemExit: 3"),
    "no plugin": ("name = 'It'\n", "it names no plugin: end it with PLUGINS = [YourPlugin]"),
    "not a list": (plugin("a").replace("[It]", "It"), "it names no plugin: end it with PLUGINS = [YourPlugin]"),
    "empty": (plugin("a").replace("[It]", "[]"), "it names no plugin: end it with PLUGINS = [YourPlugin]"),
    "constructor": (
        plugin("a").replace("    name", "    def __init__(self): raise OSError('no\\n  luck')\n    name"),
        "it cannot be made: OSError: no luck",
    ),
    "nothing to do": (
        plugin("a").replace("enforce_pod_spec", "enforce"),
        "it has no name, or none of the methods of an extension point",
    ),
    "built-in's name": (plugin("Torch"), "the name Torch is taken (built-in)"),
    "twice": (plugin("a").replace("[It]", "[It, It]"), "two of its plugins have one name: a, a"),
    "watches": (
        plugin("a").replace("PLUGINS", "It.watches = lambda self: [1]\nPLUGINS"),
        "plugin a failed in watches: 1 is no Watch",
    ),
    "unknown type": (
        plugin("a").replace(
            "PLUGINS",
            "from trainwright.pipeline import Watch\n"
            "from trainwright.api.resources import JOBS\n"
            "import msgspec\n"
            "class Thing(msgspec.Struct):\n    metadata: 'Nowhere'\n"
            "It.watches = lambda self: [Watch(JOBS, Thing)]\nPLUGINS",
        ),
        "plugin a failed in watches: name 'Nowhere' is not defined",
    ),
    "not text": ("\0", "source code string cannot contain null bytes"),
}


@pytest.mark.parametrize(("source", "why"), BROKEN.values(), ids=list(BROKEN))
def test_a_broken_file_is_named_and_its_last_good_version_goes_on(folder: Path, source: str, why: str) -> None:
    (folder / "it.py").write_text(source)
    (folder / "other.py").write_text(plugin("other"))
    fresh = registry(folder).load()
    assert extra(fresh) == ["other"]
    assert faults(fresh) == {"it.py": why}

    (folder / "it.py").write_text(plugin("good", "still"))
    files = registry(folder)
    files.load()
    (folder / "it.py").write_text(source)
    loaded = files.look()
    assert loaded is not None
    assert faults(loaded) == {"it.py": f"{why}; the last version that could be used goes on"}
    assert extra(loaded) == ["good", "other"]
    assert variables(loaded)["GOOD"] == "still"
    assert files.look() is None, "the same fault is no news"

    (folder / "it.py").write_text(plugin("good", "mended"))
    loaded = files.look()
    assert loaded is not None
    assert (faults(loaded), variables(loaded)["GOOD"]) == ({}, "mended")


def test_a_broken_file_is_run_once_and_again_when_it_changes(folder: Path) -> None:
    runs = folder / "runs"
    source = f"with open({str(runs)!r}, 'a') as file: file.write('x')\nraise KeyError\n"
    (folder / "it.py").write_text(source)
    files = registry(folder)
    files.load()
    (folder / "other.py").write_text(plugin("other"))
    assert files.look() is not None
    assert runs.read_text() == "x"
    (folder / "it.py").write_text(source + "#")
    files.look()
    assert runs.read_text() == "xx"


def test_the_name_goes_to_the_file_that_comes_first(folder: Path) -> None:
    (folder / "a.py").write_text(plugin("same", "a"))
    (folder / "b.py").write_text(plugin("same", "b"))
    files = registry(folder)
    loaded = files.load()
    assert faults(loaded) == {"b.py": "the name same is taken (file a.py)"}
    assert variables(loaded)["SAME"] == "a"
    (folder / "a.py").unlink()
    after = files.look()
    assert after is not None
    assert (faults(after), variables(after)["SAME"]) == ({}, "b")


def test_a_mounted_config_map_is_followed_through_its_links(folder: Path) -> None:
    """What the kubelet's atomic writer leaves: names link to `..data`, and `..data` to a directory of one version."""

    def publish(version: str, **files: str) -> None:
        data = folder / f"..{version}"
        data.mkdir()
        for name, text in files.items():
            (data / f"{name}.py").write_text(text)
        (folder / "..data_tmp").symlink_to(data.name)
        os.rename(folder / "..data_tmp", folder / "..data")
        for name in files:
            if not (folder / f"{name}.py").is_symlink():
                (folder / f"{name}.py").symlink_to(f"..data/{name}.py")
        for link in folder.glob("*.py"):
            if link.stem not in files:
                link.unlink()

    publish("2026_1", a=plugin("a", "one"), b=plugin("b"))
    (folder / ".hidden.py").write_text("raise KeyError")
    files = registry(folder)
    loaded = files.load()
    assert (extra(loaded), faults(loaded)) == (["a", "b"], {})
    publish("2026_2", a=plugin("a", "two"))
    after = files.look()
    assert after is not None
    assert (extra(after), faults(after), variables(after)["A"]) == (["a"], {}, "two")


def test_what_others_may_have_written_is_not_read(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "real.py"
    elsewhere.write_text(plugin("elsewhere"))
    for name, mode in (("group", 0o664), ("world", 0o646)):
        (folder / f"{name}.py").write_text(plugin(name))
        (folder / f"{name}.py").chmod(mode)
    (folder / "leaves.py").symlink_to(elsewhere)
    (folder / "dangling.py").symlink_to("nothing")
    (folder / "loop.py").symlink_to("loop.py")
    (folder / "folder.py").mkdir()
    os.mkfifo(folder / "fifo.py")
    (folder / "large.py").write_text("#" * (1 << 20) + "\n")
    loaded = registry(folder).load()
    assert extra(loaded) == []
    assert faults(loaded) == {
        "dangling.py": "it cannot be read: No such file or directory",
        "fifo.py": "it is no regular file",
        "folder.py": "it is no regular file",
        "group.py": "its mode 664 lets others than its owner write it (chmod go-w)",
        "large.py": "it is larger than 1024 KiB",
        "leaves.py": f"it is a link that leaves the directory, to {elsewhere}",
        "loop.py": "it cannot be read: Too many levels of symbolic links",
        "world.py": "its mode 646 lets others than its owner write it (chmod go-w)",
    }


def test_a_file_of_another_user_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a.py").write_text(plugin("a"))
    owner = os.geteuid()
    if owner == 0:  # root's files are everybody's to trust: give it away instead
        owner = 1234
        os.chown(folder / "a.py", owner, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    fault = faults(registry(folder).load())["a.py"]
    assert fault == f"it belongs to user {owner}, neither to root nor to our user {os.geteuid()}"


def test_a_mode_that_is_mended_is_seen(folder: Path) -> None:
    (folder / "a.py").write_text(plugin("a"))
    (folder / "a.py").chmod(0o666)
    files = registry(folder)
    assert extra(files.load()) == []
    (folder / "a.py").chmod(0o644)
    loaded = files.look()
    assert loaded is not None
    assert (extra(loaded), faults(loaded)) == (["a"], {})


def test_a_directory_that_is_not_there_is_named_and_read_when_it_comes(folder: Path) -> None:
    place = folder / "late"
    files = registry(place)
    loaded = files.load()
    assert faults(loaded) == {"late": "the directory cannot be read: No such file or directory"}
    assert files.look() is None
    place.mkdir()
    (place / "a.py").write_text(plugin("a"))
    after = files.look()
    assert after is not None
    assert (extra(after), faults(after)) == (["a"], {})
    place.rename(folder / "away")
    gone = files.look()
    assert gone is not None
    assert extra(gone) == ["a"], "what was read goes on"
    (folder / "away").rename(place)
    back = files.look()
    assert back is not None
    assert (extra(back), faults(back)) == (["a"], {})


def test_annotations_of_a_file_are_resolved_in_its_own_module(folder: Path) -> None:
    (folder / "a.py").write_text(
        "from __future__ import annotations\n"
        "import msgspec\n"
        "from trainwright.api.metadata import ObjectMeta\n"
        "from trainwright.api.resources import JOBS\n"
        "from trainwright.pipeline import Watch\n"
        "class Part(msgspec.Struct, frozen=True):\n    ready: int = 0\n"
        "class Whole(msgspec.Struct):\n    metadata: ObjectMeta\n    status: Part = Part()\n"
        "class It:\n    name = 'It'\n    def watches(self): return [Watch(JOBS, Whole)]\n"
        "PLUGINS = [It]\n"
    )
    loaded = registry(folder).load()
    assert faults(loaded) == {}
    watch = next(it.watch for it in loaded.framework.watches if it.plugin == "It")
    whole = msgspec.json.decode(b'{"metadata": {"name": "x"}, "status": {"ready": 2}}', type=watch.decode)
    assert whole.status.ready == 2


def test_without_a_directory_nothing_is_looked_for() -> None:
    none = Registry(discovered={})
    assert not none.has_directory
    assert none.look() is None
