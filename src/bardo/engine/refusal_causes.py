"""Whose fault a provider's refusal is, where its status alone does not say so.

A wrong key, an empty account and an unknown model are the operator's, whatever the status: another provider may answer. A prompt that
was refused for its content is the caller's, and no other provider is asked.
"""

from __future__ import annotations

import re
from typing import Any

from bardo.values.errors import UpstreamRefused

_OPERATOR_STATUSES = frozenset({401, 402, 403, 404})
# Providers that say one of these with another status, as seen in 2026.
_OPERATOR_WORDS = re.compile(
    r"API key not valid|API_KEY_INVALID|api key expired"  # Gemini: 400
    r"|incorrect api key|invalid api key|invalid x-api-key"  # xAI: 400
    r"|credit balance is too low"  # Anthropic: 400
    r"|insufficient (?:balance|credits?|funds|quota)|insufficient_quota|billing_hard_limit"  # OpenAI, DeepSeek
    r"|unknown model|model not exist|is not a valid model|invalid model\b"  # Z.ai, DeepSeek, OpenRouter, Mistral: 400
    r"|model identifier is invalid|model_not_found|model_not_supported"  # Bedrock: 400; OpenAI and those like it
    r"|not been granted access|don't have access to the model",  # Bedrock: 400 and 403
    re.IGNORECASE,
)
_MODEL_WORDS = re.compile(
    r"unknown model|model not exist|is not a valid model|invalid model\b|model identifier is invalid"
    r"|model_not_found|model_not_supported|not supported model|model .{0,200}(?:does not exist|not found)",
    re.IGNORECASE,
)
_NOT_FOUND, _FAILED = 404, 500
_CONTENT_WORDS = re.compile(
    r"content[ _]filter|content[ _](?:management )?policy|content_policy_violation|responsible ?ai ?policy"  # OpenAI, Azure
    r"|requires moderation|input was flagged|flagged_input"  # OpenRouter: 403
    r"|data_inspection_failed|inappropriate content|content exists risk"  # Qwen, DeepSeek
    r"|sensitive (?:information|content)|moderation_blocked|safety (?:system|filter)",  # Z.ai, OpenAI
    re.IGNORECASE,
)
_LOOKED_AT = 600
"""Characters of a message that are looked at."""
_MODERATED = ("flagged_input", "reasons")
"""Names in the metadata of OpenRouter's refusal of a prompt that was flagged."""


def is_operators(refusal: UpstreamRefused) -> bool:
    """Whether a provider refuses because of its key, its account or its models: another one may take the same request."""
    if is_about_content(refusal) or refusal.overflow is not None:
        return False
    if refusal.status in _OPERATOR_STATUSES:
        return True
    return 400 <= refusal.status < 500 and _says(refusal, _OPERATOR_WORDS)


def is_about_model(refusal: UpstreamRefused) -> bool:
    """Whether a provider refuses a model that it does not have."""
    return refusal.status == _NOT_FOUND or (refusal.status < _FAILED and _says(refusal, _MODEL_WORDS))


def is_about_content(refusal: UpstreamRefused) -> bool:
    """Whether a provider refuses what the prompt says."""
    if refusal.status >= 500 or refusal.status == 429:
        return False
    return _says(refusal, _CONTENT_WORDS) or _is_moderated(refusal.detail)


def _says(refusal: UpstreamRefused, words: re.Pattern[str]) -> bool:
    named = (refusal.said[:_LOOKED_AT], refusal.upstream_code, refusal.upstream_type, _reason(refusal.detail))
    return any(word and words.search(word) for word in named)


def _reason(detail: Any) -> str:
    """Return the reason that Google's error details give; empty where there is none."""
    details = detail.get("details") if isinstance(detail, dict) else None
    for one in details if isinstance(details, list) else ():
        reason = one.get("reason") if isinstance(one, dict) else None
        if isinstance(reason, str):
            return reason
    return ""


def _is_moderated(detail: Any) -> bool:
    metadata = detail.get("metadata") if isinstance(detail, dict) else None
    return isinstance(metadata, dict) and any(metadata.get(name) for name in _MODERATED)
