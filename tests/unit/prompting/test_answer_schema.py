"""The subset of JSON Schema: what gets in, and that the refusal names the place."""

from enum import StrEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from offline_judge.errors import SchemaError
from offline_judge.prompting.schema import check_schema, schema_of


def _object(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": [], "additionalProperties": False}


class Stance(StrEnum):
    SUPPORTS = "supports"
    CONTRADICTS = "contradicts"


class Everything(BaseModel):
    """Notes that must not reach the engine."""

    why: str = Field(max_length=300, description="why")
    sure: bool
    grade: Literal[0, 1, 2]
    only: Literal["one"]
    stance: Stance
    cites: list[str] = Field(max_length=4)


def test_a_model_becomes_the_subset() -> None:
    assert schema_of(Everything) == {
        "type": "object",
        "properties": {
            "why": {"type": "string", "maxLength": 300},
            "sure": {"type": "boolean"},
            "grade": {"type": "integer", "enum": [0, 1, 2]},
            "only": {"type": "string", "enum": ["one"]},
            "stance": {"type": "string", "enum": ["supports", "contradicts"]},
            "cites": {
                "type": "array",
                "maxItems": 4,
                "items": {"type": "string", "maxLength": 200},
            },
        },
        "required": ["why", "sure", "grade", "only", "stance", "cites"],
        "additionalProperties": False,
        "x-guidance": {"whitespace_flexible": False},
    }
    assert next(iter(schema_of(Everything)["properties"])) == "why", "the model's order is kept"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"type": "array"}, "$.type"),
    ({**_object(a={"type": "boolean"}), "additionalProperties": True}, "$.additionalProperties"),
    ({"type": "object", "properties": {}, "additionalProperties": False}, "$.properties"),
    ({**_object(a={"type": "boolean"}), "required": ["b"]}, "$.required"),
    ({**_object(a={"type": "boolean"}), "$defs": {}}, "$"),
    ({**_object(a={"type": "boolean"}), "oneOf": []}, "$"),
    ({**_object(a={"type": "boolean"}), "x-guidance": {"lark": "..."}}, "$.x-guidance"),
    (_object(a={"$ref": "#/$defs/A"}), "$.properties.a"),
    (_object(a={"anyOf": [{"type": "string"}, {"type": "null"}]}), "$.properties.a"),
    (_object(a={"type": "string"}), "$.properties.a.maxLength"),
    (_object(a={"type": "string", "maxLength": 2001}), "$.properties.a.maxLength"),
    (_object(a={"type": "string", "maxLength": True}), "$.properties.a.maxLength"),
    (_object(a={"type": "string", "maxLength": 9, "pattern": "a*"}), "$.properties.a"),
    (_object(a={"type": "string", "maxLength": 9, "minLength": 1}), "$.properties.a"),
    (_object(a={"type": "string", "maxLength": 9, "format": "date"}), "$.properties.a"),
    (_object(a={"type": "integer"}), "$.properties.a"),
    (_object(a={"type": "integer", "minimum": 0, "maximum": 5}), "$.properties.a"),
    (_object(a={"type": "number"}), "$.properties.a"),
    (_object(a={"type": "integer", "enum": [0, True]}), "$.properties.a.enum"),
    (_object(a={"type": "string", "enum": []}), "$.properties.a.enum"),
    (_object(a={"enum": ["x", 1]}), "$.properties.a.enum"),
    (_object(a=_object(b={"type": "boolean"})), "$.properties.a"),
    (_object(a={"type": "array", "items": {"type": "string", "maxLength": 9}}),
     "$.properties.a.maxItems"),
    (_object(a={"type": "array", "maxItems": 17, "items": {"type": "string", "maxLength": 9}}),
     "$.properties.a.maxItems"),
    (_object(a={"type": "array", "maxItems": 2, "items": {"type": "boolean"}}),
     "$.properties.a.items"),
    (_object(a={"type": "array", "maxItems": 2, "items": {"type": "string", "maxLength": 201}}),
     "$.properties.a.items.maxLength"),
    (_object(a=True), "$.properties.a"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "path"), REFUSED)
def test_anything_else_is_refused_with_its_path(schema: dict[str, Any], path: str) -> None:
    with pytest.raises(SchemaError) as caught:
        check_schema(schema)
    assert caught.value.where == path


class Nested(BaseModel):
    inner: Everything


class Ranged(BaseModel):
    score: int = Field(ge=0, le=5)


class Maybe(BaseModel):
    sure: bool | None


@pytest.mark.parametrize("model", [Nested, Ranged, Maybe])
def test_a_model_outside_the_subset_is_refused(model: type[BaseModel]) -> None:
    with pytest.raises(SchemaError):
        schema_of(model)
