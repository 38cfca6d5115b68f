"""The effects that layers ask their runner for: an answer of a model, vectors of texts, the time, and the memory of a session."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Literal

import msgspec

from bardo.context.layer import Effect


class AskModel(Effect, frozen=True, kw_only=True):
    """Ask a model once, without tools, for an answer within some seconds. Whoever runs layers sends back a `ModelAnswer`.

    `masked`: personal data is masked on the way, as it is in the call that this is for. `private`: only providers that keep nothing of a
    call may be asked.
    """

    model: str
    instructions: str
    prompt: str
    max_output_tokens: int
    tenant: str
    seconds: float = 60.0
    masked: bool = False
    private: bool = False


class ModelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A model's answer, the id of that call in the log, and its cost in nano-dollars, or None if that is unknown."""

    text: str
    request_id: str = ""
    cost_nanos: int | None = None


Tier = Literal["onnx", "provider", "static"]


class Embed(Effect, frozen=True):
    """Ask for one vector for each of some texts. Whoever runs layers sends back `TextVectors`.

    With `stop_words` the table that ships embeds the key words of the texts, which are all words but these, rare ones most. A model of the
    operator's reads whole texts in any case.
    """

    texts: tuple[str, ...]
    stop_words: frozenset[str] | None = None


class TextVectors(msgspec.Struct, frozen=True, kw_only=True):
    """Vectors of texts, in the order of the texts, each of length 1, or of zeros where a text has nothing that is known.

    Two vectors may be compared where they have the same `fingerprint`. `tier` is `onnx` for a model of the operator's, `provider`
    for one that a provider was asked for, and `static` for the table that ships with bardo.
    """

    vectors: tuple[tuple[float, ...], ...]
    fingerprint: str
    tier: Tier


class TooMuchWork(Exception):
    """The layers of a request have used the time that they have."""


CHECK: ContextVar[Callable[[], None] | None] = ContextVar("check_of_given_time", default=None)
"""Raises TooMuchWork where no time is left, or None if the time is not counted."""


def check_time() -> None:
    """Raise TooMuchWork where the running work has used the time that it was given."""
    check = CHECK.get()
    if check is not None:
        check()


class LoadForSession(Effect, frozen=True):
    """Ask for what a layer kept for a session. Whoever runs layers sends back its bytes, or None if nothing is kept."""

    layer: str
    session: str


class StoreForSession(Effect, frozen=True):
    """Keep something of a layer for a session, in place of what was kept before."""

    layer: str
    session: str
    value: bytes
