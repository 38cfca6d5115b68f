"""Earlier reasoning as one target takes it back: what a client dropped is restored, what the target cannot read is left out.

Everything that differs from what the client sent in this regard is reported, except restored reasoning: the model wrote it.

Earlier state that a provider refused is left out: the block that a refusal names, or all state where it names none, or comes again. It is
left out of a caller's next turns too, so that they are refused no more. One caller's refusals are never used for another; they end after a
day, and with the process.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from operator import is_
from typing import Any

import msgspec

from bardo.catalog.replay import Binding, Reader, ReplayRules, builtin_replay
from bardo.reasoning.replay.guard import OnChange, guard
from bardo.reasoning.replay.keys import History, TurnKeys, digest, joined_messages, state_key, states_of, turns_of
from bardo.reasoning.replay.memory import ReplyRecord, TextRecord, agrees, assigned, merged, overruled
from bardo.reasoning.replay.switch import Switch, lacks_thinking, open_loop, thoughtless
from bardo.values.blocks import (
    Block,
    Carried,
    Opaque,
    Origin,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    fields_for,
)
from bardo.values.degradation import Degradation
from bardo.values.request import Message, Request

_PLAIN = "reasoning_content"
Refused = Mapping[str, Collection[str]]
"""The data of the states that each reader has refused, by `name_of` the reader."""
_REFUSED_SECONDS = 86_400.0
_MOST_CALLERS = 2_000
_MOST_STATES = 500


def name_of(reader: Reader) -> str:
    """Return what a refusal holds for: a configured provider with its account, whatever model is asked."""
    return f"{reader.provider}\0{reader.account}"


class Recalled(msgspec.Struct, frozen=True, kw_only=True):
    """The records for one request, by its keys, and the treatment of a changed prefix.

    `turns` are the keys it was looked for by, at their places in the sent request, or None if they are to be made. `history` are those of
    the client's own conversation, or None if nothing was looked for. `degraded` says where it could not be looked for, and `refused` which
    of the conversation's state was refused before.
    """

    found: Mapping[str, ReplyRecord] = {}
    turns: tuple[TurnKeys, ...] | None = None
    history: History | None = None
    on_change: OnChange = "restore"
    rules: ReplayRules | None = None
    degraded: tuple[Degradation, ...] = ()
    refused: Refused = {}


NOTHING = Recalled()


class RestoredRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for one target. `altered` where its history is not the client's; `ask` is what the provider must be asked by."""

    request: Request
    degraded: tuple[Degradation, ...] = ()
    altered: bool = False
    ask: Binding | None = None


def restore(request: Request, reader: Reader, recalled: Recalled = NOTHING) -> RestoredRequest:
    """Return the request with the reasoning that `reader` takes back, exactly where it stood."""
    whole = request
    records: dict[int, ReplyRecord] = {}
    if recalled.found:
        records, rows = assigned(turns_of(request) if recalled.turns is None else recalled.turns, recalled.found)
        whole, records = _with_whole_turns(request, records, rows) if rows else (request, records)
    work = _Work(whole, reader, recalled, records)
    messages = work.messages()
    altered = whole is not request or not all(map(is_, messages, request.messages))
    changed = msgspec.structs.replace(request, messages=messages) if altered else request
    if work.switch.own_rules.needs_thinking and lacks_thinking(changed):
        changed, altered = thoughtless(changed, work.switch), True
    binding = work.switch.own_rules.binding
    if binding is None:
        return RestoredRequest(request=changed, degraded=tuple(work.switch.degradations), altered=altered)
    guarded = guard(changed, work.made, binding, recalled.on_change)
    return RestoredRequest(
        request=guarded.request,
        degraded=(*work.switch.degradations, *guarded.degraded),
        altered=altered or guarded.request is not changed or guarded.asks,
        ask=binding if guarded.asks else None,
    )


class _Work:
    """The history of one request, message by message, of which some are `kept`. `made`: how each was made, as far as it is known."""

    def __init__(self, request: Request, reader: Reader, recalled: Recalled, kept: dict[int, ReplyRecord]) -> None:
        refused = recalled.refused.get(name_of(reader), ())
        self.switch = Switch(reader, recalled.rules or builtin_replay(), self._origin_of, request.dialect, refused)
        self.made: dict[int, ReplyRecord] = {}
        self._request = request
        self._reader = reader
        self._found = recalled.found
        self._state_keys = recalled.history.states if recalled.history is not None else {}
        self._kept = kept
        own = self.switch.own_rules
        self._fill = own.text
        self._expects_thinking, self._states_alone = own.expects_thinking, own.expects_states

    def messages(self) -> tuple[Message, ...]:
        """Return all messages, those that stay as they are unchanged.

        A message of the model may have to change where it was kept, has state or thinking that may not be sent, or has to do with tools
        and has no thinking to be read, where that is required.
        """
        given, switch, fills = self._request.messages, self.switch, bool(self._fill.required)
        messages = [*given]
        follows_result = False
        loop: frozenset[int] | None = None
        for place, message in enumerate(given):
            if message.role != "assistant":
                follows_result = ToolResultBlock in map(type, message.blocks)
                continue
            record = self._kept.get(place)
            has_result = calls = thinks = reads = refused = False
            for block in message.blocks:
                kind = type(block)
                if kind is ReasoningBlock or kind is TextBlock or kind is ToolCallBlock:
                    calls = calls or kind is ToolCallBlock
                    if block.opaque:  # type: ignore[union-attr]
                        thinks, refused = True, refused or bool(switch.refusal(block.opaque))  # type: ignore[union-attr]
                    if kind is ReasoningBlock:
                        thinks = thinks or not self._states_alone
                        reads = reads or bool(block.text or block.readable)  # type: ignore[union-attr]
                        refused = refused or (switch.signed and not block.opaque)  # type: ignore[union-attr]
                elif kind is ToolResultBlock:
                    has_result = True
            fills_turn = fills and (calls or follows_result)
            if record is None and not thinks and self._expects_thinking:
                loop = open_loop(self._request) if loop is None else loop
                if place in loop:
                    why = "the client did not send it, and what is kept has no reply that is certainly this one"
                    switch.tell("the reasoning behind a tool call", None, why)
            if record is not None or refused or (fills_turn and not reads):
                messages[place] = self._message(place, message, record, refused=refused, fills=fills_turn)
            follows_result = has_result
        return tuple(messages)

    def _message(
        self, place: int, message: Message, record: ReplyRecord | None, *, refused: bool, fills: bool
    ) -> Message:
        """Return a message of the model as it is sent; `refused`: without what may not be sent, `fills`: with thinking in it."""
        whole = self._restored(message.blocks, record) if record is not None else None
        bound = self.switch.own_rules.binding is not None
        if bound and record is not None and not self.switch.refusal(record.states, record.origin):
            self.made[place] = record
        native = record.fields if record is not None and whole is not None and self._is_native(record) else {}
        blocks = message.blocks if whole is None else whole
        if whole is None and refused:
            blocks = self.switch.sorted_out(blocks)
        blocks = self._required(blocks, record) if fills else blocks
        changed = message if blocks is message.blocks else msgspec.structs.replace(message, blocks=blocks)
        if not native:
            return changed
        # Fields that the provider takes back unmodified; the client's own go first.
        dialect = self._reader.row.dialect
        return msgspec.structs.replace(changed, carried=Carried(dialect, native | fields_for(dialect, changed.carried)))

    def _restored(self, blocks: tuple[Block, ...], record: ReplyRecord) -> tuple[Block, ...] | None:
        """Return the message with what was kept, or None if it lacks nothing, or where that may not be sent."""
        # A client of the dialect itself has a place for everything: what it left out, it left out on purpose.
        adds = self._is_native(record) and self._request.dialect != record.origin.dialect
        whole = merged(blocks, record, with_others=adds)
        if len(whole) == len(blocks) and all(map(is_, whole, blocks)):
            return None
        native = self._request.dialect in ("", self._reader.row.dialect)
        if not agrees(blocks, record, self.switch.rules.written_by_clients, native=native):
            return None
        if states := record.states:
            why = self.switch.refusal(states, record.origin)
            if not why:
                self._tell_changes(blocks, record)
                return whole
            if not self._holds(blocks, record):
                self.switch.tell(_formats_text(record), "text" if self._gives_text(blocks, record) else None, why)
            return None
        at_home = record.origin.platform == self._reader.platform
        if not at_home or not self.switch.rules.takes_own_thinking(self._reader):
            return None
        self._tell_changes(blocks, record)
        return whole

    def _tell_changes(self, blocks: tuple[Block, ...], record: ReplyRecord) -> None:
        """Report what of the turn is not what the model said: words in place of its thinking, and a text that the client dropped."""
        has_text = any(isinstance(part, TextRecord) and part.length for part in record.parts)
        if has_text and not any(isinstance(block, TextBlock) and block.text.strip() for block in blocks):
            why = "the client left it out; the turn's thinking is put back without it"
            self.switch.tell("the text beside a tool call", None, why)
        if overruled(blocks, record):
            why = "the model's own thinking of this turn is known, and the words in its place are not signed"
            self.switch.tell("the client's own words", "the model's thinking", why)

    def _is_native(self, record: ReplyRecord) -> bool:
        return record.origin.dialect == self._reader.row.dialect and record.origin.platform == self._reader.platform

    def _gives_text(self, blocks: tuple[Block, ...], record: ReplyRecord) -> bool:
        return bool(self._fill.required and record.readable and any(isinstance(part, ToolCallBlock) for part in blocks))

    def _holds(self, blocks: tuple[Block, ...], record: ReplyRecord) -> bool:
        held = {state.data for block in blocks for state in states_of(block)}
        return all(state.data in held for state in record.states)

    def _required(self, blocks: tuple[Block, ...], record: ReplyRecord | None) -> tuple[Block, ...]:
        """Return a turn with calls and some thinking before them, where the provider refuses it without."""
        if any(isinstance(block, ReasoningBlock) and block.readable for block in blocks):
            return blocks
        text = record.readable if record is not None and self._fill.foreign == "text" else ""
        if not text:
            why = "this provider refuses a tool call without its reasoning, which is not at hand"
            self.switch.tell("the reasoning behind a tool call", self._fill.fill, why)
        elif record is not None and not record.states and record.origin.platform != self._reader.platform:
            self.switch.tell(
                _formats_text(record), "text", "another provider's reasoning, which this one takes as text"
            )
        return (ReasoningBlock(text=text or self._fill.fill, format=_PLAIN), *blocks)

    def _origin_of(self, state: Opaque) -> Origin | None:
        if state.origin is not None:
            return state.origin
        if not self._found:
            return None
        record = self._found.get(self._state_keys.get(state.data) or state_key(state))
        return record.origin if record is not None else None


def _with_whole_turns(
    request: Request, records: dict[int, ReplyRecord], rows: dict[int, int]
) -> tuple[Request, dict[int, ReplyRecord]]:
    """Return the request with each turn that its client cut into several messages as one, as its model said it, and the new places."""
    messages: list[Message] = []
    moved: dict[int, ReplyRecord] = {}
    place = 0
    while place < len(request.messages):
        count = rows.get(place, 1)
        if place in records:
            moved[len(messages)] = records[place]
        messages.append(
            joined_messages(request.messages[place : place + count]) if count > 1 else request.messages[place]
        )
        place += count
    return msgspec.structs.replace(request, messages=tuple(messages)), moved


def _formats_text(record: ReplyRecord) -> str:
    formats = [state.format for state in record.states] or ["text"]
    return f"{formats[0]} of {record.origin.provider}/{record.origin.model}"


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
    """Return the data of the states of `request` that a refusal of `body` names, or none if it names none."""
    states = state_data(request)
    if not states:
        return frozenset()
    named = {
        data
        for begin, end in _QUOTED.findall(words)
        for data in states
        if data.startswith(begin) and data.endswith(end)
    }
    sent: Any = msgspec.json.decode(body)
    for path in _PATH.findall(words)[:_MOST_PATHS]:
        named |= states.intersection(_texts(_at(sent, path)))
    for name in _ITEM.findall(words):
        items = sent.get("input") if isinstance(sent, dict) else None
        for item in items if isinstance(items, list) else ():
            if isinstance(item, dict) and item.get("id") == name:
                named |= states.intersection(_texts(item))
    return frozenset(named)


def state_data(request: Request) -> frozenset[str]:
    """Return the data of all state in a request."""
    return frozenset(
        state.data for message in request.messages for block in message.blocks for state in states_of(block)
    )


def without_refused(
    request: Request, reader: Reader, rules: ReplayRules, refused: Collection[str] | None
) -> RestoredRequest:
    """Return the request without the states that are `refused`, None for all of them, and the losses."""
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
        remaining = {state.data for block in blocks for state in states_of(block)}
        lost = {state.data for block in message.blocks for state in states_of(block)} - remaining
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


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            yield node
        elif isinstance(node, dict):
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


class Refusers:
    """Remembers, by caller, the states that were refused: the newest of each caller, and those of the newest callers."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._callers: OrderedDict[str, OrderedDict[tuple[str, str], float]] = OrderedDict()

    def note(self, caller: str, reader: str, states: Collection[str]) -> None:
        """Take that a reader refused states of a caller, and answered once they were left out."""
        held = self._callers.setdefault(caller, OrderedDict())
        self._callers.move_to_end(caller)
        until = self._clock() + _REFUSED_SECONDS
        for state in states:
            place = reader, digest(state)
            held[place] = until
            held.move_to_end(place)
        while len(held) > _MOST_STATES:
            held.popitem(last=False)
        while len(self._callers) > _MOST_CALLERS:
            self._callers.popitem(last=False)

    def among(self, caller: str, states: Collection[str]) -> Refused:
        """Return which of these states of a caller were refused, and by whom."""
        held = self._callers.get(caller)
        if not held:
            return {}
        now, refused = self._clock(), dict[str, set[str]]()
        by_digest = {digest(state): state for state in states}
        for (reader, place), until in held.items():
            if until > now and place in by_digest:
                refused.setdefault(reader, set()).add(by_digest[place])
        return refused

    @property
    def empty(self) -> bool:
        """Whether nothing was refused."""
        return not self._callers
