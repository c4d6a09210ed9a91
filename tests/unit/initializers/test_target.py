"""The target: whole files only, and never through a link that somebody put there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainwright.clock import SystemClock
from trainwright.initializers.digests import Digest
from trainwright.initializers.errors import InitializerError, UnsafeName
from trainwright.initializers.folder import Folder
from trainwright.initializers.source import Item
from trainwright.initializers.target import Target


def item(name: str, identity: str = "1") -> Item:
    return Item(name, 7, identity, "")


async def place(path: Path, *items: Item, content: bytes = b"content") -> None:
    async with Target.opened(path, SystemClock(), lambda: None) as target:
        for one in items:
            (path / ".trainwright" / "parts" / one.key).write_bytes(content)
            await target.move_in(one, one.key)
        await target.settle()


async def has(path: Path, one: Item) -> bool:
    async with Target.opened(path, SystemClock(), lambda: None) as target:
        return target.has(one)


async def test_what_was_put_in_place_is_known_to_the_next_run(tmp_path: Path) -> None:
    await place(tmp_path, item("a"), item("b/c/d"))
    assert (tmp_path / "b/c/d").read_bytes() == b"content"
    assert await has(tmp_path, item("a"))
    assert await has(tmp_path, item("b/c/d"))
    assert not await has(tmp_path, item("a", identity="2"))
    assert not await has(tmp_path, item("b/c"))


async def test_a_file_that_was_changed_removed_or_replaced_is_not_there(tmp_path: Path) -> None:
    await place(tmp_path, item("changed"), item("removed"), item("linked"), item("d/e"))
    (tmp_path / "changed").write_bytes(b"CONTENT")
    (tmp_path / "removed").unlink()
    (tmp_path / "linked").rename(tmp_path / "elsewhere")
    (tmp_path / "linked").symlink_to("elsewhere")
    (tmp_path / "d").rename(tmp_path / "other")
    (tmp_path / "d").symlink_to("other")
    for name in ("changed", "removed", "linked", "d/e"):
        assert not await has(tmp_path, item(name))


async def test_a_record_that_was_cut_off_does_not_spoil_others(tmp_path: Path) -> None:
    await place(tmp_path, item("a"))
    with (tmp_path / ".trainwright" / "fetched").open("ab") as file:
        file.write(b'{"name":"b","key')
    await place(tmp_path, item("c"))
    assert await has(tmp_path, item("a"))
    assert await has(tmp_path, item("c"))


@pytest.mark.parametrize("link", ["data", "data/deep", ".trainwright", ".trainwright/parts"])
async def test_links_in_the_target_are_not_followed(link: str, tmp_path: Path) -> None:
    target, outside = tmp_path / "target", tmp_path / "outside"
    outside.mkdir()
    (target / link).parent.mkdir(parents=True)
    (target / link).symlink_to(outside)
    with pytest.raises(UnsafeName, match="is in the way: it is a symbolic link"):
        await place(target, item("data/deep/file"))
    assert not list(outside.iterdir())


async def test_a_link_under_the_file_s_own_name_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "file").symlink_to(victim)
    await place(tmp_path / "target", item("file"))
    assert victim.read_bytes() == b"precious"
    assert not (tmp_path / "target" / "file").is_symlink()


async def test_a_directory_in_the_place_of_a_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file" / "inside").mkdir(parents=True)
    with pytest.raises(InitializerError, match="file: "):
        await place(tmp_path, item("file"))
    assert (tmp_path / "file" / "inside").is_dir()


async def test_a_copy_from_a_store_is_checked_and_leaves_the_store_alone(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "blob").write_bytes(b"content")
    right = Digest("md5", "9a0364b9e99bb480dd25e1f0284c8555")
    with Folder.at(store) as folder:
        async with Target.opened(tmp_path / "target", SystemClock(), lambda: None) as target:
            assert not await target.copy_in(item("a"), folder, "blob", Digest("md5", "0" * 32))
            assert not (tmp_path / "target" / "a").exists()
            assert await target.copy_in(item("a"), folder, "blob", right)
    copy = tmp_path / "target" / "a"
    copy.write_bytes(b"changed")
    assert (store / "blob").read_bytes() == b"content"
    assert os.stat(copy).st_ino != os.stat(store / "blob").st_ino
