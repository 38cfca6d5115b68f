"""What is kept of one reply for later turns: its reasoning and opaque state, and where between text and calls each of them stood.

Opaque state is always kept, readable thinking only while tools are being called: providers ask for plain thinking back in the turns of a
tool loop only, so a conversation without tools costs nothing here. Of a reply of a tool loop without thinking, the absence of thinking is
kept: a client may write its ids anew, and it is then like another conversation's reply.

The answer itself is not kept, only digests of its texts: the client has it. Blocks that only the reply's own dialect knows (what a
server's tools did) are kept, because most clients have no place for them and thinking is bound to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bardo.catalog.replay import Reader, ReplayRules, builtin_replay
from bardo.reasoning.replay.call_identity import stated_id
from bardo.reasoning.replay.keys import History, call_digest, digest, history_of, reply_keys, state_key
from bardo.reasoning.replay.prefix import Prefix, prefix_of
from bardo.values.blocks import (
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
        return [state for part in self.parts for state in _states(part)]

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


def _states(part: Part) -> tuple[Opaque, ...]:
    match part:
        case ThinkingRecord(block=block):
            return block.opaque
        case OtherRecord():
            return ()
        case _:
            return part.opaque


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
    """Return what is kept of each choice of a reply; nothing for most.

    `request` is the client's, `sent` what the provider got: with what was restored. `reader` made the reply. `fields` are those that
    the provider takes back unmodified, by choice. `own_ids`: the provider's dialect may leave ids out, so that an id it did give is noted.
    `shown` is the reply as the client got it, and so sends it back, where that is not what the provider said. `history` is what was found
    of the conversation of `request` before the reply; None where it is to be found.
    """
    known = rules or builtin_replay()
    choices = enumerate((response, *response.alternatives))
    worth = [
        (choice, one.blocks, is_worth)
        for choice, one in choices
        if (is_worth := _worth(one.blocks, request)) or _is_of_tools(one.blocks, request)
    ]
    if not worth or response.error is not None:
        return []
    history = history_of(request) if history is None else history
    prefix = prefix_of(sent) if known.of(reader).binding is not None else None
    returned = {} if shown is None else dict(enumerate(one.blocks for one in (shown, *shown.alternatives)))
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
    found = [_part(block, own_ids=own_ids) for block in blocks] if is_worth else []
    parts = [part for part in found if part is not None]
    kept = ReplyRecord(reader.origin(prefix.whole if prefix else ""), tuple(parts), prefix, fields)
    keys = [*reply_keys(history, returned), *(state_key(state) for state in kept.states)]
    return Memory(tuple(dict.fromkeys(keys)), kept, choice)


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
    """Leave the stamps out: what is kept has one for all."""
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
