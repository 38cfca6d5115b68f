"""Gemini's Interactions: a reply is a list of steps, told one by one in a stream; summaries of thoughts only on request.

The fields are those of Google's own client library (3.4) and its page, as of 2026-11-20. Unlike generateContent, this route knows each name
in one spelling only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bardo.simulators.exchange import JSON, Exchange, Incoming, Refusal, Reply, named_event, streamed, whole
from bardo.simulators.fields import Fields, at, compact, fields, joined_text, last_text, rows, text
from bardo.simulators.marks import LOWER, seal
from bardo.simulators.providers.gemini import Gemini
from bardo.simulators.turns import Conversation, Tool, ToolCall

_BODY = frozenset(
    (
        "model", "agent", "agent_config", "input", "background", "cached_content", "continuation_token", "environment",
        "generation_config", "labels", "previous_interaction_id", "response_format", "response_mime_type",
        "response_modalities", "safety_settings", "service_tier", "store", "stream", "system_instruction", "tools",
        "webhook_config",
    )
)  # fmt: skip
_CONFIG = frozenset(
    (
        "image_config", "max_output_tokens", "seed", "speech_config", "stop_sequences", "temperature",
        "thinking_level", "thinking_summaries", "tool_choice", "top_p", "transcription_config", "video_config",
    )
)  # fmt: skip
_LEVELS = ("minimal", "low", "medium", "high")
_SUMMARIES = ("auto", "none")
_MODES = ("auto", "any", "none", "validated")
_CONTENTS = ("text", "image", "audio", "document", "video", "file")
_MODEL_STEPS = ("thought", "model_output", "function_call")


@dataclass(frozen=True, slots=True)
class RememberedInteraction:
    """The stored state of an interaction, for a request that continues it."""

    rounds: int
    calls: frozenset[str]


def read(incoming: Incoming, memory: Mapping[str, RememberedInteraction]) -> Conversation:
    """Decode the request; `memory` holds earlier interactions by id. Raises Refusal."""
    body = incoming.fields
    if not isinstance(incoming.body, dict):
        raise Refusal("bad_json", "Invalid JSON payload received.")
    config = fields(body.get("generation_config"))
    for own_fields, given, index in ((_BODY, body, ""), (_CONFIG, config, "generation_config.")):
        for name in given:
            if name not in own_fields:
                raise Refusal("unknown_field", f"Unknown parameter '{index}{name}'.", parameter=f"{index}{name}")
    if not text(body.get("model")) and not text(body.get("agent")):
        raise Refusal("missing_field", "One of 'model' or 'agent' is required.", parameter="model")
    for name, words in (("thinking_level", _LEVELS), ("thinking_summaries", _SUMMARIES)):
        if config.get(name) is not None and config[name] not in words:
            raise _bad_value(f"generation_config.{name}", config[name], words)
    choice = config.get("tool_choice")
    if isinstance(choice, str) and choice not in _MODES:
        raise _bad_value("generation_config.tool_choice", choice, _MODES)
    before = _before(body, memory)
    steps = _steps(body)
    _check_steps(steps, before)
    names = at(body, "generation_config.tool_choice.allowed_tools.tools")
    return Conversation(
        model=text(body.get("model")).removeprefix("models/"),
        question=last_text(steps, "type", "user_input"),
        rounds=before.rounds + _rounds(steps),
        tools=_tools(body),
        forced_tool=text(names[0]) or None if isinstance(names, list) and names else None,
        tool_results=_tool_results(steps),
        schema=_schema(body),
        streamed=body.get("stream") is True,
        characters=len(text(body.get("system_instruction"))) + sum(len(json.dumps(step)) for step in steps),
    )


def _bad_value(name: str, value: object, words: Sequence[str]) -> Refusal:
    supported = ", ".join(f"'{word}'" for word in words)
    return Refusal("bad_value", f"Invalid value '{value}' for '{name}'. It must be one of {supported}.", parameter=name)


def _before(body: Fields, memory: Mapping[str, RememberedInteraction]) -> RememberedInteraction:
    previous = text(body.get("previous_interaction_id"))
    if not previous:
        return RememberedInteraction(0, frozenset())
    if previous not in memory:
        raise Refusal("bad_value", "Interaction not found.", parameter="previous_interaction_id", status=404)
    return memory[previous]


def _steps(body: Fields) -> list[Fields]:
    """Return the input as steps: a text and contents without a step around them are the user's."""
    given = body.get("input")
    if isinstance(given, str) and given:
        return [{"type": "user_input", "content": given}]
    items = [given] if isinstance(given, dict) else rows(given)
    if not items:
        raise Refusal("missing_field", "'input' is required.", parameter="input")
    return [
        {"type": "user_input", "content": [item]} if item.get("type") in _CONTENTS else dict(item) for item in items
    ]


def _check_steps(steps: Sequence[Fields], before: RememberedInteraction) -> None:
    called = set(before.calls)
    for index, step in enumerate(steps):
        kind = text(step.get("type"))
        if kind not in (*_MODEL_STEPS, "user_input") and not kind.endswith(("_call", "_result")):
            raise Refusal("bad_value", f"Unknown step type '{kind}' at 'input[{index}]'.", parameter=f"input[{index}]")
        if kind == "function_call":
            called.add(text(step.get("id")))
        for result in _results(step):
            if result.get("result") is None:
                raise Refusal("missing_field", f"'result' is required at 'input[{index}]'.", parameter="input")
            if text(result.get("call_id")) not in called:
                words = f"No function call has the id '{result.get('call_id')}' of the function result at"
                raise Refusal("bad_value", f"{words} 'input[{index}]'.", parameter=f"input[{index}].call_id")


def _results(step: Fields) -> list[Fields]:
    """Return the results in a step: it is one itself, or holds some among the user's contents."""
    if step.get("type") == "function_result":
        return [step]
    return [item for item in rows(step.get("content")) if item.get("type") == "function_result"]


def _rounds(steps: Sequence[Fields]) -> int:
    """Count the runs of steps that the model made."""
    rounds, inside = 0, False
    for step in steps:
        own = step.get("type") in _MODEL_STEPS
        rounds += own and not inside
        inside = own
    return rounds


def _tool_results(steps: Sequence[Fields]) -> tuple[str, ...]:
    """Return the results that end the conversation."""
    results: list[str] = []
    for step in reversed(steps):
        results_found = _results(step)
        if not results_found:
            break
        results += [_result_text(result.get("result")) for result in reversed(results_found)]
    return tuple(reversed(results))


def _result_text(result: object) -> str:
    """An object of one field is shown without its wrapping."""
    if isinstance(result, list):
        return joined_text(result)
    value = next(iter(result.values())) if isinstance(result, dict) and len(result) == 1 else result
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _tools(body: Fields) -> tuple[Tool, ...]:
    if at(body, "generation_config.tool_choice") == "none":
        return ()
    return tuple(
        Tool(text(tool.get("name")), text(tool.get("description")), fields(tool.get("parameters")))
        for tool in rows(body.get("tools"))
        if tool.get("type") == "function"
    )


def _schema(body: Fields) -> Fields | None:
    given = body.get("response_format")
    shapes = rows(given) if isinstance(given, list) else [fields(given)]
    return next((schema for shape in shapes if (schema := fields(shape.get("schema")))), None)


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
        return read(incoming, self._memory)

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
    """Return the fields that are known once the interaction is over."""
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
        yield {"signature": _signature(exchange), **({"summary": summary} if summary else {}), "type": "thought"}


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
    """Yield each step as it begins, and its deltas."""
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
