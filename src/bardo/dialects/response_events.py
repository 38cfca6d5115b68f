"""A whole response as the events it would have arrived as, so that whole replies are encoded by what encodes streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bardo.dialects.losses import with_wrapped
from bardo.dialects.serial_encoder import SerialEncoder
from bardo.dialects.wire import INVALID_JSON, is_object
from bardo.values.blocks import (
    Carried,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    UnknownBlock,
    has_no_arguments,
)
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Extension,
    Finish,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.response import Response


def response_events(response: Response, *, bardo: dict[str, Any], alternatives: bool = False) -> list[Event]:
    """Return the events of a reply's first choice, with `alternatives` those of all. Totals come first.

    Within a block its fields come first, then the id of its thinking, its text, and its other opaque state. Opaque state of a text
    block comes before its text, as Gemini sends it. `bardo` is what bardo itself says at the end.
    """
    events: list[Event] = [
        ReplyStart(id=response.id, model=response.model, created=response.created),
        UsageUpdate(response.usage),
    ]
    if response.carried is not None:
        events.append(ReplyFields(response.carried.dialect, response.carried.fields))
    _add_choice(events, response, 0)
    if alternatives:
        for choice, other in enumerate(response.alternatives, 1):
            _add_choice(events, other, choice)
    if bardo:
        events.append(Extension(bardo))
    return events


def feed_response(
    encoder: SerialEncoder[Any, Any], response: Response, *, wraps: str = "", key: str = INVALID_JSON
) -> None:
    """Have an encoder write a whole reply into the collector that it has for frames; alternatives are left out.

    `wraps` names the field in which the dialect must have an object. Arguments that are none stand under `key` of one, which is reported.
    """
    bardo = response.bardo
    if wraps:
        calls = [block for block in response.blocks if isinstance(block, ToolCallBlock)]
        wrapped = [call for call in calls if not has_no_arguments(call.arguments) and not is_object(call.arguments)]
        bardo = with_wrapped(bardo, wrapped, what=wraps, key=key)
    for event in response_events(response, bardo=bardo):
        encoder.take(event)
    encoder.finish()


def _add_choice(events: list[Event], response: Response, choice: int) -> None:
    carried, finish = response.choice_carried, response.finish
    if carried is not None:
        events.append(ReplyFields(carried.dialect, carried.fields, choice))
    for number, block in enumerate(response.blocks):
        _ADD[type(block)](events, number, block, choice)
    events.append(Finish(finish.reason, finish.raw, finish.stop_sequence, choice))


def _add_text(events: list[Event], number: int, block: TextBlock, choice: int) -> None:
    _add_fields(events, number, block.carried, choice)
    if block.opaque:
        # The block begins before its state.
        events.append(ContentChunk(number, "", choice))
        events += [OpaqueState(number, state, choice) for state in block.opaque]
    events.append(ContentChunk(number, block.text, choice))


def _add_thinking(events: list[Event], number: int, block: ReasoningBlock, choice: int) -> None:
    events.append(ThinkStart(number, block.format, choice))
    _add_fields(events, number, block.carried, choice)
    events += [OpaqueState(number, state, choice) for state in block.opaque if state.kind == "id"]
    if block.text:
        events.append(ThinkChunk(number, block.text, None, choice))
    for part, text in enumerate(block.summary):
        events.append(ThinkChunk(number, text, part, choice))
    events += [OpaqueState(number, state, choice) for state in block.opaque if state.kind != "id"]
    events.append(ThinkEnd(number, choice))


def _add_call(events: list[Event], number: int, block: ToolCallBlock, choice: int) -> None:
    events.append(ToolCallStart(number, block.id, block.name, choice))
    _add_fields(events, number, block.carried, choice)
    events.append(ToolCallChunk(number, block.arguments, choice))
    events += [OpaqueState(number, state, choice) for state in block.opaque]
    events.append(ToolCallEnd(number, choice))


def _add_refusal(events: list[Event], number: int, block: RefusalBlock, choice: int) -> None:
    _add_fields(events, number, block.carried, choice)
    events.append(RefusalChunk(number, block.text, choice))


def _add_unknown(events: list[Event], number: int, block: UnknownBlock, choice: int) -> None:
    events.append(UnknownContent(number, block.dialect, block.value, choice))


def _add_fields(events: list[Event], number: int, carried: Carried | None, choice: int) -> None:
    if carried is not None:
        events.append(BlockFields(number, carried.dialect, carried.fields, choice))


_ADD: dict[type, Callable[[list[Event], int, Any, int], None]] = {
    TextBlock: _add_text,
    ReasoningBlock: _add_thinking,
    ToolCallBlock: _add_call,
    RefusalBlock: _add_refusal,
    UnknownBlock: _add_unknown,
}
