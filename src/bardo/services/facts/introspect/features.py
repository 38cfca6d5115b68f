"""Read what servers say of features (`features.toml`) beside thinking: where each says it is a row of `introspection.toml`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.services.facts.introspect.answer_values import (
    Answers,
    NotAnAnswer,
    flag,
    inside,
    listed,
    lowered_strings,
    rows_by_id,
)

StatedFeatures = tuple[tuple[str, bool], ...]
"""Features by name, and whether the model has them."""


class FeatureWord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a server says whether a model has a feature: at a dotted `path`, true or false, or a `word`, alone or in a list."""

    name: str
    path: str
    word: str = ""

    def read(self, row: dict[str, Any]) -> bool | None:
        """Return whether the model has it; None where the row does not say."""
        value = inside(row, *self.path.split("."))
        if not self.word:
            return flag(value)
        said = [value] if isinstance(value, str) else value
        return self.word in lowered_strings(said) if isinstance(said, list) else None


class FeatureWords(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the answer to a question says of features. `list` and `ids` name the list of models and the fields of their ids; without them
    the answer is about the model that was asked for.
    """

    question: str
    say: tuple[FeatureWord, ...]
    list: str = ""
    ids: tuple[str, ...] = ()

    def read(self, answers: Answers, model: str) -> dict[str, StatedFeatures]:
        """Return what is said of features, by model."""
        body = answers.get(self.question)
        if not self.list:
            return {model: self._read_features(body)} if isinstance(body, dict) else {}
        try:
            rows = listed(body, self.list)
        except NotAnAnswer:
            return {}
        return {name: self._read_features(row) for name, row in rows_by_id(rows, *self.ids)}

    def _read_features(self, row: dict[str, Any]) -> StatedFeatures:
        read = ((one.name, one.read(row)) for one in self.say)
        return tuple([(name, has) for name, has in read if has is not None])


def read_features(places: Sequence[FeatureWords], answers: Answers, model: str) -> dict[str, StatedFeatures]:
    """Return what the answers say of features, by model."""
    found: dict[str, StatedFeatures] = {}
    for place in places:
        for name, said in place.read(answers, model).items():
            found[name] = (*found.get(name, ()), *said)
    return found
