"""The facts of a model that its server states (layer L1), and when it stated them."""

from __future__ import annotations

import msgspec

from bardo.catalog.models import Facts


class LiveFacts(Facts, frozen=True, kw_only=True):
    """Facts from a server, and what it says beside them.

    `starts_inside`: whether the prompt that it renders opens the thinking, so that the model begins inside it; `starts_inside_on` and
    `starts_inside_off` say it of requests that turn thinking on and off. `text_format` is the server's name of its reasoning parser.
    `known_as` is whose weights a local name stands for. `context` is in tokens. `features` says of features of `features.toml` whether
    the model has them.
    """

    starts_inside: bool | None = None
    starts_inside_on: bool | None = None
    starts_inside_off: bool | None = None
    text_format: str | None = None
    known_as: str | None = None
    context: int | None = None
    features: tuple[tuple[str, bool], ...] = ()

    @property
    def silent(self) -> bool:
        """Whether nothing is said of thinking."""
        return all(getattr(self, name) is None for name in Facts.__struct_fields__)


NO_THINKING = LiveFacts(control=("none",), omit="off")
"""The facts of a model that does not think."""


class FactsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one question. `facts` None: the server does not know, or did not say; `problem` says why, `at` is Unix time."""

    facts: LiveFacts | None = None
    at: float
    adapter: str = ""
    problem: str = ""
