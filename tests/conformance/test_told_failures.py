"""A typed answer that failed says in the stream of every dialect how it was asked for, and how often (SO9)."""

from __future__ import annotations

import base64
import re

import pytest

from bardo.dialects import dialect
from bardo.structured import Provenance, UnusableAnswer
from bardo.structured.extraction import Extraction
from bardo.values.events import ContentChunk, Event, Extension, Failed, ReplyStart
from bardo.values.request import Request
from bardo.values.wire import Arrival

DIALECTS = (
    "openai_chat",
    "openai_responses",
    "anthropic_messages",
    "gemini",
    "gemini_interactions",
    "ollama",
    "cohere",
    "bedrock_converse",
    "bedrock_invoke",
)
TOLD = {"structured": {"mode": "prompt_guided", "attempts": 3, "error": "invalid"}}


def stream_of(name: str, *, told: bool) -> str:
    """Return the text of a stream that ends with the error of an answer, with what its pieces hold that are sent as base64."""
    encoder = dialect(name).open_encoder(Request(model="m", messages=(), dialect=name), Arrival())
    error = UnusableAnswer(Extraction(error="invalid"), provenance=Provenance(mode="prompt_guided", attempts=3))
    said: tuple[Event, ...] = (
        ReplyStart(id="r1", model="m", created=1),
        ContentChunk(0, "{"),
        *([Extension(TOLD)] if told else []),
        Failed(error),
    )
    body = b"".join([*(frame for event in said for frame in encoder.feed(event)), *encoder.finish()])
    pieces = [base64.b64decode(one) for one in re.findall(rb'"bytes": ?"([^"]+)"', body)]
    return b"".join([body, *pieces]).decode("utf-8", "replace").replace('": ', '":')


@pytest.mark.parametrize("name", DIALECTS)
def test_the_mode_and_the_attempts_of_a_failed_answer_are_in_its_stream(name: str) -> None:
    text = stream_of(name, told=True)
    assert '"mode":"prompt_guided"' in text
    assert '"attempts":3' in text
    assert text.count('"structured":') == 1
    assert '"structured":' not in stream_of(name, told=False)
