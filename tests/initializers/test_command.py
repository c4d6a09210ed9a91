"""`trainwright initialize` as a pod runs it: variables in, exit code and one line out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from initializers.fileserver import Answer, FileServer
from initializers.runs import run, tree
from trainwright.cli.main import main

CODES = [
    ({}, 2, "no source is given: set STORAGE_URI"),
    ({"STORAGE_URI": "cache://schema/table"}, 2, "the data cache is not supported"),
    ({"STORAGE_URI": "ftp://host/file"}, 2, "a URI begins with hf://, s3://, https:// or file://"),
    ({"STORAGE_URI": "file:///no/such/file"}, 4, "there is no such file or directory"),
    ({"STORAGE_URI": "{url}/refused"}, 3, "set ACCESS_TOKEN"),
    ({"STORAGE_URI": "{url}/missing"}, 4, "there is no such file (404)"),
    ({"STORAGE_URI": "https://127.0.0.1:1/f", "TRAINWRIGHT_RETRY_SECONDS": "0"}, 6, "given up after 0 s"),
    ({"STORAGE_URI": "{url}/f#sha256=" + "0" * 64}, 7, "The file was not kept"),
    ({"STORAGE_URI": "{url}/.trainwright"}, 8, "is taken by the initializer's own records"),
]


@pytest.mark.parametrize(("variables", "code", "sentence"), CODES, ids=[sentence for _, _, sentence in CODES])
def test_each_failure_has_its_exit_code_and_one_line(
    variables: dict[str, str],
    code: int,
    sentence: str,
    server: FileServer,
    target: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server.put("/f", b"content")
    server.put("/.trainwright", b"")
    server.put("/refused", b"", Answer(403))
    monkeypatch.delenv("STORAGE_URI", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.replace("{url}", server.url))
    assert main(["initialize", "dataset", "--target", str(target), "--cache", "none"]) == code
    said = capsys.readouterr().err
    assert said.startswith("trainwright: dataset: ")
    assert said.count("\n") == 1
    assert sentence in said
    assert tree(target) == {}


def test_a_target_that_cannot_be_written_to_is_said(server: FileServer, tmp_path: Path) -> None:
    server.put("/f", b"content")
    (tmp_path / "file").write_text("")
    said = run("dataset", f"{server.url}/f", "--target", tmp_path / "file" / "below", code=1)
    assert "file/below: Not a directory" in said


def test_variables_alone_are_enough_and_the_cache_is_the_user_s(server: FileServer, tmp_path: Path) -> None:
    server.put("/f", b"content")
    variables = {"STORAGE_URI": f"{server.url}/f", "HOME": str(tmp_path)}
    for target in (tmp_path / "one", tmp_path / "two"):
        run("dataset", "--target", target, variables=variables)
        assert tree(target) == {"f": b"content"}
    assert server.sent["/f"] == len(b"content") + 2  # and twice the byte that asks for size and version
    assert (tmp_path / ".cache" / "trainwright" / "initializers").stat().st_mode & 0o077 == 0


def test_without_the_extra_hf_says_what_to_install_and_https_needs_nothing(server: FileServer, target: Path) -> None:
    """In an environment that has only what the base install brings."""
    server.put("/f", b"content")
    script = (
        "import sys\n"
        "for name in ('huggingface_hub', 'httpx', 'boto3', 'botocore', 'requests'): sys.modules[name] = None\n"
        "from trainwright.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )

    def initialize(uri: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", script, "initialize", "model", uri, "--target", str(target), "--cache", "none"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    missing = initialize("hf://org/name")
    assert missing.returncode == 2
    assert "pip install 'trainwright[initializers]'" in missing.stderr
    assert initialize(f"{server.url}/f").returncode == 0
    assert tree(target) == {"f": b"content"}
