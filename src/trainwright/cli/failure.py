"""The failure of a command: one message for the user and an exit code, never a traceback."""

from __future__ import annotations


class Failure(Exception):
    """A command failed. The message says what, where and what to do; `main` prints it and exits with `code`."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
