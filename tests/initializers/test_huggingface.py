"""`hf://` by huggingface_hub against a small hub.

`make test-initializers` has the library; `make test` leaves this out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from initializers.fileserver import Answer, Cut, file_server, noise
from initializers.hub import COMMIT, Hub, sha256
from initializers.runs import fetch, run, tree
from trainwright.initializers.errors import Damaged, Misconfigured, Missing, NotPermitted, Unreachable, UnsafeName
from trainwright.initializers.settings import Step

huggingface_hub = pytest.importorskip("huggingface_hub")

MIB = 2**20
WEIGHTS = noise(12 * MIB)
MODEL = {
    "config.json": b"{}",
    "model.safetensors": WEIGHTS,
    "original/tokenizer.model": noise(5000),
    "pytorch_model.bin": noise(2000),
    "README.md": b"# a model",
    "notes.txt": b"",
}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))  # no token of whoever runs the test
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with file_server() as api, file_server() as storage:
        yield Hub(api, storage)


def lfs(content: bytes) -> str:
    return f"/lfs/{sha256(content)}"


async def test_of_a_model_configuration_tokenizer_and_safe_weights_are_fetched(hub: Hub, target: Path) -> None:
    hub.add("models", "org/name", MODEL)
    await fetch("hf://org/name", target, step="model", HF_ENDPOINT=hub.url)
    wanted = ("config.json", "model.safetensors", "original/tokenizer.model", "notes.txt")
    assert tree(target) == {name: MODEL[name] for name in wanted}
    hub.api.forget()
    hub.storage.forget()
    assert "nothing had to be fetched" in await fetch("hf://org/name", target, step="model", HF_ENDPOINT=hub.url)
    assert not hub.storage.requests


async def test_a_dataset_is_fetched_whole_but_for_what_is_ignored(hub: Hub, target: Path) -> None:
    """The path after a dataset's name is for the trainer; `*` matches slashes; a final slash means all below."""
    files = {"data/a.parquet": noise(3000), "data/b.csv": b"1", "docs/x": b"2", "docs/sub/y": b"3", "README.md": b"4"}
    hub.add("datasets", "org/name", files)
    await fetch("hf://org/name/data", target, HF_ENDPOINT=hub.url, IGNORE_PATTERNS=" *.csv, docs/,, ")
    assert tree(target) == {"data/a.parquet": files["data/a.parquet"], "README.md": b"4"}


@pytest.mark.parametrize("ignored", [None, ["*.bin", "*.txt"], ["data/"], ["*"]])
@pytest.mark.parametrize("step", ["model", "dataset"])
async def test_the_files_are_those_that_the_reference_s_own_call_fetches(
    step: Step, ignored: list[str] | None, hub: Hub, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reference calls `snapshot_download`, with these patterns for a model and none for a dataset."""
    files = {**MODEL, "data/a.json": b"[]", "data/b.parquet": noise(3000), "Data.JSON": b"1", ".hidden.json": b"2"}
    hub.add(f"{step}s", "org/name", files)
    allowed = ["*.json", "*.safetensors", "*.model", "*.txt", "*.gguf"] if step == "model" else None
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    huggingface_hub.snapshot_download(
        "org/name",
        repo_type=step,
        local_dir=target / "theirs",
        allow_patterns=allowed,
        ignore_patterns=ignored,
        endpoint=hub.url,
    )
    theirs = {name: content for name, content in tree(target / "theirs").items() if not name.startswith(".cache/")}
    variables: dict[str, Any] = {"IGNORE_PATTERNS": ",".join(ignored)} if ignored else {}
    await fetch("hf://org/name", target / "ours", step=step, HF_ENDPOINT=hub.url, **variables)
    assert tree(target / "ours") == theirs


async def test_a_name_without_organisation_and_a_revision(hub: Hub, target: Path) -> None:
    hub.add("models", "gpt2", {"config.json": b"{}"}, revisions={"refs/pr/1": COMMIT})
    await fetch("hf://gpt2@refs/pr/1", target, step="model", HF_ENDPOINT=hub.url)
    assert tree(target) == {"config.json": b"{}"}
    with pytest.raises(Missing, match="there is no revision main"):
        await fetch("hf://gpt2", target, step="model", HF_ENDPOINT=hub.url)


async def test_the_token_reaches_the_hub_and_not_its_storage(hub: Hub, target: Path) -> None:
    hub.add("models", "org/name", MODEL, token="hf_right")
    await fetch("hf://org/name", target, step="model", HF_ENDPOINT=hub.url, ACCESS_TOKEN="hf_right")
    assert tree(target)["model.safetensors"] == WEIGHTS
    assert not [request for request in hub.storage.requests if "Authorization" in request.headers]


@pytest.mark.parametrize(
    ("how", "variables", "error", "sentence"),
    [
        ({"token": "hf_right"}, {}, Missing, "no such model .* set ACCESS_TOKEN if it is private"),
        (
            {"token": "hf_right"},
            {"ACCESS_TOKEN": "hf_wrong"},
            Missing,
            "check the name, and ACCESS_TOKEN may not see it",
        ),
        ({}, {"ACCESS_TOKEN": "invalid"}, NotPermitted, "is refused .401.: ACCESS_TOKEN was not accepted"),
        ({"token": "hf_right", "is_gated": True}, {}, NotPermitted, "it is gated: accept its conditions at"),
        (
            {"token": "hf_right", "is_gated": True},
            {"ACCESS_TOKEN": "hf_wrong"},
            NotPermitted,
            "set ACCESS_TOKEN to a token of that account",
        ),
    ],
)
async def test_refusals_say_what_to_do(
    how: dict[str, object],
    variables: dict[str, Any],
    error: type[Exception],
    sentence: str,
    hub: Hub,
    target: Path,
) -> None:
    hub.add("models", "org/name", MODEL, **how)
    with pytest.raises(error, match=sentence):
        await fetch("hf://org/name", target, step="model", HF_ENDPOINT=hub.url, **variables)
    assert tree(target) == {}


async def test_what_is_no_repository_is_refused(hub: Hub, target: Path) -> None:
    for uri in ("hf://org/name/path", "hf:///", "hf://org/name@", "hf://org/na me", "hf://../../etc"):
        with pytest.raises((Misconfigured, Missing)):
            await fetch(uri, target, step="model", HF_ENDPOINT=hub.url)
    with pytest.raises(Missing, match="there is no such dataset"):
        await fetch("hf://org/nothing", target, HF_ENDPOINT=hub.url)


async def test_bytes_that_are_not_the_promised_ones_are_not_kept(hub: Hub, target: Path) -> None:
    for name in ("model.safetensors", "config.json"):
        hub.add("models", f"org/{name}", {name: MODEL[name]})
    hub.storage.files[lfs(WEIGHTS)].content = WEIGHTS[:-1] + b"?"
    hub.api.put(f"/org/config.json/resolve/{COMMIT}/config.json", b"[]")
    with pytest.raises(Damaged, match=r"model.safetensors: the sha256 is"):
        await fetch("hf://org/model.safetensors", target, step="model", HF_ENDPOINT=hub.url)
    with pytest.raises(Damaged, match=r"config.json: the git-blob is"):
        await fetch("hf://org/config.json", target, step="model", HF_ENDPOINT=hub.url)
    assert tree(target) == {}


async def test_bad_bytes_of_an_earlier_run_are_fetched_again(hub: Hub, target: Path) -> None:
    """A partial file whose disk lied: the sum is wrong once, and what was kept is not trusted any more."""
    hub.add("models", "org/name", {"model.safetensors": WEIGHTS})
    hub.storage.files[lfs(WEIGHTS)].faults = [Cut(10 * MIB), Answer(403)]
    with pytest.raises(NotPermitted):
        await fetch("hf://org/name", target, step="model", HF_ENDPOINT=hub.url)
    (part,) = (target / ".trainwright" / "parts").glob("*.part")
    with part.open("r+b") as file:
        file.write(b"garbage")
    hub.storage.files[lfs(WEIGHTS)].faults.clear()
    said = await fetch("hf://org/name", target, step="model", HF_ENDPOINT=hub.url)
    assert tree(target) == {"model.safetensors": WEIGHTS}
    assert "does not add up; fetching it again" in said


async def test_a_hub_that_is_away_for_a_moment_is_waited_for(hub: Hub, target: Path) -> None:
    hub.add("models", "org/name", MODEL)
    hub.broken = [Answer(503), Answer(502)]
    hub.storage.files[lfs(WEIGHTS)].faults = [Answer(500), Cut(9 * MIB)]
    await fetch("hf://org/name", target, step="model", HF_ENDPOINT=hub.url)
    assert tree(target)["model.safetensors"] == WEIGHTS


async def test_a_hub_that_is_not_there_is_given_up(target: Path) -> None:
    with file_server() as closed:
        address = closed.url
    with pytest.raises(Unreachable, match=r"given up after 0.5 s"):
        await fetch("hf://org/name", target, HF_ENDPOINT=address, retry_seconds=0.5)


@pytest.mark.parametrize(
    "name", ["../evil", "/evil", "a/../../evil", ".trainwright/fetched", "a/./b", "x\0y", "n" * 300]
)
async def test_hostile_names_are_refused_and_nothing_is_written(name: str, hub: Hub, target: Path) -> None:
    hub.add("datasets", "org/name", {"good": b"1", name: b"evil"})
    with pytest.raises(UnsafeName):
        await fetch("hf://org/name", target, HF_ENDPOINT=hub.url)
    assert tree(target) == {}
    assert not list(target.parent.rglob("*evil*"))


async def test_names_that_exclude_each_other_are_refused(hub: Hub, target: Path) -> None:
    hub.add("datasets", "org/name", {"a": b"1", "a/b": b"2"})
    with pytest.raises(UnsafeName, match="a is a file, and a/b needs a directory of that name"):
        await fetch("hf://org/name", target, HF_ENDPOINT=hub.url)


async def test_equal_files_are_fetched_once_for_all_repositories(hub: Hub, target: Path, cache: Path) -> None:
    for name in ("org/one", "org/two"):
        hub.add("models", name, {"model.safetensors": WEIGHTS})
        await fetch(f"hf://{name}", target / name, step="model", cache=cache, HF_ENDPOINT=hub.url)
        assert tree(target / name) == {"model.safetensors": WEIGHTS}
    assert hub.storage.sent[lfs(WEIGHTS)] == len(WEIGHTS)


@pytest.mark.parametrize("cached", [True, False])
async def test_equal_files_of_one_repository_are_all_there(cached: bool, hub: Hub, target: Path, cache: Path) -> None:
    files = {f"{number}.safetensors": noise(2 * MIB) for number in range(6)}
    hub.add("models", "org/name", files)
    await fetch("hf://org/name", target, step="model", cache=cache if cached else None, HF_ENDPOINT=hub.url)
    assert tree(target) == files


async def test_a_damaged_file_in_the_cache_is_fetched_again(hub: Hub, target: Path, cache: Path) -> None:
    hub.add("models", "org/name", {"model.safetensors": WEIGHTS})
    await fetch("hf://org/name", target / "one", step="model", cache=cache, HF_ENDPOINT=hub.url)
    (kept,) = (path for path in cache.iterdir() if not path.suffix)
    with kept.open("r+b") as file:
        file.write(b"garbage")
    said = await fetch("hf://org/name", target / "two", step="model", cache=cache, HF_ENDPOINT=hub.url)
    assert tree(target / "two") == {"model.safetensors": WEIGHTS}
    assert "the copy in the cache is damaged; fetching it again" in said
    assert hub.storage.sent[lfs(WEIGHTS)] == 2 * len(WEIGHTS)


def test_the_command_reads_the_reference_s_variables(hub: Hub, tmp_path: Path, target: Path) -> None:
    hub.add("models", "org/name", MODEL, token="hf_right")
    variables = {
        "STORAGE_URI": "hf://org/name",
        "ACCESS_TOKEN": "hf_right",
        "IGNORE_PATTERNS": "*.txt,*.json",
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(tmp_path / "hf"),
        "HOME": str(tmp_path),
    }
    said = run("model", "--target", target, variables=variables)
    assert set(tree(target)) == {"model.safetensors", "original/tokenizer.model"}
    assert said.startswith("model: 2 files with 12.0 MiB in ")
    said = run("model", "--target", target, code=4, variables={**variables, "STORAGE_URI": "hf://org/other"})
    assert "hf://org/other: there is no such model" in said
