"""The names and words of this dialect that several of its files use."""

from __future__ import annotations

from bardo.values.events import Finish, FinishReason

NAME = "openai_chat"
DEVELOPER = "developer"
"""OpenAI's newer word for the role `system`, which many servers refuse and all read as `system`."""
GEMINI = "google-gemini-v1"
ANTHROPIC = "anthropic-claude-v1"
BEDROCK = "bedrock-v1"

# Formats whose text stands in `reasoning_content` alone: nothing but text is known of such thinking.
PLAIN_FORMATS = frozenset(
    {"", "reasoning_content", "reasoning", "think-tags", "content_list", "reasoning_details", "thinking"}
)

_READ: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "complete": "stop",
    "completed": "stop",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
    "refusal": "refusal",
    "safety": "refusal",
    "sensitive": "refusal",
    "error": "error",
    "insufficient_system_resource": "error",
    "network_error": "error",
}
_FINISH_REASONS: dict[FinishReason, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "refusal": "content_filter",
    "pause": "stop",
    "error": "stop",
    "unknown": "stop",
}


def decode_finish(raw: str, *, calls: bool) -> FinishReason:
    """Return what a finish reason means. Gemini and Snowflake end a reply with tool calls as any other."""
    reason = _READ.get(raw.lower(), "unknown")
    ordinary = reason == "stop" or not raw
    return "tool_calls" if calls and ordinary else reason


def encode_finish(finish: Finish, *, refused: bool) -> str:
    """Return the word an OpenAI client knows. A refusal in words ends as any other answer; only a filter cuts without them."""
    if refused and finish.reason == "refusal" and finish.raw != "content_filter":
        return "stop"
    return _FINISH_REASONS[finish.reason]


FRAMING = frozenset(
    {
        "request_id", "generationId", "x_groq", "timings", "time_info", "sla_metrics", "metrics",
        "prompt_token_ids", "prompt_text", "prompt", "message.name", "message.padding", "message.channel",
        "native_finish_reason", "cost", "copilot_usage", "venice_parameters", "user_id", "metadata", "type", "custom",
        "function", "function_call",
    }
)  # fmt: skip
"""Fields of replies that hold nothing for clients of other dialects: ids, times, bills, echoes of the request, wrapping of blocks."""
WITHIN = {"x_groq": frozenset({"seed"}), "venice_parameters": frozenset({"web_search_citations"})}
"""Content inside of such fields."""
USUAL = {
    "service_tier": ("default", "auto", "standard", "on_demand"),
    # vLLM and SGLang give the stop sequence that ended the reply, or the number of the token that ends every reply.
    "stop_reason": (int,),
    "matched_stop": (int,),
    "base_resp": ({"status_code": 0, "status_msg": "success"},),
}
"""The values of other fields that say nothing."""
