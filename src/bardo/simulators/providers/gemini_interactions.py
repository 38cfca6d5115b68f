"""Gemini's Interactions: a reply is a list of steps, told one by one in a stream; summaries of thoughts only on request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from bardo.simulators.conversation import Conversation
from bardo.simulators.exchange import Exchange
from bardo.simulators.fields import Fields, at, compact, text
from bardo.simulators.incoming import Incoming
from bardo.simulators.marks import LOWER, seal
from bardo.simulators.providers import interactions_request
from bardo.simulators.providers.gemini import Gemini
from bardo.simulators.providers.interactions_request import RememberedInteraction
from bardo.simulators.refusal import Refusal
from bardo.simulators.reply import JSON, Reply, named_event, streamed, whole
from bardo.simulators.turns import ToolCall

_STATUS = {"stop": "completed", "tool_calls": "requires_action", "length": "incomplete", "content_filter": "incomplete"}
_CODES = {
    400: "invalid_request",
    401: "unauthenticated",
    403: "permission_denied",
    404: "not_found",
    429: "resource_exhausted",
    500: "internal",
    503: "unavailable",
    504: "deadline_exceeded",
}
_DONE = b"event: done\ndata: [DONE]\n\n"


class GeminiInteractions(Gemini):
    """generativelanguage.googleapis.com/v1beta/interactions, and the same at `/v1`, where Google's library 3.4 asks.

    Keys and models are Gemini's; errors have a form of their own.
    """

    name = "gemini_interactions"
    dialect = "gemini_interactions"
    catalog_name = "gemini-interactions"

    def __init__(self) -> None:
        self._memory: dict[str, RememberedInteraction] = {}

    def is_generation_path(self, incoming: Incoming, path: str) -> bool:
        return path in ("/v1beta/interactions", "/v1/interactions")

    def answer_other_path(self, incoming: Incoming, path: str) -> Reply | None:
        return None

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        return interactions_request.read(incoming, self._memory)

    def reasoning_is_off(self, exchange: Exchange) -> bool:
        """There are levels, and none of them is off."""
        return False

    def encode_reply(self, exchange: Exchange) -> Reply:
        self._remember(exchange)
        steps = [*_thoughts(exchange), *_output(exchange), *_calls(exchange)]
        head: Fields = {"id": _interaction_id(exchange), **_final_fields(exchange)}
        return whole(compact({**head, "steps": steps, "object": "interaction", "model": exchange.model}))

    def encode_stream(self, exchange: Exchange) -> Reply:
        self._remember(exchange)
        frames = [named_event(text(event["event_type"]), event) for event in _events(exchange)]
        return streamed([*frames, _DONE], content_type="text/event-stream")

    def _remember(self, exchange: Exchange) -> None:
        if exchange.body.get("store") is not False:
            calls = frozenset(_call_id(exchange, index, call) for index, call in exchange.calls())
            self._memory[_interaction_id(exchange)] = RememberedInteraction(exchange.conversation.rounds + 1, calls)

    def encode_refusal(self, refusal: Refusal) -> Reply:
        return whole(compact({"error": _error(refusal)}), status=refusal.status, content_type=JSON)

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("unknown_model", f"Model '{model}' was not found.", parameter="model")

    def error_events(self) -> Sequence[bytes]:
        words = Refusal("trouble", "The model is overloaded. Please try again later.", status=503)
        return [named_event("error", {"error": _error(words), "event_type": "error"}), _DONE]


def _error(refusal: Refusal) -> Fields:
    return {"message": refusal.message, "code": _CODES.get(refusal.status, "unknown")}


def _interaction_id(exchange: Exchange) -> str:
    return f"v1_{exchange.token('interaction', 67)}"


def _call_id(exchange: Exchange, index: int, call: ToolCall) -> str:
    return call.id or exchange.token(f"call{index}", 8, LOWER)


def _final_fields(exchange: Exchange) -> Fields:
    """Return what is known once the interaction is over."""
    moment = datetime.fromtimestamp(exchange.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "status": _STATUS[exchange.turn.ending],
        "usage": _usage(exchange),
        "created": moment,
        "updated": moment,
        "service_tier": "standard",
    }


def _usage(exchange: Exchange) -> Fields:
    """Thoughts stand beside the output."""
    usage = exchange.usage
    return {
        "total_tokens": usage.total_tokens,
        "total_input_tokens": usage.input_tokens,
        "input_tokens_by_modality": [{"modality": "text", "tokens": usage.input_tokens}],
        "total_cached_tokens": usage.cached_input_tokens,
        "total_output_tokens": usage.answer_tokens,
        "total_tool_use_tokens": 0,
        "total_thought_tokens": usage.reasoning_tokens,
    }


def _summary(exchange: Exchange) -> list[Fields]:
    """Return the summaries shown: none unless the request asks for them."""
    turn = exchange.turn
    asked = at(exchange.body, "generation_config.thinking_summaries") == "auto"
    shown = turn.summary if asked and not turn.redacted and not turn.hidden else ()
    return [{"text": part, "type": "text"} for part in shown]


def _signature(exchange: Exchange) -> str:
    return seal(f"interactions/{exchange.model}/{exchange.turn.reasoning}", size=260, head=b"\x0a\xac\x01\x01\x0c")


def _thoughts(exchange: Exchange) -> Iterator[Fields]:
    if exchange.turn.reasons:
        summary = _summary(exchange)
        yield {
            "signature": _signature(exchange),
            **({"summary": summary} if summary else {}),
            "type": "thought",
        }


def _output(exchange: Exchange) -> Iterator[Fields]:
    turn = exchange.turn
    if turn.text or not turn.tool_calls:
        yield {"content": [{"text": turn.text, "type": "text"}], "type": "model_output"}


def _calls(exchange: Exchange) -> Iterator[Fields]:
    for index, call in exchange.calls():
        head: Fields = {"id": _call_id(exchange, index, call), "type": "function_call", "name": call.name}
        yield {**head, "arguments": call.arguments_value}


def _events(exchange: Exchange) -> Iterator[Fields]:
    identity: Fields = {"id": _interaction_id(exchange)}
    kind: Fields = {"object": "interaction", "model": exchange.model}
    begun: Fields = {**identity, "status": "in_progress", **kind}
    yield {"interaction": begun, "event_type": "interaction.created"}
    yield {"interaction_id": identity["id"], "status": "in_progress", "event_type": "interaction.status_update"}
    for index, (verify, deltas) in enumerate(_step_deltas(exchange)):
        yield {"index": index, "step": verify, "event_type": "step.start"}
        for delta in deltas:
            yield {"index": index, "delta": delta, "event_type": "step.delta"}
        yield {"index": index, "event_type": "step.stop"}
    yield {"interaction": {**identity, **_final_fields(exchange), **kind}, "event_type": "interaction.completed"}


def _step_deltas(exchange: Exchange) -> Iterator[tuple[Fields, list[Fields]]]:
    """Yield each step as it begins, and what is added to it."""
    if exchange.turn.reasons:
        # A part of a summary is never cut: each delta is a part.
        shown: list[Fields] = [{"content": part, "type": "thought_summary"} for part in _summary(exchange)]
        yield {"type": "thought"}, [*shown, {"signature": _signature(exchange), "type": "thought_signature"}]
    for _ in _output(exchange):
        pieces = [*exchange.pieces(exchange.turn.text)] or [""]
        yield {"type": "model_output"}, [{"text": piece, "type": "text"} for piece in pieces]
    for index, call in exchange.calls():
        head: Fields = {"id": _call_id(exchange, index, call), "signature": "", "type": "function_call"}
        arguments: list[Fields] = [
            {"arguments": piece, "type": "arguments_delta"} for piece in exchange.pieces(call.arguments_text)
        ]
        yield {**head, "name": call.name, "arguments": {}}, arguments
