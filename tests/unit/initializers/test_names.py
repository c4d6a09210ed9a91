"""Names from listings stay below the directory they are joined to, whatever they are."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.initializers.errors import UnsafeName
from trainwright.initializers.names import check_together, parts_of, printable

pieces = st.sampled_from(["a", "b", "..", ".", "", ".trainwright", "x" * 256, "\0", "ä", "\udcff", "c:", "\\", "~"])


@given(st.one_of(st.text(), st.lists(pieces).map("/".join), st.lists(pieces).map(lambda found: "/" + "/".join(found))))
def test_a_name_is_refused_or_lies_below(name: str) -> None:
    try:
        parts = parts_of(name)
    except UnsafeName:
        return
    path = PurePosixPath("/target", *parts)
    assert PurePosixPath(os.path.normpath(path)) == path
    assert path.parts[:2] == ("/", "target")
    assert len(path.parts) > 2
    assert path.parts[2] != ".trainwright"
    assert "/".join(parts) == "/".join(part for part in name.split("/") if part)


@pytest.mark.parametrize("name", ["", "/", "/a", "..", "a/..", "a/../b", "./a", ".trainwright/x", "a\0b", "x" * 256])
def test_unsafe_names(name: str) -> None:
    with pytest.raises(UnsafeName):
        parts_of(name)


def test_a_name_with_surrogates_is_refused() -> None:
    with pytest.raises(UnsafeName, match="not valid Unicode"):
        parts_of("a\udcff")


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["a/b", "a//b"], "a/b and a//b are the same file"),
        (["a/b/c", "a/b"], "a/b is a file, and a/b/c needs a directory of that name"),
        (["a", "a"], "are the same file"),
    ],
)
def test_names_that_cannot_be_together(names: list[str], sentence: str) -> None:
    with pytest.raises(UnsafeName, match=sentence):
        check_together(names)
    check_together(["a/b", "a/c", "ab"])


def test_foreign_text_does_not_reach_the_terminal_as_it_is() -> None:
    assert printable("\x1b[31mred\nline") == "\N{REPLACEMENT CHARACTER}[31mred\N{REPLACEMENT CHARACTER}line"
    assert len(printable("x" * 10_000)) == 201
