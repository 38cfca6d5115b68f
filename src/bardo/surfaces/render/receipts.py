"""The receipt of a call's thinking in words: what was asked, what was sent and why, what was seen, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bardo.surfaces.render.wording import count, printable

LAYERS = {
    "operator": "the operator's override",
    "L1": "the server itself",
    "listing": "the provider's list of models",
    "L2": "the catalog",
    "L3": "an assumption",
}
REASONS = {
    "exact": "the model takes it as it is",
    "alias": "at this model one level acts as another",
    "nearest level": "the nearest level the model offers",
    "budget from level": "the model takes tokens, so the level's budget",
    "level from budget": "the model takes levels, so the nearest one",
    "range": "as near as the model's range and the output limit allow",
    "no room": "the output limit leaves no room for thinking",
    "only on or off": "the model knows no amounts",
    "the provider translates": "the provider puts levels into the model's own control",
    "no control": "the model cannot be told how to think",
    "no field": "the provider has no field for it",
    "off": "it can be turned off",
    "does not think": "the model does not think unless it is told to",
    "cannot be off": "the model always thinks, so the least there is",
    "gave way": "something else in the request does not go with thinking",
    "a level is needed": "silence would be off",
    "not asked": "the model does as it is used to",
    "assumed": "no row is about this model; it is taken to be like the newest one of its line",
    "unclassified": "nothing is known of this model",
}
VERDICTS = {
    "honoured": "the model did as asked",
    "clamped": "another amount was sent than asked for",
    "floored": "off was asked; this model always thinks, so the least there is was sent",
    "hidden_only": "off was asked; the model thought, and its text is not shown",
    "void": "what was asked moved nothing",
    "contradicted": "the reply shows the opposite of what was asked",
    "unknown": "nothing was asked, or nothing shows what became of it",
}


def receipt_facts(receipt: Mapping[str, Any] | None, said: str | None) -> list[tuple[str, str]]:
    """Return a receipt, one fact a line; `said` is what was sent in a word. Nothing for a call from before there were receipts."""
    if receipt is None or "layer" not in receipt:
        return []
    seen = receipt.get("observed") or {}
    return [
        ("thinking asked", intent_text(str(receipt.get("intent")))),
        ("thinking sent", _sent_text(said, receipt.get("emitted"))),
        ("decided by", decision_text(str(receipt["layer"]), str(receipt.get("reason") or ""))),
        ("seen", _observed_text(seen)),
        ("verdict", verdict_text(str(receipt.get("verdict")))),
    ]


def intent_text(intent: str) -> str:
    """Write what was asked for: `low`, `off`, `a budget of 2,048 tokens`, `nothing`."""
    if intent == "none":
        return "nothing"
    name, _, tokens = intent.partition(":")
    return f"a budget of {int(tokens):,} tokens" if name == "budget" and tokens.isdecimal() else intent


def decision_text(layer: str, reason: str) -> str:
    """Write who decided, and why: `L2, the catalog: nearest level`."""
    who = f"{layer}, {LAYERS[layer]}" if layer in LAYERS else layer
    told = f"{reason} ({REASONS[reason]})" if reason in REASONS else reason
    return printable(f"{who}: {told}" if told else who)


def verdict_text(verdict: str) -> str:
    """Write a verdict with what it means."""
    return f"{verdict}: {VERDICTS[verdict]}" if verdict in VERDICTS else printable(verdict)


def _sent_text(said: str | None, fields: Any) -> str:
    written = printable(msgspec.json.encode(fields).decode()) if fields else ""
    return " as ".join(part for part in (intent_text(said or ""), written) if part) or "nothing"


def _observed_text(seen: Mapping[str, Any]) -> str:
    tokens = seen.get("reasoning_tokens")
    how = "estimated" if seen.get("approx") else "reported"
    counted = "tokens not reported" if tokens is None else f"{count(tokens)} tokens {how}"
    return f"{counted}, {'its text' if seen.get('text_seen') else 'no text'} ({seen.get('visibility') or 'none'})"
