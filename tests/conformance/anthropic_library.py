"""Anthropic's library, Messages, streams by its own accumulator."""

from __future__ import annotations

from functools import cache
from typing import Any

import anthropic

from bardo.values.events import FinishReason
from conformance.heard import Counts, Heard, answer, http, plain

_HELLO = {"role": "user", "content": "hi"}
_ASKED: Any = {"model": "m", "max_tokens": 9, "messages": [_HELLO]}
_MESSAGE_FINISHES: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
    "pause_turn": "pause",
}


@cache
def _anthropic() -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="k", base_url="http://bardo.test", http_client=http(), max_retries=0)


def messages(body: bytes, *, stream: bool, status: int = 200) -> Heard:
    """Messages."""
    answer(body, stream=stream, status=status)
    if not stream:
        return _message(_anthropic().messages.create(**_ASKED))
    written: dict[int, str] = {}
    with _anthropic().messages.stream(**_ASKED) as events:
        for event in events:
            if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                written[event.index] = written.get(event.index, "") + event.delta.partial_json
        whole = events.get_final_message()
    # The library's own object leaves out what an input that was cut short began to say.
    inputs = {id(whole.content[index]): text for index, text in written.items()}
    return _message(whole, inputs)


def _message(whole: Any, inputs: dict[int, str] | None = None) -> Heard:
    usage = whole.usage
    details = usage.output_tokens_details
    calls = [block for block in whole.content if block.type == "tool_use"]
    beside = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    return Heard(
        text="".join(block.text for block in whole.content if block.type == "text"),
        refusal="",
        thinking="\n\n".join(block.thinking for block in whole.content if block.type == "thinking" and block.thinking),
        calls=[(call.id, call.name, (inputs or {}).get(id(call), call.input)) for call in calls],
        finish=_MESSAGE_FINISHES[whole.stop_reason],
        counts=Counts(
            input=usage.input_tokens + beside,
            output=usage.output_tokens,
            reasoning=details.thinking_tokens if details else None,
            cached=usage.cache_read_input_tokens,
        ),
        id=whole.id,
        model=whole.model,
        turn=lambda: _turn(whole),
    )


def _turn(whole: Any) -> dict[str, Any]:
    blocks = [plain(block) for block in whole.content]
    return {**_ASKED, "messages": [_HELLO, {"role": "assistant", "content": blocks}]}
