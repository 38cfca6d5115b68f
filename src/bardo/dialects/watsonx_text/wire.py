"""What a reply of watsonx's text generation looks like, whole or as a chunk of a stream (IBM's reference, 2026-11)."""

from typing import ClassVar, Final

from bardo.dialects.shared.json_values import JsonValue
from bardo.dialects.shared.structs import Wire
from bardo.values.events import FinishReason

NAME: Final = "watsonx_text"
TITLE: Final = "watsonx text generation"
UNFINISHED: Final = "not_finished"

REASONS: dict[str, FinishReason] = {
    "eos_token": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "token_limit": "length",
    "time_limit": "length",
    "cancelled": "error",
    "error": "error",
}
"""The dialect's stop reasons in our words."""


class Result(Wire, kw_only=True):
    """A piece of one choice. A text or a reason may be of any type, and no count is believed."""

    CARRIED: ClassVar = ("generated_tokens", "input_tokens", "moderations", "seed")
    generated_text: JsonValue = None
    stop_reason: JsonValue = None
    input_token_count: JsonValue = None
    generated_token_count: JsonValue = None
    generated_tokens: JsonValue = None
    input_tokens: JsonValue = None
    moderations: JsonValue = None
    seed: JsonValue = None


class Reply(Wire, kw_only=True):
    """A reply, or a chunk of one; each of the results is a choice."""

    CARRIED: ClassVar = ("model_version", "system")
    model_id: JsonValue = None
    created_at: JsonValue = None
    results: list[Result] | None = None
    errors: JsonValue = None
    model_version: JsonValue = None
    system: JsonValue = None
