"""Every recorded reply of this dialect: read, written and read again, and every word of it exactly once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.dialects.openai_chat import DIALECT
from bardo.dialects.openai_chat.fast import Repetition
from bardo.dialects.openai_chat.reply_in import ChatDecoder
from bardo.streams.sse import SseDecoder
from bardo.values.blocks import ReasoningBlock, ToolCallBlock
from bardo.values.events import Event
from bardo.values.fold import fold
from bardo.values.response import Response
from dialects.openai_chat.chat import REQUEST, events_of, written
from recordings import RECORDINGS, Recording, each_recording, folders, rows

# Ollama's own dialect and watsonx's own API are filed under names that also stand for their compatible routes.
OTHERS = ("ollama", "watsonx")
# What the bytes say is compared apart from what the provider's row adds.
NEUTRAL = ProviderRow(id="p", name="P", dialect="openai_chat")


def _folders() -> Iterator[tuple[str, ProviderRow]]:
    for name in folders():
        row = builtin().provider(name)
        if row is not None and row.dialect == "openai_chat" and name not in OTHERS:
            yield name, row


ROWS = dict(_folders())
ALL = [recording for folder in ROWS for recording in rows(folder)]
STREAMS = [recording for recording in ALL if recording.framing == "sse"]
each = each_recording(ALL)


def row_of(recording: Recording) -> ProviderRow:
    return ROWS[recording.file.split("/")[0]]


def read(recording: Recording) -> list[Event]:
    return events_of([recording.body], sse=recording.framing == "sse", row=row_of(recording))


def bodies(recording: Recording) -> list[dict[str, Any]]:
    """Return the JSON objects of a recording, read without bardo's decoder."""
    body = recording.body
    if recording.framing != "sse":
        return [json.loads(body)]
    lines = body.replace(b"\r\n", b"\n").split(b"\n")
    return [
        json.loads(line[5:]) for line in lines if line.startswith(b"data:") and line[5:].strip() not in (b"", b"[DONE]")
    ]


@pytest.mark.skipif(RECORDINGS is None, reason="no recordings here")
def test_there_are_recordings() -> None:
    assert len(ALL) > 500
    assert len(STREAMS) > 150


@each
def test_a_recorded_reply_is_read(recording: Recording) -> None:
    response = fold(read(recording))
    failed = any("error" in body or any("error" in c for c in body.get("choices") or ()) for body in bodies(recording))
    assert (response.error is not None) is failed, response.error
    if not failed:
        assert response.finish.reason != "error"


class Never(Repetition):
    """Reads every frame the general way."""

    def read(self, data: bytes) -> None:
        return None


@each_recording(STREAMS)
def test_the_hot_path_says_what_the_general_path_says(recording: Recording) -> None:
    row = row_of(recording)
    framing = SseDecoder()
    frames = [*framing.feed(recording.body), *framing.finish()]
    decoder = DIALECT.open_decoder(row)
    assert isinstance(decoder, ChatDecoder)
    decoder._repetition = Never()
    found = [event for frame in frames for event in decoder.feed(frame)] + list(decoder.finish())
    assert found == read(recording)


# Every word exactly once


def words_of(delta: dict[str, Any]) -> dict[str, str]:
    """Return the human text of one delta or message, by what it is."""
    content = delta.get("content")
    parts: list[dict[str, Any]] = content if isinstance(content, list) else []
    thoughts = [piece["text"] for part in parts if part["type"] == "thinking" for piece in part["thinking"]]
    details = [str(one.get("text") or one.get("summary") or "") for one in delta.get("reasoning_details") or ()]
    plain = delta.get("reasoning_content") or delta.get("reasoning") or ""
    if isinstance(content, dict):
        content = json.dumps(content, separators=(",", ":"))
    calls = delta.get("tool_calls") or ()
    return {
        "reasoning": "".join(details) or plain or "".join(thoughts),
        "text": content if isinstance(content, str) else "".join(part.get("text", "") for part in parts),
        "refusal": delta.get("refusal") or "",
        "arguments": "".join(str(call["function"].get("arguments") or "") for call in calls),
    }


def words_sent(recording: Recording) -> dict[str, str]:
    said = {"reasoning": "", "text": "", "refusal": "", "arguments": ""}
    for body in bodies(recording):
        for choice in body.get("choices") or ():
            delta, message = choice.get("delta"), choice.get("message")
            whole = recording.framing != "sse"
            words = words_of((message if whole else delta) or delta or message or {})
            said = {name: text + words[name] for name, text in said.items()}
        if "error" in body:
            break
    return said


def words_read(response: Response) -> dict[str, str]:
    thoughts = [block for block in response.blocks if isinstance(block, ReasoningBlock)]
    return {
        "reasoning": "".join(block.text + "".join(block.summary) for block in thoughts),
        "text": response.text,
        "refusal": response.refusal,
        "arguments": "".join(block.arguments for block in response.blocks if isinstance(block, ToolCallBlock)),
    }


@each
def test_every_word_is_there_exactly_once(recording: Recording) -> None:
    response = fold(read(recording))
    assert response.alternatives == ()
    assert words_read(response) == words_sent(recording)


# Written and read again


def canonical(response: Response) -> Response:
    """Leave out what writing and reading again brings into one form.

    Plain thinking always stands in `reasoning_content`; a time that is not known is 0; finish reasons are OpenAI's own words; usage
    is in bardo's algebra, so that its raw object and what was corrected in it differ.
    """
    plain = ("reasoning", "content_list", "reasoning_details")
    blocks = tuple(
        msgspec.structs.replace(block, format="reasoning_content")
        if isinstance(block, ReasoningBlock) and block.format in plain
        else block
        for block in response.blocks
    )
    reason = "stop" if response.finish.reason == "unknown" else response.finish.reason
    return msgspec.structs.replace(
        response,
        blocks=blocks,
        reasoning=msgspec.structs.replace(response.reasoning, blocks=()),
        created=response.created or 0,
        finish=msgspec.structs.replace(response.finish, reason=reason, raw=""),
        usage=msgspec.structs.replace(response.usage, raw=None),
        degraded=(),
    )


@each
def test_what_is_written_again_says_the_same(recording: Recording) -> None:
    found = read(recording)
    response = fold(found)
    if response.error is not None:
        pytest.skip("the reply failed")
    sse = recording.framing == "sse"
    body = written(found) if sse else DIALECT.encode_response(response, REQUEST)
    again = fold(events_of([body], sse=sse, row=NEUTRAL))
    assert canonical(again) == canonical(response)


@each_recording(STREAMS)
def test_a_streamed_reply_says_the_same_written_whole(recording: Recording) -> None:
    response = fold(read(recording))
    if response.error is not None:
        pytest.skip("the reply failed")
    again = fold(events_of([DIALECT.encode_response(response, REQUEST)], sse=False, row=NEUTRAL))
    assert (again.text, again.refusal, again.tool_calls) == (response.text, response.refusal, response.tool_calls)
    assert again.reasoning.content == response.reasoning.content
    kept = [state for block in again.reasoning_blocks for state in block.opaque]
    assert kept == [state for block in response.reasoning_blocks for state in block.opaque]
