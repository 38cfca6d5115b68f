"""Puts what was kept of a reply back into the message a client made of it, each piece where it stood.

A client may have joined the texts, written the arguments anew or left blocks out. Its own text and calls stay as they are, and so does
reasoning of its own: where that is not what was kept, nothing is put beside it. Where a text is not the one that was kept, its state is
left out, because it would belong to other words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from bardo.reasoning.replay.kept import Called, Kept, Other, Said, Thought
from bardo.reasoning.replay.keys import digest
from bardo.values.blocks import Block, Opaque, ReasoningBlock, TextBlock, ToolCallBlock, UnknownBlock


def merged(blocks: Sequence[Block], kept: Kept, *, with_others: bool = True) -> tuple[Block, ...]:
    """Return the blocks of a message with the reasoning and the state of `kept`, in the order of `kept`.

    `with_others`: blocks that only the provider's dialect knows are put back too, because the client's has no place for them.
    """
    texts = _texts([block for block in blocks if isinstance(block, TextBlock)], kept)
    calls = _calls([block for block in blocks if isinstance(block, ToolCallBlock)], kept)
    own = [block for block in blocks if isinstance(block, ReasoningBlock)]
    others: list[Block] = [
        block for block in blocks if not isinstance(block, TextBlock | ToolCallBlock | ReasoningBlock)
    ]
    placed: list[Block] = []
    spoken = any(isinstance(part, Said) for part in kept.parts)
    for part in kept.parts:
        if isinstance(part, Called) and not spoken:
            # Words the client added stand before the calls, where its own dialect has them.
            placed += texts.pop(0) if texts else ()
        match part:
            case Thought(block=block):
                placed.append(next((one for one in own if _same_thought(one, block)), block))
            case Said():
                placed += texts.pop(0) if texts else ()
            case Called(opaque=opaque):
                call = next(calls, None)
                placed += [] if call is None else [_with(call, opaque)]
            case Other(block=block):
                own_form = _own_form(block, others)
                placed += [block] if own_form is None and with_others else [own_form] if own_form is not None else []
    placed += [*others, *(text for left in texts for text in left), *calls]
    return tuple(placed)


def agrees(blocks: Sequence[Block], kept: Kept) -> bool:
    """Whether the reasoning that a client sent, if any, is that of `kept`."""
    own = [block for block in blocks if isinstance(block, ReasoningBlock) and (block.readable or block.opaque)]
    if not own:
        return True
    states = {state.data for state in kept.states}
    known = _letters(kept.readable)
    stateful = [block for block in own if block.opaque]
    if any(state.data not in states for block in stateful for state in block.opaque):
        return False
    if any(_letters(block.readable) not in known for block in stateful):
        return False
    plain = "".join(_letters(block.readable) for block in own if not block.opaque)
    return not plain or plain == known or (bool(stateful) and plain in known)


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


def _texts(texts: list[TextBlock], kept: Kept) -> list[list[Block]]:
    """Return the client's texts, cut as they were kept; where they are other texts, all of them in one place."""
    said = [part for part in kept.parts if isinstance(part, Said)]
    if len(texts) == len(said) and all(map(_is_said, texts, said)):
        return [[_with(text, part.opaque)] for text, part in zip(texts, said, strict=True)]
    whole = "".join(text.text for text in texts)
    if len(whole) == sum(part.length for part in said) and all(text.carried is None for text in texts):
        pieces = list(_cut(whole, said))
        if all(map(_is_said, pieces, said)):
            return [[piece] for piece in pieces]
    return [list(texts)] if texts else []


def _is_said(text: TextBlock, part: Said) -> bool:
    return len(text.text) == part.length and digest(text.text) == part.digest


def _cut(whole: str, said: Sequence[Said]) -> Iterator[TextBlock]:
    begin = 0
    for part in said:
        yield TextBlock(whole[begin : begin + part.length], part.opaque)
        begin += part.length


def _calls(calls: list[ToolCallBlock], kept: Kept) -> Iterator[ToolCallBlock]:
    """Return the client's calls in the order they were made in: by id, else as they come."""
    order = {part.id: place for place, part in enumerate(kept.parts) if isinstance(part, Called)}
    if all(call.id in order for call in calls):
        calls = sorted(calls, key=lambda call: order[call.id])
    return iter(calls)


def _with(block: TextBlock | ToolCallBlock, opaque: tuple[Opaque, ...]) -> Block:
    return msgspec.structs.replace(block, opaque=opaque) if opaque and not block.opaque else block
