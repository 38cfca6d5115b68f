"""Earlier thinking, kept by the keys of its turn, and merged into the history of the model that wrote it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from bardo.catalog.replay import Reader, ReplayRules, builtin_replay
from bardo.reasoning.replay.call_identity import stated_id
from bardo.reasoning.replay.keys import History, TurnKeys, call_digest, digest, history_of, reply_keys, state_key
from bardo.reasoning.replay.prefix import Prefix, prefix_of
from bardo.values.blocks import (
    Block,
    Opaque,
    Origin,
    ReasoningBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.events import Event, OpaqueState
from bardo.values.request import Request
from bardo.values.response import Response


class ThinkingRecord(msgspec.Struct, frozen=True, tag="t", array_like=True):
    """A stretch of thinking."""

    block: ReasoningBlock


class TextRecord(msgspec.Struct, frozen=True, tag="s", array_like=True):
    """A text of so many characters with this digest, and its state."""

    length: int
    opaque: tuple[Opaque, ...] = ()
    digest: str = ""


class CallRecord(msgspec.Struct, frozen=True, tag="c", array_like=True):
    """A call with a digest of what it says, and its state. `own_id`: the provider gave the id, in a dialect whose calls may be without."""

    id: str
    opaque: tuple[Opaque, ...] = ()
    own_id: bool = False
    digest: str = ""


class OtherRecord(msgspec.Struct, frozen=True, tag="o", array_like=True):
    """A block that only one dialect knows."""

    block: UnknownBlock


Part = ThinkingRecord | TextRecord | CallRecord | OtherRecord


class ReplyRecord(msgspec.Struct, frozen=True, array_like=True):
    """One reply. `prefix` is what it was made behind, for models that bind their state to that.

    `fields` are those fields of the reply that its provider takes back unmodified, in the dialect of `origin`.
    """

    origin: Origin
    parts: tuple[Part, ...]
    prefix: Prefix | None = None
    fields: dict[str, Any] = {}

    @property
    def states(self) -> list[Opaque]:
        """All opaque state of the reply."""
        states: list[Opaque] = []
        for part in self.parts:
            if type(part) is not OtherRecord:
                states += part.block.opaque if type(part) is ThinkingRecord else part.opaque  # type: ignore[union-attr]
        return states

    @property
    def readable(self) -> str:
        """The thinking as text."""
        texts = [part.block.readable for part in self.parts if isinstance(part, ThinkingRecord)]
        return "\n\n".join(text for text in texts if text)


class Memory(msgspec.Struct, frozen=True):
    """A reply to keep, and the keys to keep it under. `choice` is its place among the choices of the response."""

    keys: tuple[str, ...]
    kept: ReplyRecord
    choice: int = 0


encode_kept = msgspec.msgpack.Encoder().encode
_DECODER = msgspec.msgpack.Decoder(ReplyRecord)


def decode_kept(raw: bytes) -> ReplyRecord | None:
    """Return what was kept; None for what another version wrote."""
    try:
        return _DECODER.decode(raw)
    except (ValueError, msgspec.MsgspecError):
        return None


def remember(
    response: Response,
    request: Request,
    sent: Request,
    reader: Reader,
    rules: ReplayRules | None = None,
    fields: Mapping[int, dict[str, Any]] | None = None,
    *,
    own_ids: bool = False,
    shown: Response | None = None,
    history: History | None = None,
) -> list[Memory]:
    """Return the records of each choice of a reply to store; none for most.

    `request` is the client's, `sent` what the provider got: with what was restored. `reader` made the reply. `fields` are those that
    the provider takes back unmodified, by choice. `own_ids`: the provider's dialect may leave ids out, so that an id it did give is noted.
    `shown` is the reply as the client got it, and so sends it back, where that is not what the provider said. `history` is what was found
    of the conversation of `request` before the reply, or None if it is to be found.
    """
    replay_rules = rules or builtin_replay()
    choices = enumerate((response, *response.alternatives))
    worth = [
        (choice, message.blocks, is_worth)
        for choice, message in choices
        if (is_worth := _worth(message.blocks, request)) or _is_of_tools(message.blocks, request)
    ]
    if not worth or response.error is not None:
        return []
    history = history_of(request) if history is None else history
    prefix = prefix_of(sent) if replay_rules.of(reader).binding is not None else None
    returned = {} if shown is None else dict(enumerate(reply.blocks for reply in (shown, *shown.alternatives)))
    return [
        _memory(
            blocks,
            returned.get(choice, blocks),
            choice,
            history,
            reader,
            prefix,
            (fields or {}).get(choice, {}),
            is_worth=is_worth,
            own_ids=own_ids,
        )
        for choice, blocks, is_worth in worth
    ]


def is_only_text(response: Response, request: Request) -> bool:
    """Whether nothing is ever kept of a reply, as of most: its one choice is text without state, and it answers no tool's result."""
    for block in response.blocks:
        if type(block) is not TextBlock or block.opaque:
            return False
    return not response.alternatives and not answers_tools(request)


def _worth(blocks: Sequence[ReplyBlock], request: Request) -> bool:
    calls = thinks = False
    for block in blocks:
        if isinstance(block, ReasoningBlock | TextBlock | ToolCallBlock) and block.opaque:
            return True
        calls = calls or isinstance(block, ToolCallBlock)
        thinks = thinks or isinstance(block, ReasoningBlock)
    return thinks and (calls or answers_tools(request))


def _is_of_tools(blocks: Sequence[ReplyBlock], request: Request) -> bool:
    return any(isinstance(block, ToolCallBlock) for block in blocks) or answers_tools(request)


def answers_tools(request: Request) -> bool:
    """Whether a request ends with the result of a tool."""
    # Asked in every call, where a loop costs half of what `any` does.
    for block in request.messages[-1].blocks if request.messages else ():  # noqa: SIM110
        if isinstance(block, ToolResultBlock):
            return True
    return False


def _memory(
    blocks: Sequence[ReplyBlock],
    returned: Sequence[ReplyBlock],
    choice: int,
    history: History,
    reader: Reader,
    prefix: Prefix | None,
    fields: dict[str, Any],
    *,
    is_worth: bool,
    own_ids: bool,
) -> Memory:
    records = [_part(block, own_ids=own_ids) for block in blocks] if is_worth else []
    parts = [part for part in records if part is not None]
    record = ReplyRecord(reader.origin(prefix.whole if prefix else ""), tuple(parts), prefix, fields)
    keys = [*reply_keys(history, returned), *(state_key(state) for state in record.states)]
    return Memory(tuple(dict.fromkeys(keys)), record, choice)


def _part(block: ReplyBlock, *, own_ids: bool) -> Part | None:
    match block:
        case ReasoningBlock():
            return ThinkingRecord(msgspec.structs.replace(block, opaque=_unstamped(block.opaque)))
        case TextBlock():
            return TextRecord(len(block.text), _unstamped(block.opaque), digest(block.text))
        case ToolCallBlock():
            own_id = own_ids and bool(stated_id(block))
            return CallRecord(block.id, _unstamped(block.opaque), own_id, call_digest(block))
        case UnknownBlock():
            return OtherRecord(block)
        case _:
            return None


def _unstamped(states: tuple[Opaque, ...]) -> tuple[Opaque, ...]:
    """Leave the stamps out: a stored record has one for all."""
    return tuple(msgspec.structs.replace(state, origin=None) for state in states)


class Origins:
    """A stage of one reply."""

    passes_text = True
    acts_on: frozenset[type] = frozenset((OpaqueState,))
    touches = acts_on

    def __init__(self, origin: Origin) -> None:
        self._origin = origin

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on; state that has no stamp gets one."""
        if type(item) is not OpaqueState or item.opaque.origin is not None:
            return (item,)
        return (msgspec.structs.replace(item, opaque=msgspec.structs.replace(item.opaque, origin=self._origin)),)

    def finish(self) -> Sequence[Event]:
        """Nothing is held."""
        return ()


class Assigned(NamedTuple):
    """The kept reply of each message, by its place, and how many messages in a row one of them is, where that is not one."""

    made: dict[int, ReplyRecord]
    rows: dict[int, int]


def assigned(turns: Sequence[TurnKeys], records: Mapping[str, ReplyRecord]) -> Assigned:
    """Return the kept reply of each message; each reply is one message at most, or messages in a row that a client cut it into.

    A message is known by its state, by what it says behind its conversation (to the model asked for, else to any), by calls with globally
    unique ids, or by what it says behind a conversation that the client wrote anew. Where these lead to different replies, it is none of
    them; nor where they lead to a reply of which it is kept that it had no thinking.
    """
    made: dict[int, ReplyRecord] = {}
    rows: dict[int, int] = {}
    used: set[int] = set()
    taken: set[int] = set()
    alone = [turn for turn in turns if turn.messages == 1]
    together = [turn for turn in turns if turn.messages > 1]
    for listed, ways in (
        (together, _by_words),
        (alone, _by_conversation),
        (together, _by_calls),
        (alone, _by_calls),
        (together, _by_loose_conversation),
        (alone, _by_loose_conversation),
    ):
        if len(taken) == len(alone):
            break
        for turn in listed:
            places = range(turn.place, turn.place + turn.messages)
            if not taken.isdisjoint(places):
                continue
            record = None
            for keys in ways(turn):
                if (record := _only(keys, records, used)) is not None:
                    break
            if record is None or (turn.messages > 1 and ways is not _by_words and not _fits(record, turn)):
                continue
            made[turn.place] = record
            taken.update(places)
            if turn.messages > 1:
                rows[turn.place] = turn.messages
            if record.parts:
                used.add(id(record))
    with_parts = {place: record for place, record in made.items() if record.parts}
    return Assigned(with_parts, {place: count for place, count in rows.items() if place in with_parts})


def _fits(record: ReplyRecord, turn: TurnKeys) -> bool:
    """Whether a reply may be all that messages in a row say: some of them may be from another reply, or from none."""
    calls = sum(isinstance(part, CallRecord) for part in record.parts)
    says = any(isinstance(part, TextRecord) and part.length for part in record.parts)
    return calls == turn.call_count and (says or not turn.says)


def _by_words(turn: TurnKeys) -> tuple[Iterable[str], ...]:
    return ((turn.of_model,), (turn.exact,), (turn.unnamed,))


def _by_conversation(turn: TurnKeys) -> tuple[Iterable[str], ...]:
    return (turn.states, (turn.of_model,), (turn.exact,), (turn.unnamed,))


def _by_calls(turn: TurnKeys) -> tuple[Iterable[str], ...]:
    return (turn.calls,)


def _by_loose_conversation(turn: TurnKeys) -> tuple[Iterable[str], ...]:
    return ((turn.loose,),)


def _only(keys: Iterable[str], records: Mapping[str, ReplyRecord], used: set[int]) -> ReplyRecord | None:
    """Return the one reply that all of these keys lead to, so far as they lead anywhere."""
    only: ReplyRecord | None = None
    for key in keys:
        record = records.get(key)
        if record is not None and record is not only:
            if only is not None:
                return None
            only = record
    return None if only is None or id(only) in used else only


def merged(blocks: Sequence[Block], record: ReplyRecord, *, with_others: bool = True) -> tuple[Block, ...]:
    """Return the blocks of a message with the reasoning and the state of `record`, in the order of `record`.

    `with_others`: blocks that only the provider's dialect knows are put back too, because the client's has no place for them.
    """
    texts_said: list[TextBlock] = []
    made: list[ToolCallBlock] = []
    own: list[ReasoningBlock] = []
    others: list[Block] = []
    for block in blocks:
        if type(block) is TextBlock:
            texts_said.append(block)
        elif type(block) is ToolCallBlock:
            made.append(block)
        elif type(block) is ReasoningBlock:
            own.append(block)
        else:
            others.append(block)
    spoken = TextRecord in map(type, record.parts)
    texts = _texts(texts_said, record) if texts_said or spoken else []
    calls = _calls(made, record) if len(made) > 1 else iter(made)
    merged: list[Block] = []
    for part in record.parts:
        if type(part) is ThinkingRecord:
            for thought in own:
                if thought.format == part.block.format and _same_thought(thought, part.block):
                    merged.append(thought)
                    break
            else:
                merged.append(part.block)
        elif type(part) is TextRecord:
            merged += texts.pop(0) if texts else ()
        elif type(part) is CallRecord:
            if texts and not spoken:
                # Words the client added stand before the calls, where its own dialect has them.
                merged += texts.pop(0)
            if (call := next(calls, None)) is not None:
                merged.append(_restored_call(call, part, at_home=with_others))
        elif type(part) is OtherRecord:
            own_form = _own_form(part.block, others)
            merged += [part.block] if own_form is None and with_others else [own_form] if own_form is not None else []
    merged += [*others, *chain.from_iterable(texts), *calls]
    return tuple(merged)


def overruled(blocks: Sequence[Block], record: ReplyRecord) -> bool:
    """Whether a client sent unsigned thinking that is not what was kept."""
    own = [block for block in blocks if isinstance(block, ReasoningBlock) and block.readable and not block.opaque]
    return bool(own) and "".join(_letters(block.readable) for block in own) not in _letters(record.readable)


def agrees(
    blocks: Sequence[Block], record: ReplyRecord, written_by_clients: Collection[str] = (), *, native: bool = True
) -> bool:
    """Whether the reasoning that a client sent, if any, is that of `record`, or gives way to it.

    Unsigned words give way to state, and those of a format that clients write themselves to whatever the model thought. Other words stay
    where the client wrote them in the dialect of their reader, which is `native`.
    """
    own = [block for block in blocks if isinstance(block, ReasoningBlock) and (block.readable or block.opaque)]
    if not own:
        return True
    states = {state.data for state in record.states}
    letters = _letters(record.readable)
    stateful = [block for block in own if block.opaque]
    if any(state.data not in states for block in stateful for state in block.opaque):
        return False
    if any(_letters(block.readable) not in letters for block in stateful):
        return False
    if states or not native:
        return True
    plain = "".join(
        _letters(block.readable) for block in own if not block.opaque and block.format not in written_by_clients
    )
    return not plain or plain == letters


def _own_form(block: UnknownBlock, others: list[Block]) -> Block | None:
    """Return the client's form of a block, which is taken from `others`, or None if the client left it out."""
    for place, other in enumerate(others):
        if isinstance(other, UnknownBlock) and _name(other) == _name(block):
            return others.pop(place)
    return None


def _name(block: UnknownBlock) -> tuple[str, object, object]:
    value = block.value if isinstance(block.value, dict) else {}
    return block.dialect, value.get("type"), value.get("id") or value.get("tool_use_id")


def _same_thought(one: ReasoningBlock, other: ReasoningBlock) -> bool:
    if one.text != other.text or one.summary != other.summary:
        return False
    return one.opaque == other.opaque or {state.data for state in one.opaque} == {state.data for state in other.opaque}


def _letters(text: str) -> str:
    """Return text without its space: clients join stretches of thinking as they like."""
    return "".join(text.split())


def _texts(texts: list[TextBlock], record: ReplyRecord) -> list[list[Block]]:
    """Return the client's texts, cut as they were kept; where they are other texts, all of them in one place."""
    text_parts = [part for part in record.parts if isinstance(part, TextRecord)]
    if len(texts) == len(text_parts) and all(map(_is_said, texts, text_parts)):
        return [[_with(text, part.opaque)] for text, part in zip(texts, text_parts, strict=True)]
    whole = "".join(text.text for text in texts)
    if len(whole) == sum(part.length for part in text_parts) and all(text.carried is None for text in texts):
        pieces = list(_split_text(whole, text_parts))
        if all(map(_is_said, pieces, text_parts)):
            return [[piece] for piece in pieces]
    return [list(texts)] if texts else []


def _is_said(text: TextBlock, part: TextRecord) -> bool:
    return len(text.text) == part.length and digest(text.text) == part.digest


def _split_text(whole: str, records: Sequence[TextRecord]) -> Iterator[TextBlock]:
    begin = 0
    for part in records:
        yield TextBlock(whole[begin : begin + part.length], part.opaque)
        begin += part.length


def _calls(calls: list[ToolCallBlock], record: ReplyRecord) -> Iterator[ToolCallBlock]:
    """Return the client's calls in the order they were made in: by id, or by what each says, else as they come."""
    made = [part for part in record.parts if isinstance(part, CallRecord)]
    order = {part.id: place for place, part in enumerate(made)}
    if all(call.id in order for call in calls):
        return iter(sorted(calls, key=lambda call: order[call.id]))
    digests = [call_digest(call) for call in calls]
    if [part.digest for part in made] != digests and sorted(part.digest for part in made) == sorted(digests):
        places = {part.digest: place for place, part in enumerate(made)}
        return iter([call for _, call in sorted(zip(digests, calls, strict=True), key=lambda pair: places[pair[0]])])
    return iter(calls)


def _restored_call(call: ToolCallBlock, part: CallRecord, *, at_home: bool) -> Block:
    """Return a call with its state; `at_home`, where it goes to the provider that made it, with the word that the id is its own."""
    if at_home and part.own_id and part.id == call.id:
        call = msgspec.structs.replace(call, own_id=True)
    return _with(call, part.opaque)


def _with(block: TextBlock | ToolCallBlock, opaque: tuple[Opaque, ...]) -> Block:
    return msgspec.structs.replace(block, opaque=opaque) if opaque and not block.opaque else block
