"""What a reply says in the JSON of any dialect, read without bardo by the names that the dialects document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from benchmarks.raw_replies import Json, RawCall, RawReply, chat, gemini, messages, responses, texts


def read_reply(documents: Sequence[Any], dialect: str) -> RawReply:
    """Return what the documents of one reply say; `dialect` is a name of bardo's dialects. What wraps another dialect is read as that."""
    reply = RawReply()
    objects = [one for one in documents if isinstance(one, dict)]
    if dialect in _HOSTS:
        dialect = _wrapped(objects, dialect)
    reply.error = any(map(_is_error, objects))
    _READERS[dialect](objects, reply)
    return reply


def _is_error(one: Json) -> bool:
    response = one.get("response")
    failed = isinstance(response, dict) and response.get("error")
    return (
        bool(one.get("error") or one.get("errors") or failed)
        or one.get("type") == "error"
        or one.get("object") == "error"
    )


def _wrapped(objects: Iterable[Json], dialect: str) -> str:
    for one in objects:
        if "choices" in one:
            return "openai_chat"
        if one.get("type") in ("message", "message_start"):
            return "anthropic_messages"
    return "bedrock_converse" if dialect == "bedrock_invoke" else dialect


_HOSTS = ("bedrock_invoke", "bedrock_converse", "openai_responses")
"""Dialects of hosts that answer some calls in another dialect."""


def _interactions(objects: Iterable[Json], reply: RawReply) -> None:
    steps: dict[int, Json] = {}
    for one in objects:
        steps |= dict(enumerate(one.get("steps") or one.get("outputs") or ()))
        kind = one.get("event_type")
        if kind == "step.start":
            steps[one["index"]] = dict(one["step"])
        elif kind == "step.delta":
            _grow_step(steps[one["index"]], one["delta"])
        reply.finish((one.get("interaction") or {}).get("status") or one.get("status"))
    for _, step in sorted(steps.items()):
        for text in texts(step.get("summary")):
            reply.think(text)
        reply.keep(step.get("signature"))
        for text in (*texts(step.get("content")), *texts([step] if step.get("type") == "text" else [])):
            reply.say(text)
        if step.get("type") == "function_call":
            reply.calls.append(RawCall(step.get("name", ""), step.get("arguments") or {}))
    reply.ended_with_calls()


def _grow_step(step: Json, delta: Json) -> None:
    match delta.get("type"):
        case "text":
            step.setdefault("content", []).append({"text": delta.get("text", "")})
        case "thought_summary":
            step.setdefault("summary", []).append(delta.get("content") or {})
        case "thought_signature":
            step["signature"] = delta.get("signature")
        case "arguments_delta":
            held = step.get("arguments")
            step["arguments"] = (held if isinstance(held, str) else "") + (delta.get("arguments") or "")


def _converse(objects: Iterable[Json], reply: RawReply) -> None:
    blocks: dict[int, Json] = {}
    for one in objects:
        blocks |= dict(enumerate(((one.get("output") or {}).get("message") or {}).get("content") or ()))
        reply.finish(one.get("stopReason"))
        # In a stream of InvokeModel the events stand under their names.
        for event in (
            one,
            *(one.get(name) or {} for name in ("contentBlockStart", "contentBlockDelta", "messageStop")),
        ):
            reply.finish(event.get("stopReason"))
            if isinstance(event.get("start"), dict):
                blocks[event["contentBlockIndex"]] = {name: dict(value) for name, value in event["start"].items()}
            if isinstance(event.get("delta"), dict):
                _grow_converse(blocks.setdefault(event["contentBlockIndex"], {}), event["delta"])
    for _, block in sorted(blocks.items()):
        thought = block.get("reasoningContent") or {}
        spoken = thought.get("reasoningText") or thought
        reply.think(spoken.get("text"))
        reply.keep(spoken.get("signature"), thought.get("redactedContent"))
        reply.say(block.get("text"))
        if called := block.get("toolUse"):
            reply.calls.append(RawCall(called.get("name", ""), called.get("input")))


def _grow_converse(block: Json, delta: Json) -> None:
    if isinstance(delta.get("text"), str):
        block["text"] = block.get("text", "") + delta["text"]
    for name in ("reasoningContent", "toolUse"):
        held = block.setdefault(name, {}) if name in delta else {}
        for key, piece in (delta.get(name) or {}).items():
            held[key] = held[key] + piece if isinstance(held.get(key), str) else piece


def _cohere(objects: Iterable[Json], reply: RawReply) -> None:
    for one in objects:
        delta = one.get("delta") or {}
        message = one.get("message") or delta.get("message") or {}
        if not isinstance(message, dict):
            continue
        content = message.get("content") or ()
        for part in [content] if isinstance(content, dict) else content:
            reply.think(part.get("thinking"))
            reply.say(part.get("text"))
        reply.think(message.get("tool_plan"))
        calls = message.get("tool_calls") or ()
        for call in [calls] if isinstance(calls, dict) else calls:
            function = call.get("function") or {}
            if function.get("name"):
                reply.calls.append(RawCall(function["name"], ""))
            reply.calls[-1].arguments += function.get("arguments") or ""
        end = one.get("finish_reason") or delta.get("finish_reason")
        reply.error = reply.error or end == "ERROR"
        reply.finish(end)


def _ollama(objects: Iterable[Json], reply: RawReply) -> None:
    for one in objects:
        message = one.get("message") or {}
        reply.think(message.get("thinking"))
        reply.say(message.get("content"))
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            reply.calls.append(RawCall(function.get("name", ""), function.get("arguments") or {}))
        reply.finish(one.get("done_reason"))
    reply.ended_with_calls()


def _watsonx(objects: Iterable[Json], reply: RawReply) -> None:
    for one in objects:
        for result in one.get("results") or ():
            reply.say(result.get("generated_text"))
            reply.finish(result.get("stop_reason"))


_READERS: Mapping[str, Callable[[Sequence[Json], RawReply], None]] = {
    "openai_chat": chat,
    "openai_responses": responses,
    "anthropic_messages": messages,
    "gemini": gemini,
    "gemini_interactions": _interactions,
    "bedrock_converse": _converse,
    "cohere": _cohere,
    "ollama": _ollama,
    "watsonx_text": _watsonx,
}
