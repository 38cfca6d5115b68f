"""`[inference.pipeline.privacy]`: what the layer that masks personal data searches for, and what it does with it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Score = Annotated[float, msgspec.Meta(ge=0, le=1)]


class PrivacyPattern(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of values of the operator's own: a regular expression, and the word for its placeholders."""

    match: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    label: Annotated[str, msgspec.Meta(pattern="^[A-Z]{2,14}$")]
    score: Score = 1.0
    near: tuple[str, ...] = ()


class PrivacySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of the layer. `mode`: values are masked and put back, only counted, or the call is refused.

    `entities` lists the kinds to search for, empty for the default ones; `also` adds kinds, and `never` removes kinds. `countries`
    (ISO 3166) limits national kinds to these countries. `least_score` is the least score of a value. `allowed` are values that are not
    masked, as globs. `phone_regions` are regions whose numbers are recognised without a country code. `patterns` are the operator's own
    kinds, by name. `engine`: bardo's own, or Presidio, which adds what it finds with the NLP model `model` (spaCy) in `language`.
    """

    mode: Literal["mask", "report", "block"] = "mask"
    entities: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    countries: tuple[str, ...] = ()
    least_score: Score = 0.5
    allowed: tuple[str, ...] = ()
    phone_regions: tuple[str, ...] = ()
    patterns: dict[str, PrivacyPattern] = {}
    engine: Literal["own", "presidio"] = "own"
    language: str = "en"
    model: str = ""
