"""Read an Interactions request, refusing what Google refuses.

The fields are those of Google's own client library (3.4) and its page, as of 2026-11-20. Unlike generateContent, this route knows each name
in one spelling only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bardo.simulators.conversation import Conversation, Tool
from bardo.simulators.fields import Fields, at, fields, joined_text, rows, text
from bardo.simulators.incoming import Incoming
from bardo.simulators.refusal import Refusal

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
    """What the server keeps of an interaction, for a request that continues it."""

    rounds: int
    calls: frozenset[str]


def read(incoming: Incoming, memory: Mapping[str, RememberedInteraction]) -> Conversation:
    """Decode the request; `memory` holds earlier interactions by id. Raises Refusal."""
    body = incoming.fields
    if not isinstance(incoming.body, dict):
        raise Refusal("bad_json", "Invalid JSON payload received.")
    _check_fields(body)
    before = _before(body, memory)
    steps = _steps(body)
    _check_steps(steps, before)
    return Conversation(
        model=text(body.get("model")).removeprefix("models/"),
        question=next((said for step in reversed(steps) if (said := _step_text(step))), ""),
        rounds=before.rounds + _rounds(steps),
        tools=_tools(body),
        forced_tool=_forced(body),
        tool_results=_tool_results(steps),
        schema=_schema(body),
        streamed=body.get("stream") is True,
        characters=len(text(body.get("system_instruction"))) + sum(len(json.dumps(step)) for step in steps),
    )


def _check_fields(body: Fields) -> None:
    config = fields(body.get("generation_config"))
    for known, given, index in ((_BODY, body, ""), (_CONFIG, config, "generation_config.")):
        for name in given:
            if name not in known:
                raise Refusal("unknown_field", f"Unknown parameter '{index}{name}'.", parameter=f"{index}{name}")
    if not text(body.get("model")) and not text(body.get("agent")):
        raise Refusal("missing_field", "One of 'model' or 'agent' is required.", parameter="model")
    for name, words in (("thinking_level", _LEVELS), ("thinking_summaries", _SUMMARIES)):
        if config.get(name) is not None and config[name] not in words:
            raise _bad_value(f"generation_config.{name}", config[name], words)
    choice = config.get("tool_choice")
    if isinstance(choice, str) and choice not in _MODES:
        raise _bad_value("generation_config.tool_choice", choice, _MODES)


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


def _step_text(step: Fields) -> str:
    return joined_text(step.get("content")) if step.get("type") == "user_input" else ""


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
        found = _results(step)
        if not found:
            break
        results += [_result_text(result.get("result")) for result in reversed(found)]
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


def _forced(body: Fields) -> str | None:
    names = at(body, "generation_config.tool_choice.allowed_tools.tools")
    return text(names[0]) or None if isinstance(names, list) and names else None


def _schema(body: Fields) -> Fields | None:
    given = body.get("response_format")
    shapes = rows(given) if isinstance(given, list) else [fields(given)]
    return next((schema for shape in shapes if (schema := fields(shape.get("schema")))), None)
