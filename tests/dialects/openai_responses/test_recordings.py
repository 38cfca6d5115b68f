"""Every recorded reply: whole, streamed, and written again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from bardo.dialects.openai_responses import DIALECT
from bardo.values.blocks import ReasoningBlock, RefusalBlock, TextBlock, ToolCallBlock, UnknownBlock
from bardo.values.errors import UpstreamRefused
from bardo.values.fold import fold
from bardo.values.response import Response
from dialects.openai_responses.replies import REQUEST, events_of, payloads, write_stream
from recordings import Recording, each_recording, rows

FOLDERS = (
    "openai-responses",
    "openai-responses-codex",
    "xai-responses",
    "deepseek-responses",
    "lmstudio-responses",
    "openrouter-responses",
    "copilot-responses",
    "mistralrs-responses",
    "bedrock-mantle",
)


def _speaks_responses(recording: Recording) -> bool:
    # A few files of these folders are Chat Completions.
    return b'"chat.completion' not in recording.body[:3000]


ALL = [one for folder in FOLDERS for one in rows(folder) if _speaks_responses(one)]
# Their usage is completed for a client, so that it differs when it is read again: the one has no details, the other says -9.
COUNTLESS = ("mistralrs-responses/qwen3-4b-thinking-8bf5466a.json", "o4-mini-deep-research-truncated-3c6f30de.json")
GOOD = [one for one in ALL if "-error-" not in one.file]
BAD = [one for one in ALL if "-error-" in one.file]


def decoded(recording: Recording) -> Response:
    return fold(events_of([recording.body], sse=recording.framing == "sse"))


@each_recording(GOOD)
def test_a_recorded_reply_is_read_to_its_end(recording: Recording) -> None:
    response = decoded(recording)
    assert response.error is None
    # One is the receipt of a reply that runs in the background.
    assert response.finish.reason in ("stop", "tool_calls", "length") or response.finish.raw == "queued"
    assert response.id
    assert response.model
    assert response.usage.reported or response.finish.raw == "queued"


@each_recording([one for one in GOOD if not one.file.endswith(COUNTLESS)])
def test_a_recorded_reply_survives_being_written_and_read_again(recording: Recording) -> None:
    events = events_of([recording.body], sse=recording.framing == "sse")
    response = fold(events)
    again = DIALECT.encode_response(response, REQUEST)
    assert fold(events_of([again], sse=False)) == response
    streamed = write_stream(events)
    assert fold(events_of([streamed], sse=True)) == response
    written = payloads(streamed)
    assert [one["sequence_number"] for one in written] == list(range(len(written)))


@each_recording(GOOD)
def test_no_text_of_a_recorded_reply_is_lost_or_doubled(recording: Recording) -> None:
    response = decoded(recording)
    told = _told(_finished_items(recording))
    assert _text(response, TextBlock) == told["output_text"]
    assert response.refusal == told["refusal"]
    assert _text(response, ReasoningBlock) == told["reasoning_text"]
    assert [part for block in response.reasoning_blocks for part in block.summary] == told["summary_text"]
    calls = [block.arguments for block in response.blocks if isinstance(block, ToolCallBlock)]
    assert calls == told["arguments"]
    unknown = [block.value["type"] for block in response.blocks if isinstance(block, UnknownBlock)]
    assert sorted(unknown) == sorted(told["other"])


@each_recording([one for one in GOOD if one.framing == "sse"])
def test_a_stream_without_its_end_is_broken_and_keeps_what_came(recording: Recording) -> None:
    body = recording.body
    # Every terminal event is a frame of its own, the last but for a possible [DONE].
    cut = max(
        body.rfind(b"\n\ndata:", 0, body.rfind(b"response.completed")), body.rfind(b"\n\nevent: response.completed")
    )
    cut = cut if cut > 0 else body.rfind(b"response.incomplete") - 60
    broken = fold(events_of([body[: cut + 2]], sse=True))
    assert type(broken.error).__name__ == "BrokenStream"
    assert broken.text == decoded(recording).text


@each_recording(BAD)
def test_a_recorded_error_keeps_its_words(recording: Recording) -> None:
    if recording.framing == "sse":
        error = decoded(recording).error
        assert isinstance(error, UpstreamRefused)
        assert error.status == 429
    else:
        status = recording.meta["http_status"]
        error = DIALECT.decode_error(status, recording.body, {"retry-after": "3"}, "openai")
        assert (error.status, error.retry_after) == (status, "3")
    assert error.message.encode() in recording.body.replace(b"\\n", b"\n")


def _text(response: Response, kind: type[Any]) -> str:
    return "".join(block.text for block in response.blocks if isinstance(block, kind))


def _finished_items(recording: Recording) -> list[dict[str, Any]]:
    """Return the finished items as the provider told them, by the most complete telling: read without the decoder."""
    if recording.framing != "sse":
        body = msgspec.json.decode(recording.body)
        flat = body.get("reasoning")
        first = (
            [{"type": "reasoning", "content": [{"type": "reasoning_text", "text": flat}]}]
            if isinstance(flat, str)
            else []
        )
        return [*first, *body["output"]]
    told = payloads(recording.body)
    done = [one["item"] for one in told if one["type"] == "response.output_item.done"]
    listed = next(
        one["response"]["output"] for one in told if one["type"] in ("response.completed", "response.incomplete")
    )
    return listed if len(listed) > len(done) else done


def _told(items: list[dict[str, Any]]) -> dict[str, Any]:
    texts: dict[str, Any] = {"output_text": "", "refusal": "", "reasoning_text": ""}
    for kind, text in _parts(items):
        texts[kind] += text
    known = ("message", "reasoning", "function_call")
    return {
        **texts,
        "summary_text": [
            part["text"] for item in items for part in item.get("summary") or () if item["type"] == "reasoning"
        ],
        "arguments": [item["arguments"] for item in items if item["type"] == "function_call"],
        "other": [item["type"] for item in items if item["type"] not in known],
    }


def _parts(items: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for item in items:
        if item["type"] in ("message", "reasoning"):
            for part in item.get("content") or ():
                yield part["type"], part.get("text", part.get("refusal"))


def test_refusals_were_recorded() -> None:
    assert any(isinstance(block, RefusalBlock) for one in GOOD for block in decoded(one).blocks)
