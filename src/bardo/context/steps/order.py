"""The layers that change what stands where in a long prompt, `reorder` and `constraints`.

`reorder`: what stays the same from call to call comes first, so that a provider can read it from its cache. Parts of the system prompt
with a date, a time or an id go behind the parts without; documents of the first thing that the user said go before the words; tools keep
the order that they had first in a session. Turns are never moved.

`constraints`: the operator's rules are said again at the end of a long prompt, where models lose sight of its beginning. An addition
stays where it was made: in later turns the same words stand behind the same message, so that the cached prompt holds.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from bardo.catalog.layer_rows import enrichment_of, volatile_part
from bardo.context.effects import LoadForSession, StoreForSession
from bardo.context.layer import Effect, LayerFacts, LayerSteps, Passed, Receipt, changed
from bardo.context.steps.editing import Session, keep_session, recall_session
from bardo.context.steps.prompt_parts import is_bound, is_prompt, message_tokens
from bardo.context.steps.settings import ConstraintsSettings, ReorderSettings
from bardo.values.blocks import Block, Carried, DocumentBlock, ImageBlock, TextBlock, ToolResultBlock
from bardo.values.degradation import Degradation
from bardo.values.request import Message, Request, Tool
from bardo.values.usage import block_tokens

REORDER = "reorder"


class _Order(msgspec.Struct, frozen=True, array_like=True):
    """The stored state of a session: the names of its tools in their first order."""

    tools: tuple[str, ...] = ()


class Reorder:
    """The layer."""

    name = REORDER

    def __init__(self, settings: ReorderSettings) -> None:
        self._settings = settings

    def steps(self, request: Request, facts: LayerFacts) -> LayerSteps:
        """Put what stays the same first. A conversation whose thinking is bound to its prompt, and whose order is not known, stays."""
        stored = yield from _recall(facts)
        begun = any(message.role == "assistant" for message in request.messages)
        if begun and stored is None and any(is_bound(target.model) for target in facts.targets):
            return self._passed(
                request, request, [], {"bound": "the model's thinking is valid only behind the same prompt"}
            )
        did: list[str] = []
        messages = request.messages
        if self._settings.system:
            messages = _with_stable_system(messages, did)
        if self._settings.documents:
            messages = _with_documents_first(messages, self._settings.least_document, did)
        tools = _in_order(request.tools, stored.tools if stored else (), did) if self._settings.tools else request.tools
        if facts.session and not facts.dry and tools and (stored is None or stored.tools != _names(tools)):
            yield StoreForSession(REORDER, facts.session, msgspec.msgpack.encode(_Order(_names(tools))))
        after = changed(request, messages=messages, tools=tools) if did else request
        return self._passed(request, after, did, {"tools": len(tools), "messages": len(messages)})

    def _passed(self, before: Request, after: Request, did: Sequence[str], saw: dict[str, Any]) -> Passed:
        done = "; ".join(did)
        degraded = () if after is before else (Degradation("messages", asked="the client's order", why=done),)
        return Passed(request=after, receipt=Receipt(layer=REORDER, did=done, saw=saw), degraded=degraded)


def _recall(facts: LayerFacts) -> Generator[Effect, Any, _Order | None]:
    raw = (yield LoadForSession(REORDER, facts.session)) if facts.session else None
    try:
        return msgspec.msgpack.decode(raw, type=_Order) if raw else None
    except msgspec.DecodeError:
        return None


def _with_stable_system(messages: tuple[Message, ...], did: list[str]) -> tuple[Message, ...]:
    """Return messages with the parts of the system prompt that differ from call to call behind its other parts."""
    end = next((place for place, message in enumerate(messages) if message.role != "system"), len(messages))
    system = messages[:end]
    blocks = [block for message in system for block in message.blocks]
    if len(blocks) < 2 or any(message.carried is not None for message in system) or not all(map(_may_move, blocks)):
        return messages
    volatile = [volatile_part(block.text) if isinstance(block, TextBlock) else "" for block in blocks]
    order = sorted(range(len(blocks)), key=lambda place: bool(volatile[place]))
    if order == list(range(len(blocks))):
        return messages
    listed = " or ".join(dict.fromkeys(filter(None, volatile)))
    did.append(f"parts of the system prompt with {listed} were put behind the others")
    moved = iter([blocks[place] for place in order])
    again = tuple(
        msgspec.structs.replace(message, blocks=tuple(next(moved) for _ in message.blocks)) for message in system
    )
    return (*again, *messages[end:])


def _with_documents_first(messages: tuple[Message, ...], least: int, did: list[str]) -> tuple[Message, ...]:
    """Return messages with the long documents of the first thing that the user said before its words."""
    place = next((place for place, message in enumerate(messages) if message.role == "user"), -1)
    if place < 0:
        return messages
    message = messages[place]
    if not all(_may_move(block) for block in message.blocks):
        return messages
    documents = [block for block in message.blocks if isinstance(block, DocumentBlock) and block_tokens(block) >= least]
    others = [block for block in message.blocks if not any(block is document for document in documents)]
    blocks = (*documents, *others)
    if all(block is other for block, other in zip(blocks, message.blocks, strict=True)):
        return messages
    did.append(f"{len(documents)} documents were put before the words of the user")
    return (*messages[:place], msgspec.structs.replace(message, blocks=blocks), *messages[place + 1 :])


def _in_order(tools: tuple[Tool, ...], ordered_names: Sequence[str], did: list[str]) -> tuple[Tool, ...]:
    """Return tools in the order that they had first in the session; those that are new stand at the end."""
    by_name = {tool.name: tool for tool in tools}
    if len(by_name) != len(tools) or any(_is_marked(tool.carried) for tool in tools):
        return tools
    names = [name for name in ordered_names if name in by_name]
    named = set(names)
    ordered = tuple(by_name[name] for name in (*names, *(tool.name for tool in tools if tool.name not in named)))
    if ordered == tools:
        return tools
    did.append("the tools were put in the order that they had first in this session")
    return ordered


def _may_move(block: Block) -> bool:
    """Whether a block may stand elsewhere: one with a marker of the client's for the cache, or with state, stays where it is."""
    match block:
        case TextBlock(opaque=(), carried=carried) | DocumentBlock(carried=carried) | ImageBlock(carried=carried):
            return not _is_marked(carried)
        case _:
            return False


def _is_marked(carried: Carried | None) -> bool:
    return carried is not None and "cache_control" in carried.fields


def _names(tools: Sequence[Tool]) -> tuple[str, ...]:
    return tuple(tool.name for tool in tools)


CONSTRAINTS = "constraints"
_HEADING = "Rules that hold for this conversation:"


class Constraints:
    """The layer."""

    name = CONSTRAINTS

    def __init__(self, settings: ConstraintsSettings) -> None:
        self._settings = settings

    def steps(self, request: Request, facts: LayerFacts) -> LayerSteps:
        """Add the rules behind what the user said last, where enough was said since they were added last."""
        lines = tuple(self._lines(facts))
        session = yield from recall_session(CONSTRAINTS, facts)
        target = facts.targets[0] if facts.targets else None
        before = facts.count_tokens(request, target)
        saw: dict[str, Any] = {"rules": len(lines), "added_before": len(session.recipes)}
        messages, added, since = _with_kept(request.messages, session.recipes)
        if (
            lines
            and before > self._settings.above_tokens
            and since > self._settings.every_tokens
            and _may_add(request, facts)
        ):
            newest, text = len(messages) - 1, "\n".join((_HEADING, *lines))
            messages = (*messages[:-1], _with_text(messages[-1], text))
            added = {**added, _key(request.messages[-1], newest): text}
        yield from keep_session(CONSTRAINTS, facts, Session(added))
        if not added:
            return Passed(request=request, receipt=Receipt(layer=CONSTRAINTS, saw=saw))
        after = changed(request, messages=messages)
        did = f"the operator's rules were said again behind {len(added)} messages of the user"
        receipt = Receipt(
            layer=CONSTRAINTS, did=did, saw=saw, tokens_before=before, tokens_after=facts.count_tokens(after, target)
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
    messages: tuple[Message, ...], recipes: Mapping[str, str]
) -> tuple[tuple[Message, ...], dict[str, str], int]:
    """Return messages with what was added to them in earlier turns, which of it that is, and how many tokens came after the last of it."""
    added: dict[str, str] = {}
    since = 0
    again: list[Message] = []
    for place, message in enumerate(messages):
        since += message_tokens(message)
        text = recipes.get(_key(message, place)) if recipes and _takes_words(message) else None
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
    return blake2b(msgspec.msgpack.encode((place, message.blocks), enc_hook=repr), digest_size=12).hexdigest()
