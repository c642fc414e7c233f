# JSON Schemas of tools, in the dialect that a server takes.
#
# Rule 1: pure, and total: whatever the schema holds (it may come from another program's tools), it raises nothing. What
# can't be said in the dialect is left out, and said in the description where that helps the model.
# Rule 2: only positions of schemas are rewritten. A property may be called `default`; an example may hold `$ref`.
# Rule 3: fitting twice is fitting once, and the same schema gives the same bytes (S3.10b): keywords stand in one order.
# Rule 4: bounded. References are put in place at most `_MOST_REFERENCES` times and schemas nest at most `_DEEPEST` deep.
#
# Theory of operation. `_Fitter.fit` first makes one plain schema of what is one in several pieces (`$ref`, `allOf`, a choice
# of one, null as a choice), then rewrites keywords, then fits the schemas inside.

"""Rewrites a JSON Schema without the keywords that a server refuses, keeping the meaning where it can."""

from __future__ import annotations

from typing import Any, cast

from msgspec.json import encode

GEMINI_REFUSED = frozenset(
    {
        # Not in the `Schema` of Google's reference (a subset of OpenAPI 3.0): 400 "Unknown name ... Cannot find field".
        "$anchor", "$comment", "$defs", "$dynamicAnchor", "$dynamicRef", "$id", "$ref", "$schema", "additionalItems",
        "additionalProperties", "allOf", "const", "contains", "contentEncoding", "contentMediaType", "contentSchema",
        "definitions", "dependencies", "dependentRequired", "dependentSchemas", "deprecated", "else", "examples",
        "exclusiveMaximum", "exclusiveMinimum", "if", "maxContains", "minContains", "multipleOf", "not", "oneOf",
        "patternProperties", "prefixItems", "propertyNames", "readOnly", "then", "unevaluatedItems",
        "unevaluatedProperties", "uniqueItems", "writeOnly",
        # In the reference, but refused by some of its versions.
        "default", "title",
        # Taken, but not in these forms.
        "anyOf: with others", "enum: not text", "format: unknown", "items: missing", "type: list", "type: missing",
        "type: null",
    }
)  # fmt: skip
"""What Gemini's function declarations refuse.

Besides keywords, `refused` may name forms: `type: list` a list of types; `type: null` the null type (`nullable` takes its
place); `enum: not text` values that are not text; `format: unknown` formats but those of OpenAPI; `items: missing` an array
without `items`; `type: missing` a schema of anything; `anyOf: with others` keywords beside an `anyOf`.
"""

_FORMATS = {"date-time", "enum", "int32", "int64", "float", "double"}
_ONE = ("items", "additionalProperties", "additionalItems", "not", "if", "then", "else", "contains", "propertyNames",
        "unevaluatedItems", "unevaluatedProperties", "contentSchema")  # fmt: skip
_SEVERAL = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_FIRST = ("type", "nullable", "description", "format", "enum", "properties", "required", "items", "anyOf")
_TYPE_NAMES: dict[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_DEEPEST = 24
_MOST_REFERENCES = 200
_LONGEST_NOTE = 200
_TOO_DEEP: dict[str, Any] = {"type": "object", "description": "An object; what it holds is not told here."}
_AGAIN = "The same again, as described around it."

Schema = dict[str, Any]


def fit_schema(schema: Schema, refused: frozenset[str]) -> Schema:
    """`schema` without what `refused` names (see GEMINI_REFUSED); a new value, the given one is not changed."""
    return _Fitter(schema, refused).fit(schema, 0, ())


class _Fitter:
    def __init__(self, root: Schema, refused: frozenset[str]) -> None:
        self._root = root
        self._refused = refused
        self._inline = "$ref" in refused or "$defs" in refused
        self._references = 0

    def fit(self, schema: object, depth: int, within: tuple[str, ...]) -> Schema:
        """One schema. within: the references that it stands in, to know one that leads back."""
        if not isinstance(schema, dict):
            return {"type": "string"} if "type: missing" in self._refused else {}  # `true`, or no schema at all: anything
        plain, within = self._plain(cast(Schema, schema), within)
        if depth >= _DEEPEST and _nests(plain):
            return dict(_TOO_DEEP)
        if depth and "anyOf: with others" in self._refused and _list(plain.get("anyOf")):
            plain = {"anyOf": [_joined(_without(plain, "anyOf"), branch) for branch in _list(plain["anyOf"])]}
        if self._refused and not (isinstance(plain.get("description"), str) and plain["description"]):
            plain.pop("description", None)  # one that says nothing would come and go as pieces are joined
        self._rewrite(plain)
        for name in self._refused:
            plain.pop(name, None)
        return _ordered(self._children(plain, depth, within))

    def _plain(self, schema: Schema, within: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
        """The schema with references, `allOf`, null and choices of one put in place."""
        plain = dict(schema)
        for _ in range(_DEEPEST):  # each round takes a layer off; a schema with more is cut
            before = plain
            if self._inline and "$ref" in plain:
                plain, within = self._resolved(plain, within)
            if "allOf" in self._refused and "allOf" in plain:
                branches = _list(plain["allOf"])
                plain = _without(plain, "allOf")
                for branch in branches:
                    part = branch
                    if self._inline and "$ref" in part:
                        part, within = self._resolved(part, within)
                    plain = _joined(part, plain)
            plain = self._one_choice(self._types(plain))
            if plain == before:
                break
        else:
            plain = _without(plain, "$ref", "allOf", "oneOf", "anyOf")
        if self._inline:
            plain = _without(plain, "$ref", "$defs", "definitions")
        return dict(plain), within

    def _resolved(self, schema: Schema, within: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
        reference, rest = schema["$ref"], _without(schema, "$ref")
        if not isinstance(reference, str):
            return rest, within
        found = _at(self._root, reference)
        self._references += 1
        if reference in within or found is None or self._references > _MOST_REFERENCES:
            return _joined({"type": "object", "description": _AGAIN if reference in within else ""}, rest), within
        return found | rest, (*within, reference)

    def _types(self, schema: Schema) -> Schema:
        """A list of types as one type, as nullable, or as a choice."""
        kinds = schema.get("type")
        if not isinstance(kinds, list) or not self._refused & {"type: list", "type: null"}:
            return schema
        named = [kind for kind in cast(list[object], kinds) if isinstance(kind, str)]
        rest = _without(schema, "type")
        if "null" in named and named != ["null"]:
            rest["nullable"] = True
            named = [kind for kind in named if kind != "null"]
        if len(named) == 1:
            return rest | {"type": named[0]}
        if not named or "type: list" not in self._refused:
            return rest | ({"type": named} if named else {})
        if "anyOf" in self._refused:
            return rest | {"type": named[0]}
        return rest if _list(rest.get("anyOf")) else rest | {"anyOf": [{"type": kind} for kind in named]}

    def _one_choice(self, schema: Schema) -> Schema:
        """`oneOf` as `anyOf`; without null; and where one choice remains, or only one may be said, that one in place."""
        if "oneOf" in schema and "oneOf" in self._refused:
            choices = schema["oneOf"]
            schema = _without(schema, "oneOf")
            schema.setdefault("anyOf", choices)
        if "anyOf" not in schema:
            return schema
        branches = _list(schema["anyOf"])
        rest = _without(schema, "anyOf")
        if self._refused & {"type: null", "anyOf"}:
            kept = [branch for branch in branches if not _is_null(branch)]
            if len(kept) < len(branches):
                rest["nullable"] = True
            branches = kept
        if not branches:
            return rest | ({"type": "null"} if rest.get("nullable") and "type" not in rest else {})
        if "anyOf" in self._refused:
            values = [_values(branch) for branch in branches]
            if all(values):
                return _joined(rest, branches[0] | {"enum": [one for several in values for one in several]})
            return _joined(rest, branches[0])
        if len(branches) == 1 and self._refused & {"type: null", "anyOf: with others"}:
            return _joined(rest, branches[0])
        return rest | {"anyOf": branches}

    def _rewrite(self, plain: Schema) -> None:
        """The keywords that have another form, in place."""
        refused = self._refused
        if "type: missing" in refused and "type" not in plain and "anyOf" not in plain and "$ref" not in plain:
            plain["type"] = _type_of(plain)
        if "const" in plain and "const" in refused:
            plain.setdefault("enum", [plain["const"]])
        if "prefixItems" in plain and "prefixItems" in refused:
            _set_items(plain, plain["prefixItems"], refused)
        if isinstance(plain.get("items"), list) and "prefixItems" in refused:
            _set_items(plain, plain.pop("items"), refused)
        for limit, way in (("minimum", 1), ("maximum", -1)):
            _include_limit(plain, limit, way, refused)
        if "default" in refused and plain.get("default") is not None:
            _note(plain, f"Default: {_short(plain['default'])}.")
        if "enum" in plain:
            self._fit_enum(plain)
        form = plain.get("format")
        if "format: unknown" in refused and "format" in plain and not (isinstance(form, str) and form in _FORMATS):
            del plain["format"]
        if plain.get("type") == "null" and "type: null" in refused:
            plain |= {"type": "string", "nullable": True}
        if plain.get("type") == "array" and "items: missing" in refused and not isinstance(plain.get("items"), dict):
            plain["items"] = {"type": "string"}

    def _fit_enum(self, plain: Schema) -> None:
        values = cast(list[object], plain["enum"]) if isinstance(plain["enum"], list) else []
        if "type: null" in self._refused and None in values:
            plain["nullable"] = True
            values = [value for value in values if value is not None]
        plain["enum"] = values
        other = "enum: not text" in self._refused and not all(isinstance(value, str) for value in values)
        if other or "enum" in self._refused:
            _note(plain, f"One of: {', '.join(_short(value) for value in values)}.")
            values = []
        if not values:
            del plain["enum"]

    def _children(self, plain: Schema, depth: int, within: tuple[str, ...]) -> Schema:
        fitted: Schema = {}
        for name, value in plain.items():
            if name in _NAMED:
                if isinstance(value, dict):
                    inside = cast(dict[str, object], value)
                    fitted[name] = {key: self.fit(one, depth + 1, within) for key, one in inside.items()}
            elif name in _SEVERAL or (name == "items" and isinstance(value, list)):
                fitted[name] = [self.fit(one, depth + 1, within) for one in _list(cast(object, value))]
            elif name in _ONE:
                fitted[name] = value if isinstance(value, bool) else self.fit(value, depth + 1, within)
            else:
                fitted[name] = value
        if isinstance(fitted.get("required"), list) and "properties" in fitted:
            known = fitted["properties"]  # a name that is no property is refused by Gemini
            fitted["required"] = [one for one in fitted["required"] if isinstance(one, str) and one in known]
        return {name: value for name, value in fitted.items() if name != "required" or value}


def _nests(schema: Schema) -> bool:
    several = any(schema.get(name) for name in (*_NAMED, *_SEVERAL)) or "$ref" in schema
    return several or any(isinstance(schema.get(name), dict | list) for name in _ONE)


def _list(value: object) -> list[Schema]:
    """The schemas of a list; what is none is left out."""
    return [one for one in cast(list[Any], value) if isinstance(one, dict)] if isinstance(value, list) else []


def _without(schema: Schema, *names: str) -> Schema:
    return {name: value for name, value in schema.items() if name not in names}


def _joined(outer: Schema, inner: Schema) -> Schema:
    """Both at once: properties of both, required of both, both descriptions; else what `inner` says counts."""
    both = outer | inner
    for name in ("properties", "required"):
        first, second = outer.get(name), inner.get(name)
        if isinstance(first, dict) and isinstance(second, dict):
            both[name] = first | second
        elif isinstance(first, list) and isinstance(second, list):
            both[name] = [*first, *[one for one in cast(list[object], second) if one not in first]]
    told = [one["description"] for one in (outer, inner) if isinstance(one.get("description"), str) and one["description"]]
    both.pop("description", None)
    return both | ({"description": " ".join(dict.fromkeys(told))} if told else {})


def _is_null(schema: Schema) -> bool:
    return schema.get("type") in ("null", ["null"]) or (schema.get("const", 0) is None) or schema.get("enum") == [None]


def _values(schema: Schema) -> list[object]:
    if "const" in schema:
        return [schema["const"]]
    return cast(list[object], schema["enum"]) if isinstance(schema.get("enum"), list) else []


def _type_of(schema: Schema) -> str:
    """The type that a schema without one speaks of; text where it may be anything."""
    if "properties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    kinds: set[str] = {_TYPE_NAMES.get(type(value), "string") for value in _values(schema) if value is not None}
    if kinds == {"integer", "number"}:
        return "number"
    return kinds.pop() if len(kinds) == 1 else "string"


def _set_items(plain: Schema, tuple_of: object, refused: frozenset[str]) -> None:
    """The places of a tuple as what each item may be."""
    choices: list[Schema] = []
    for one in _list(tuple_of):
        if one not in choices:
            choices.append(one)
    if choices and not isinstance(plain.get("items"), dict):
        plain["items"] = choices[0] if len(choices) == 1 or "anyOf" in refused else {"anyOf": choices}


def _include_limit(plain: Schema, limit: str, way: int, refused: frozenset[str]) -> None:
    exclusive = "exclusive" + limit.capitalize()
    value = plain.get(exclusive)
    if exclusive in refused and limit not in plain and isinstance(value, int | float) and not isinstance(value, bool):
        plain[limit] = value + way if plain.get("type") == "integer" and isinstance(value, int) else value


def _note(plain: Schema, said: str) -> None:
    told = plain.get("description")
    plain["description"] = f"{told} {said}" if isinstance(told, str) and told else said


def _short(value: object) -> str:
    try:
        return encode(value).decode("utf-8", "replace")[:_LONGEST_NOTE]
    except (TypeError, ValueError, RecursionError):  # what is no JSON can't be sent anyhow
        return "(not shown)"


def _at(root: Schema, reference: str) -> Schema | None:
    """What a reference inside the same document leads to."""
    place: Any = root
    if not reference.startswith("#"):
        return None
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(place, list) and name.isdecimal() and int(name) < len(cast(list[Any], place)):
            place = cast(list[Any], place)[int(name)]
        elif isinstance(place, dict) and name in place:
            place = cast(Schema, place)[name]
        else:
            return None
    return cast(Schema, place) if isinstance(place, dict) else None


def _ordered(schema: Schema) -> Schema:
    known = [name for name in _FIRST if name in schema]
    return {name: schema[name] for name in [*known, *sorted(name for name in schema if name not in _FIRST)]}
