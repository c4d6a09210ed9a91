"""What stays out of an archive: rules of `.gitignore` and `.trainwrightignore`, and what nobody wants there.

Rules are git's: a file's rules hold for its directory and below, deeper ones win over those above, the last rule that
matches wins, and nothing under an ignored directory comes back. Files above the working directory count as far up as
its repository reaches. `.trainwrightignore` has the same form and comes after the `.gitignore` beside it, so it can
take out more, or take something back in (`!data/small.csv`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

FILES = (".gitignore", ".trainwrightignore")
NEVER = frozenset([".git", ".hg", ".svn", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"])


class Ignoring:
    """The rules for one working directory."""

    def __init__(self, workdir: Path) -> None:
        self._specs: dict[Path, GitIgnoreSpec | None] = {}
        self._top = _repository(workdir)

    def leaves_out(self, path: Path, *, is_directory: bool) -> bool:
        """Whether a file or directory, whose own directory is not left out, is left out."""
        if path.name in NEVER or path.suffix == ".pyc":
            return True
        if is_directory and (path / "pyvenv.cfg").exists():  # a virtualenv works only where it was made
            return True
        folder = path.parent
        while True:
            spec = self._spec(folder)
            if spec is not None:
                text = path.relative_to(folder).as_posix() + ("/" if is_directory else "")
                decided = spec.check_file(text).include
                if decided is not None:
                    return decided
            if folder == self._top or folder == folder.parent:
                return False
            folder = folder.parent

    def _spec(self, folder: Path) -> GitIgnoreSpec | None:
        if folder not in self._specs:
            from pathspec import GitIgnoreSpec

            lines = [line for name in FILES for line in _lines(folder / name)]
            self._specs[folder] = GitIgnoreSpec.from_lines(lines) if lines else None
        return self._specs[folder]


def _repository(workdir: Path) -> Path:
    """The root of the git repository around the directory, or the directory itself."""
    for folder in (workdir, *workdir.parents):
        if (folder / ".git").exists():
            return folder
    return workdir


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(errors="replace").splitlines()
    except OSError:
        return []
