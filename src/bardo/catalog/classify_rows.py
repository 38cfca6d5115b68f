"""How requests are classified without a model, and what the labels change about routing, from `catalog/data/classify.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

import msgspec

from bardo.values.intent import Quality

SizeOf = Literal["text", "conversation", "tools", "code"]


class OmittedText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Text that programs add to a user's message: all from `begin` to `end`."""

    begin: Annotated[str, msgspec.Meta(min_length=1)]
    end: Annotated[str, msgspec.Meta(min_length=1)]


class SignRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words, or up to three in a row, that speak for a label of a question. `weight` counts for each that is met, up to three times."""

    question: str
    label: str
    weight: float
    words: tuple[str, ...]


class PairRow(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"having": "with", "lacking": "without"},
):
    """Two words near each other that speak for a label: one of the list `first`, then within so many words one of the list `second`.

    The text must have one of the list `having`, and none of the list `lacking`; empty names stand for no such condition.
    """

    question: str
    label: str
    weight: float
    first: str
    second: str
    within: Annotated[int, msgspec.Meta(ge=1, le=16)]
    having: str = ""
    lacking: str = ""


class BaseRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is added to the score of a label of every request."""

    question: str
    label: str
    weight: float


class SizeRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a size says of the complexity, from `least` on: characters of the text or of the conversation, tools, or blocks of code."""

    of: SizeOf
    least: int
    scores: dict[str, float]


class NeedRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a call needs whose labels are those of `when`, each with at least `probability`. None leaves a field as it is."""

    when: Annotated[dict[str, str], msgspec.Meta(min_length=1)]
    probability: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.6
    quality: Quality | None = None
    cost_sensitivity: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    max_latency_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None
    prefer: tuple[str, ...] = ()


class ClassifyRows(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file. `lists` are the words that pairs name; `default` is the label of a question where no sign is met."""

    omitted: tuple[OmittedText, ...]
    sign: tuple[SignRow, ...]
    lists: dict[str, tuple[str, ...]]
    pair: tuple[PairRow, ...]
    base: tuple[BaseRow, ...]
    size: tuple[SizeRow, ...]
    default: dict[str, str]
    need: tuple[NeedRow, ...]


@cache
def classify_rows() -> ClassifyRows:
    """Return the rows."""
    text = files("bardo.catalog").joinpath("data/classify.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), ClassifyRows)
