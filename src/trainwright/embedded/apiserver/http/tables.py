"""`kubectl get`: objects as rows of a Table, rendered by the server."""

from __future__ import annotations

from typing import Any

from trainwright.embedded.apiserver.errors import bad_request
from trainwright.embedded.apiserver.http.age import age_of
from trainwright.embedded.apiserver.types import Column, Type
from trainwright.schema.jsonobject import Json


def name_of(obj: Json, now: float) -> Any:
    return obj["metadata"].get("name", "")


def created(obj: Json, now: float) -> Any:
    return obj["metadata"].get("creationTimestamp")


def age(obj: Json, now: float) -> str:
    return age_of(obj["metadata"].get("creationTimestamp"), now)


NAME = Column("Name", "string", name_of, format="name", description="The name of the object.")
DEFAULT_COLUMNS = (
    NAME,
    Column("Created At", "date", created, description="When the object was made."),
)
AGE = Column("Age", "string", age, description="The time since the object was made.")


def definitions(served: Type) -> list[Json]:
    return [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        }
        for column in served.columns or DEFAULT_COLUMNS
    ]


def table(served: Type, objs: list[Json], include: str, now: float, version: str = "v1") -> Json:
    """`include` is the query parameter includeObject: None, Metadata (the default) or Object."""
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": {},
        "columnDefinitions": definitions(served),
        "rows": [row(served, obj, include, now, version) for obj in objs],
    }


def row(served: Type, obj: Json, include: str, now: float, version: str = "v1") -> Json:
    columns = served.columns or DEFAULT_COLUMNS
    found: Json = {"cells": [column.cell(obj, now) for column in columns]}
    if served.row_conditions is not None:
        conditions = served.row_conditions(obj)
        if conditions:
            found["conditions"] = conditions
    if include in ("", "Metadata"):
        found["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"meta.k8s.io/{version}",
            "metadata": obj["metadata"],
        }
    elif include == "Object":
        found["object"] = obj
    elif include == "None":
        found["object"] = None
    else:
        text = "must be 'Metadata', 'Object', 'None', or empty"
        raise bad_request(f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": {text}')
    return found
