"""The files of the page, read once, compressed once, and named by what is in them (ETag).

Indentation, comments and most line breaks are for readers of the source, and are left out: no text of the page depends
on the beginning of a line, and htm drops blanks with a line break in them.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from pathlib import Path
from typing import NamedTuple

STATIC = Path(__file__).parent / "static"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


BREAKS = re.compile(r"(?<=>)\n(?=<|\$\{)|(?<=\})\n(?=<)|(?<=[;{,(])\n|\n(?=\})")
"""Of a script: those between tags, and those that end no statement."""

BLANKS = re.compile(r";?\s*(\})\s*|\s*([{;,])\s*|(?<=:) (?=\S)")
"""Of a style sheet: those that mean nothing."""


class Asset(NamedTuple):
    content_type: str
    plain: bytes
    compressed: bytes
    tag: str


class Assets:
    """By path, such as `/static/app.js`."""

    def __init__(self, directory: Path = STATIC) -> None:
        self._found: dict[str, Asset] = {}
        for file in sorted(directory.rglob("*")):
            if file.suffix in TYPES:
                plain = _lean(file)
                tag = f'"{hashlib.sha256(plain).hexdigest()[:16]}"'
                path = f"/static/{file.relative_to(directory).as_posix()}"
                self._found[path] = Asset(TYPES[file.suffix], plain, _compressed(plain), tag)

    def get(self, path: str) -> Asset | None:
        return self._found.get(path)

    @property
    def page(self) -> Asset:
        return self._found["/static/index.html"]

    @property
    def compressed_size(self) -> int:
        return sum(len(asset.compressed) for asset in self._found.values())


def _compressed(plain: bytes) -> bytes:
    """As gzip; with this much memory, texts of this size come out smallest."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31, 7)
    return compressor.compress(plain) + compressor.flush()


def _lean(file: Path) -> bytes:
    if "vendor" in file.parts or file.suffix not in (".js", ".css"):
        return file.read_bytes()
    lines = (line.partition("  // ")[0].strip() for line in file.read_text().splitlines())
    text = "\n".join(line for line in lines if line and not line.startswith("//"))
    return (BLANKS.sub(r"\1\2", text) if file.suffix == ".css" else BREAKS.sub("", text)).encode()
