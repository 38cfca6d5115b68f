"""Fit a request's messages to a model: refused ids of calls, an answer that the caller began, and words on how much to think.

Each change is a Degradation. An id becomes the same id on every turn, since it is made of nothing but the id itself.
"""

from __future__ import annotations

import hashlib
import re

import msgspec

from bardo.catalog.parameters import CallIds, ParameterRule, Parameters, builtin_parameters
from bardo.reasoning.control.parameters import holds, rules_of
from bardo.reasoning.control.plan import ControlPlan
from bardo.values.blocks import Block, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.degradation import Degradation
from bardo.values.request import HistoryFacts, Message, Request, facts_of

CONTINUE = "Continue your answer from exactly where it ends. Repeat nothing of it."
"""What a user says behind an answer that the caller began, to a model that takes no such answer as the last message."""
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def fit_messages(
    request: Request, plan: ControlPlan, *, facts: HistoryFacts | None = None, parameters: Parameters | None = None
) -> tuple[Request, tuple[Degradation, ...]]:
    """Return the request with messages that the target takes, and every difference. `facts` are those of its messages, if known."""
    degraded: list[Degradation] = []
    for rule in rules_of(plan, parameters or builtin_parameters()):
        of_messages = rule.no_thinking_back or rule.call_ids is not None or rule.no_prefill or rule.trimmed_prefill
        if not of_messages or not holds(rule, plan, request):
            continue
        if rule.no_thinking_back:
            request = _without_thinking(request, rule.why, degraded)
        if rule.call_ids is not None:
            request = _with_ids(request, rule, rule.call_ids, facts or facts_of(request.messages), degraded)
        if rule.no_prefill:
            request = _without_prefill(request, rule.why, degraded)
        if rule.trimmed_prefill:
            request = _with_trimmed_prefill(request, rule.why, degraded)
    return request, tuple(degraded)


def _without_thinking(request: Request, why: str, degraded: list[Degradation]) -> Request:
    if not any(isinstance(block, ReasoningBlock) for message in request.messages for block in message.blocks):
        return request
    degraded.append(Degradation("reasoning", asked="earlier thinking", why=why))
    messages = tuple(_thoughtless(message) for message in request.messages)
    return msgspec.structs.replace(request, messages=messages)


def _thoughtless(message: Message) -> Message:
    blocks = tuple(block for block in message.blocks if not isinstance(block, ReasoningBlock))
    return message if len(blocks) == len(message.blocks) else msgspec.structs.replace(message, blocks=blocks)


def _with_ids(
    request: Request, rule: ParameterRule, ids: CallIds, facts: HistoryFacts, degraded: list[Degradation]
) -> Request:
    if not facts.calls and not facts.results:
        return request
    taken = re.compile(ids.pattern).fullmatch
    used = {call.id for call in facts.calls} | {result.call_id for result in facts.results}
    if all(map(taken, used - {""})):
        return request
    changed: dict[str, str] = {}
    messages = tuple(_renamed(message, ids, changed) for message in request.messages)
    if not changed:
        return request
    first = next(iter(changed))
    degraded.append(Degradation("tool_call.id", asked=first, sent=changed[first], why=rule.why))
    return msgspec.structs.replace(request, messages=messages)


def _renamed(message: Message, ids: CallIds, changed: dict[str, str]) -> Message:
    blocks = [_with_id(block, ids, changed) for block in message.blocks]
    same = all(now is before for now, before in zip(blocks, message.blocks, strict=True))
    return message if same else msgspec.structs.replace(message, blocks=tuple(blocks))


def _with_id(block: Block, ids: CallIds, changed: dict[str, str]) -> Block:
    match block:
        case ToolCallBlock(id=before) if before:
            after = fitting_id(before, ids)
            if after != before:
                changed[before] = after
                return msgspec.structs.replace(block, id=after)
        case ToolResultBlock(call_id=before) if before:
            after = fitting_id(before, ids)
            if after != before:
                changed[before] = after
                return msgspec.structs.replace(block, call_id=after)
    return block


def fitting_id(call_id: str, ids: CallIds) -> str:
    """Return the id itself where it is taken, or else one made of it: two ids become the same by a chance of 1 in 10^16 (9 characters)."""
    if re.fullmatch(ids.pattern, call_id):
        return call_id
    number = int.from_bytes(hashlib.blake2b(call_id.encode("utf-8", "replace"), digest_size=32).digest())
    letters: list[str] = []
    for _ in range(ids.length):
        number, place = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[place])
    return ids.prefix + "".join(letters)


def _without_prefill(request: Request, why: str, degraded: list[Degradation]) -> Request:
    last = request.messages[-1] if request.messages else None
    # A turn that a provider's own tools interrupted is sent back as it came, and goes on from there.
    if last is None or last.role != "assistant" or not all(isinstance(block, TextBlock) for block in last.blocks):
        return request
    degraded.append(Degradation("prefill", asked=last.text[:80], sent=CONTINUE, why=why))
    asked = Message("user", (TextBlock(CONTINUE),))
    return msgspec.structs.replace(request, messages=(*request.messages, asked))


def _with_trimmed_prefill(request: Request, why: str, degraded: list[Degradation]) -> Request:
    last = request.messages[-1] if request.messages else None
    text = last.blocks[-1] if last is not None and last.role == "assistant" and last.blocks else None
    if last is None or not isinstance(text, TextBlock) or text.text == (trimmed := text.text.rstrip()):
        return request
    degraded.append(Degradation("prefill", asked=text.text[-80:], sent=trimmed[-80:], why=why))
    blocks = (*last.blocks[:-1], *([msgspec.structs.replace(text, text=trimmed)] if trimmed else ()))
    begun = (msgspec.structs.replace(last, blocks=blocks),) if blocks else ()
    return msgspec.structs.replace(request, messages=(*request.messages[:-1], *begun))


_STEPS = "Think step by step before you answer."
_WORDS = {
    "off": "Answer directly, without explaining your reasoning.",
    "high": _STEPS,
    "xhigh": _STEPS,
    "max": _STEPS,
}
"""What is written, by what is asked; other levels need no words."""
SENT = "words in the system prompt"


def in_words(plan: ControlPlan) -> ControlPlan:
    """Return the plan with words for the system prompt, where the model does not think and nothing else can be said to it."""
    known, policy = plan.known, plan.policy
    if known is None or policy is None or known.controllable or plan.thinks or plan.fields or plan.system_text:
        return plan
    words = _WORDS.get("off" if policy.mode == "off" else policy.effort or "")
    if not words:
        return plan
    told = Degradation("reasoning", asked=plan.intent, sent=SENT, why="this model has no control of its thinking")
    others = tuple(one for one in plan.degraded if one.what != "reasoning")
    return msgspec.structs.replace(plan, system_text=words, degraded=(told, *others))
