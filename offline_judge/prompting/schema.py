"""Owns the subset of JSON Schema that a judge's constrained answer may use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from offline_judge.errors import SchemaError

MAX_TEXT = 2000
MAX_ITEM_TEXT = 200
MAX_ITEMS = 16
# Free whitespace lets a model pad its JSON until the token limit; LLGuidance can forbid it.
GUIDANCE = {"whitespace_flexible": False}

_NOTES = ("title", "description", "default", "examples")


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse a schema that engines may not obey, may obey slowly, or may ignore in part.

    Allowed is one flat object (additionalProperties false) of strings (maxLength up to 2000),
    booleans, enums of integers or of strings, and arrays (maxItems up to 16) of strings
    (maxLength up to 200).

    Raises:
        SchemaError: naming the path of what is not in the subset.
    """
    allowed = ("type", "properties", "required", "additionalProperties", "x-guidance")
    _only(schema, allowed, "$")
    if schema.get("type") != "object":
        raise SchemaError("An answer schema must be an object", where="$.type")
    if schema.get("additionalProperties") is not False:
        raise SchemaError("Unknown fields must be forbidden", where="$.additionalProperties")
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        raise SchemaError("An answer schema needs fields", where="$.properties")
    for name in schema.get("required", ()):
        if name not in properties:
            raise SchemaError(f"Required field `{name}` is not defined", where="$.required")
    if "x-guidance" in schema and schema["x-guidance"] != GUIDANCE:
        raise SchemaError(f"Only {GUIDANCE} is allowed", where="$.x-guidance")
    for name, field in properties.items():
        _check_field(field, f"$.properties.{name}")


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The subset schema of a pydantic model, its fields in the model's order.

    List items for which the model gives no bound get the greatest allowed one.

    Raises:
        SchemaError: the model has a field the subset cannot express.
    """
    raw = model.model_json_schema()
    definitions = raw.get("$defs", {})
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            name: _simplify(field, definitions) for name, field in raw.get("properties", {}).items()
        },
        "required": list(raw.get("required", ())),
        "additionalProperties": False,
        "x-guidance": dict(GUIDANCE),
    }
    check_schema(schema)
    return schema


def _simplify(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Resolve pydantic's references to enums and drop notes; anything else is left to the check."""
    reference = str(field.get("$ref", ""))
    if reference.startswith("#/$defs/"):
        rest = {key: value for key, value in field.items() if key != "$ref"}
        field = {**definitions.get(reference.removeprefix("#/$defs/"), {}), **rest}
    simple = {key: value for key, value in field.items() if key not in _NOTES}
    if "const" in simple:
        simple["enum"] = [simple.pop("const")]
    if isinstance(simple.get("items"), Mapping):
        items = _simplify(simple["items"], definitions)
        if items == {"type": "string"}:
            items["maxLength"] = MAX_ITEM_TEXT
        simple["items"] = items
    return simple


def _check_field(field: Any, path: str) -> None:
    if not isinstance(field, Mapping):
        raise SchemaError("A field must be described by an object", where=path)
    kind = field.get("type")
    if "enum" in field:
        _check_enum(field, path)
    elif kind == "string":
        _check_text(field, path, MAX_TEXT)
    elif kind == "boolean":
        _only(field, ("type",), path)
    elif kind == "array":
        _only(field, ("type", "items", "maxItems"), path)
        _check_bound(field.get("maxItems"), MAX_ITEMS, f"{path}.maxItems")
        items = field.get("items")
        if not isinstance(items, Mapping) or items.get("type") != "string" or "enum" in items:
            raise SchemaError("Array items must be plain strings", where=f"{path}.items")
        _check_text(items, f"{path}.items", MAX_ITEM_TEXT)
    else:
        raise SchemaError(
            f"Not in the supported subset: {kind or ', '.join(sorted(field)) or 'anything'}",
            where=path,
            remedy="Use a bounded string, a boolean, an enum or a short list of strings.",
        )


def _check_enum(field: Mapping[str, Any], path: str) -> None:
    _only(field, ("type", "enum"), path)
    kinds: dict[Any, type] = {"string": str, "integer": int}
    kind = kinds.get(field.get("type"))
    values = field["enum"]
    # `type(...) is` and not isinstance: a bool is an int to Python and not to JSON.
    if (
        kind is None
        or not isinstance(values, list)
        or not values
        or any(type(value) is not kind for value in values)
    ):
        raise SchemaError("An enum must list strings or integers", where=f"{path}.enum")


def _check_text(field: Mapping[str, Any], path: str, limit: int) -> None:
    _only(field, ("type", "maxLength"), path)
    _check_bound(field.get("maxLength"), limit, f"{path}.maxLength")


def _check_bound(value: Any, limit: int, path: str) -> None:
    if type(value) is not int or not 0 < value <= limit:
        raise SchemaError(f"Needs a bound from 1 to {limit}, not {value!r}", where=path)


def _only(found: Mapping[str, Any], allowed: tuple[str, ...], path: str) -> None:
    for keyword in found:
        if keyword not in allowed:
            raise SchemaError(f"`{keyword}` is not in the supported subset", where=path)
