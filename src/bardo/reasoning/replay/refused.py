"""Earlier state that a provider refused: which of it a refusal names, and the request without it.

A refusal that names a block is heeded by leaving out that block; one that names none, or comes again, by leaving out all state.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from operator import is_
from typing import Any

import msgspec

from bardo.catalog.replay import Reader, ReplayRules
from bardo.reasoning.replay.keys import states_of
from bardo.reasoning.replay.restore import RestoredRequest
from bardo.reasoning.replay.switch import Switch, lacks_thinking, thoughtless
from bardo.values.blocks import Block, Carried
from bardo.values.request import Message, Request

# `messages.1.content.0`, `input[3].encrypted_content`, `contents[2].parts[0]`: where the block stands in the body.
_PATH = re.compile(r"\b(?:messages|input|contents)(?:\.\w+|\[\d+\])+")
_STEP = re.compile(r"\w+")
# OpenAI quotes the beginning and the end of a ciphertext (gAAA...DQ==), or the id of its item.
_QUOTED = re.compile(
    r"encrypted content (?:for item )?([\w+/=-]{2,200}?)(?:\.{3}|\u2026)([\w+/=-]{2,200})", re.IGNORECASE
)
_ITEM = re.compile(r"\b((?:rs|msg|fc)_\w{8,200})")
_MOST_PATHS = 8


def named_states(request: Request, body: bytes, words: str) -> frozenset[str]:
    """Return the data of the states of `request` that a refusal of `body` names; none where it does not say which."""
    states = state_data(request)
    if not states:
        return frozenset()
    found = {
        data
        for begin, end in _QUOTED.findall(words)
        for data in states
        if data.startswith(begin) and data.endswith(end)
    }
    sent: Any = msgspec.json.decode(body)
    for path in _PATH.findall(words)[:_MOST_PATHS]:
        found |= states.intersection(_texts(_at(sent, path)))
    for name in _ITEM.findall(words):
        items = [item for item in _items(sent) if item.get("id") == name]
        found |= states.intersection(text for item in items for text in _texts(item))
    return frozenset(found)


def state_data(request: Request) -> frozenset[str]:
    """Return the data of all state in a request."""
    return frozenset(
        state.data for message in request.messages for block in message.blocks for state in states_of(block)
    )


def without_refused(
    request: Request, reader: Reader, rules: ReplayRules, refused: Collection[str] | None
) -> RestoredRequest:
    """Return the request without the states that are `refused`, None for all of them, and what is lost by that."""
    switch = Switch(reader, rules, lambda state: state.origin, request.dialect, refused)
    messages = tuple(
        message if message.role != "assistant" else _replaced(message, switch.sorted_out(message.blocks))
        for message in request.messages
    )
    if all(map(is_, messages, request.messages)):
        return RestoredRequest(request=request)
    changed = msgspec.structs.replace(request, messages=messages)
    if switch.own_rules.needs_thinking and lacks_thinking(changed):
        changed = thoughtless(changed, switch)
    return RestoredRequest(request=changed, degraded=tuple(switch.degradations), altered=True)


def without_thinking_now(request: Request, reader: Reader, rules: ReplayRules) -> RestoredRequest:
    """Return the request with thinking turned off, for a model that refuses to think behind calls whose thinking is missing."""
    switch = Switch(reader, rules, lambda state: state.origin, request.dialect)
    changed = thoughtless(request, switch)
    return RestoredRequest(request=changed, degraded=tuple(switch.degradations), altered=True)


def _replaced(message: Message, blocks: tuple[Block, ...]) -> Message:
    """Return a message with these of its blocks, and without the fields in which it carries the state of the others besides."""
    if len(blocks) == len(message.blocks) and all(map(is_, blocks, message.blocks)):
        return message
    carried = message.carried
    if carried is not None:
        kept = {state.data for block in blocks for state in states_of(block)}
        lost = {state.data for block in message.blocks for state in states_of(block)} - kept
        fields = {name: value for name, value in carried.fields.items() if lost.isdisjoint(_texts(value))}
        carried = Carried(carried.dialect, fields) if fields else None
    return msgspec.structs.replace(message, blocks=blocks, carried=carried)


def _at(value: Any, path: str) -> Any:
    """Return what stands at a path, as far as it leads."""
    for step in _STEP.findall(path):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            break
    # A path that leads to a list names no one of it.
    return None if isinstance(value, list) else value


def _items(body: Any) -> list[dict[str, Any]]:
    items = body.get("input") if isinstance(body, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
