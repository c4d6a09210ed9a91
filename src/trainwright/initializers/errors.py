"""Every way an initializer can fail, as one tree.

Each class has an exit code, so that a Job's pod failure policy can tell what may pass from what will not.

    InitializerError
    ├── Misconfigured  2   a variable, a flag or the URI cannot be used; nothing was asked of anybody
    ├── NotPermitted   3   the credentials are missing, wrong, or do not allow it
    ├── Missing        4   no such repository, bucket, object or file
    ├── NoSpace        5   the disk is full, or would be
    ├── Unreachable    6   no answer until the deadline, or a server that is not trusted
    ├── Damaged        7   the bytes are not those the source promised
    └── UnsafeName     8   the source lists names that would leave the target directory, or that exclude each other

Two more are not failures yet. `Transient` is tried again with back-off until the deadline (`retry`), `Changed`
makes the whole initializer list its source again (`run`). Messages are one sentence: what, where, and what to do.
"""

from __future__ import annotations


class InitializerError(Exception):
    """The initializer cannot go on. The message is for the user; `code` is the exit code of the command."""

    code = 1


class Misconfigured(InitializerError):
    code = 2


class NotPermitted(InitializerError):
    code = 3


class Missing(InitializerError):
    code = 4


class NoSpace(InitializerError):
    code = 5


class Unreachable(InitializerError):
    code = 6


class Damaged(InitializerError):
    code = 7


class UnsafeName(InitializerError):
    code = 8


class Changed(Damaged):
    """The source has other bytes under the same name than when it was listed."""


class Transient(Exception):
    """This request failed and another one may not. `retry_after` is when the server wants to be asked again."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after
