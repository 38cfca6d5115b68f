"""The words of the Ollama dialect that more than one of its files needs."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.wire import INVALID_JSON, input_of, write_json
from bardo.values.events import Finish, FinishReason

NAME = "ollama"
TITLE = "Ollama"
FORMAT = "thinking"

REASONS: dict[str, FinishReason] = {"stop": "stop", "length": "length", "load": "stop", "unload": "stop"}
"""The dialect's reasons in our words; an older server gives none."""


def encode_finish(finish: Finish) -> str:
    """Return the word an Ollama client knows."""
    return finish.raw if finish.raw in REASONS else "length" if finish.reason == "length" else "stop"


def object_of(arguments: str) -> msgspec.Raw:
    """Return the arguments as the object they must be, on one line; text that is none is wrapped."""
    raw = bytes(input_of(arguments))
    # A line end between the tokens would cut the line that the object stands in.
    return msgspec.Raw(msgspec.json.format(raw, indent=-1) if b"\n" in raw or b"\r" in raw else raw)


def text_of(value: Any, raw: bytes = b"") -> str:
    """Return the arguments of a call as text: `raw` is how they were written, where that is known."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, dict) and len(value) == 1 and isinstance(value.get(INVALID_JSON), str):
        return str(value[INVALID_JSON])
    return (raw or write_json(value)).decode("utf-8", "replace")


SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "repetition_penalty": "repeat_penalty",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
    "stop": "stop",
}
"""The sampling parameters by their names here."""
