"""A client's `generationConfig`: sampling, thinking and the shape of the answer."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bardo.dialects.gemini.constants import NAME, SAMPLING, split_fields
from bardo.dialects.gemini.schema import json_schema
from bardo.dialects.jsonfield import optional, take
from bardo.dialects.sampling import decode_sampling, whole_number
from bardo.values.blocks import Carried
from bardo.values.errors import InvalidRequest
from bardo.values.request import EFFORTS, Effort, OutputFormat, ReasoningPolicy, Sampling

_AT = "generationConfig."
_THINKING_AT = "generationConfig.thinkingConfig."
_THINKING = ("thinkingBudget", "thinkingLevel", "includeThoughts")
_JSON = "application/json"
_KNOWN_FIELDS = (
    "temperature",
    "topP",
    "topK",
    "maxOutputTokens",
    "stopSequences",
    "seed",
    "candidateCount",
    "presencePenalty",
    "frequencyPenalty",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "thinkingConfig",
)
# A field of other dialects too, which they are told by one name.
_ONE_SPELLING = {"response_logprobs": "responseLogprobs"}


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """What a `generationConfig` says; `unknown_fields` are the fields bardo has no word for."""

    sampling: Sampling = Sampling()
    max_output_tokens: int | None = None
    choices: int = 1
    output_format: OutputFormat | None = None
    reasoning: ReasoningPolicy | None = None
    unknown_fields: dict[str, Any] = {}


def decode_config(value: Any) -> Config:
    """Read the object. Raises InvalidRequest, naming the field."""
    if value is None:
        return Config()
    fields, others = split_fields(take(value, dict, "generationConfig"), _KNOWN_FIELDS)
    others = {_ONE_SPELLING.get(name, name): held for name, held in others.items()}
    output_format = _output_format(fields)
    if output_format is None:
        # A type that is not JSON (an enum as plain text) goes back as it came, with the schema that belongs to it.
        others |= {name: fields[name] for name in fields if name.startswith("response")}
    choices = whole_number(fields, "candidateCount", _AT)
    if choices is not None and choices < 1:
        raise InvalidRequest(f"{_AT}candidateCount must be at least 1", param=f"{_AT}candidateCount")
    return Config(
        sampling=decode_sampling(fields, SAMPLING, _AT),
        max_output_tokens=whole_number(fields, "maxOutputTokens", _AT),
        choices=choices or 1,
        output_format=output_format,
        reasoning=_policy(fields.get("thinkingConfig")),
        unknown_fields=others,
    )


def _output_format(fields: dict[str, Any]) -> OutputFormat | None:
    if optional(fields, "responseMimeType", str, _AT) != _JSON:
        return None
    schema = fields.get("responseJsonSchema")
    if schema is None and "responseSchema" in fields:
        schema = json_schema(take(fields["responseSchema"], dict, f"{_AT}responseSchema"))
    if schema is None:
        return OutputFormat(mode="json_object")
    return OutputFormat(mode="json_schema", schema=schema)


def _policy(value: Any) -> ReasoningPolicy | None:
    if value is None:
        return None
    fields, others = split_fields(take(value, dict, _THINKING_AT[:-1]), _THINKING)
    budget = whole_number(fields, "thinkingBudget", _THINKING_AT)
    effort = _effort(fields)
    visible = optional(fields, "includeThoughts", bool, _THINKING_AT)
    if budget is not None and effort is not None:
        raise InvalidRequest(
            "thinkingBudget and thinkingLevel cannot be used together", param=f"{_THINKING_AT}thinkingBudget"
        )
    if budget is not None and budget < -1:
        raise InvalidRequest("thinkingBudget must be -1 or more", param=f"{_THINKING_AT}thinkingBudget")
    if budget is None and effort is None and visible is None and not others:
        return None
    return ReasoningPolicy(
        mode=_mode(budget, effort),
        effort=effort,
        budget=budget if budget is not None and budget > 0 else None,
        visible=visible,
        # Who only asks to see thoughts does not ask for them to be had.
        enables_thinking=budget is not None or effort is not None,
        carried=Carried(NAME, others) if others else None,
        raw_fields={"generationConfig": {"thinkingConfig": fields}} if fields else {},
    )


def _mode(budget: int | None, effort: Effort | None) -> Literal["off", "budget", "effort", "auto"]:
    if budget == 0:
        return "off"
    if budget is not None and budget > 0:
        return "budget"
    return "auto" if effort is None else "effort"


def _effort(fields: dict[str, Any]) -> Effort | None:
    level = (optional(fields, "thinkingLevel", str, _THINKING_AT) or "").lower()
    if level in ("", "thinking_level_unspecified"):
        return None
    if level not in EFFORTS:
        hint = f"one of {', '.join(EFFORTS)}"
        raise InvalidRequest(f"unknown thinkingLevel {level!r:.60}", hint=hint, param=f"{_THINKING_AT}thinkingLevel")
    return level
