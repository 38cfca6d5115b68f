"""The layer `constraints`: the operator's rules are said again at the end of a long prompt, where models lose sight of its beginning.

What is added stays where it was added: in later turns the same words stand behind the same message, so that the cached prompt holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from bardo.catalog.layer_rows import enrichment_of
from bardo.context.layer import LayerFacts, LayerSteps, Passed, Receipt, changed
from bardo.context.steps.editing import Session, keep_session, recall_session
from bardo.context.steps.prompt_parts import is_bound, is_prompt, message_tokens
from bardo.context.steps.settings import ConstraintsSettings
from bardo.values.blocks import TextBlock, ToolResultBlock
from bardo.values.degradation import Degradation
from bardo.values.request import Message, Request

NAME = "constraints"
_HEADING = "Rules that hold for this conversation:"


class Constraints:
    """The layer."""

    name = NAME

    def __init__(self, settings: ConstraintsSettings) -> None:
        self._settings = settings

    def steps(self, request: Request, facts: LayerFacts) -> LayerSteps:
        """Add the rules behind what the user said last, where enough was said since they were added last."""
        lines = tuple(self._lines(facts))
        kept = yield from recall_session(NAME, facts)
        target = facts.targets[0] if facts.targets else None
        before = facts.count_tokens(request, target)
        saw: dict[str, Any] = {"rules": len(lines), "added_before": len(kept.recipes)}
        messages, added, since = _with_kept(request.messages, kept.recipes)
        if (
            lines
            and before > self._settings.above_tokens
            and since > self._settings.every_tokens
            and _may_add(request, facts)
        ):
            newest, text = len(messages) - 1, "\n".join((_HEADING, *lines))
            messages = (*messages[:-1], _with_text(messages[-1], text))
            added = {**added, _key(request.messages[-1], newest): text}
        yield from keep_session(NAME, facts, Session(added))
        if not added:
            return Passed(request=request, receipt=Receipt(layer=NAME, saw=saw))
        after = changed(request, messages=messages)
        did = f"the operator's rules were said again behind {len(added)} messages of the user"
        receipt = Receipt(
            layer=NAME,
            did=did,
            saw=saw,
            tokens_before=before,
            tokens_after=facts.count_tokens(after, target),
        )
        return Passed(
            request=after, receipt=receipt, degraded=(Degradation("messages", sent="text was added", why=did),)
        )

    def _lines(self, facts: LayerFacts) -> Iterator[str]:
        yield from self._settings.must
        if self._settings.language:
            yield f"Answer in {self._settings.language}."
        domain = domain_of(facts.found)
        for rule in self._settings.rules:
            if (not rule.domains or domain in rule.domains) and (
                not rule.workloads or facts.workload in rule.workloads
            ):
                yield rule.text
        if domain in self._settings.enrich and (text := enrichment_of(domain)):
            yield text


def domain_of(found: Mapping[str, Any]) -> str:
    """Return the domain that the layer `classify` found; empty where it did not run, or found none."""
    guesses: Mapping[str, Any] = getattr(found.get("classify"), "guesses", {})
    label = getattr(guesses.get("domain"), "label", "")
    return label if isinstance(label, str) else ""


def _with_kept(
    messages: tuple[Message, ...], kept: Mapping[str, str]
) -> tuple[tuple[Message, ...], dict[str, str], int]:
    """Return messages with what was added to them in earlier turns, which of it that is, and how many tokens came after the last of it."""
    added: dict[str, str] = {}
    since = 0
    again: list[Message] = []
    for place, message in enumerate(messages):
        since += message_tokens(message)
        text = kept.get(_key(message, place)) if kept and _takes_words(message) else None
        again.append(message if text is None else _with_text(message, text))
        if text is not None:
            added[_key(message, place)] = text
            since = 0
    return tuple(again), added, since


def _may_add(request: Request, facts: LayerFacts) -> bool:
    """Whether the newest message takes words. Thinking that is bound to its prompt would be lost once the added words are forgotten."""
    newest = request.messages[-1:]
    return bool(newest) and _takes_words(newest[0]) and not any(is_bound(target.model) for target in facts.targets)


def _takes_words(message: Message) -> bool:
    """Whether words may stand behind a message: behind results of tools they would begin a new turn of the user."""
    return is_prompt(message) and not any(isinstance(block, ToolResultBlock) for block in message.blocks)


def _with_text(message: Message, text: str) -> Message:
    return msgspec.structs.replace(message, blocks=(*message.blocks, TextBlock(f"\n\n{text}")))


def _key(message: Message, place: int) -> str:
    raw = msgspec.msgpack.encode((place, message.blocks), enc_hook=repr)
    return blake2b(raw, digest_size=12).hexdigest()
