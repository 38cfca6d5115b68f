"""Which calls are not answered by a kept reply, and whose replies are not kept, with the reason in one word."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, get_args

from bardo.catalog.cache_rows import cache_rows
from bardo.catalog.matching import matches_any
from bardo.context.cache.texts import personal_data, time_words
from bardo.context.layer import KeptReply
from bardo.values.blocks import (
    Block,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.request import CacheAllowance, KeptAs, Message, Request
from bardo.values.response import Response

Refusal = Literal[
    "private",  # The caller asks for providers that keep nothing.
    "no_store",  # The caller wants no kept reply and none to be kept: Cache-Control, or `bardo.cache`.
    "sampling",  # The caller wants another answer each time: a high temperature, or several choices.
    "hosted_tools",  # The provider searches the web, or runs code, while it answers.
    "tools",  # The model may call tools, or has called some: what they did is not in the request.
    "media",  # Pictures, documents and sound.
    "opaque_state",  # Signed or encrypted thinking, and conversations that a server keeps.
    "multi_turn",  # The model has answered before.
    "time_words",  # The answer depends on when it is asked.
    "pii",  # Data about persons.
    "unreadable",  # A number or a text that cannot be compared.
    "error",  # The call failed.
    "truncated",  # The reply was cut off, refused or filtered.
    "too_large",  # The reply is larger than the settings allow, or was put together of several.
]
ALLOWABLE: tuple[CacheAllowance, ...] = get_args(CacheAllowance)
# Fields by which a request goes on from what a server keeps, in Responses, Chat, Messages and Interactions.
_SERVER_STATE = frozenset(
    ("previous_response_id", "conversation", "prompt", "previous_interaction_id", "container", "thread", "background")
)
_WHOLE = frozenset(("stop", "tool_calls"))


def refusal_of(request: Request, allowed: Collection[str], most_temperature: float) -> Refusal | None:
    """Return why a call is not answered by a kept reply; None where it may be.

    `allowed` are reasons that do not count. A temperature over `most_temperature` asks for another answer each time.
    """
    for reason in _reasons(request, most_temperature):
        if reason not in allowed:
            return reason
    return None


def refusal_of_reply(response: Response, reply: KeptReply | None) -> Refusal | None:
    """Return why a reply that came to its end is not kept; None where it may be."""
    if response.error is not None:
        return "error"
    if response.finish.reason not in _WHOLE or not response.blocks:
        return "truncated"
    return "too_large" if reply is None else None


def _reasons(request: Request, most_temperature: float) -> Iterator[Refusal]:
    """Yield the reasons in the order of their cost: what looks at all texts comes last."""
    options = request.options
    if options.private:
        yield "private"
    if options.cache is not None and options.cache.mode == "off":
        yield "no_store"
    if request.choices > 1 or _temperature(request) > most_temperature:
        yield "sampling"
    if _is_live(request):
        yield "hosted_tools"
    if request.tools:
        yield "tools"
    if _SERVER_STATE.intersection(request.extra) or (request.kept_as is not None and _goes_on(request.kept_as)):
        yield "opaque_state"
    results: Sequence[tuple[str, str]] = ()
    texts = _plain_texts(request.messages)
    if texts is None:
        yield from _of_messages(request.messages)
        texts, results = _texts_and_results(request.messages)
    has_time_words, has_personal_data = time_words().has, personal_data().has
    for role, text in texts:
        if role == "user" and has_time_words(text):
            yield "time_words"
            break
    for _, text in (*texts, *results):
        if has_personal_data(text):
            yield "pii"
            break


def _temperature(request: Request) -> float:
    profile, own = request.options.profile, request.sampling.temperature
    found = profile.temperature if own is None and profile is not None else own
    return 0.0 if found is None else found


def _is_live(request: Request) -> bool:
    """Whether the provider looks into the web, or runs code, while it answers."""
    profile, live = request.options.profile, cache_rows().live
    if any(tool.hosted or (tool.carried is not None and tool.schema is None) for tool in request.tools):
        return True
    if request.extra and any(request.extra.get(name) not in (None, False) for name in live.fields):
        return True
    return (profile is not None and profile.web_search is True) or matches_any(request.model, live.models)


def _goes_on(reply: KeptAs) -> bool:
    return bool(reply.previous or reply.conversation)


def _plain_texts(messages: Iterable[Message]) -> list[tuple[str, str]] | None:
    """Return who says what, where each turn is one text that no assistant wrote; None for any other request."""
    found: list[tuple[str, str]] = []
    for message in messages:
        if len(message.blocks) != 1 or message.role == "assistant":
            return None
        block = message.blocks[0]
        if type(block) is not TextBlock or block.opaque:
            return None
        found.append((message.role, block.text))
    return found


def _texts_and_results(messages: Sequence[Message]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return who says what, and what tools returned."""
    texts: list[tuple[str, str]] = [(message.role, message.text) for message in messages]
    results = [
        ("tool", block.text) for message in messages for block in message.blocks if isinstance(block, ToolResultBlock)
    ]
    return texts, results


def _of_messages(messages: Iterable[Message]) -> Iterator[Refusal]:
    found = {reason for message in messages for block in message.blocks if (reason := _of_block(block)) is not None}
    yield from sorted(found)
    if any(message.role == "assistant" for message in messages):
        yield "multi_turn"


def _of_block(block: Block) -> Refusal | None:
    if type(block) is TextBlock:
        return "opaque_state" if block.opaque else None
    if isinstance(block, ReasoningBlock) or (isinstance(block, ToolCallBlock) and block.opaque):
        return "opaque_state"
    if isinstance(block, ToolCallBlock | ToolResultBlock):
        return "tools"
    return "media" if isinstance(block, ImageBlock | DocumentBlock | UnknownBlock) else None
