"""Applied configurations, parsed and measured: controllers apply the same bytes over and over."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import NamedTuple

from trainwright.embedded.apiserver.fieldmanager.manager import FieldManager
from trainwright.embedded.apiserver.fieldmanager.updater import AppliedConfiguration

MOST_ENTRIES, LARGEST_BODY = 128, 64 * 1024


class ParsedApply(NamedTuple):
    """The configuration, and the fields that its body had twice."""

    configuration: AppliedConfiguration
    duplicates: list[str]


class AppliedCache:
    """The configurations used last, by the field manager (of one version of a type) and the body."""

    def __init__(self) -> None:
        self._entries: collections.OrderedDict[tuple[FieldManager, bytes], ParsedApply] = collections.OrderedDict()

    def get(self, manager: FieldManager, body: bytes, parse: Callable[[], ParsedApply]) -> ParsedApply:
        """The entry, made by `parse` if it is not there."""
        key = (manager, body)
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
            return found
        found = parse()
        if len(body) <= LARGEST_BODY:
            self._entries[key] = found
            if len(self._entries) > MOST_ENTRIES:
                self._entries.popitem(last=False)
        return found
