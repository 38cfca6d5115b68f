"""OpenAI's Responses: reasoning items with a summary on request and a ciphertext, and numbered events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from bardo.simulators import chat_request
from bardo.simulators.conversation import Conversation
from bardo.simulators.demands import OPENAI_NAMES, OPENAI_ROOT, Demands, check_openai_strict
from bardo.simulators.exchange import Exchange
from bardo.simulators.fields import Fields, at, fields, pretty
from bardo.simulators.incoming import Incoming
from bardo.simulators.provider import Provider
from bardo.simulators.providers import openai_chat, openai_embeddings, responses_request
from bardo.simulators.providers.responses_events import item_events
from bardo.simulators.providers.responses_request import RememberedReply
from bardo.simulators.refusal import Refusal
from bardo.simulators.reply import Reply, named_event, streamed, whole
from bardo.simulators.turns import ToolCall

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
            return openai_embeddings.embeddings(incoming, strict=True)
        return responses_request.counted(incoming, self._memory) if path == "/responses/input_tokens" else None

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        return responses_request.read(incoming, self._memory)

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
    if call.name in responses_request.custom_tools(exchange.body):
        said = next(iter(call.arguments.values()), "") if isinstance(call.arguments, Mapping) else call.arguments
        kind: Fields = {"id": _item_id(exchange, "ctc", index), "type": "custom_tool_call", "input": str(said)}
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
        "encrypted_content": responses_request.encrypted(exchange.model, turn.reasoning, size=size),
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
