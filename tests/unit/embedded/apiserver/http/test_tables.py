"""Objects as rows of a Table."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.api.times import seconds_of
from trainwright.embedded.apiserver.errors import StatusError
from trainwright.embedded.apiserver.http import tables
from trainwright.embedded.apiserver.types import Column, Strategy, Type

OBJECT: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Thing",
    "metadata": {"name": "o", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"color": "red"},
}


NOW = seconds_of("2026-01-01T05:00:00Z")


def thing(**more: Any) -> Type:
    return Type("example.com", "v1", "things", "thing", "Thing", True, Strategy(), **more)


def test_a_type_without_columns_shows_name_and_creation() -> None:
    found = tables.table(thing(), [OBJECT], "None", NOW)
    assert [column["name"] for column in found["columnDefinitions"]] == ["Name", "Created At"]
    assert found["rows"] == [{"cells": ["o", "2026-01-01T00:00:00Z"], "object": None}]
    assert (found["kind"], found["apiVersion"]) == ("Table", "meta.k8s.io/v1")


def test_columns_are_described_with_all_members() -> None:
    served = thing(columns=(tables.NAME, Column("Color", "string", lambda obj, now: obj["spec"]["color"], priority=1)))
    assert tables.definitions(served)[1] == {
        "name": "Color",
        "type": "string",
        "format": "",
        "description": "",
        "priority": 1,
    }
    assert tables.row(served, OBJECT, "None", NOW)["cells"] == ["o", "red"]


@pytest.mark.parametrize("include", ["", "Metadata"])
def test_rows_carry_the_metadata_unless_asked_otherwise(include: str) -> None:
    assert tables.row(thing(), OBJECT, include, NOW, "v1beta1")["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1beta1",
        "metadata": OBJECT["metadata"],
    }


def test_rows_carry_the_whole_object_if_asked() -> None:
    assert tables.row(thing(), OBJECT, "Object", NOW)["object"] == OBJECT


def test_any_other_wish_is_refused() -> None:
    with pytest.raises(StatusError, match='"All"'):
        tables.row(thing(), OBJECT, "All", NOW)


def test_conditions_are_shown_only_where_there_are_some() -> None:
    done = [{"type": "Completed", "status": "True"}]
    assert tables.row(thing(row_conditions=lambda obj: done), OBJECT, "None", NOW)["conditions"] == done
    assert "conditions" not in tables.row(thing(row_conditions=lambda obj: []), OBJECT, "None", NOW)


def test_an_age_is_told_by_the_clock_of_the_server() -> None:
    served = thing(columns=(tables.NAME, tables.AGE))
    assert tables.row(served, OBJECT, "None", NOW)["cells"] == ["o", "5h"]
    assert tables.row(served, OBJECT, "None", NOW + 3600)["cells"] == ["o", "6h"]
