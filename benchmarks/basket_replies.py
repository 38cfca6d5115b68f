"""What the upstream of the basket says: replies named by their request, as the bytes of four dialects.

A request names its reply in its last message, as `name_of` writes it: what the model thinks, how the reply is delivered, and a number. So
the reply is known to whoever has the name, through any gateway and any translation, and the upstream reads no JSON. The forms are those of
recorded replies: DeepSeek's for Chat without a signature, OpenRouter's for Chat with one, and Anthropic's, OpenAI's and Google's.
"""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

from benchmarks.canned import STREAM_HEAD, answer
from benchmarks.raw_dialects import read_reply

Json = dict[str, Any]
Delivery = Literal["whole", "burst", "paced"]
EVENTS = 200
PACE_SECONDS = 0.0025
VARIANTS = 16
"""So many replies there are of each kind that is not an agent's: words and lengths differ."""

_NAME = re.compile(rb"\[\[reply (\w+) (\w+) ([\w.-]+)\]\]")
_MARK = b"[[reply "
_WORDS = """
about after answer because before between bridge careful change city clear cloud color count daily detail early easy empty evening
every evidence example family figure first follow forest garden general glass green ground harbor history house hundred idea
inside island journey kind kitchen language later letter library light little machine market matter measure method middle minute
mirror moment morning mountain music narrow nature near number ocean often open order other paper people picture place plain point
quiet question quick rain reason record river road round safe school season second sense shape short simple small sound spring
stone story street strong summer table thing thought through today tomorrow travel tree under useful valley village visit voice
warm water weather while white whole window winter without wonder word world yellow yesterday
"""
_VOCABULARY = _WORDS.split()


@dataclass(frozen=True, slots=True)
class Said:
    """What a reply says. Without a tool's name there is no call."""

    thinking: str
    signature: str
    text: str
    call_id: str = ""
    tool: str = ""
    arguments: str = ""


def name_of(kind: str, delivery: Delivery, number: str) -> str:
    """Return what a request has in its last message, so that it is answered with this reply."""
    return f"[[reply {kind} {delivery} {number}]]"


def words(chance: random.Random, count: int) -> str:
    """Return so many words, drawn with repetition."""
    return " ".join(chance.choices(_VOCABULARY, k=count))


@lru_cache(maxsize=50_000)
def said(kind: str, number: str) -> Said:
    """Return what the reply of this kind and number says."""
    chance = random.Random(f"{kind} {number}")
    match kind:
        case "none":
            return Said(thinking="", signature="", text=_text(chance))
        case "short":
            return Said(thinking=words(chance, chance.randint(28, 34)), signature="", text=_text(chance))
        case "long":
            thinking = words(chance, chance.randint(600, 660))
            return Said(thinking=thinking, signature=_signature(chance, 2_000), text=_text(chance))
        case "typed":
            value = {"animal": chance.choice(_VOCABULARY), "legs": chance.randint(2, 8), "why": words(chance, 30)}
            return Said(thinking="", signature="", text=json.dumps(value))
        case _:
            path = {"path": f"src/{'/'.join(chance.choices(_VOCABULARY, k=3))}.py", "line": chance.randint(1, 900)}
            return Said(
                thinking=words(chance, chance.randint(25, 45)),
                signature=_signature(chance, 330),
                text="",
                call_id=f"call_{chance.getrandbits(80):020x}",
                tool=f"tool_{chance.randrange(12)}",
                arguments=json.dumps(path),
            )


def _text(chance: random.Random) -> str:
    # At least a word for each event of a stream.
    return words(chance, chance.randint(260, 420))


def _signature(chance: random.Random, size: int) -> str:
    return base64.b64encode(chance.randbytes(size + chance.randrange(60))).decode()


def problem_of(kind: str, number: str, dialect: str, reply: bytes) -> str:
    """Return what a reply lacks of what was sent, empty where it is right.

    `reply` is a body, whole or a stream of server-sent events.
    """
    sent = said(kind, number)
    got = read_reply(_documents(reply), dialect)
    if got.error:
        return "it is an error"
    if got.text.strip() != sent.text:
        return f"its text has {len(got.text)} letters of {len(sent.text)}"
    if got.thinking.strip() != sent.thinking:
        return f"its thinking has {len(got.thinking)} letters of {len(sent.thinking)}"
    if sent.signature and not _is_in(sent.signature, reply, got.states):
        return "the signature of its thinking is lost"
    calls = [(call.name, _arguments(call.arguments)) for call in got.calls]
    if calls != ([(sent.tool, json.loads(sent.arguments))] if sent.tool else []):
        return f"its calls are {calls}"
    return ""


def _is_in(signature: str, reply: bytes, states: Iterable[str]) -> bool:
    """Whether the client got the signature, anywhere, or in what a gateway wraps in base64 to know it again."""
    return signature.encode() in reply or any(signature.encode() in _decoded(state) for state in states)


def _decoded(state: str) -> bytes:
    try:
        return base64.b64decode(state + "=" * (-len(state) % 4), altchars=b"-_")
    except ValueError:
        return b""  # It is a state of another form.


def _arguments(found: Any) -> Any:
    return json.loads(found) if isinstance(found, str) else found


def _documents(reply: bytes) -> list[Any]:
    if reply.lstrip().startswith(b"{"):
        return [json.loads(reply)]
    lines = (line[5:].strip() for line in reply.split(b"\n") if line.startswith(b"data:"))
    return [json.loads(line) for line in lines if line and line != b"[DONE]"]


def reply_to(request: bytes) -> tuple[bytes, ...] | None:
    """Return the HTTP answer to a request that names a reply, in pieces: one where it comes at once. None where none is named."""
    found = _NAME.match(request, max(0, request.rfind(_MARK)))
    if found is None:
        return None
    kind, delivery, number = (part.decode() for part in found.groups())
    path = request[: request.find(b"\r\n")]
    dialect = next((name for part, name in _PATHS if part in path), "openai_chat")
    if kind == "agent":
        return (answer(_whole(dialect, kind, number)),)
    return _kept(dialect, kind, delivery, number)


_PATHS = ((b"enerateContent", "gemini"), (b"/messages", "anthropic_messages"), (b"/responses", "openai_responses"))


@lru_cache(maxsize=1024)
def _kept(dialect: str, kind: str, delivery: str, number: str) -> tuple[bytes, ...]:
    if delivery == "whole":
        return (answer(_whole(dialect, kind, number)),)
    chunks = [b"%x\r\n%b\r\n" % (len(event), event) for event in _events(dialect, kind, number)]
    chunks = [STREAM_HEAD + chunks[0], *chunks[1:-1], chunks[-1] + b"0\r\n\r\n"]
    return tuple(chunks) if delivery == "paced" else (b"".join(chunks),)


def _whole(dialect: str, kind: str, number: str) -> bytes:
    sent = said(kind, number)
    return json.dumps(_WHOLE[dialect](sent, f"{dialect}_{kind}_{number}"), ensure_ascii=False).encode()


def _events(dialect: str, kind: str, number: str) -> list[bytes]:
    sent = said(kind, number)
    # The signature has an event of its own in some dialects: what is equal is the number of deltas of text.
    thoughts = _pieces(sent.thinking, EVENTS // 2)
    texts = _pieces(sent.text, EVENTS - len(thoughts))
    return [*_STREAMS[dialect](sent, thoughts, texts, f"{dialect}_{kind}_{number}")]


def _pieces(text: str, count: int) -> list[str]:
    """Cut a text into so many pieces of whole words, or into one for each word where it has fewer."""
    found = [f"{' ' if place else ''}{word}" for place, word in enumerate(text.split())]
    count = min(count, len(found))
    ends = [len(found) * place // count for place in range(count + 1)] if count else []
    return ["".join(found[begin:end]) for begin, end in pairwise(ends)]


def _event(value: Json, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value, separators=(',', ':'))}\n\n".encode()


_CHAT_USAGE = {
    "prompt_tokens": 900,
    "completion_tokens": 600,
    "total_tokens": 1500,
    "prompt_tokens_details": {"cached_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 200},
}


def _detail(text: str, **more: Any) -> Json:
    return {"type": "reasoning.text", "text": text, **more, "format": "anthropic-claude-v1", "index": 0}


def _chat(sent: Said, name: str) -> Json:
    message: Json = {"role": "assistant", "content": sent.text}
    if sent.signature:
        message |= {"reasoning": sent.thinking, "reasoning_details": [_detail(sent.thinking, signature=sent.signature)]}
    elif sent.thinking:
        message["reasoning_content"] = sent.thinking
    if sent.tool:
        function = {"name": sent.tool, "arguments": sent.arguments}
        message["tool_calls"] = [{"index": 0, "id": sent.call_id, "type": "function", "function": function}]
    end = "tool_calls" if sent.tool else "stop"
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": end}
    return {**_chat_head(sent, name, "chat.completion"), "choices": [choice], "usage": _CHAT_USAGE}


def _chat_head(sent: Said, name: str, kind: str) -> Json:
    model = "anthropic/claude-haiku-4.5" if sent.signature else "deepseek-reasoner"
    return {"id": f"gen-{name}", "object": kind, "created": 1_760_000_000, "model": model}


def _chat_events(sent: Said, thoughts: list[str], texts: list[str], name: str) -> Iterator[bytes]:
    head = _chat_head(sent, name, "chat.completion.chunk")

    def chunk(delta: Json, end: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": end, "logprobs": None}
        return _event({**head, "choices": [choice], **more})

    yield chunk({"role": "assistant", "content": ""})
    for text in thoughts:
        if sent.signature:
            yield chunk({"content": "", "reasoning": text, "reasoning_details": [_detail(text)]})
        else:
            yield chunk({"content": None, "reasoning_content": text})
    if sent.signature:
        signed = {"type": "reasoning.text", "signature": sent.signature, "format": "anthropic-claude-v1", "index": 0}
        yield chunk({"content": "", "reasoning": None, "reasoning_details": [signed]})
    for text in texts:
        yield chunk({"content": text})
    yield chunk({"content": ""}, "stop", usage=_CHAT_USAGE)
    yield b"data: [DONE]\n\n"


_MESSAGES_USAGE = {
    "input_tokens": 900,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 600,
    "service_tier": "standard",
}


def _messages_head(name: str) -> Json:
    return {"model": "claude-haiku-4-5-20251001", "id": f"msg_{name}", "type": "message", "role": "assistant"}


def _messages(sent: Said, name: str) -> Json:
    content: list[Json] = []
    if sent.thinking:
        content.append(
            {"type": "thinking", "thinking": sent.thinking, "signature": sent.signature or _short_signature(name)}
        )
    if sent.text:
        content.append({"type": "text", "text": sent.text})
    if sent.tool:
        content.append({"type": "tool_use", "id": sent.call_id, "name": sent.tool, "input": json.loads(sent.arguments)})
    end = {"stop_reason": "tool_use" if sent.tool else "end_turn", "stop_sequence": None}
    return {**_messages_head(name), "content": content, **end, "usage": _MESSAGES_USAGE}


def _short_signature(name: str) -> str:
    """Return the signature that some providers give to every thought."""
    return _signature(random.Random(name), 330)


def _messages_events(sent: Said, thoughts: list[str], texts: list[str], name: str) -> Iterator[bytes]:
    def event(kind: str, **fields: Any) -> bytes:
        return _event({"type": kind, **fields}, kind)

    opening = {**_messages_head(name), "content": [], "stop_reason": None, "stop_sequence": None}
    yield event("message_start", message={**opening, "usage": {**_MESSAGES_USAGE, "output_tokens": 1}})
    blocks: list[tuple[Json, list[Json]]] = []
    if thoughts:
        signed = {"type": "signature_delta", "signature": sent.signature or _short_signature(name)}
        deltas = [*({"type": "thinking_delta", "thinking": text} for text in thoughts), signed]
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas))
    blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": text} for text in texts]))
    for index, (block, deltas) in enumerate(blocks):
        yield event("content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    yield event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage=_MESSAGES_USAGE)
    yield event("message_stop")


def _responses_head(name: str, status: str) -> Json:
    return {
        "id": f"resp_{name}", "object": "response", "created_at": 1_760_000_000, "status": status, "background": False, "error": None,
        "incomplete_details": None, "instructions": None, "max_output_tokens": None, "model": "gpt-5-mini-2025-08-07", "output": [],
        "parallel_tool_calls": True, "previous_response_id": None, "reasoning": {"effort": "medium", "summary": "detailed"},
        "service_tier": "default", "store": False, "temperature": 1.0, "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto", "tools": [], "top_p": 1.0, "truncation": "disabled", "usage": None, "user": None, "metadata": {},
    }  # fmt: skip


_RESPONSES_USAGE = {
    "input_tokens": 900,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 600,
    "output_tokens_details": {"reasoning_tokens": 200},
    "total_tokens": 1500,
}


def _thought_item(sent: Said, name: str) -> Json:
    summary = [{"type": "summary_text", "text": sent.thinking}]
    state = sent.signature or _short_signature(name)
    return {"id": f"rs_{name}", "type": "reasoning", "encrypted_content": state, "summary": summary}


def _text_item(text: str, name: str, status: str) -> Json:
    content = [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}] if text else []
    return {"id": f"msg_{name}", "type": "message", "status": status, "content": content, "role": "assistant"}


def _responses(sent: Said, name: str) -> Json:
    items = [_thought_item(sent, name)] if sent.thinking else []
    items.append(_text_item(sent.text, name, "completed"))
    return {**_responses_head(name, "completed"), "output": items, "usage": _RESPONSES_USAGE}


def _responses_events(sent: Said, thoughts: list[str], texts: list[str], name: str) -> Iterator[bytes]:
    number = -1

    def event(kind: str, **fields: Any) -> bytes:
        nonlocal number
        number += 1
        return _event({"type": f"response.{kind}", **fields, "sequence_number": number}, f"response.{kind}")

    for kind in ("created", "in_progress"):
        yield event(kind, response=_responses_head(name, "in_progress"))
    if thoughts:
        item = _thought_item(sent, name)
        place = {"item_id": item["id"], "output_index": 0, "summary_index": 0}
        yield event("output_item.added", item={**item, "summary": []}, output_index=0)
        yield event("reasoning_summary_part.added", **place, part={"type": "summary_text", "text": ""})
        for text in thoughts:
            yield event("reasoning_summary_text.delta", **place, delta=text)
        yield event("reasoning_summary_text.done", **place, text=sent.thinking)
        yield event("reasoning_summary_part.done", **place, part=item["summary"][0])
        yield event("output_item.done", item=item, output_index=0)
    index, item = (1 if thoughts else 0), _text_item(sent.text, name, "completed")
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    yield event("output_item.added", item=_text_item("", name, "in_progress"), output_index=index)
    yield event("content_part.added", **place, part={**item["content"][0], "text": ""})
    for text in texts:
        yield event("output_text.delta", **place, delta=text, logprobs=[])
    yield event("output_text.done", **place, text=sent.text, logprobs=[])
    yield event("content_part.done", **place, part=item["content"][0])
    yield event("output_item.done", item=item, output_index=index)
    yield event("completed", response=_responses(sent, name))


_GEMINI_USAGE = {
    "promptTokenCount": 900,
    "candidatesTokenCount": 400,
    "totalTokenCount": 1500,
    "thoughtsTokenCount": 200,
}


def _gemini_reply(parts: list[Json], name: str, **more: Any) -> Json:
    candidate = {"content": {"parts": parts, "role": "model"}, **more, "index": 0}
    head = {"modelVersion": "gemini-2.5-flash", "responseId": name}
    return {"candidates": [candidate], "usageMetadata": _GEMINI_USAGE, **head}


def _gemini(sent: Said, name: str) -> Json:
    thought = [{"text": sent.thinking, "thought": True}] if sent.thinking else []
    signed = {"thoughtSignature": sent.signature or _short_signature(name)} if sent.thinking else {}
    return _gemini_reply([*thought, {"text": sent.text, **signed}], name, finishReason="STOP")


def _gemini_events(sent: Said, thoughts: list[str], texts: list[str], name: str) -> Iterator[bytes]:
    for text in thoughts:
        yield _event(_gemini_reply([{"text": text, "thought": True}], name))
    for place, text in enumerate(texts):
        signed = {"thoughtSignature": sent.signature or _short_signature(name)} if thoughts and not place else {}
        end = {"finishReason": "STOP"} if place == len(texts) - 1 else {}
        yield _event(_gemini_reply([{"text": text, **signed}], name, **end))


_WHOLE = {"openai_chat": _chat, "anthropic_messages": _messages, "openai_responses": _responses, "gemini": _gemini}
_STREAMS = {
    "openai_chat": _chat_events,
    "anthropic_messages": _messages_events,
    "openai_responses": _responses_events,
    "gemini": _gemini_events,
}
