"""Whose opaque state this dialect carries as its own, and how other state rides along.

Native state is written as it came. Any other is sealed into the one field that clients give back unread: the `encrypted_content` of a
reasoning item. State of a text or a call, which have no such field, travels in a reasoning item of its own that says where it belongs.
Item ids that bardo had to make are known by their form, and never taken for a provider's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bardo.dialects.sealing import seal, unseal
from bardo.values.blocks import Opaque, fields_for
from bardo.values.request import Request

NAME = "openai_responses"
FORMAT = "openai-responses-v1"
_ATTACHED = "bardo-attached"
_TEXT = "bardo-text"
_BARDO_PREFIX = "_bardo_"


class SealContent(msgspec.Struct, frozen=True):
    """What a seal held. `target` is empty for the reasoning item's own state, else `text`, `reasoning`, `call:<call_id>`, or an owner of
    `signed_blocks` for a text that follows.

    `text` is the thinking that the state was made for, where it was sealed with it.
    """

    states: tuple[Opaque, ...]
    target: str = ""
    text: str = ""


def asks_summary(request: Request) -> bool:
    """Whether the client asked for a summary of the thinking, and so reads it there."""
    policy = request.reasoning
    asked = fields_for(NAME, policy.carried).get("reasoning.summary") if policy is not None else None
    return request.dialect == NAME and asked in ("auto", "concise", "detailed")


def is_native(opaque: Opaque, fields: Mapping[str, Any]) -> bool:
    """Whether `opaque` is written as it is; an item's `format` field vouches for the formats a router passes on."""
    known = opaque.format == FORMAT or (opaque.format != "" and opaque.format == fields.get("format"))
    return known and opaque.kind in ("id", "encrypted")


def attach(target: str, states: Sequence[Opaque]) -> str:
    """Seal state that belongs to something else than the item it travels in."""
    return seal((Opaque("id", target, _ATTACHED), *states))


def seal_thinking(states: Sequence[Opaque], text: str) -> str:
    """Seal a reasoning item's own state with its text: many clients give back the ciphertext, and no text."""
    return seal((*states, Opaque("id", text, _TEXT)) if text else states)


def opened(text: str) -> SealContent | None:
    """Return what was sealed into an `encrypted_content`, or None where it is a provider's own."""
    states = unseal(text)
    if states is None:
        return None
    if states and states[0].format == _ATTACHED:
        return SealContent(states[1:], states[0].data)
    thinking = "".join(state.data for state in states if state.format == _TEXT)
    return SealContent(tuple(state for state in states if state.format != _TEXT), text=thinking)


def digest_of(reply_id: str) -> str:
    """Return what the made ids of a reply's items have in common."""
    return hashlib.sha256(reply_id.encode("utf-8", "replace")).hexdigest()[:20]


def made_id(prefix: str, digest: str, index: int) -> str:
    """Return an id for item `index` of a reply. `digest` is what `digest_of` gave."""
    return f"{prefix}{_BARDO_PREFIX}{digest}_{index}"


def is_made(item_id: str) -> bool:
    """Whether bardo made this id."""
    return _BARDO_PREFIX in item_id


FRAMING = frozenset(
    {
        "max_output_tokens", "parallel_tool_calls", "temperature", "tool_choice", "tools", "top_p", "previous_response_id",
        "conversation", "reasoning", "text", "metadata", "instructions", "store", "truncation", "background", "user",
        "max_tool_calls", "top_logprobs", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "completed_at",
        "frequency_penalty", "presence_penalty", "billing", "copilot_usage", "prompt", "item", "item_id", "output_index", "id",
        "status", "format",
    }
)  # fmt: skip
"""Fields of replies that hold nothing for clients of other dialects: ids, times, bills, echoes of the request, wrapping of items."""
WITHIN = {"item": frozenset({"phase"}), "metadata": frozenset({"system_fingerprint"})}
"""Content inside of such fields: xAI gives its fingerprint in the metadata."""
USUAL = {"service_tier": ("default", "auto"), "item.phase": ("final_answer",), "caller": ({"type": "direct"},)}
"""The values of other fields that say nothing."""

STATUSES = frozenset({"completed", "incomplete", "failed", "in_progress", "cancelled", "queued"})
"""The words for how a response stands."""
