"""`reasoning_details`: typed pieces, several hosts' habits, and never the same text twice."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.values.blocks import Carried, Opaque, ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.events import OpaqueState, ThinkChunk, ThinkEnd, ThinkStart
from dialects.openai_chat.chat import chunk, events, message, streamed

CLAUDE, OPENAI, GEMINI = "anthropic-claude-v1", "openai-responses-v1", "google-gemini-v1"
STOP = chunk({}, "stop")


def text(words: str, index: Any = 0, style: str | None = CLAUDE, **fields: Any) -> dict[str, Any]:
    return {"type": "reasoning.text", "text": words, "index": index, "format": style, **fields}


def summary(words: str, index: Any = 0, style: str = OPENAI, **fields: Any) -> dict[str, Any]:
    return {"type": "reasoning.summary", "summary": words, "index": index, "format": style, **fields}


def sealed(data: str, index: Any = 0, style: str = OPENAI, **fields: Any) -> dict[str, Any]:
    return {"type": "reasoning.encrypted", "data": data, "index": index, "format": style, **fields}


def details(*pieces: dict[str, Any], plain: str | None = None, **fields: Any) -> dict[str, Any]:
    return chunk({"content": "", "reasoning": plain, "reasoning_details": list(pieces), **fields})


def block(
    words: str = "", style: str = CLAUDE, *states: tuple[str, str], parts: tuple[str, ...] = ()
) -> ReasoningBlock:
    opaque = tuple(Opaque(kind, data, style) for kind, data in states)  # type: ignore[arg-type]
    return ReasoningBlock(text=words, summary=parts, format=style, opaque=opaque)


ANSWER = chunk({"content": "a"})

STREAMS: dict[str, tuple[list[dict[str, Any]], tuple[Any, ...]]] = {
    "beside the plain field": (
        [details(text("pl"), plain="pl"), details(text("an"), plain="an"), ANSWER],
        (block("plan"), TextBlock("a")),
    ),
    "without it": ([details(text("plan")), ANSWER], (block("plan"), TextBlock("a"))),
    "in some frames, and the plain field in others": (
        [details(text("pl")), chunk({"reasoning": "a"}), details(text("n"), plain="n"), ANSWER],
        (block("plan"), TextBlock("a")),
    ),
    "the plain field first, details later": (
        [chunk({"reasoning": "pl"}), details(text("an")), ANSWER],
        (ReasoningBlock(text="plan", format="reasoning"), TextBlock("a")),
    ),
    "a signature last": (
        [details(text("", signature="")), details(text("plan"), plain="plan"), details({**text(""), "signature": "s"}), ANSWER],
        (block("plan", CLAUDE, ("signature", "s")), TextBlock("a")),
    ),
    "a signature without text": (
        [details({**text(""), "signature": "s"}), ANSWER],
        (block("", CLAUDE, ("signature", "s")), TextBlock("a")),
    ),
    "redacted": ([details(sealed("d", style=CLAUDE)), ANSWER], (block("", CLAUDE, ("redacted", "d")), TextBlock("a"))),
    "a summary, then its ciphertext": (
        [details(summary("pl"), plain="pl"), details(summary("an"), plain="an"), details(sealed("d", id="rs")), ANSWER],
        (block("", OPENAI, ("id", "rs"), ("encrypted", "d"), parts=("plan",)), TextBlock("a")),
    ),
    "ciphertext after the answer": (
        [details(text("plan", style=GEMINI), plain="plan"), ANSWER, details(sealed("d", style=GEMINI)), chunk({"content": "b"})],
        (block("plan", GEMINI, ("encrypted", "d")), TextBlock("ab")),
    ),
    "ciphertext after the answer, of a plain field": (
        [chunk({"reasoning": "plan"}), ANSWER, details(sealed("d", style=GEMINI))],
        (
            ReasoningBlock(text="plan", format="reasoning", opaque=(Opaque("encrypted", "d", GEMINI),)),
            TextBlock("a"),
        ),
    ),
    "ciphertext beside plain text": (
        [details(sealed("d"), plain="plan"), ANSWER],
        (ReasoningBlock(text="plan", format="reasoning", opaque=(Opaque("encrypted", "d", OPENAI),)), TextBlock("a")),
    ),
    "ciphertext after the answer, with an index of its own": (
        [details(text("plan", style=GEMINI)), ANSWER, details(sealed("d", 1, GEMINI)), chunk({"content": "b"})],
        (block("plan", GEMINI), TextBlock("ab"), block("", GEMINI, ("encrypted", "d"))),
    ),
    "only ciphertext, before a call": (
        [details(sealed("d", id="rs")), chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f"}}]})],
        (block("", OPENAI, ("id", "rs"), ("encrypted", "d")), ToolCallBlock(id="c", name="f")),
    ),
    "several indexes": (
        [details(text("x", 0)), details(text("y", 1)), details({**text("", 0), "signature": "s"}), ANSWER],
        (block("x", CLAUDE, ("signature", "s")), block("y"), TextBlock("a")),
    ),
    "several indexes in one frame": (
        [details(text("x", 0), text("y", 1), plain="xy"), ANSWER],
        (block("x"), block("y"), TextBlock("a")),
    ),
    "indexes as text": ([details(summary("x", "0")), details(sealed("d", "0"))], (block("", OPENAI, ("encrypted", "d"), parts=("x",)),)),
    "no index": ([details({"type": "reasoning.text", "text": word}) for word in ("pl", "an")], (block("plan", "unknown"),)),
    "no format": ([details(text("plan", style=None), plain="plan")], (block("plan", "unknown"),)),
    "the format in the first fragment alone": (
        [details(text("pl")), details({"type": "reasoning.text", "text": "an", "index": 0}),
         details({"type": "reasoning.text", "signature": "s", "index": 0})],
        (block("plan", CLAUDE, ("signature", "s")),),
    ),
    "thinking that resumes under the same index": (
        [details(text("x")), ANSWER, details(text("y")), chunk({"content": "b"})],
        (block("x"), TextBlock("a"), block("y"), TextBlock("b")),
    ),
    "a name in every fragment": (
        [details(text(word, style="m", id="n"), plain=word) for word in ("", "pl", "an")],
        (block("plan", "m", ("id", "n")),),
    ),
    "parts of a summary, by bardo's name for them": (
        [details(summary("x")), details(summary("y")), details(summary("\n\nz", part=1)), details(summary("!"))],
        (block("", OPENAI, parts=("xy", "z!")),),
    ),
    "empty lists": ([details(plain=""), ANSWER, details()], (TextBlock("a"),)),
    "pieces that are no objects": ([chunk({"reasoning_details": ["x", None, 3]}), ANSWER], (TextBlock("a"),)),
}  # fmt: skip


@pytest.mark.parametrize(("chunks", "blocks"), STREAMS.values(), ids=STREAMS.keys())
def test_blocks(chunks: list[dict[str, Any]], blocks: tuple[Any, ...]) -> None:
    assert streamed(*chunks, STOP).blocks == blocks


@pytest.mark.parametrize("chunks", [chunks for chunks, _ in STREAMS.values()], ids=STREAMS.keys())
def test_every_stretch_begins_and_ends_once(chunks: list[dict[str, Any]]) -> None:
    found = events(*chunks, STOP)
    begun = [event.block for event in found if isinstance(event, ThinkStart)]
    assert sorted(set(begun)) == sorted(begun)
    assert sorted(begun) == sorted(event.block for event in found if isinstance(event, ThinkEnd))
    assert {event.block for event in found if isinstance(event, ThinkChunk | OpaqueState)} <= set(begun)


def test_a_whole_message_has_whole_parts() -> None:
    response = message(content="a", reasoning="x\n\ny", reasoning_details=[summary("x"), summary("y"), sealed("d", 1)])
    assert response.blocks == (
        block("", OPENAI, parts=("x", "y")),
        block("", OPENAI, ("encrypted", "d")),
        TextBlock("a"),
    )
    assert response.reasoning.content == "x\n\ny"


def test_a_whole_message_with_one_signed_text() -> None:
    response = message(content="a", reasoning="plan", reasoning_details=[text("plan", signature="s", id="n")])
    assert response.blocks == (block("plan", CLAUDE, ("id", "n"), ("signature", "s")), TextBlock("a"))


def test_fields_and_types_nobody_knows_are_carried() -> None:
    response = message(
        reasoning_details=[text("x", provider="azure"), {"type": "reasoning.map", "index": 1, "map": [1]}]
    )
    assert response.reasoning_blocks == [
        ReasoningBlock(text="x", format=CLAUDE, carried=Carried("openai_chat", {"provider": "azure"})),
        ReasoningBlock(format="unknown", carried=Carried("openai_chat", {"map": [1], "type": "reasoning.map"})),
    ]
