"""What callers call a type: its schema, and its values out of answers."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, NotRequired, TypedDict

import msgspec
import pydantic
import pytest

from bardo.structured.types import WrongShape, schema_of
from bardo.structured.validation import Checker
from bardo.values.errors import InvalidRequest

pytestmark = pytest.mark.each_python


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class StructPart(msgspec.Struct):
    name: str
    colour: Colour = Colour.RED


class StructWhole(msgspec.Struct):
    parts: list[StructPart]
    counts: dict[str, int] = {}
    kind: Literal["a", "b"] | None = None


@dataclass
class Part:
    name: str
    colour: Colour = Colour.RED


@dataclass
class Whole:
    parts: list[Part]
    counts: dict[str, int] = field(default_factory=dict)
    kind: Literal["a", "b"] | None = None


class TypedPart(TypedDict):
    name: str
    colour: NotRequired[Colour]


class TypedWhole(TypedDict):
    parts: list[TypedPart]
    counts: NotRequired[dict[str, int]]
    kind: NotRequired[Literal["a", "b"] | None]


class ModelPart(pydantic.BaseModel):
    name: str
    colour: Colour = Colour.RED


class ModelWhole(pydantic.BaseModel):
    parts: list[ModelPart]
    counts: dict[str, int] = {}
    kind: Literal["a", "b"] | None = None


class Own:
    """A class that says its own schema, as the documents' types do."""

    def __init__(self, text: str) -> None:
        self.text = text

    @classmethod
    def schema(cls) -> dict[str, Any]:
        return {"type": "object", "properties": {"name": {"type": "string"}}}

    @classmethod
    def from_json(cls, text: str) -> Own:
        if "bad" in text:
            raise ValueError("bad name")
        return cls(text)


WHOLES = [StructWhole, Whole, TypedWhole, ModelWhole]
GOOD = {"parts": [{"name": "n", "colour": "blue"}], "counts": {"x": 1}, "kind": "a"}


def read(value: Any, name: str) -> Any:
    return value[name] if isinstance(value, dict) else getattr(value, name)


@pytest.mark.parametrize("wanted", WHOLES, ids=lambda one: one.__name__)
def test_a_type_has_a_schema_and_its_values_come_back(wanted: Any) -> None:
    schema, decode = schema_of(wanted)
    judge = Checker(schema)
    assert judge.accepts(GOOD)
    assert not judge.accepts({**GOOD, "kind": "c"})
    whole = decode(GOOD)
    assert read(read(whole, "parts")[0], "colour") is Colour.BLUE
    assert read(whole, "counts") == {"x": 1}


@pytest.mark.parametrize("wanted", WHOLES, ids=lambda one: one.__name__)
def test_what_is_wrong_is_said_with_its_path(wanted: Any) -> None:
    decode = schema_of(wanted).decode
    with pytest.raises(WrongShape) as wrong:
        decode({"parts": [{"name": "n"}, {"name": 5}]})
    assert wrong.value.path == "/parts/1/name"


@pytest.mark.parametrize(
    ("wanted", "good", "bad"),
    [
        (int | None, 3, "x"),
        (list[Part], [{"name": "n"}], [{"name": 1}]),
        (dict[str, StructPart], {"k": {"name": "n"}}, {"k": {}}),
        (list[ModelPart], [{"name": "n"}], [{}]),
        (ModelPart | ModelWhole, {"parts": []}, {}),
        (Colour, "red", "green"),
        (Literal["a", 1], 1, 2),
    ],
    ids=["optional", "list", "dict", "list of models", "union of models", "enum", "literal"],
)
def test_generic_types_work_as_well(wanted: Any, good: Any, bad: Any) -> None:
    schema, decode = schema_of(wanted)
    assert Checker(schema).accepts(good)
    decode(good)
    with pytest.raises(WrongShape):
        decode(bad)


def test_a_schema_stands_for_itself() -> None:
    schema, decode = schema_of({"type": "object"})
    assert schema == {"type": "object"}
    assert decode({"a": 1}) == {"a": 1}


def test_a_class_of_its_own_says_its_schema_and_reads_json() -> None:
    schema, decode = schema_of(Own)
    assert schema == Own.schema()
    assert decode({"name": "x"}).text == '{"name":"x"}'
    with pytest.raises(WrongShape, match="bad name"):
        decode({"name": "bad"})


def test_no_schema_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidRequest, match="/properties/a/type"):
        schema_of({"type": "object", "properties": {"a": {"type": "strin"}}})


@pytest.mark.parametrize(
    "wanted", [Part | Whole, object(), "text", 5, open], ids=["union", "object", "string", "number", "function"]
)
def test_what_has_no_schema_is_refused(wanted: Any) -> None:
    with pytest.raises(InvalidRequest, match="has no JSON Schema") as refused:
        schema_of(wanted)
    assert refused.value.hint


def test_pydantic_is_not_imported_for_other_types() -> None:
    code = "import sys, msgspec; from bardo.structured.types import schema_of; schema_of(dict[str, int]); print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
