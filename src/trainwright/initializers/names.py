"""Names that a source lists, made safe to use below a target directory.

In: what a server, a bucket or a disk calls a file. Out: the parts of a relative path. Invariant: no name leads out
of the directory it is joined to, into our own records there, or to a place where another name's file must be.
"""

from __future__ import annotations

from collections.abc import Iterable

from trainwright.initializers.errors import UnsafeName

RECORDS = ".trainwright"
"""The folder in a target where partial files and records are kept; no source may write there."""

_COMPONENT_BYTES = 255
_PATH_BYTES = 4000
_SHOWN = 200

Parts = tuple[str, ...]


def parts_of(name: str) -> Parts:
    """The components of a relative path; empty ones (`a//b`) are left out, as a file system does."""
    if name.startswith("/"):
        raise UnsafeName(f"{printable(name)}: an absolute name is not used; nothing was written")
    parts = tuple(part for part in name.split("/") if part)
    if not parts or any(part in (".", "..") for part in parts):
        raise UnsafeName(f"{printable(name)}: a name that leaves its directory is not used; nothing was written")
    if parts[0] == RECORDS:
        raise UnsafeName(f"{printable(name)}: the name {RECORDS} is taken by the initializer's own records")
    try:
        encoded = [part.encode() for part in parts]
    except UnicodeEncodeError:
        raise UnsafeName(f"{printable(name)}: the name is not valid Unicode") from None
    if b"\0" in b"".join(encoded):
        raise UnsafeName(f"{printable(name)}: a name with a NUL byte is not used")
    if max(map(len, encoded)) > _COMPONENT_BYTES or sum(map(len, encoded)) + len(encoded) > _PATH_BYTES:
        raise UnsafeName(f"{printable(name)}: the name is too long for a file system")
    return parts


def check_together(names: Iterable[str]) -> None:
    """Refuse a listing in which two names are one path, or one needs a directory where another has a file."""
    files: dict[Parts, str] = {}
    for name in names:
        parts = parts_of(name)
        if parts in files:
            raise UnsafeName(f"{printable(files[parts])} and {printable(name)} are the same file below the target")
        files[parts] = name
    for parts, name in files.items():
        for end in range(1, len(parts)):
            if parts[:end] in files:
                file = printable(files[parts[:end]])
                raise UnsafeName(f"{file} is a file, and {printable(name)} needs a directory of that name")


def printable(text: str) -> str:
    """A foreign text for a message: on one line, without what a terminal would obey, and not endless."""
    clean = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return clean if len(clean) <= _SHOWN else f"{clean[:_SHOWN]}…"
