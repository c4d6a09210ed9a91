"""Rules of a schema: messages, reasons, paths, transitions, and rules that cannot be compiled."""

from __future__ import annotations

from typing import Any

from trainwright.schema.rules import check_rules_compile
from trainwright.schema.structural import StructuralSchema


def field(*rules: dict[str, Any], **schema: Any) -> StructuralSchema:
    inner = {"type": "integer", **schema, "x-kubernetes-validations": list(rules)}
    return StructuralSchema.compile({"type": "object", "properties": {"x": inner}})


def texts(schema: StructuralSchema, value: Any, old: Any = None) -> list[str]:
    return [str(error) for error in schema.validate_rules(value, old)]


def test_a_rule_without_a_message_quotes_itself() -> None:
    assert texts(field({"rule": " self > 1 "}), {"x": 0}) == ["x: Invalid value: 0: failed rule: self > 1"]


def test_a_message_expression_is_used_if_it_yields_one_line() -> None:
    rule = {"rule": "self > 1", "message": "plain"}
    assert texts(field({**rule, "messageExpression": "'got ' + string(self)"}), {"x": 0}) == [
        "x: Invalid value: 0: got 0"
    ]
    for bad in ("''", "'a\\nb'", "string(1 / 0)"):
        assert texts(field({**rule, "messageExpression": bad}), {"x": 0}) == ["x: Invalid value: 0: plain"]


def test_a_rule_may_set_its_reason_and_field_path() -> None:
    schema = StructuralSchema.compile(
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "x-kubernetes-validations": [
                {"rule": "self.a > 1", "message": "m", "reason": "FieldValueForbidden", "fieldPath": ".a"},
                {"rule": "self.a > 1", "message": "m", "reason": "FieldValueRequired", "fieldPath": "['b']"},
            ],
        }
    )
    assert texts(schema, {"a": 0}) == ["a: Forbidden: m", "[b]: Required value: m"]


def test_an_evaluation_error_names_the_rule() -> None:
    assert texts(field({"rule": "1 / self == 1", "message": "m"}), {"x": 0}) == [
        'x: Invalid value: "integer": division by zero evaluating rule: m'
    ]
    assert texts(field({"rule": "self > 1", "message": "m"}), {"x": 2.0}) == [
        'x: Invalid value: "integer": invalid data, expected int, got float64 evaluating rule: m'
    ]
    mixed = {"x-kubernetes-int-or-string": True, "type": ""}
    assert texts(field({"rule": "self > 1", "message": "m"}, **mixed), {"x": "a"})[0].endswith(
        "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: m"
    )


def test_transition_rules_need_both_values() -> None:
    schema = field({"rule": "self == oldSelf", "message": "fixed"})
    assert texts(schema, {"x": 1}) == []
    assert texts(schema, {"x": 1}, {}) == []
    assert texts(schema, {"x": 1}, {"x": 1}) == []
    assert texts(schema, {"x": 2}, {"x": 1}) == ["x: Invalid value: 2: fixed"]
    optional = field({"rule": "oldSelf.hasValue() || self > 5", "message": "m", "optionalOldSelf": True})
    assert texts(optional, {"x": 1}) == ["x: Invalid value: 1: m"]
    assert texts(optional, {"x": 1}, {"x": 0}) == []


def test_list_items_are_matched_with_old_ones_by_key_only() -> None:
    item = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "v": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "grows"}]},
        },
    }
    keyed = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    plain = {"type": "array", "items": item}
    schema = StructuralSchema.compile({"type": "object", "properties": {"k": keyed, "p": plain}})
    old = {"k": [{"name": "a", "v": 5}, {"name": "b", "v": 1}], "p": [{"name": "a", "v": 5}]}
    new = {"k": [{"name": "b", "v": 1}, {"name": "a", "v": 4}], "p": [{"name": "a", "v": 1}]}
    assert texts(schema, new, old) == ["k[1].v: Invalid value: 4: grows"]


def test_a_rule_that_fails_on_an_unchanged_value_is_ratcheted() -> None:
    schema = field({"rule": "self > 10", "message": "big"})
    assert texts(schema, {"x": 1}, {"x": 1}) == []
    assert texts(schema, {"x": 2}, {"x": 1}) == ["x: Invalid value: 2: big"]


def test_rules_that_do_not_compile_are_listed() -> None:
    schema = field({"rule": "self >"}, {"rule": "self > 1"}, {"rule": "nobody > 1"})
    found = check_rules_compile(schema, "openAPIV3Schema")
    assert [error.field for error in found] == [
        "openAPIV3Schema.properties[x].x-kubernetes-validations[0].rule",
        "openAPIV3Schema.properties[x].x-kubernetes-validations[2].rule",
    ]
