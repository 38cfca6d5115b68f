"""OpenAI's Responses: reasoning items with a summary on request and a ciphertext, and numbered events."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from bardo.simulators import chat_request, marks
from bardo.simulators.demands import OPENAI_NAMES, OPENAI_ROOT, Demands, check_openai_strict
from bardo.simulators.embeddings import openai_embeddings
from bardo.simulators.exchange import Exchange, Incoming, Refusal, Reply, named_event, streamed, whole
from bardo.simulators.fields import Fields, at, fields, joined_text, pretty, rows, text
from bardo.simulators.marks import ciphertext
from bardo.simulators.provider import Provider
from bardo.simulators.providers import openai_chat
from bardo.simulators.turns import Conversation, Tool, ToolCall

_CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_ROLES = ("assistant", "system", "developer", "user")
_LONGEST_CALL_ID = 64
_LONGEST_NAME = 64
_KNOWN = frozenset(
    (
        "access_programs", "background", "background_options", "client_metadata", "context_management", "conversation", "image", "include",
        "input",
        "instructions", "max_output_tokens", "max_tool_calls", "metadata", "model", "moderation", "parallel_tool_calls", "personality",
        "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning",
        "safety_identifier", "service_tier", "store", "stream", "stream_options", "temperature", "text", "tool_choice", "tools",
        "top_logprobs", "top_p", "truncation", "user",
    )
)  # fmt: skip
"""What openai 2.x's own types say a request may hold, as of 2026-11, and what Codex sends to this host besides (0.169)."""


@dataclass(frozen=True, slots=True)
class RememberedReply:
    """The stored state of a reply, for a request that continues it."""

    rounds: int
    calls: frozenset[str]


def read(incoming: Incoming, memory: Mapping[str, RememberedReply]) -> Conversation:
    """Decode the request; `memory` holds earlier replies by id. Raises Refusal."""
    body = chat_request.json_body(incoming)
    model = chat_request.required_text(body, "model", "Missing required parameter: 'model'.")
    before = _before(body, memory)
    for name in body:
        if name not in _KNOWN:
            raise Refusal("unknown_field", f"Unknown parameter: '{name}'.", parameter=name)
    items = _input_items(body)
    _check_roles(items)
    for index, item in enumerate(items):
        chat_request.check_length(f"input[{index}].call_id", text(item.get("call_id")), _LONGEST_CALL_ID)
    _check_tool_names(body, items)
    _check_outputs(items, before)
    check_reasoning(items, model)
    _check_compactions(items, model)
    # Refuse ciphertext of thinking for a model that does not think, in OpenAI's words as of 2026-11.
    included = body.get("include")
    asked = isinstance(included, list) and "reasoning.encrypted_content" in included
    if asked and model.startswith(_WITHOUT_THINKING):
        message = "Encrypted content is not supported with this model."
        raise Refusal("bad_value", message, parameter="include")
    return Conversation(
        model=model,
        question=next((joined_text(i.get("content")) for i in reversed(items) if i.get("role") == "user"), ""),
        rounds=before.rounds + _rounds(items),
        tools=() if body.get("tool_choice") == "none" else _tools(body),
        forced_tool=text(at(body, "tool_choice.name")) or None,
        tool_results=_tool_results(items),
        schema=fields(at(body, "text.format.schema")) or None,
        streamed=body.get("stream") is True,
        characters=len(text(body.get("instructions"))) + sum(len(str(item)) for item in items),
    )


def _check_tool_names(body: Fields, items: Sequence[Fields]) -> None:
    tools = [(f"tools[{index}]", tool) for index, tool in enumerate(rows(body.get("tools")))]
    calls = [(f"input[{index}]", item) for index, item in enumerate(items) if item.get("type") in _CALLS]
    for place, value in (*tools, ("tool_choice", fields(body.get("tool_choice"))), *calls):
        chat_request.check_length(f"{place}.name", text(value.get("name")), _LONGEST_NAME)


_WITHOUT_THINKING = ("gpt-4", "gpt-3.5", "chatgpt-")


_COUNTED = (
    "conversation", "input", "instructions", "model", "parallel_tool_calls", "personality", "previous_response_id",
    "reasoning", "text", "tool_choice", "tools", "truncation",
)  # fmt: skip


def counted(incoming: Incoming, memory: Mapping[str, RememberedReply]) -> Reply:
    """Count the tokens of a request without answering it. Raises Refusal, for fields too that have no tokens."""
    unknown = [name for name in incoming.fields if name not in _COUNTED]
    if unknown:
        raise Refusal("unknown_field", f"Unknown parameter: '{unknown[0]}'.", parameter=unknown[0])
    tokens = read(incoming, memory).token_count
    return whole(pretty({"object": "response.input_tokens", "input_tokens": tokens}))


_COMPACTED = (
    "image", "input", "instructions", "model", "previous_response_id", "prompt_cache_key", "prompt_cache_options",
    "prompt_cache_retention", "service_tier",
)  # fmt: skip


def compacted(incoming: Incoming, memory: Mapping[str, RememberedReply]) -> Reply:
    """Compact a conversation: what the user said stays. Raises Refusal."""
    unknown = [name for name in incoming.fields if name not in _COMPACTED]
    if unknown:
        raise Refusal("unknown_field", f"Unknown parameter: '{unknown[0]}'.", parameter=unknown[0])
    asked = read(incoming, memory)
    messages = [item for item in _input_items(incoming.fields) if item.get("role") == "user"]
    used: Fields = {"input_tokens": asked.token_count, "output_tokens": 40, "total_tokens": asked.token_count + 40}
    details: Fields = {
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    made: Fields = {
        "id": "resp_0compacted",
        "object": "response.compaction",
        "created_at": 1_796_000_000,
        "output": [
            *({"status": "completed", "type": "message", **item} for item in messages),
            compaction_item(asked.model, "0compacted"),
        ],
        "usage": {**used, **details},
    }
    return whole(pretty(made))


def compaction_item(model: str, name: str) -> Fields:
    """Return an item that stands for a conversation."""
    return {"id": f"cmp_{name}", "type": "compaction", "encrypted_content": encrypted(model, "compacted", size=400)}


def _check_compactions(items: Sequence[Fields], model: str) -> None:
    """Refuse a trigger that is not the last item, and compactions that cannot be read."""
    for index, item in enumerate(items):
        if item.get("type") == "compaction_trigger" and index < len(items) - 1:
            words = "The 'compaction_trigger' item must be the last item of the input."
            raise Refusal("bad_value", words, parameter=f"input[{index}]")
        if item.get("type") == "compaction":
            check_one(text(item.get("encrypted_content")), model)


def _before(body: Fields, memory: Mapping[str, RememberedReply]) -> RememberedReply:
    previous = text(body.get("previous_response_id"))
    if not previous:
        return RememberedReply(0, frozenset())
    if previous not in memory:
        raise Refusal(
            "bad_value", f"Previous response with id '{previous}' not found.", parameter="previous_response_id"
        )
    return memory[previous]


def _input_items(body: Fields) -> list[Fields]:
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else rows(given)
    if not items and not body.get("previous_response_id"):
        raise Refusal("missing_field", "Missing required parameter: 'input'.", parameter="input")
    return [dict(item) for item in items]


def _check_roles(items: Sequence[Fields]) -> None:
    for index, item in enumerate(items):
        if item.get("type", "message") == "message" and item.get("role") not in _ROLES:
            supported = ", ".join(f"'{role}'" for role in _ROLES[:-1])
            raise Refusal(
                "bad_value",
                f"Invalid value: '{item.get('role')}'. Supported values are: {supported}, and '{_ROLES[-1]}'.",
                parameter=f"input[{index}].role",
            )


def _check_outputs(items: Sequence[Fields], before: RememberedReply) -> None:
    called = set(before.calls) | {text(item.get("call_id")) for item in items if item.get("type") in _CALLS}
    given = {text(item.get("call_id")) for item in items if item.get("type") in _OUTPUTS}
    for call in sorted(given - called):
        raise Refusal(
            "trouble",
            f"No tool call found for function call output with call_id {call}.",
            parameter="input",
            status=400,
        )
    for call in sorted(called - given):
        raise Refusal("trouble", f"No tool output found for function call {call}.", parameter="input", status=400)


def _is_model_item(item: Fields) -> bool:
    return item.get("role") == "assistant" or item.get("type") in (*_CALLS, "reasoning")


def _rounds(items: Sequence[Fields]) -> int:
    """Count the runs of items that the model wrote."""
    rounds, inside = 0, False
    for item in items:
        rounds += _is_model_item(item) and not inside
        inside = _is_model_item(item)
    return rounds


def _tool_results(items: Sequence[Fields]) -> tuple[str, ...]:
    """Return the results that end the conversation."""
    results: list[str] = []
    for item in reversed(items):
        if item.get("type") not in _OUTPUTS:
            break
        results.append(joined_text(item.get("output")))
    return tuple(reversed(results))


def _tools(body: Fields) -> tuple[Tool, ...]:
    return tuple(
        Tool(text(tool.get("name")), text(tool.get("description")), fields(tool.get("parameters")))
        for tool in rows(body.get("tools"))
        if tool.get("type") in ("function", "custom")
    )


def custom_tools(body: Fields) -> frozenset[str]:
    """Return the names of the tools that take plain text."""
    return frozenset(text(tool.get("name")) for tool in rows(body.get("tools")) if tool.get("type") == "custom")


_SIGNER = "openai"
_OPENING = "gAAAAAB"


def encrypted(model: str, reasoning: str, *, size: int) -> str:
    """Return the ciphertext of some reasoning."""
    bound = {"model": model, "said": marks.fingerprint(reasoning)}
    return _OPENING + base64.urlsafe_b64encode(marks.sign(_SIGNER, bound, size=size)).decode()


def check_reasoning(items: Sequence[Fields], model: str) -> None:
    """Refuse ciphertexts that cannot be read, and reasoning that leads to nothing."""
    for index, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        if held := text(item.get("encrypted_content")):
            check_one(held, model)
        if not _is_led_to(items[index + 1] if index + 1 < len(items) else {}):
            words = f"Item '{item.get('id') or 'rs_unknown'}' of type 'reasoning' was provided without its required following item."
            raise Refusal("trouble", words, parameter="input", status=400)


def check_one(held: str, model: str) -> None:
    """Refuse a ciphertext that another model wrote, or none."""
    opens = held.startswith(_OPENING)
    bound = marks.verify(_SIGNER, marks.decode_base64(held.removeprefix(_OPENING))) if opens else None
    if bound is None or bound.get("model") != model:
        words = f"The encrypted content {held[:4]}...{held[-4:]} could not be verified."
        reason = "Reason: Encrypted content could not be decrypted or parsed."
        raise Refusal("bad_ciphertext", f"{words} {reason}")


def _is_led_to(item: Fields) -> bool:
    kind = item.get("type", "message" if item else "")
    if kind == "message":
        return item.get("role") == "assistant"
    return kind not in ("", "function_call_output", "custom_tool_call_output")


def item_events(exchange: Exchange, index: int, item: Fields) -> Iterator[Fields]:
    """Yield the events of one item, from its addition to its end; their numbers are put in later."""
    yield {"type": "response.output_item.added", "item": _added_item(item), "output_index": index}
    match item["type"]:
        case "reasoning":
            yield from _summary_events(exchange, index, item)
        case "message":
            part = rows(item["content"])[0]
            where: Fields = {"content_index": 0, "item_id": item["id"], "output_index": index}
            yield {"type": "response.content_part.added", **where, "part": {**part, "text": ""}}
            for piece in exchange.pieces(str(part["text"])):
                delta: Fields = {"delta": piece, "logprobs": [], "obfuscation": _obfuscation(exchange, piece)}
                yield {"type": "response.output_text.delta", **where, **delta}
            yield {"type": "response.output_text.done", **where, "logprobs": [], "text": part["text"]}
            yield {"type": "response.content_part.done", **where, "part": part}
        case "function_call":
            yield from _call_events(exchange, index, item, "arguments", "function_call_arguments")
        case "custom_tool_call":
            yield from _call_events(exchange, index, item, "input", "custom_tool_call_input")
    yield {"type": "response.output_item.done", "item": item, "output_index": index}


def _added_item(item: Fields) -> Fields:
    """Return an item before anything is in it. Its ciphertext is another, shorter one than at the end."""
    match item["type"]:
        case "reasoning":
            return {**item, "encrypted_content": ciphertext(f"early/{item['id']}", size=300), "summary": []}
        case "message":
            return {**item, "status": "in_progress", "content": []}
        case "compaction":
            return item
        case kind:
            return {**item, "status": "in_progress", "input" if kind == "custom_tool_call" else "arguments": ""}


def _summary_events(exchange: Exchange, place: int, item: Fields) -> Iterator[Fields]:
    for index, part in enumerate(rows(item["summary"])):
        where: Fields = {"item_id": item["id"], "output_index": place, "summary_index": index}
        yield {"type": "response.reasoning_summary_part.added", **where, "part": {**part, "text": ""}}
        for piece in exchange.pieces(str(part["text"])):
            delta: Fields = {"delta": piece, "obfuscation": _obfuscation(exchange, piece)}
            yield {"type": "response.reasoning_summary_text.delta", **where, **delta}
        yield {"type": "response.reasoning_summary_text.done", **where, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **where, "part": part}


def _call_events(exchange: Exchange, index: int, item: Fields, field: str, event: str) -> Iterator[Fields]:
    where: Fields = {"item_id": item["id"], "output_index": index}
    for piece in exchange.pieces(str(item[field])):
        delta: Fields = {"delta": piece, "obfuscation": _obfuscation(exchange, piece)}
        yield {"type": f"response.{event}.delta", **where, **delta}
    yield {"type": f"response.{event}.done", **where, field: item[field]}


def _obfuscation(exchange: Exchange, piece: str) -> str:
    """Return letters that hide the length of a delta from whoever watches the line."""
    return exchange.token(piece, max(1, 16 - len(piece) % 16))


_NO_TOOL_USAGE: Fields = {
    "image_gen": {
        "input_tokens": 0,
        "input_tokens_details": {"image_tokens": 0, "text_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"image_tokens": 0, "text_tokens": 0},
        "total_tokens": 0,
    },
    "web_search": {"num_requests": 0},
}


class OpenAIResponses(Provider):
    """api.openai.com/v1/responses."""

    name = "openai_responses"
    dialect = "openai_responses"
    catalog_name = "openai"
    other_dialects = (openai_chat.OpenAIChat,)
    checks_roots: ClassVar[bool] = True
    """Whether the root of a tool's schema must be a plain object, as OpenAI itself wants it."""
    models = openai_chat.OpenAIChat.models
    off_switches = (("reasoning.effort", "none"),)

    def __init__(self) -> None:
        self._memory: dict[str, RememberedReply] = {}

    def is_generation_path(self, incoming: Incoming, path: str) -> bool:
        return path == "/responses"

    def answer_other_path(self, incoming: Incoming, path: str) -> Reply | None:
        """Count the tokens of a request, or make vectors: the host has both."""
        if incoming.method != "POST":
            return None
        if path == "/embeddings":
            return openai_embeddings(incoming, strict=True)
        if path == "/responses/compact":
            return compacted(incoming, self._memory)
        return counted(incoming, self._memory) if path == "/responses/input_tokens" else None

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        return read(incoming, self._memory)

    def demands(self, model: str) -> Demands:
        if not self.checks_roots:
            return Demands(tool_names=OPENAI_NAMES)
        return Demands(tool_names=OPENAI_NAMES, plain_root=OPENAI_ROOT, check_strict=check_openai_strict)

    def encode_reply(self, exchange: Exchange) -> Reply:
        return whole(pretty(self._finished(exchange)))

    def encode_stream(self, exchange: Exchange) -> Reply:
        return streamed(
            named_event(str(event["type"]), {**event, "sequence_number": index})
            for index, event in enumerate(self._events(exchange))
        )

    def _events(self, exchange: Exchange) -> Iterator[Fields]:
        started = _snapshot(exchange, status="in_progress", output=[])
        yield {"type": "response.created", "response": started}
        yield {"type": "response.in_progress", "response": started}
        for index, item in enumerate(_items(exchange)):
            yield from item_events(exchange, index, item)
        finished = self._finished(exchange)
        yield {"type": f"response.{finished['status']}", "response": finished}

    def _finished(self, exchange: Exchange) -> Fields:
        """Return the response at its end, and remember it."""
        response_id = _response_id(exchange)
        calls = frozenset(_call_id(exchange, index) for index, _ in exchange.calls())
        if exchange.body.get("store") is not False:
            self._memory[response_id] = RememberedReply(exchange.conversation.rounds + 1, calls)
        cut_short = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(exchange.turn.ending)
        finished = _snapshot(exchange, status="incomplete" if cut_short else "completed", output=_items(exchange))
        finished["incomplete_details"] = {"reason": cut_short} if cut_short else None
        finished["completed_at"] = None if cut_short else exchange.created + 1
        finished["service_tier"] = "default"
        finished["usage"] = _usage(exchange)
        return finished

    def missing_key(self) -> Refusal:
        return openai_chat.missing_key()

    def wrong_key(self, key: str) -> Refusal:
        return openai_chat.wrong_key(key)

    def unknown_model(self, model: str) -> Refusal:
        words = f"The requested model '{model}' does not exist."
        return Refusal("unknown_model", words, parameter="model", status=400)

    def encode_refusal(self, refusal: Refusal) -> Reply:
        return whole(pretty({"error": _error(refusal)}), status=refusal.status)

    def error_events(self) -> Sequence[bytes]:
        error = _error(Refusal("trouble", "The server had an error while processing your request.", status=500))
        failed: Fields = {
            "id": "resp_failed",
            "object": "response",
            "created_at": 0,
            "status": "failed",
            "error": {"code": "server_error", "message": error["message"]},
            "incomplete_details": None,
            "model": "",
            "output": [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": None,
        }
        return [
            named_event("error", {"type": "error", "sequence_number": 2, "error": {**error, "code": "server_error"}}),
            named_event("response.failed", {"type": "response.failed", "sequence_number": 3, "response": failed}),
        ]

    def list_models(self, path: str, models: Sequence[str]) -> Reply | None:
        return openai_chat.OpenAIChat().list_models(path, models)


def _error(refusal: Refusal) -> Fields:
    return {
        "message": refusal.message,
        "type": chat_request.error_type(refusal),
        "param": refusal.parameter,
        "code": chat_request.error_code(refusal),
    }


def _response_id(exchange: Exchange) -> str:
    return f"resp_0{exchange.token('response', 49, '0123456789abcdef')}"


def _call_id(exchange: Exchange, index: int) -> str:
    return exchange.turn.tool_calls[index].id or f"call_{exchange.token(f'call{index}', 24)}"


def _items(exchange: Exchange) -> list[Fields]:
    """Return the output items of the finished response."""
    turn = exchange.turn
    items: list[Fields] = []
    if any(item.get("type") == "compaction_trigger" for item in rows(exchange.body.get("input"))):
        return [compaction_item(exchange.model, exchange.token("compaction", 24))]
    if turn.reasons:
        items.append(_reasoning(exchange))
    if turn.text or not turn.tool_calls:
        part: Fields = {"type": "output_text", "annotations": [], "logprobs": [], "text": turn.text}
        items.append(
            {
                "id": _item_id(exchange, "msg"),
                "type": "message",
                "status": "incomplete" if turn.ending == "length" else "completed",
                "content": [part],
                "role": "assistant",
            }
        )
    items.extend(_call(exchange, index, call) for index, call in exchange.calls())
    return items


def _call(exchange: Exchange, index: int, call: ToolCall) -> Fields:
    """Return the item of one call; a custom tool is given the text of its only argument."""
    if call.name in custom_tools(exchange.body):
        written = next(iter(call.arguments.values()), "") if isinstance(call.arguments, Mapping) else call.arguments
        kind: Fields = {"id": _item_id(exchange, "ctc", index), "type": "custom_tool_call", "input": str(written)}
    else:
        kind = {"id": _item_id(exchange, "fc", index), "type": "function_call", "arguments": call.arguments_text}
    return {**kind, "status": "completed", "call_id": _call_id(exchange, index), "name": call.name}


def _reasoning(exchange: Exchange) -> Fields:
    """The summary is there only for a request that asks for it."""
    turn = exchange.turn
    asked = at(exchange.body, "reasoning.summary") and not turn.redacted and not turn.hidden
    parts: list[Fields] = [{"type": "summary_text", "text": part} for part in turn.summary] if asked else []
    size = 600 + len(turn.reasoning)
    return {
        "id": _item_id(exchange, "rs"),
        "type": "reasoning",
        "content": [],
        "encrypted_content": encrypted(exchange.model, turn.reasoning, size=size),
        "summary": parts,
    }


def _item_id(exchange: Exchange, kind: str, index: int = 0) -> str:
    return f"{kind}_0{exchange.token(f'{kind}{index}', 49, '0123456789abcdef')}"


def _snapshot(exchange: Exchange, *, status: str, output: list[Fields]) -> Fields:
    """Return the response with the request's settings and every default."""
    body = exchange.body
    reasoning = {"context": "current_turn", "effort": "medium", "mode": "standard", "summary": None}
    return {
        "id": _response_id(exchange),
        "object": "response",
        "created_at": exchange.created,
        "status": status,
        "background": False,
        "completed_at": None,
        "error": None,
        "frequency_penalty": 0.0,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "max_tool_calls": None,
        "model": exchange.model,
        "moderation": None,
        "output": output,
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "presence_penalty": 0.0,
        "previous_response_id": body.get("previous_response_id"),
        "prompt_cache_key": body.get("prompt_cache_key"),
        "prompt_cache_retention": "in_memory",
        "reasoning": {**reasoning, **fields(body.get("reasoning"))},
        "safety_identifier": None,
        "service_tier": "auto",
        "store": body.get("store", True),
        "temperature": body.get("temperature", 1.0),
        "text": {"format": {"type": "text"}, "verbosity": "medium", **fields(body.get("text"))},
        "tool_choice": body.get("tool_choice", "auto"),
        "tool_usage": _NO_TOOL_USAGE,
        "tools": body.get("tools", []),
        "top_logprobs": 0,
        "top_p": body.get("top_p", 1.0),
        "truncation": body.get("truncation", "disabled"),
        "usage": None,
        "user": None,
        "metadata": body.get("metadata", {}),
    }


def _usage(exchange: Exchange) -> Fields:
    usage = exchange.usage
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cache_write_tokens": usage.cache_write_tokens,
            "cached_tokens": usage.cached_input_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }
