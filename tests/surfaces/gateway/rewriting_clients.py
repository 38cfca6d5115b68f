"""Clients of seven dialects that keep a conversation in a form of their own, and write it anew for each request.

What such a client keeps of a turn is its text, its calls, and maybe words of thinking, never a signature.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bardo.replies.reply_reader import row_reader
from bardo.surfaces.library.decoding import provider_row
from bardo.values.blocks import ReasoningBlock, TextBlock

Body = dict[str, Any]
SCHEMA: Body = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@dataclass(frozen=True)
class Result:
    """What a tool said to a call: pieces of text."""

    call_id: str
    name: str
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Kept:
    """What a client keeps of one turn, and the results it answers it with. `plan`: its thinking is what the client calls a plan.

    `spaced`: a client that writes arguments as text writes them over several lines, and no letter as an escape. `blank`: a client that
    may say that a turn has no text says an empty one.
    """

    thinking: str = ""
    texts: tuple[str, ...] = ()
    calls: tuple[tuple[str, str, Body], ...] = ()
    results: tuple[Result, ...] = ()
    plan: bool = False
    spaced: bool = False
    blank: bool = False

    def spelt(self, arguments: Body) -> str:
        """Return arguments as this client writes them."""
        return json.dumps(arguments, indent=2, ensure_ascii=False) if self.spaced else json.dumps(arguments)

    def renamed(self, names: dict[str, str]) -> Kept:
        """Return the turn with other ids."""
        calls = tuple((names[call_id], name, arguments) for call_id, name, arguments in self.calls)
        return replace(self, calls=calls, results=tuple(replace(r, call_id=names[r.call_id]) for r in self.results))


@dataclass(frozen=True)
class Conversation:
    """A question in pieces, the turns so far, and the operator's words, which may be others in each request."""

    question: tuple[str, ...]
    turns: tuple[Kept, ...] = ()
    system: str = ""


@dataclass(frozen=True)
class RewritingClient:
    """One client: where it sends its requests, how it writes them, and what it keeps of a reply. `needs_ids`: its calls have ids."""

    path: Callable[[str], str]
    write: Callable[[Conversation, str], Body]
    read: Callable[[Body], Kept]
    needs_ids: bool = True


def _answered(kept: Kept) -> Kept:
    results = tuple(
        Result(call_id, name, (f"Sunny in {arguments.get('city')}, ", "23 degrees."))
        for call_id, name, arguments in kept.calls
    )
    return replace(kept, results=results)


def _joined(pieces: Sequence[str]) -> str:
    return "".join(pieces)


# Chat


def _write_chat(talk: Conversation, model: str) -> Body:
    messages: list[Body] = [{"role": "user", "content": [{"type": "text", "text": one} for one in talk.question]}]
    for turn in talk.turns:
        nothing = "" if turn.blank else None
        said: Body = {"role": "assistant", "content": [{"type": "text", "text": one} for one in turn.texts] or nothing}
        if turn.thinking:
            said["reasoning_content"] = turn.thinking
        if turn.calls:
            said["tool_calls"] = [
                {"id": call_id, "type": "function", "function": {"name": name, "arguments": turn.spelt(arguments)}}
                for call_id, name, arguments in turn.calls
            ]
        messages.append(said)
        messages += [
            {"role": "tool", "tool_call_id": one.call_id, "content": _joined(one.pieces)} for one in turn.results
        ]
    tools = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
    return {"model": model, "messages": messages, "tools": tools, "reasoning_effort": "low"}


def _read_chat(reply: Body) -> Kept:
    message = reply["choices"][0]["message"]
    calls = tuple(
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    )
    thinking = message.get("reasoning_content") or message.get("reasoning") or ""
    return Kept(thinking, tuple(filter(None, [message.get("content")])), calls)


# Messages


def _write_messages(talk: Conversation, model: str) -> Body:
    messages: list[Body] = [{"role": "user", "content": [{"type": "text", "text": one} for one in talk.question]}]
    for turn in talk.turns:
        content: list[Body] = []
        if turn.thinking:
            content.append({"type": "thinking", "thinking": turn.thinking, "signature": ""})
        content += [{"type": "text", "text": one} for one in turn.texts]
        content += [
            {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
            for call_id, name, arguments in turn.calls
        ]
        messages.append({"role": "assistant", "content": content})
        results = [
            {
                "type": "tool_result",
                "tool_use_id": one.call_id,
                "content": [{"type": "text", "text": piece} for piece in one.pieces],
            }
            for one in turn.results
        ]
        messages += [{"role": "user", "content": results}] if results else []
    tools = [{"name": "weather", "input_schema": SCHEMA}]
    thinking = {"type": "enabled", "budget_tokens": 2000}
    return {"model": model, "max_tokens": 6000, "thinking": thinking, "tools": tools, "messages": messages}


def _read_messages(reply: Body) -> Kept:
    blocks = reply["content"]
    calls = tuple((one["id"], one["name"], one["input"]) for one in blocks if one["type"] == "tool_use")
    thinking = "".join(one["thinking"] for one in blocks if one["type"] == "thinking")
    return Kept(thinking, tuple(one["text"] for one in blocks if one["type"] == "text" and one["text"]), calls)


# Responses


def _write_responses(talk: Conversation, model: str) -> Body:
    items: list[Body] = [{"role": "user", "content": [{"type": "input_text", "text": one} for one in talk.question]}]
    for turn in talk.turns:
        if turn.thinking:
            items.append({"type": "reasoning", "summary": [{"type": "summary_text", "text": turn.thinking}]})
        if turn.texts:
            parts = [{"type": "output_text", "text": one, "annotations": []} for one in turn.texts]
            items.append({"type": "message", "role": "assistant", "content": parts})
        items += [
            {"type": "function_call", "call_id": call_id, "name": name, "arguments": turn.spelt(arguments)}
            for call_id, name, arguments in turn.calls
        ]
        items += [
            {"type": "function_call_output", "call_id": one.call_id, "output": _joined(one.pieces)}
            for one in turn.results
        ]
    tools = [{"type": "function", "name": "weather", "parameters": SCHEMA}]
    asked = {"effort": "low", "summary": "auto"}
    return {"model": model, "input": items, "reasoning": asked, "tools": tools, "store": False}


def _read_responses(reply: Body) -> Kept:
    items = reply["output"]
    calls = tuple(
        (one["call_id"], one["name"], json.loads(one["arguments"])) for one in items if one["type"] == "function_call"
    )
    thinking = "".join(
        part["text"]
        for one in items
        if one["type"] == "reasoning"
        for part in one.get("summary") or one.get("content") or ()
    )
    texts = tuple(part["text"] for one in items if one["type"] == "message" for part in one["content"] if part["text"])
    return Kept(thinking, texts, calls)


# Gemini


def _write_gemini(talk: Conversation, model: str) -> Body:
    contents: list[Body] = [{"role": "user", "parts": [{"text": one} for one in talk.question]}]
    for turn in talk.turns:
        parts: list[Body] = [{"text": turn.thinking, "thought": True}] if turn.thinking else []
        parts += [{"text": one} for one in turn.texts]
        parts += [
            {"functionCall": {**({"id": call_id} if call_id else {}), "name": name, "args": arguments}}
            for call_id, name, arguments in turn.calls
        ]
        contents.append({"role": "model", "parts": parts})
        results = [
            {
                "functionResponse": {
                    **({"id": one.call_id} if one.call_id else {}),
                    "name": one.name,
                    "response": {"output": _joined(one.pieces)},
                }
            }
            for one in turn.results
        ]
        contents += [{"role": "user", "parts": results}] if results else []
    tools = [{"functionDeclarations": [{"name": "weather", "parameters": SCHEMA}]}]
    thinking = {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 2000}}
    return {"contents": contents, "tools": tools, "generationConfig": thinking}


def _read_gemini(reply: Body) -> Kept:
    parts = reply["candidates"][0]["content"]["parts"]
    called = [one["functionCall"] for one in parts if "functionCall" in one]
    calls = tuple((one.get("id") or f"made_{place}", one["name"], one["args"]) for place, one in enumerate(called))
    thinking = "".join(one.get("text", "") for one in parts if one.get("thought"))
    return Kept(thinking, tuple(one["text"] for one in parts if one.get("text") and not one.get("thought")), calls)


# Converse


def _write_converse(talk: Conversation, model: str) -> Body:
    messages: list[Body] = [{"role": "user", "content": [{"text": one} for one in talk.question]}]
    for turn in talk.turns:
        content: list[Body] = []
        if turn.thinking:
            content.append({"reasoningContent": {"reasoningText": {"text": turn.thinking}}})
        content += [{"text": one} for one in turn.texts]
        content += [
            {"toolUse": {"toolUseId": call_id, "name": name, "input": arguments}}
            for call_id, name, arguments in turn.calls
        ]
        messages.append({"role": "assistant", "content": content})
        results = [
            {"toolResult": {"toolUseId": one.call_id, "content": [{"text": piece} for piece in one.pieces]}}
            for one in turn.results
        ]
        messages += [{"role": "user", "content": results}] if results else []
    tools = [{"toolSpec": {"name": "weather", "inputSchema": {"json": SCHEMA}}}]
    more = {"thinking": {"type": "enabled", "budget_tokens": 2000}}
    asked: Body = {"messages": messages, "toolConfig": {"tools": tools}, "inferenceConfig": {"maxTokens": 6000}}
    return {**asked, "additionalModelRequestFields": more}


def _read_converse(reply: Body) -> Kept:
    blocks = reply["output"]["message"]["content"]
    uses = [one["toolUse"] for one in blocks if "toolUse" in one]
    thought = [
        one["reasoningContent"].get("reasoningText", {}).get("text", "") for one in blocks if "reasoningContent" in one
    ]
    calls = tuple((one["toolUseId"], one["name"], one["input"]) for one in uses)
    return Kept("".join(thought), tuple(one["text"] for one in blocks if one.get("text")), calls)


# Cohere


def _write_cohere(talk: Conversation, model: str) -> Body:
    messages: list[Body] = [{"role": "user", "content": [{"type": "text", "text": one} for one in talk.question]}]
    for turn in talk.turns:
        content: list[Body] = []
        if turn.thinking and not turn.plan:
            content.append({"type": "thinking", "thinking": turn.thinking})
        content += [{"type": "text", "text": one} for one in turn.texts]
        said: Body = {"role": "assistant", **({"content": content} if content else {})}
        if turn.plan:
            said["tool_plan"] = turn.thinking
        if turn.calls:
            said["tool_calls"] = [
                {"id": call_id, "type": "function", "function": {"name": name, "arguments": turn.spelt(arguments)}}
                for call_id, name, arguments in turn.calls
            ]
        messages.append(said)
        messages += [
            {"role": "tool", "tool_call_id": one.call_id, "content": _joined(one.pieces)} for one in turn.results
        ]
    tools = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
    thinking = {"type": "enabled", "token_budget": 2000}
    return {
        "model": model,
        "messages": messages,
        "tools": tools,
        "thinking": thinking,
        "max_tokens": 6000,
        "stream": False,
    }


def _read_cohere(reply: Body) -> Kept:
    message = reply["message"]
    content = message.get("content") or ()
    calls = tuple(
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    )
    thinking = "".join(one["thinking"] for one in content if one["type"] == "thinking")
    texts = tuple(one["text"] for one in content if one["type"] == "text" and one["text"])
    return Kept(thinking or message.get("tool_plan") or "", texts, calls)


# Ollama


def _write_ollama(talk: Conversation, model: str) -> Body:
    messages: list[Body] = [{"role": "user", "content": _joined(talk.question)}]
    for turn in talk.turns:
        said: Body = {"role": "assistant", "content": _joined(turn.texts)}
        if turn.thinking:
            said["thinking"] = turn.thinking
        said["tool_calls"] = [{"function": {"name": name, "arguments": arguments}} for _, name, arguments in turn.calls]
        messages.append(said)
        messages += [{"role": "tool", "tool_name": one.name, "content": _joined(one.pieces)} for one in turn.results]
    tools = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
    return {"model": model, "messages": messages, "tools": tools, "think": True, "stream": False}


def _read_ollama(reply: Body) -> Kept:
    message = reply["message"]
    called = [call["function"] for call in message.get("tool_calls") or ()]
    calls = tuple((f"made_{place}", one["name"], one["arguments"]) for place, one in enumerate(called))
    return Kept(message.get("thinking") or "", tuple(filter(None, [message.get("content")])), calls)


CLIENTS: dict[str, RewritingClient] = {
    "chat": RewritingClient(lambda model: "/v1/chat/completions", _write_chat, _read_chat),
    "messages": RewritingClient(lambda model: "/v1/messages", _write_messages, _read_messages),
    "responses": RewritingClient(lambda model: "/v1/responses", _write_responses, _read_responses),
    "gemini": RewritingClient(
        lambda model: f"/v1beta/models/{model}:generateContent", _write_gemini, _read_gemini, needs_ids=False
    ),
    "converse": RewritingClient(lambda model: f"/model/{model}/converse", _write_converse, _read_converse),
    "cohere": RewritingClient(lambda model: "/v2/chat", _write_cohere, _read_cohere),
    "ollama": RewritingClient(lambda model: "/api/chat", _write_ollama, _read_ollama, needs_ids=False),
}


def with_system(dialect: str, body: Body, words: str) -> Body:
    """Return a request with the operator's words."""
    match dialect:
        case "chat" | "cohere" | "ollama":
            return {**body, "messages": [{"role": "system", "content": words}, *body["messages"]]}
        case "messages":
            return {**body, "system": words}
        case "responses":
            return {**body, "instructions": words}
        case "gemini":
            return {**body, "systemInstruction": {"parts": [{"text": words}]}}
    return {**body, "system": [{"text": words}]}


def take(client: RewritingClient, reply: Body) -> Kept:
    """Return what a client keeps of a reply, with what its tools said."""
    return _answered(client.read(reply))


STREAMS = {
    "chat": "openai-chat",
    "messages": "anthropic-messages",
    "responses": "openai-responses",
    "gemini": "gemini",
    "converse": "bedrock-converse",
    "cohere": "cohere",
    "ollama": "ollama",
}
"""The provider as whose stream each client's is read."""


def as_stream(dialect: str, path: str, body: Body) -> tuple[str, Body]:
    """Return the path and the body of a request that asks for a stream."""
    if dialect == "gemini":
        return path.replace(":generateContent", ":streamGenerateContent?alt=sse"), body
    if dialect == "converse":
        return f"{path}-stream", body
    return path, {**body, "stream": True}


def take_stream(dialect: str, raw: bytes) -> Kept:
    """Return what a client keeps of a streamed reply, with what its tools said."""
    reader = row_reader(provider_row(STREAMS[dialect]), streamed=True)
    reader.feed(raw)
    reader.finish()
    assert reader.failure is None, reader.failure
    reply = reader.response()
    thinking = "".join(block.readable for block in reply.blocks if isinstance(block, ReasoningBlock))
    texts = tuple(block.text for block in reply.blocks if isinstance(block, TextBlock) and block.text)
    calls = tuple((call.id, call.name, call.arguments or {}) for call in reply.tool_calls)
    return _answered(Kept(thinking, texts, calls))


Mutator = Callable[[Kept, int, RewritingClient], Kept]


def _halves(text: str) -> tuple[str, ...]:
    middle = len(text) // 2
    return tuple(filter(None, (text[:middle], text[middle:])))


def _ids(turn: Kept, number: int, client: RewritingClient) -> Kept:
    return turn.renamed(
        {one[0]: f"{number}-{place}" if client.needs_ids else "" for place, one in enumerate(turn.calls)}
    )


def _renamed(turn: Kept, number: int, client: RewritingClient) -> Kept:
    return turn.renamed({one[0]: f"call_9Zq{number}Kd{place}Wm4xR7tYb2Lc" for place, one in enumerate(turn.calls)})


def _respelt(turn: Kept, number: int, client: RewritingClient) -> Kept:
    """Return the turn with arguments as another writer of JSON has them: other order, whole numbers with a fraction."""
    calls = tuple(
        (call_id, name, {key: float(one) if isinstance(one, int) else one for key, one in reversed(arguments.items())})
        for call_id, name, arguments in turn.calls
    )
    return replace(turn, calls=calls)


MUTATORS: dict[str, Mutator] = {
    "as it was": lambda turn, number, client: turn,
    "ids dropped": _ids,
    "ids renamed": _renamed,
    "thinking dropped": lambda turn, number, client: replace(turn, thinking=""),
    "thinking rewritten": lambda turn, number, client: replace(turn, thinking="Other words than the model's."),
    "plan invented": lambda turn, number, client: replace(turn, thinking="I will call the weather tool.", plan=True),
    "results duplicated": lambda turn, number, client: replace(turn, results=(*turn.results, *turn.results)),
    "text beside calls dropped": lambda turn, number, client: replace(turn, texts=() if turn.calls else turn.texts),
    "calls reordered": lambda turn, number, client: replace(turn, calls=turn.calls[::-1], results=turn.results[::-1]),
    "calls reordered, ids renamed": lambda turn, number, client: _renamed(
        replace(turn, calls=turn.calls[::-1], results=turn.results[::-1]), number, client
    ),
    "text dropped, ids renamed": lambda turn, number, client: _renamed(
        replace(turn, texts=() if turn.calls else turn.texts, thinking=""), number, client
    ),
    "arguments respelt": _respelt,
    "arguments spaced": lambda turn, number, client: replace(turn, spaced=True),
    "arguments spaced, ids renamed": lambda turn, number, client: _renamed(replace(turn, spaced=True), number, client),
    "nothing said as an empty text": lambda turn, number, client: replace(turn, blank=True),
    "a turn split": lambda turn, number, client: turn,
    "a turn split, thinking dropped": lambda turn, number, client: replace(turn, thinking=""),
    "a turn split, ids renamed": _renamed,
    "calls split from the text": lambda turn, number, client: replace(turn, thinking=""),
    "system changed": lambda turn, number, client: turn,
    "system changed, ids renamed": _renamed,
    "results reordered": lambda turn, number, client: replace(turn, results=turn.results[::-1]),
    "texts split": lambda turn, number, client: replace(
        turn,
        texts=tuple(half for text in turn.texts for half in _halves(text)),
        results=tuple(replace(r, pieces=_halves(_joined(r.pieces))) for r in turn.results),
    ),
    "texts merged": lambda turn, number, client: replace(
        turn,
        texts=tuple(filter(None, ["\n".join(turn.texts)])),
        results=tuple(replace(r, pieces=(_joined(r.pieces),)) for r in turn.results),
    ),
    "white space trimmed": lambda turn, number, client: replace(
        turn,
        thinking="",
        texts=tuple(" ".join(text.split()) for text in turn.texts),
        results=tuple(replace(r, pieces=tuple(piece.strip() for piece in r.pieces)) for r in turn.results),
    ),
}


def _all_at_once(turn: Kept, number: int, client: RewritingClient) -> Kept:
    for how in ("ids renamed", "thinking rewritten", "results duplicated", "results reordered", "texts split"):
        turn = MUTATORS[how](turn, number, client)
    return turn


MUTATORS["all at once"] = _all_at_once


def _each_alone(turn: Kept) -> list[Kept]:
    """Return a turn as messages in a row, one with what it says and one for each of its calls."""
    said = [Kept(turn.thinking, turn.texts)] if turn.thinking or turn.texts else []
    called = [Kept(calls=(call,)) for call in turn.calls]
    return [*said, *called[:-1], *(replace(one, results=turn.results) for one in called[-1:])]


def _calls_alone(turn: Kept) -> list[Kept]:
    """Return a turn as a message with what it says and one with all of its calls."""
    said = [Kept(turn.thinking, turn.texts)] if turn.thinking or turn.texts else []
    return [*said, *([Kept(calls=turn.calls, results=turn.results)] if turn.calls else [])]


SPLITS: dict[str, Callable[[Kept], list[Kept]]] = {
    "a turn split": _each_alone,
    "a turn split, thinking dropped": _each_alone,
    "a turn split, ids renamed": _each_alone,
    "calls split from the text": _calls_alone,
}
"""The mutators that write one turn as several messages."""


def mutated(talk: Conversation, how: str, client: RewritingClient, *, late: bool) -> Conversation:
    """Return a conversation as a client writes it anew; `late`: what it has just got it still gives as it was."""
    mutate = MUTATORS[how]
    last = len(talk.turns) - 1
    turns = tuple(
        turn if late and place == last else mutate(turn, place, client) for place, turn in enumerate(talk.turns)
    )
    question = talk.question
    if how in ("texts split", "all at once") and turns:
        question = tuple(half for one in question for half in _halves(one))
    if how == "white space trimmed" and turns:
        question = tuple(one.strip() for one in question)
    if how in SPLITS:
        turns = tuple(
            piece
            for place, turn in enumerate(turns)
            for piece in ([turn] if late and place == last else SPLITS[how](turn))
        )
    system = f"It is {len(turns)} o'clock." if how.startswith("system changed") else ""
    return Conversation(question, turns, system)
