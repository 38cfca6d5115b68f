"""Every field of a recorded reply reaches a client, or is reported: under its own name, or under that of the field it stands in.

The fields are looked up in the provider's JSON, without bardo's decoders: those of the reply, its choices, messages and blocks.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bardo.dialects import DIALECTS, dialect
from bardo.dialects.shared.declaration import ReplyDeclaration, is_empty
from bardo.replies.citations import citation_form
from bardo.replies.reply_reader import open_framing
from bardo.values.events import Degraded
from conformance.replies import ALL, Reply, in_fewer_pieces, reply_of, row_of, written_stream, written_whole
from recordings import RECORDINGS, Recording, each_recording

# InvokeModel only wraps replies of the others.
CLIENTS = tuple(name for name in DIALECTS if dialect(name).reply is not None and dialect(name).wraps is None)
_CITED = {form.field for form in map(citation_form, DIALECTS) if form is not None}
Fields = Iterator[tuple[str, Any]]


@each_recording(ALL)
def test_a_field_of_a_reply_reaches_every_client_or_is_reported(recording: Recording) -> None:
    if reply_of(recording).response.error is not None:
        return
    source, fields = _fields_of(recording)
    for client in CLIENTS:
        reply = reply_of(recording).for_client(client)
        whole = {one.what for one in reply.response.degraded}
        streamed = {one.degradation.what for one in reply.events if type(one) is Degraded}
        missing = {name for name in fields if not (_is_reported(name, whole) and _is_reported(name, streamed))}
        if missing:
            assert _not_written(missing, reply, client) == [], f"{client}, of {source}"


@pytest.mark.skipif(RECORDINGS is None, reason="no recordings on this machine")
def test_fields_are_looked_up_in_every_dialect() -> None:
    found = {_fields_of(recording)[0] for recording in ALL if _fields_of(recording)[1]}
    assert found >= {"openai_chat", "openai_responses", "anthropic_messages", "gemini", "cohere", "bedrock_converse"}


def _is_reported(name: str, reported: set[str]) -> bool:
    """Whether a field or a part of one is reported, or the field it stands in."""
    return any(one == name or one.startswith(f"{name}.") or name.startswith(f"{one}.") for one in reported)


def _not_written(names: set[str], reply: Reply, client: str) -> list[tuple[str, str]]:
    """Return the names that the client's body has no field for, streamed or whole."""
    bodies = {
        "whole": written_whole(reply.response, client),
        "streamed": written_stream(in_fewer_pieces(reply.events), client),
    }
    return [(name, form) for form, body in bodies.items() for name in sorted(names) if not _is_written(name, body)]


def _is_written(name: str, body: bytes) -> bool:
    written = name.rpartition(".")[2]
    forms = [f'"{written}":']
    if name in _CITED:
        # Each dialect has its own place for them; streams of Anthropic's give them one by one.
        forms += [f'"{place.rpartition(".")[2]}":' for place in _CITED] + ['"citation":']
    if name.startswith("content."):
        forms.append(f'"type":"{written}"')
    return any(form.encode() in body for form in forms)


def _fields_of(recording: Recording) -> tuple[str, set[str]]:
    """Return the dialect of a recorded reply, and the names of the fields that say something to clients of others."""
    language: str = row_of(recording).dialect
    frames = [frame for frame in _frames(recording, language) if isinstance(frame, dict)]
    if dialect(language).wraps is not None:
        language = _wrapped(frames)
    declared = dialect(language).reply or ReplyDeclaration(lacks={})
    pairs = [pair for frame in frames for pair in _FIELDS[language](frame)]
    return language, {name for pair in pairs for name in declared.content(dict([pair]))}


def _frames(recording: Recording, language: str) -> Iterator[Any]:
    framing = open_framing(dialect(language).stream_framing, streamed=recording.framing != "json")
    for frame in (*framing.feed(recording.body), *framing.finish()):
        try:
            value = json.loads(frame.data or b"null")
        except ValueError:
            continue
        if frame.event and recording.framing == "eventstream" and isinstance(value, dict):
            value = json.loads(base64.b64decode(value["bytes"])) if "bytes" in value else {frame.event: value}
        yield from value if isinstance(value, list) else (value,)


def _wrapped(frames: list[dict[str, Any]]) -> str:
    names = {name for frame in frames for name in frame}
    return "openai_chat" if "choices" in names else "anthropic_messages" if "type" in names else "bedrock_converse"


def _objects(*values: Any) -> Iterator[dict[str, Any]]:
    """Return the objects among these, and in the lists among these."""
    for value in values:
        yield from (one for one in (value if isinstance(value, list) else (value,)) if isinstance(one, dict))


def _others(value: dict[str, Any], expressed: str, prefix: str = "") -> Fields:
    """Return the fields that bardo does not express, which are named in `expressed`."""
    known = expressed.split()
    return ((f"{prefix}{name}", one) for name, one in value.items() if name not in known and not is_empty(one))


def _chat(frame: dict[str, Any]) -> Fields:
    yield from _others(frame, "id object created model choices usage error obfuscation p")
    for choice in _objects(frame.get("choices")):
        yield from _others(choice, "index delta message finish_reason error usage logprobs")
        for message in _objects(choice.get("delta"), choice.get("message")):
            read = "role content reasoning_content reasoning reasoning_details tool_calls function_call refusal"
            yield from _others(message, f"{read} extra_content thinking_blocks content_blocks", "message.")
        for logprobs in _objects(choice.get("logprobs")):
            yield from _others(logprobs, "", "logprobs.")


def _responses(frame: dict[str, Any]) -> Fields:
    for reply in _objects(frame.get("response"), frame if "output" in frame else None):
        read = "id object created_at model output output_text usage status error incomplete_details reasoning"
        yield from _others(reply, read)
        for item in _objects(reply.get("output")):
            yield from _of_item(item)


def _of_item(item: dict[str, Any]) -> Fields:
    kind = item.get("type")
    if kind == "function_call":
        yield from _others(item, "type id call_id name arguments status")
    elif kind == "message":
        yield from (("item.phase", item["phase"]) for _ in "1" if item.get("phase") not in (None, "final_answer"))
        for part in _objects(item.get("content")):
            yield from _others(part, "type text refusal")
    elif kind not in ("reasoning", None):
        yield f"content.{kind}", item


def _messages(frame: dict[str, Any]) -> Fields:
    message = frame.get("message") or (frame if frame.get("type") == "message" else None)
    ends = frame.get("delta") if frame.get("type") == "message_delta" else None
    for part in _objects(message, ends):
        yield from _others(part, "id type role model content usage stop_reason stop_sequence")
        for block in _objects(part.get("content")):
            yield from _of_block(block)
    yield from (pair for block in _objects(frame.get("content_block")) for pair in _of_block(block))


def _of_block(block: dict[str, Any]) -> Fields:
    if block.get("type") in ("text", "thinking", "redacted_thinking", "tool_use"):
        yield from _others(block, "type text thinking signature data id name input")
    else:
        yield f"content.{block.get('type')}", block


def _gemini(frame: dict[str, Any]) -> Fields:
    yield from _others(frame, "candidates usageMetadata modelVersion responseId error")
    for candidate in _objects(frame.get("candidates")):
        yield from _others(candidate, "index content finishReason")
        for content in _objects(candidate.get("content")):
            for part in _objects(content.get("parts")):
                yield from _of_part(part)


def _of_part(part: dict[str, Any]) -> Fields:
    for name, value in _others(part, "text thought thoughtSignature functionCall"):
        yield f"content.{name}", value


def _interactions(frame: dict[str, Any]) -> Fields:
    for reply in _objects(frame.get("interaction"), frame if "steps" in frame else None):
        yield from _others(reply, "id object model created status steps usage role previous_interaction_id")
        for step in _objects(reply.get("steps")):
            if step.get("type") == "model_output":
                for part in _objects(step.get("content")):
                    yield from _others(part, "type text")


def _converse(frame: dict[str, Any]) -> Fields:
    yield from (pair for end in _objects(frame.get("metadata")) for pair in _others(end, "usage p"))
    if isinstance(frame.get("output"), dict):
        yield from _others(frame, "output usage stopReason")
        for message in _objects(frame["output"].get("message")):
            for block in _objects(message.get("content")):
                yield from _of_converse_block(block)


def _of_converse_block(block: dict[str, Any]) -> Fields:
    for content in _objects(block.get("citationsContent")):
        yield from _others(content, "content")
    yield from (
        (f"content.{name}", one) for name, one in _others(block, "text toolUse reasoningContent citationsContent")
    )


def _cohere(frame: dict[str, Any]) -> Fields:
    if "type" not in frame:
        yield from _others(frame, "id finish_reason message usage model created")
        for message in _objects(frame.get("message")):
            yield from _others(message, "role content tool_calls tool_plan")


def _ollama(frame: dict[str, Any]) -> Fields:
    counts = "total_duration load_duration prompt_eval_count prompt_eval_duration eval_count eval_duration"
    yield from _others(frame, f"model message done done_reason {counts}")
    yield from (
        pair
        for message in _objects(frame.get("message"))
        for pair in _others(message, "role content thinking tool_calls", "message.")
    )


def _watsonx(frame: dict[str, Any]) -> Fields:
    yield from _others(frame, "model_id model created_at results id object created choices usage")


_FIELDS: dict[str, Callable[[dict[str, Any]], Fields]] = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "anthropic_messages": _messages,
    "gemini": _gemini,
    "gemini_interactions": _interactions,
    "bedrock_converse": _converse,
    "cohere": _cohere,
    "ollama": _ollama,
    "watsonx_text": _watsonx,
}
