"""A Python function as a tool: its schema is made of its annotations."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from bardo.surfaces.library.asking import tool_of
from bardo.values.errors import InvalidRequest

pytestmark = pytest.mark.each_python


@dataclass
class Place:
    """A point."""

    north: float
    east: float


class Address(BaseModel):
    street: str


def weather(
    city: Annotated[str, "Where."],
    unit: Literal["c", "f"] = "c",
    days: int = 1,
    tags: list[str] | None = None,
) -> str:
    """Give the weather.

    Args:
        days: How many days ahead.
    """
    return f"{city} {unit} {days} {tags}"


def test_parameters_become_properties_and_those_without_a_default_are_required() -> None:
    tool = tool_of(weather)
    assert (tool.name, tool.description) == ("weather", "Give the weather.")
    assert tool.schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "unit": {"enum": ["c", "f"], "default": "c"},
            "days": {"type": "integer", "description": "How many days ahead.", "default": 1},
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_types_of_dataclasses_and_pydantic_are_written_out() -> None:
    def go(place: Place, to: Address, how: Any, kind) -> None:  # type: ignore[no-untyped-def]
        """Go."""

    schema = tool_of(go).schema
    assert schema is not None
    assert schema["required"] == ["place", "to", "how", "kind"]
    assert schema["properties"]["to"]["properties"]["street"]["type"] == "string"
    assert (schema["properties"]["how"], schema["properties"]["kind"]) == ({}, {})


def test_a_method_has_no_self() -> None:
    class Shop:
        def buy(self, what: str) -> None:
            """Buy it."""

    schema = tool_of(Shop().buy).schema
    assert schema is not None
    assert list(schema["properties"]) == ["what"]


@pytest.mark.parametrize("function", [lambda *numbers: numbers, lambda number, /: number])
def test_a_parameter_that_has_no_name_for_a_model_is_refused(function: Any) -> None:
    with pytest.raises(InvalidRequest, match="without a name"):
        tool_of(function)


def test_a_partial_is_the_function_it_calls_without_what_it_holds() -> None:
    tool = tool_of(functools.partial(weather, days=3))
    assert (tool.name, tool.description) == ("weather", "Give the weather.")
    assert tool.schema is not None
    assert list(tool.schema["properties"]) == ["city", "unit", "tags"]


def test_only_lines_about_parameters_leave_the_description() -> None:
    def find(word: str, most: int = 3) -> str:
        """Find a word.

        Note: case matters.

        :param word: What to find.
        :param int most: How many at most.
        """
        return word * most

    tool = tool_of(find)
    assert tool.description == "Find a word.\n\nNote: case matters."
    assert tool.schema is not None
    assert [one["description"] for one in tool.schema["properties"].values()] == ["What to find.", "How many at most."]
