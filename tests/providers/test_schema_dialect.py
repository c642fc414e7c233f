"""JSON Schemas in a server's dialect (cases.md, Gemini)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnkeeper.providers.schema_dialect import GEMINI_REFUSED, fit_schema

ONE = {"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"}
SEVERAL = {"anyOf", "oneOf", "allOf", "prefixItems"}
NAMED = {"properties", "patternProperties", "$defs", "definitions"}
REFUSALS = [
    GEMINI_REFUSED,
    frozenset({"$ref", "$defs"}),
    frozenset({"anyOf", "oneOf", "allOf", "type: list"}),
    frozenset({"default", "type: null", "nullable"}),
    GEMINI_REFUSED | {"anyOf", "enum", "format", "description"},
]


def nested(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def fitted(schema: dict[str, Any], refused: frozenset[str] = GEMINI_REFUSED) -> Any:
    """What a property of this schema becomes."""
    return fit_schema(nested(x=schema), refused)["properties"]["x"]


CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("additionalProperties", nested() | {"additionalProperties": False}, {"type": "object", "properties": {}}),
    ("a property of a refused name", nested(default={"type": "string"}), nested(default={"type": "string"})),
    (
        "null as a choice",
        {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "A town."},
        {"type": "string", "nullable": True, "description": "A town."},
    ),
    ("null as a type", {"type": ["string", "null"]}, {"type": "string", "nullable": True}),
    ("several types", {"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
    (
        "a choice with others beside it",
        {"description": "Either.", "oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"anyOf": [{"type": "string", "description": "Either."}, {"type": "integer", "description": "Either."}]},
    ),
    ("a constant", {"type": "string", "const": "a"}, {"type": "string", "enum": ["a"]}),
    ("a constant that is no text", {"type": "integer", "const": 3}, {"type": "integer", "description": "One of: 3."}),
    (
        "a default",
        {"type": "integer", "default": 6, "description": "Sides.", "title": "Sides"},
        {"type": "integer", "description": "Sides. Default: 6."},
    ),
    ("an exclusive limit of whole numbers", {"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}),
    ("an exclusive limit of numbers", {"type": "number", "exclusiveMaximum": 1}, {"type": "number", "maximum": 1}),
    ("formats", {"type": "string", "format": "uuid"}, {"type": "string"}),
    ("a format that is known", {"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
    ("all of", {"allOf": [nested(a={"type": "string"}), nested(b={"type": "number"})]}, nested(b={"type": "number"}, a={"type": "string"})),
    ("a list without items", {"type": "array"}, {"type": "array", "items": {"type": "string"}}),
    ("a tuple", {"type": "array", "prefixItems": [{"type": "string"}, {"type": "string"}]}, {"type": "array", "items": {"type": "string"}}),
    ("a required name that is no property", nested(a={"type": "string"}) | {"required": ["a", "b"]}, nested(a={"type": "string"}) | {"required": ["a"]}),
    ("null and nothing else", {"type": "null"}, {"type": "string", "nullable": True}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "schema", "expected"), CASES, ids=[case[0] for case in CASES])
def test_gemini_is_told_the_same_in_its_own_words(name: str, schema: dict[str, Any], expected: dict[str, Any]) -> None:
    assert fitted(schema) == expected


def test_a_reference_is_put_in_place_and_one_that_leads_back_is_a_plain_object() -> None:
    tree = nested(name={"type": "string"}, child={"$ref": "#/$defs/Tree"})
    schema = nested(tree={"$ref": "#/$defs/Tree", "description": "The tree."}) | {"$defs": {"Tree": tree}}
    found = fit_schema(schema, frozenset({"$ref", "$defs"}))["properties"]["tree"]
    assert found["description"] == "The tree."
    assert found["properties"]["name"] == {"type": "string"}
    assert found["properties"]["child"]["type"] == "object"
    assert found["properties"]["child"]["description"]


def test_references_that_double_at_each_step_stay_small() -> None:
    definitions = {f"D{n}": nested(a={"$ref": f"#/$defs/D{n + 1}"}, b={"$ref": f"#/$defs/D{n + 1}"}) for n in range(40)}
    schema = {"$ref": "#/$defs/D0", "$defs": definitions}
    assert len(json.dumps(fit_schema(schema, GEMINI_REFUSED))) < 100_000


def test_choices_that_can_not_be_said_become_one() -> None:
    refused = frozenset({"anyOf", "oneOf", "const"})
    assert fitted({"oneOf": [{"const": "a"}, {"const": "b"}]}, refused) == {"enum": ["a", "b"]}
    assert fitted({"anyOf": [{"type": "string"}, {"type": "integer"}]}, refused) == {"type": "string"}


def test_nothing_refused_changes_no_meaning_and_the_given_schema_is_never_changed() -> None:
    schema = nested(a={"anyOf": [{"type": ["string", "null"]}], "default": None}, b={"$ref": "#/$defs/B"}) | {
        "$defs": {"B": {"const": 1}}
    }
    before = copy.deepcopy(schema)
    assert fit_schema(schema, frozenset()) == schema
    fit_schema(schema, GEMINI_REFUSED)
    assert schema == before


def test_the_order_of_keywords_does_not_depend_on_the_order_given() -> None:
    one = {"title": "T", "type": "string", "description": "d", "maxLength": 3, "minLength": 1}
    assert json.dumps(fitted(one)) == json.dumps(fitted(dict(reversed(one.items()))))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["a", "string", "#/$defs/A", "default"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "default", "$ref"]), inner, max_size=2),
    max_leaves=4,
)
TYPES = st.sampled_from(
    ["string", "integer", "object", "array", "null", ["string", "null"], ["string", "integer"], ["null"], [], 5]
)
REFERENCES = st.sampled_from(["#/$defs/A", "#/$defs/B", "#", "#/properties/a", "http://elsewhere/x", 7])


def schemas(depth: int) -> st.SearchStrategy[Any]:
    inner = schemas(depth - 1) if depth else st.just({"type": "string"}) | st.booleans() | VALUES
    names = st.sampled_from(["a", "b", "default", "$ref", "title", "type"])
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": TYPES, "$ref": REFERENCES, "const": VALUES, "default": VALUES, "examples": VALUES, "title": VALUES,
        "enum": st.lists(VALUES, max_size=3) | VALUES, "format": st.sampled_from(["uuid", "date-time", [], 3]),
        "description": st.sampled_from(["", "said", 4]), "nullable": st.booleans(), "required": st.lists(names | VALUES, max_size=2),
        "exclusiveMinimum": VALUES, "minimum": st.integers(0, 3), "unheard": VALUES,
        **{name: inner | st.lists(inner, max_size=2) for name in sorted(ONE)},
        **{name: st.lists(inner, max_size=3) | VALUES for name in sorted(SEVERAL)},
        **{name: st.dictionaries(names | st.sampled_from(["A", "B"]), inner, max_size=3) | VALUES for name in sorted(NAMED)},
    }  # fmt: skip
    return st.lists(st.sampled_from(sorted(keywords)), max_size=4, unique=True).flatmap(
        lambda chosen: st.fixed_dictionaries({name: keywords[name] for name in chosen})
    )


def positions(schema: Any, depth: int = 0) -> list[tuple[int, dict[str, Any]]]:
    """Every schema inside a schema, with its depth."""
    if not isinstance(schema, dict):
        return []
    found = [(depth, schema)]
    for name, value in schema.items():
        if name in NAMED and isinstance(value, dict):
            inside = list(value.values())
        elif name in SEVERAL | ONE:
            inside = value if isinstance(value, list) else [value]
        else:
            inside = []
        found += [one for schema_inside in inside for one in positions(schema_inside, depth + 1)]
    return found


def test_an_empty_description_does_not_come_and_go() -> None:
    schema = {"description": "", "prefixItems": [{}, {"additionalProperties": {}, "$ref": "#"}]}
    found = fit_schema(schema, GEMINI_REFUSED)
    assert fit_schema(found, GEMINI_REFUSED) == found


@pytest.mark.parametrize("refused", REFUSALS, ids=lambda one: f"{len(one)} refused")
@given(schema=schemas(2))
@settings(max_examples=150, deadline=None)
def test_any_schema_comes_out_without_what_is_refused(refused: frozenset[str], schema: dict[str, Any]) -> None:
    found = fit_schema(schema, refused)
    for depth, inside in positions(found):
        assert depth <= 26
        assert not refused & set(inside), inside
        if "type: list" in refused:
            assert not isinstance(inside.get("type"), list)
        if "type: null" in refused:
            assert inside.get("type") != "null"
        if "enum: not text" in refused:
            assert all(isinstance(value, str) for value in inside.get("enum", []))
    assert fit_schema(found, refused) == found
    assert json.dumps(fit_schema(found, refused)) == json.dumps(found)


@given(names=st.lists(st.sampled_from(sorted(GEMINI_REFUSED)), unique=True))
def test_properties_with_the_names_of_refused_keywords_survive(names: list[str]) -> None:
    schema = nested(**{name: {"type": "string", "default": "x"} for name in names})
    assert list(fit_schema(schema, GEMINI_REFUSED)["properties"]) == names


def test_a_schema_deeper_than_any_tool_is_cut() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(300):
        schema = {"type": "array", "items": schema}
    found = fit_schema(schema, GEMINI_REFUSED)
    assert max(depth for depth, _ in positions(found)) <= 24
    assert fit_schema(found, GEMINI_REFUSED) == found
