"""Matches the messages of a history with the replies that were kept, and puts back what a client left out, each piece where it stood.

A client may have joined the texts, rewritten the arguments or left blocks out. Its own text and calls stay as they are, and so does
signed reasoning of its own: where that is not what was kept, nothing is added to it. Unsigned words give way to signed ones. Where a text
is not the one that was kept, its state is left out, because it would belong to other text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from bardo.reasoning.replay.keys import TurnKeys, call_digest, digest
from bardo.reasoning.replay.memory import CallRecord, OtherRecord, ReplyRecord, TextRecord, ThinkingRecord
from bardo.values.blocks import Block, Opaque, ReasoningBlock, TextBlock, ToolCallBlock, UnknownBlock


class Assigned(NamedTuple):
    """The kept reply of each message, by its place, and how many messages in a row one of them is, where that is not one."""

    made: dict[int, ReplyRecord]
    rows: dict[int, int]


def assigned(turns: Sequence[TurnKeys], records: Mapping[str, ReplyRecord]) -> Assigned:
    """Return the kept reply of each message; each reply is one message at most, or messages in a row that a client cut it into.

    A message is known by its state, by what it says behind its conversation, by calls with globally unique ids, or by what it says behind
    a conversation that the client wrote anew. Where these lead to different replies, it is none of them; nor where they lead to a reply
    of which it is kept that it had no thinking.
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
        for turn in listed:
            places = range(turn.place, turn.place + turn.messages)
            if not taken.isdisjoint(places):
                continue
            record = next((one for keys in ways(turn) if (one := _only(keys, records, used)) is not None), None)
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
    """Whether a reply may be all that messages in a row say: some of them may be another reply's, or nobody's."""
    calls = sum(isinstance(part, CallRecord) for part in record.parts)
    says = any(isinstance(part, TextRecord) and part.length for part in record.parts)
    return calls == turn.call_count and (says or not turn.says)


def _by_words(turn: TurnKeys) -> tuple[Iterable[str], ...]:
    return ((turn.exact,), (turn.unnamed,) if turn.unnamed else ())


def _by_conversation(turn: TurnKeys) -> tuple[Iterable[str], ...]:
    return (turn.states, *_by_words(turn))


def _by_calls(turn: TurnKeys) -> tuple[Iterable[str], ...]:
    return (turn.calls,)


def _by_loose_conversation(turn: TurnKeys) -> tuple[Iterable[str], ...]:
    return ((turn.loose,),)


def _only(keys: Iterable[str], records: Mapping[str, ReplyRecord], used: set[int]) -> ReplyRecord | None:
    """Return the one reply that all of these keys lead to, so far as they lead anywhere."""
    candidates = {id(record): record for key in keys if (record := records.get(key)) is not None}
    only = next(iter(candidates.values())) if len(candidates) == 1 else None
    return None if only is None or id(only) in used else only


def merged(blocks: Sequence[Block], record: ReplyRecord, *, with_others: bool = True) -> tuple[Block, ...]:
    """Return the blocks of a message with the reasoning and the state of `record`, in the order of `record`.

    `with_others`: blocks that only the provider's dialect knows are put back too, because the client's has no place for them.
    """
    texts = _texts([block for block in blocks if isinstance(block, TextBlock)], record)
    calls = _calls([block for block in blocks if isinstance(block, ToolCallBlock)], record)
    own = [block for block in blocks if isinstance(block, ReasoningBlock)]
    others: list[Block] = [
        block for block in blocks if not isinstance(block, TextBlock | ToolCallBlock | ReasoningBlock)
    ]
    placed: list[Block] = []
    spoken = any(isinstance(part, TextRecord) for part in record.parts)
    for part in record.parts:
        if isinstance(part, CallRecord) and not spoken:
            # Words the client added stand before the calls, where its own dialect has them.
            placed += texts.pop(0) if texts else ()
        match part:
            case ThinkingRecord(block=block):
                placed.append(
                    next((one for one in own if one.format == block.format and _same_thought(one, block)), block)
                )
            case TextRecord():
                placed += texts.pop(0) if texts else ()
            case CallRecord():
                call = next(calls, None)
                placed += [] if call is None else [_restored_call(call, part, at_home=with_others)]
            case OtherRecord(block=block):
                own_form = _own_form(block, others)
                placed += [block] if own_form is None and with_others else [own_form] if own_form is not None else []
    placed += [*others, *(text for left in texts for text in left), *calls]
    return tuple(placed)


def overruled(blocks: Sequence[Block], record: ReplyRecord) -> bool:
    """Whether a client sent unsigned thinking that is not what was kept."""
    own = [block for block in blocks if isinstance(block, ReasoningBlock) and block.readable and not block.opaque]
    return "".join(_letters(block.readable) for block in own) not in _letters(record.readable)


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
    known = _letters(record.readable)
    stateful = [block for block in own if block.opaque]
    if any(state.data not in states for block in stateful for state in block.opaque):
        return False
    if any(_letters(block.readable) not in known for block in stateful):
        return False
    if states or not native:
        return True
    plain = "".join(
        _letters(block.readable) for block in own if not block.opaque and block.format not in written_by_clients
    )
    return not plain or plain == known


def _own_form(block: UnknownBlock, others: list[Block]) -> Block | None:
    """Return the client's form of a block, which is taken from `others`; None where the client left it out."""
    for place, other in enumerate(others):
        if isinstance(other, UnknownBlock) and _name(other) == _name(block):
            return others.pop(place)
    return None


def _name(block: UnknownBlock) -> tuple[str, object, object]:
    value = block.value if isinstance(block.value, dict) else {}
    return block.dialect, value.get("type"), value.get("id") or value.get("tool_use_id")


def _same_thought(one: ReasoningBlock, other: ReasoningBlock) -> bool:
    same_text = (one.text, one.summary) == (other.text, other.summary)
    return same_text and {state.data for state in one.opaque} == {state.data for state in other.opaque}


def _letters(text: str) -> str:
    """Return text without its space: clients join stretches of thinking as they like."""
    return "".join(text.split())


def _texts(texts: list[TextBlock], record: ReplyRecord) -> list[list[Block]]:
    """Return the client's texts, cut as they were kept; where they are other texts, all of them in one place."""
    said = [part for part in record.parts if isinstance(part, TextRecord)]
    if len(texts) == len(said) and all(map(_is_said, texts, said)):
        return [[_with(text, part.opaque)] for text, part in zip(texts, said, strict=True)]
    whole = "".join(text.text for text in texts)
    if len(whole) == sum(part.length for part in said) and all(text.carried is None for text in texts):
        pieces = list(_split_text(whole, said))
        if all(map(_is_said, pieces, said)):
            return [[piece] for piece in pieces]
    return [list(texts)] if texts else []


def _is_said(text: TextBlock, part: TextRecord) -> bool:
    return len(text.text) == part.length and digest(text.text) == part.digest


def _split_text(whole: str, said: Sequence[TextRecord]) -> Iterator[TextBlock]:
    begin = 0
    for part in said:
        yield TextBlock(whole[begin : begin + part.length], part.opaque)
        begin += part.length


def _calls(calls: list[ToolCallBlock], record: ReplyRecord) -> Iterator[ToolCallBlock]:
    """Return the client's calls in the order they were made in: by id, or by what each says, else as they come."""
    made = [part for part in record.parts if isinstance(part, CallRecord)]
    order = {part.id: place for place, part in enumerate(made)}
    if all(call.id in order for call in calls):
        return iter(sorted(calls, key=lambda call: order[call.id]))
    said = [call_digest(call) for call in calls]
    if [part.digest for part in made] != said and sorted(part.digest for part in made) == sorted(said):
        places = {part.digest: place for place, part in enumerate(made)}
        return iter([call for _, call in sorted(zip(said, calls, strict=True), key=lambda one: places[one[0]])])
    return iter(calls)


def _restored_call(call: ToolCallBlock, part: CallRecord, *, at_home: bool) -> Block:
    """Return a call with its state; `at_home`, where it goes to the provider that made it, with the word that the id is its own."""
    if at_home and part.own_id and part.id == call.id:
        call = msgspec.structs.replace(call, own_id=True)
    return _with(call, part.opaque)


def _with(block: TextBlock | ToolCallBlock, opaque: tuple[Opaque, ...]) -> Block:
    return msgspec.structs.replace(block, opaque=opaque) if opaque and not block.opaque else block
