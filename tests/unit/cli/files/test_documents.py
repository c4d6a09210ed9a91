"""YAML documents, with the line of every field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainwright.cli.failure import Failure
from trainwright.cli.files.documents import MAX_BYTES, parse, read

OBJECT = "apiVersion: v1\nkind: Thing\nmetadata:\n  name: x\n"


def value(text: str) -> Any:
    ((found, _),) = parse(f"v: {text}\n".encode(), "f")
    return found["v"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yes", True),
        ("Off", False),
        ("y", "y"),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-0x1F", -31),
        ("0777", 511),
        ("0o17", 15),
        ("0b11", 3),
        ("1_000", 1000),
        ("2.0", 2),
        ("1e3", 1000),
        ("2.5", 2.5),
        ("2026-01-01", "2026-01-01"),
        ("12:30", "12:30"),
        ("'yes'", "yes"),
        ('"12"', "12"),
        ("!!str 12", "12"),
        ("1.2.3", "1.2.3"),
        ("08", 8),
    ],
)
def test_scalars_mean_what_they_mean_to_kubectl(text: str, expected: Any) -> None:
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


def test_every_field_knows_its_line(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(OBJECT + "---\n# a comment\n" + OBJECT + "spec:\n  list:\n    - a: 1\n    - b.c/d: 2\n")
    first, second = read([str(file)])
    assert (first.number, first.title, first.line("metadata.name")) == (1, "Thing/x", 4)
    assert second.line("spec.list[1]") == 14
    assert second.line("spec.list[1][b.c/d]") == 14
    assert second.line("spec.list[0].nowhere") == 13
    assert second.has("spec.list[0].a")
    assert not second.has("spec.list[2]")


def test_a_list_is_its_items(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    items = [{"apiVersion": "v1", "kind": kind} for kind in "AB"]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert [document.kind for document in read([str(file)])] == ["A", "B"]


def test_anchors_and_merge_keys_are_written_out(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("base: &base {a: 1, b: 2}\napiVersion: v1\nkind: X\nspec: {<<: *base, b: 3}\nalso: *base\n")
    (document,) = read([str(file)])
    assert document.value["spec"] == {"a": 1, "b": 3}
    assert document.value["also"] == {"a": 1, "b": 2}


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1\nb: 2", r"f.yaml:2:\d+: not valid YAML"),
        ("a: 1\nb: 2\na: 3", "f.yaml:3: key 'a' is given twice"),
        ("[" * 1000 + "]" * 1000, "f.yaml:1: nested more than 100 levels deep"),
        ("a:\n" + "".join(" " * n + "a:\n" for n in range(1, 1001)), "f.yaml:101: nested more than 100 levels deep"),
        (BOMB, r"f.yaml:\d+: more than 400000 values once its aliases are written out"),
        ("a: .nan", "f.yaml:1: .nan is not a JSON value"),
        ("a: -.INF", "f.yaml:1: -.INF is not a JSON value"),
        ("a: 1e999", "f.yaml:1: 1e999 is not a JSON value"),
        ("a: " + "9" * 5000, "f.yaml:1: a number of 5000 digits"),
        ("a: !!python/object:os.system x", "tag .* has no meaning"),
        ("a: *nobody", "f.yaml:1"),
        ("- a", "f.yaml:1: a Kubernetes object must be a mapping with apiVersion and kind, this is a list"),
        ("just text", "this is 'just text'"),
        ("{a: 1}: b", "f.yaml:1: a key must be a plain value"),
        ("kind: X", "f.yaml:1: the object has no apiVersion"),
        ("apiVersion: v1", "f.yaml:1: the object has no kind"),
        ("apiVersion: v1\nkind: X\nmetadata: [a]", "metadata of X must be a mapping"),
        ("", "f.yaml: no object in it"),
        ("---\n---\n# nothing\n", "f.yaml: no object in it"),
    ],
)
def test_bad_input_gets_one_message_with_its_place(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(text)
    with pytest.raises(Failure, match=words) as failure:
        read([str(file)])
    assert failure.value.code == 1
    assert "\n" not in failure.value.message


def test_a_file_too_large_for_any_server_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(b"a: " + b"x" * 10_000_000)
    with pytest.raises(Failure, match=f"larger than {MAX_BYTES >> 20} MiB"):
        read([str(file)])


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(Failure, match=r"f\.yaml:2: not UTF-8 text"):
        read([str(file)])


@pytest.mark.parametrize("files", [[], ["-", "-"], ["/no/such/file"]])
def test_wrong_usage_has_its_own_exit_code(files: list[str]) -> None:
    with pytest.raises(Failure) as failure:
        read(files)
    assert failure.value.code == 2
