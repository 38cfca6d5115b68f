"""`[inference.pipeline.classify]`: how requests are labelled, which are refused, and what the labels change about routing."""

from __future__ import annotations

from typing import Annotated

import msgspec

from bardo.catalog.classify_rows import NeedRow
from bardo.catalog.features import features
from bardo.edge.settings_problems import Place
from bardo.values.errors import ConfigError

Probability = Annotated[float, msgspec.Meta(gt=0, le=1)]


class ClassifySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The labels of requests. `heads` is a file of `bardo classify train`; empty: those that ship. `rules_only`: no vectors are made.

    `block` are labels, as `question.label`, with the probability from which a request is refused. `needs` say what calls need that have
    certain labels, before bardo's own rows.
    """

    heads: str = ""
    rules_only: bool = False
    block: dict[str, Probability] = {}
    needs: tuple[NeedRow, ...] = ()


def check_classify(settings: ClassifySettings, place: Place) -> None:
    """Raise ConfigError for a label that is written otherwise than `question.label`, and for a feature that no row has."""
    for name in settings.block:
        question, _, label = name.partition(".")
        if not question or not label:
            hint = 'write question.label with a probability: block = { "safety.unsafe" = 0.95 }'
            raise ConfigError(f"{place.of('block')}: {name!r} names no label of a question", hint=hint)
    for row in settings.needs:
        for feature in row.prefer:
            if feature not in features().names:
                hint = f"features are {', '.join(features().names)}"
                raise ConfigError(f"{place.of('needs')}: no feature is called {feature!r}", hint=hint)
