"""Hooks of MkDocs (`make docs`): links from a page to the source tree.

On a page of the repository a link such as `../src/trainwright/cli/main.py` opens the file. The site has no such files:
there the link becomes its text. One that leads to nothing fails the build.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\((\.\.?/[^)\s]*)\)")


class BrokenLink(Exception):
    """A link to a file that is not there."""


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    here = (ROOT / "docs" / page.file.src_path).parent

    def replace(match: re.Match[str]) -> str:
        text, target = match.groups()
        path = (here / target.partition("#")[0]).resolve()
        if not path.exists():
            raise BrokenLink(f"{page.file.src_path}: {target} leads to nothing")
        return match.group() if path.is_relative_to(ROOT / "docs") else text

    return LINK.sub(replace, markdown)
