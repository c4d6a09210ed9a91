"""What the API server checks of a custom resource."""

from __future__ import annotations

from trainwright.schema.custom_resource import check_update
from trainwright.schema.errors import FieldError
from trainwright.schema.structural import StructuralSchema


def test_a_broken_rule_that_is_let_be_is_told() -> None:
    schema = StructuralSchema.compile(
        {
            "type": "object",
            "properties": {"s": {"type": "string", "x-kubernetes-validations": [{"rule": "self == 'a'"}]}},
        }
    )
    spared: list[FieldError] = []
    assert check_update(schema, {"s": "b"}, {"s": "b"}, spared=spared) == []
    assert [str(fault) for fault in spared] == ["s: Invalid value: \"b\": failed rule: self == 'a'"]
    spared.clear()
    assert check_update(schema, {"s": "c"}, {"s": "b"}, spared=spared) != []
    assert spared == []
