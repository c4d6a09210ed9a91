"""What the API server checks of a custom resource."""

from __future__ import annotations

from trainwright.schema.custom_resource import check_update
from trainwright.schema.errors import FieldError
from trainwright.schema.structural import StructuralSchema


def test_a_ratcheted_rule_is_reported_apart() -> None:
    schema = StructuralSchema.compile(
        {
            "type": "object",
            "properties": {"s": {"type": "string", "x-kubernetes-validations": [{"rule": "self == 'a'"}]}},
        }
    )
    ratcheted: list[FieldError] = []
    assert check_update(schema, {"s": "b"}, {"s": "b"}, ratcheted=ratcheted) == []
    assert [str(fault) for fault in ratcheted] == ["s: Invalid value: \"b\": failed rule: self == 'a'"]
    ratcheted.clear()
    assert check_update(schema, {"s": "c"}, {"s": "b"}, ratcheted=ratcheted) != []
    assert ratcheted == []
