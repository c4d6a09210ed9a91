"""Label and field selectors of a list or watch, applied to stored objects."""

from __future__ import annotations

from collections.abc import Callable

from trainwright.embedded.apiserver.errors import bad_request
from trainwright.embedded.apiserver.http.requests import Query
from trainwright.embedded.apiserver.storage.objects import Stored
from trainwright.embedded.apiserver.types import Type
from trainwright.schema.selectors import (
    FieldSelector,
    LabelSelector,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
)


class Selection:
    """`name` is set when a field selector pins one name, so that a lookup can take the place of a scan."""

    __slots__ = ("_custom_fields", "_fields", "_labels", "everything", "name", "served")

    def __init__(self, served: Type, labels: LabelSelector, fields: FieldSelector) -> None:
        self.served = served
        self._labels = labels
        self._fields = fields
        self.everything = labels.everything and not fields.terms
        self._custom_fields = any(term.field not in ("metadata.name", "metadata.namespace") for term in fields.terms)
        pinned = [t.value for t in fields.terms if t.field == "metadata.name" and t.equal]
        self.name = pinned[0] if pinned else ""

    def matches(self, stored: Stored) -> bool:
        if self.everything:
            return True
        if not self._labels.everything and not self._labels.matches(self.served.strategy.labels_of(stored)):
            return False
        if not self._fields.terms:
            return True
        values = {"metadata.name": stored.key.name, "metadata.namespace": stored.key.namespace}
        if self._custom_fields:
            values.update(self.served.strategy.fields(self.served.whole_object(stored.data)))
        return self._fields.matches(values)


def selection(served: Type, query: Query, check_options: Callable[[], None] | None = None) -> Selection:
    """Raises 400 in the server's words for a selector that cannot be read or a field that cannot be selected by."""
    try:
        labels = parse_label_selector(query.get("labelSelector"))
        fields = parse_field_selector(query.get("fieldSelector"))
    except SelectorError as error:
        raise bad_request(str(error)) from None
    if check_options is not None:
        check_options()
    known = served.strategy.field_names()
    for term in fields.terms:
        scoped = term.field == "metadata.namespace" and (served.namespaced or not served.custom)
        if term.field != "metadata.name" and not scoped and term.field not in known:
            raise bad_request(_unsupported_field(served, term.field))
    return Selection(served, labels, fields)


def _unsupported_field(served: Type, name: str) -> str:
    if served.kind == "Job":
        return f'field label "{name}" not supported for Job'
    if served.custom or served.strategy.field_names():
        return f"field label not supported: {name}"
    return f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'
