"""A reply with thousands of anything takes time in proportion: read from every provider dialect, written for every client dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.replies.reply_reader import ReplyHandling, row_reader
from bardo.replies.translation_stages import ForeignContent
from bardo.values.blocks import Opaque
from bardo.values.degradation import Degradation
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
    Event,
    Finish,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.fold import fold
from bardo.values.request import Request
from bardo.values.usage import Usage
from bardo.values.wire import Arrival
from support.growth import check_growth
from support.talk import CLIENTS

SMALL, LARGE = 1_000, 10_000
# Ten times as much: quadratic work takes 100 times as long, and a linear one about 10.
MOST = 30
PROVIDERS = {
    "openai_chat": "openai-compatible",
    "openai_responses": "responses-compatible",
    "anthropic_messages": "anthropic",
    "gemini": "gemini",
    "ollama": "ollama",
    "cohere": "cohere",
    "bedrock_converse": "bedrock",
    "gemini_interactions": "gemini-interactions",
}
REQUEST = Request(model="m", messages=(), stream=True)
CLAUDE, GOOGLE = "anthropic-claude-v1", "google-gemini-v1"


def _state(block: int, kind: str, number: int, form: str) -> Event:
    return OpaqueState(block, Opaque(kind, f"d{number}", form))  # type: ignore[arg-type]


def _called(block: int) -> list[Event]:
    return [ToolCallStart(block, f"c{block}", "f"), ToolCallChunk(block, "{}"), ToolCallEnd(block)]


def _thought(block: int) -> list[Event]:
    return [ThinkStart(block), ThinkChunk(block, "t"), ThinkEnd(block), ContentChunk(block + 1, "x")]


def _thinking(inside: Sequence[Event]) -> list[Event]:
    return [ThinkStart(0), ThinkChunk(0, "t"), *inside, ThinkEnd(0), ContentChunk(1, "a")]


SHAPES: dict[str, Callable[[int], list[Event]]] = {
    "deltas": lambda n: [ContentChunk(0, "x") for _ in range(n)],
    "deltas of thinking": lambda n: _thinking([ThinkChunk(0, "x") for _ in range(n)]),
    "parts of a summary": lambda n: _thinking([ThinkChunk(0, "x", one) for one in range(n)]),
    "texts": lambda n: [ContentChunk(one, "x") for one in range(n)],
    "two texts in turn": lambda n: [ContentChunk(one % 2, "x") for one in range(n)],
    "many texts in turn": lambda n: [ContentChunk(one % (n // 2), "x") for one in range(n)],
    "thoughts and texts": lambda n: [event for one in range(n // 2) for event in _thought(2 * one)],
    "calls": lambda n: [event for one in range(n) for event in _called(one)],
    "calls and texts": lambda n: [
        e for one in range(n // 2) for e in (*_called(2 * one), ContentChunk(2 * one + 1, "x"))
    ],
    "open calls": lambda n: [
        *(ToolCallStart(one, f"c{one}", "f") for one in range(n)),
        *(ToolCallChunk(one, "{}") for one in range(n)),
        *(ToolCallEnd(one) for one in range(n)),
    ],
    "deltas of a call": lambda n: [
        ToolCallStart(0, "c", "f"),
        *(ToolCallChunk(0, " ") for _ in range(n)),
        ToolCallEnd(0),
    ],
    "deltas of a call behind a text": lambda n: [
        ToolCallStart(0, "c", "f"),
        ContentChunk(1, "a"),
        *(ToolCallChunk(0, " ") for _ in range(n)),
        ToolCallEnd(0),
    ],
    "choices": lambda n: [
        *(ContentChunk(0, "x", one) for one in range(n)),
        *(Finish("stop", choice=c) for c in range(1, n)),
    ],
    "redacted thinking": lambda n: _thinking([_state(0, "redacted", one, CLAUDE) for one in range(n)]),
    "redacted and signed in turn": lambda n: _thinking(
        [_state(0, ("redacted", "signature")[one % 2], one, CLAUDE) for one in range(n)]
    ),
    "signatures": lambda n: _thinking([_state(0, "signature", one, CLAUDE) for one in range(n)]),
    "state of a text": lambda n: [ContentChunk(0, "a"), *(_state(0, "signature", one, GOOGLE) for one in range(n))],
    "state after its text": lambda n: [
        *(ContentChunk(one, "a") for one in range(n)),
        *(_state(one, "signature", one, GOOGLE) for one in range(n)),
    ],
    "state before its text": lambda n: [
        *(_state(one, "signature", one, GOOGLE) for one in range(n)),
        *(ContentChunk(one, "a") for one in range(n)),
    ],
    "unknown content": lambda n: [UnknownContent(one, "anthropic_messages", {"type": f"t{one}"}) for one in range(n)],
    "counts": lambda n: [*(UsageUpdate(Usage(output_tokens=one)) for one in range(n)), ContentChunk(0, "x")],
    "words of a refusal": lambda n: [RefusalChunk(0, "x") for _ in range(n)],
    "differences": lambda n: [*(Degraded(Degradation(f"d{one}")) for one in range(n)), ContentChunk(0, "x")],
    **{
        f"annotations of {name}": lambda n, name=name: [  # type: ignore[misc]
            ContentChunk(0, "x"),
            *(BlockFields(0, name, {"annotations": [{"i": one}], "citations": [{"i": one}]}) for one in range(n)),
        ]
        for name in CLIENTS
    },
    **{
        f"fields of a block of {name}": lambda n, name=name: [  # type: ignore[misc]
            ContentChunk(0, "x"),
            *(BlockFields(0, name, {f"f{one}": 1}) for one in range(n)),
        ]
        for name in CLIENTS
    },
    **{
        f"fields of a reply of {name}": lambda n, name=name: [  # type: ignore[misc]
            ContentChunk(0, "x"),
            *(ReplyFields(name, {f"f{one}": 1, "logprobs": [1]}, (None, 0)[one % 2]) for one in range(n)),
        ]
        for name in CLIENTS
    },
}
each_shape = pytest.mark.parametrize("shape", SHAPES)


def reply_of(shape: str, size: int) -> list[Event]:
    usage = UsageUpdate(Usage(input_tokens=1, output_tokens=2))
    return [ReplyStart(id="r", model="m"), *SHAPES[shape](size), usage, Finish("stop", "stop")]


@pytest.mark.sampled(10)
@each_shape
def test_it_is_folded(shape: str) -> None:
    check_growth(fold, reply_of(shape, SMALL), reply_of(shape, LARGE), below=MOST)


@pytest.mark.sampled(3, of="client")
@each_shape
@pytest.mark.parametrize("client", CLIENTS)
def test_it_is_written_for_a_client(shape: str, client: str) -> None:
    def stream(events: Sequence[Event]) -> None:
        encoder = dialect(client).open_encoder(REQUEST, Arrival())
        for event in events:
            encoder.feed(event)
        encoder.finish()

    small, large = reply_of(shape, SMALL), reply_of(shape, LARGE)
    check_growth(stream, small, large, below=MOST)
    whole = dialect(client).encode_response
    check_growth(lambda response: whole(response, REQUEST), fold(small), fold(large), below=MOST)


def wire(provider: str, events: Sequence[Event], *, streamed: bool) -> list[bytes]:
    """Return a reply as its provider sends it."""
    if not streamed:
        return [dialect(provider).encode_response(fold(events), REQUEST)]
    encoder = dialect(provider).open_encoder(REQUEST, Arrival())
    return [piece for event in events for piece in encoder.feed(event)] + [*encoder.finish()]


@pytest.mark.sampled(3, of="provider")
@each_shape
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_it_is_read_from_a_provider(shape: str, provider: str, streamed: bool) -> None:
    row = builtin().provider(PROVIDERS[provider])
    assert row is not None

    def read(pieces: Sequence[bytes]) -> None:
        reader = row_reader(
            row, streamed=streamed, model="m", handling=ReplyHandling(stages=[ForeignContent("anthropic_messages")])
        )
        for piece in pieces:
            reader.feed(piece)
        reader.finish()
        reader.fold.response()

    small, large = (wire(provider, reply_of(shape, size), streamed=streamed) for size in (SMALL, LARGE))
    check_growth(read, small, large, below=MOST)
