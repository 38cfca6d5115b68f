"""How tools are chosen for a request, from `catalog/data/tool_choice.toml`: words, weights, and functions that stand for a large list."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec

FunctionKind = Literal["search", "schema", "execute"]


class Weights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much each comparison of a tool with a text counts.

    `description`, `sentences` and `name` compare vectors, `words` counts common words by BM25, `letters` runs of four letters. `general` is
    what speaks for tools that answer any question, `neighbours` how far the tools found first widen the query, `uses` compares with the
    mean of the texts for which the tool was called before, `centroids` with the nearest of the purposes that these had.
    """

    description: float
    sentences: float
    name: float
    words: float
    letters: float
    general: float
    neighbours: float
    uses: float
    centroids: float


class FunctionRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of the functions that stand for a large list of tools. `{count}` in its description is how many tools there are."""

    id: FunctionKind
    name: str
    description: str
    schema: dict[str, Any]


class ToolChoiceRows(msgspec.Struct, frozen=True, kw_only=True):
    """All rows of the file. `weights` are by what makes vectors. `loading_fields` and `marks` are fields of tools."""

    stop_words: frozenset[str]
    endings: tuple[str, ...]
    general: tuple[str, ...]
    loading_fields: tuple[str, ...]
    marks: tuple[str, ...]
    own_choices: tuple[str, ...]
    weights: dict[str, Weights]
    functions: dict[FunctionKind, FunctionRow]


@cache
def tool_choice_rows() -> ToolChoiceRows:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/tool_choice.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    functions = [
        msgspec.convert({**table, "schema": msgspec.json.decode(table["schema"])}, FunctionRow)
        for table in tables["function"]
    ]
    return ToolChoiceRows(
        stop_words=frozenset(tables["stop_words"].split()),
        endings=tuple(tables["endings"]),
        general=tuple(tables["general"]),
        loading_fields=tuple(tables["loading_fields"]),
        marks=tuple(tables["marks"]),
        own_choices=tuple(tables["own_choices"]),
        weights=msgspec.convert(tables["weights"], dict[str, Weights]),
        functions={row.id: row for row in functions},
    )
