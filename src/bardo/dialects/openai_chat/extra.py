"""`extra_content`: where opaque state of a text or a tool call stands in this dialect.

Google documents `extra_content.google.thought_signature` for its own signatures. State of any other kind goes beside it under
`extra_content.bardo`, and is restored exactly when a client sends the message back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from bardo.dialects.openai_chat.constants import GEMINI
from bardo.values.blocks import Opaque


def decode_states(extra: Any) -> tuple[tuple[Opaque, ...], dict[str, Any]]:
    """Return the opaque states in an `extra_content` object, and what else it holds."""
    if not isinstance(extra, dict):
        return (), {}
    rest = dict(extra)
    states: list[Opaque] = []
    google = rest.get("google")
    if isinstance(google, dict) and isinstance(signature := google.get("thought_signature"), str) and signature:
        states.append(Opaque("signature", signature, GEMINI))
        _set_or_delete(rest, "google", {name: value for name, value in google.items() if name != "thought_signature"})
    own = rest.get("bardo")
    if isinstance(own, dict) and (sealed := _own_states(own.get("opaque"))):
        states += sealed
        _set_or_delete(rest, "bardo", {name: value for name, value in own.items() if name != "opaque"})
    return tuple(states), rest


def encode_states(states: Iterable[Opaque], *, before: int = 0) -> dict[str, Any]:
    """Return an `extra_content` object that holds `states`; `before` says how many of the same message were written already."""
    written: dict[str, Any] = {}
    others: dict[str, dict[str, str]] = {}
    for number, state in enumerate(states, before):
        if state.format == GEMINI and state.kind == "signature" and not before and "google" not in written:
            written["google"] = {"thought_signature": state.data}
        else:
            # By name and not as a list: OpenAI's library joins the lists of a stream by an index that these have not, and the texts
            # of one name to one text.
            taken = before or state.kind in others
            others[f"{state.kind} {number}" if taken else state.kind] = {"data": state.data, "format": state.format}
    if others:
        written["bardo"] = {"opaque": others}
    return written


def merge_extra(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return both objects as one: what stands under one vendor's name is joined."""
    merged = dict(one)
    for vendor, fields in other.items():
        before = merged.get(vendor)
        merged[vendor] = {**before, **fields} if isinstance(before, dict) and isinstance(fields, dict) else fields
    return merged


def _own_states(value: Any) -> list[Opaque]:
    if not isinstance(value, dict):
        return []
    try:
        return [msgspec.convert({**state, "kind": kind.partition(" ")[0]}, Opaque) for kind, state in value.items()]
    except (msgspec.ValidationError, TypeError, AttributeError):
        return []


def _set_or_delete(fields: dict[str, Any], name: str, value: dict[str, Any]) -> None:
    if value:
        fields[name] = value
    else:
        del fields[name]
