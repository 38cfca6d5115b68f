"""Events that come together are written as they are one after the other, in every dialect that clients speak."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.dialects import dialect
from bardo.dialects.shared.blocks import RunEncoder, encode_all
from bardo.replies.forwarding import ClientModelEncoder
from bardo.values.blocks import Opaque
from bardo.values.events import (
    ContentChunk,
    Event,
    Finish,
    OpaqueState,
    RefusalChunk,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
)
from bardo.values.request import Request
from bardo.values.usage import Usage
from bardo.values.wire import Arrival

CLIENTS = (
    "openai_chat",
    "openai_responses",
    "anthropic_messages",
    "gemini",
    "gemini_interactions",
    "ollama",
    "cohere",
    "bedrock_converse",
)
BLOCKS, CHOICES = st.integers(0, 2), st.sampled_from((0, 0, 0, 1))
TEXTS = st.sampled_from(("", "a", "be", 'c"\\\n', "\u00e9", "\u4e2d"))


def runs(kind: type, **fields: Any) -> st.SearchStrategy[list[Event]]:
    """Pieces of one block in a row, as streams mostly have them."""
    name = "arguments" if kind is ToolCallChunk else "text"
    return st.builds(
        lambda block, choice, texts, more: [kind(block=block, choice=choice, **{name: text}, **more) for text in texts],
        BLOCKS,
        CHOICES,
        st.lists(TEXTS, min_size=1, max_size=6),
        st.fixed_dictionaries(fields),
    )


def one(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Event]]:
    return strategy.map(lambda event: [event])


EVENTS = st.lists(
    st.one_of(
        runs(ContentChunk),
        runs(ContentChunk),
        runs(RefusalChunk),
        runs(ThinkChunk, part=st.sampled_from((None, None, 0, 1))),
        runs(ToolCallChunk),
        one(st.builds(ReplyStart, id=st.just("r"), model=st.sampled_from(("m", "n")))),
        one(st.builds(ThinkStart, BLOCKS)),
        one(st.builds(ThinkEnd, BLOCKS)),
        one(st.builds(ToolCallStart, BLOCKS, id=st.just("call"), name=st.just("f"))),
        one(st.builds(ToolCallEnd, BLOCKS)),
        one(st.builds(OpaqueState, BLOCKS, st.just(Opaque("signature", "s", "anthropic")))),
        one(st.just(UsageUpdate(Usage(input_tokens=1, output_tokens=2)))),
        one(st.just(Finish("stop", "stop"))),
    ),
    max_size=10,
).map(lambda groups: [event for group in groups for event in group])


def encoder_of(client: str) -> ClientModelEncoder:
    request = Request(model="asked", messages=(), dialect=client, stream=True)
    return ClientModelEncoder(dialect(client).open_encoder(request, Arrival()), "asked")


def written(client: str, events: Sequence[Event], reads: int) -> list[bytes]:
    """Return the frames of events that come in reads of so many."""
    encoder = encoder_of(client)
    frames: list[bytes] = []
    for place in range(0, len(events), reads):
        frames += encode_all(encoder, events[place : place + reads])
    return [*frames, *encoder.finish()]


@pytest.mark.parametrize("client", CLIENTS)
@given(EVENTS, st.integers(2, 40))
def test_events_of_one_read_are_written_as_one_by_one(client: str, events: list[Event], reads: int) -> None:
    encoder = encoder_of(client)
    one_by_one = [frame for event in events for frame in encoder.feed(event)]
    assert written(client, events, reads) == [*one_by_one, *encoder.finish()]


@pytest.mark.parametrize("client", ["anthropic_messages", "ollama"])
def test_a_run_of_pieces_takes_one_frame_each(client: str) -> None:
    events: list[Event] = [ReplyStart(id="r", model="m"), *[ContentChunk(0, f"w{number}") for number in range(50)]]
    encoder = encoder_of(client)
    assert isinstance(encoder._inner, RunEncoder)
    frames = encode_all(encoder, events)
    assert sum(b'w7"' in frame for frame in frames) == 1
    assert sum(b'w49"' in frame for frame in frames) == 1


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("style", ["", "anthropic-claude-v1"])
def test_an_empty_piece_among_pieces_of_thinking_is_written_as_by_itself(client: str, style: str) -> None:
    request = Request(model="m", messages=())
    together, alone = (dialect(client).open_encoder(request, Arrival()) for _ in range(2))
    texts = ("a", "b", "c", "", "d", "e", "f", "g", "h")
    events: list[Event] = [ThinkStart(0, style), *(ThinkChunk(0, text) for text in texts), ThinkEnd(0)]
    assert b"".join(encode_all(together, events)) == b"".join([one for event in events for one in alone.feed(event)])
