"""Whether an answer of a cheap model is good enough, or the next model is asked: the judgement of a cascade.

Source: FrugalGPT (Chen et al., TMLR 2024). The judgement uses the answer alone; no model is asked.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec
import tomli

from bardo.routing.tiers import Comparison, Signal, compares
from bardo.values.response import Response

Verdict = Literal["fails_schema", "refuses", "unsure", "empty", "failed"]
WORDS: dict[Verdict, str] = {
    "fails_schema": "its answer does not fit the schema",
    "refuses": "it refuses to answer",
    "unsure": "its answer says that it is unsure",
    "empty": "it gave no answer",
    "failed": "its call failed",
}
"""The meaning of a verdict, for a person."""
_LONGEST_JSON = 1_000_000
_REFUSED = "refusal"


class MemberRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A member of an answer that is a JSON object, which shows by this comparison that the answer is unsure."""

    name: str
    comparison: Comparison
    value: Signal


class CascadeRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The signs that an answer is not good enough: phrases in its first and last `characters`, and members of a JSON object."""

    characters: int
    unsure: tuple[str, ...]
    refuses: tuple[str, ...]
    member: tuple[MemberRule, ...]


class EscalatedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call whose answer was not good enough: its id in the log, who answered, why that was not enough, and what it cost if known."""

    request_id: str
    provider: str
    model: str
    verdict: Verdict
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    cost_nanos: int | None = None


def judge(response: Response, *, fits_schema: bool = True, rules: CascadeRules | None = None) -> Verdict | None:
    """Return why the next model shall be asked; None for an answer that is good enough.

    `fits_schema` is False for an answer that should fit a schema and does not. A turn of tool calls is not judged.
    """
    if not fits_schema:
        return "fails_schema"
    if response.refusal or response.finish.reason == _REFUSED:
        return "refuses"
    if response.tool_calls:
        return None
    text = response.text.strip()
    if not text:
        return "empty"
    return _stated_confidence(text, rules or builtin_rules())


@cache
def builtin_rules() -> CascadeRules:
    """Return the rules that come with bardo."""
    text = files("bardo.catalog").joinpath("data/cascade.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomli.loads(text), CascadeRules)


def _stated_confidence(text: str, rules: CascadeRules) -> Verdict | None:
    members = _members(text)
    if members is not None:
        unsure = any(compares(members.get(rule.name), rule.comparison, rule.value) for rule in rules.member)
        return "unsure" if unsure else None
    ends = f"{text[: rules.characters]}\n{text[-rules.characters :]}".lower()
    if any(phrase in ends for phrase in rules.refuses):
        return "refuses"
    return "unsure" if any(phrase in ends for phrase in rules.unsure) else None


def _members(text: str) -> dict[str, object] | None:
    """Return the members of an answer that is a JSON object; None for any other answer."""
    if not text.startswith("{") or len(text) > _LONGEST_JSON:
        return None
    try:
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
