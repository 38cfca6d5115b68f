"""The thinking of one choice, from whichever field it stands in, and back into the fields of this dialect.

Hosts repeat the same text in `reasoning`, `reasoning_content` and `reasoning_details`, so within one delta one of them is read: the details
where they hold text, else the first plain field. Written is `reasoning_content` for everyone, and `reasoning_details` where there is more
to tell than text. Source: the recordings of OpenRouter, Vercel's gateway, Venice, MiniMax and Snowflake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Protocol

import msgspec
from msgspec import UNSET

from bardo.dialects.openai_chat.calls import OpenBlock
from bardo.dialects.openai_chat.wire import ANTHROPIC, BEDROCK, NAME, PLAIN_FORMATS, Detail, ReplyMessage
from bardo.dialects.shared.json_values import JsonObject
from bardo.dialects.shared.reply_structs import held, read_liberally
from bardo.dialects.shared.structs import Others
from bardo.values.blocks import Carried, Opaque, ReasoningBlock, fields_for
from bardo.values.events import BlockFields, Event, OpaqueState, ThinkChunk, ThinkEnd, ThinkStart
from bardo.values.runs import JoinedText

BLANK_LINE = "\n\n"
UNKNOWN = "unknown"
FORMAT = "thinking_blocks"
"""LiteLLM's form of signed thinking, and the format of such blocks."""

_TYPES = frozenset({"reasoning.text", "reasoning.summary", "reasoning.encrypted"})
_NAMES = tuple(name for name in Detail.__struct_fields__ if name != "others")
_values_of = attrgetter(*_NAMES)


def summary_of(detail: Detail) -> str:
    """Return a piece's summary; the blank line before a further part is not of it."""
    if not detail.summary:
        return ""
    return detail.summary.removeprefix(BLANK_LINE) if part_of(detail) else detail.summary


def part_of(detail: Detail) -> int | None:
    """Return which part of a summary a piece begins, where it says so."""
    part = detail.part
    return part if isinstance(part, int) and 0 <= part < 1 << 20 else None


def opaque_of(detail: Detail, style: str) -> list[Opaque]:
    """Return a piece's id, signature and ciphertext."""
    states = [Opaque("id", detail.id, style)] if detail.id else []
    if detail.signature:
        states.append(Opaque("signature", detail.signature, style))
    if detail.data:
        # The redacted blocks of Anthropic, and of Bedrock, travel as encrypted pieces.
        states.append(Opaque("redacted" if style in (ANTHROPIC, BEDROCK) else "encrypted", detail.data, style))
    return states


def rest_of(detail: Detail) -> JsonObject:
    """Return what a piece says beside that: further fields, and a type of its own."""
    rest: JsonObject = {}
    if detail.others is not None:
        rest = {name: value for name, value in detail.others.items() if name not in _NAMES and value is not None}
    if isinstance(detail.type, str) and detail.type not in _TYPES:
        rest["type"] = detail.type
    return rest


def as_it_came(detail: Detail) -> JsonObject:
    """Return the object that a piece was read from."""
    fields = {name: value for name, value in zip(_NAMES, _values_of(detail), strict=True) if value is not UNSET}
    return fields | (detail.others or {})


class PlacedDetail(msgspec.Struct, frozen=True):
    """A block of thinking, and how many characters of the content and how many calls stand before it."""

    block: ReasoningBlock
    characters: int = 0
    calls: int = 0


def decode_details(details: Sequence[JsonObject | Detail]) -> list[PlacedDetail]:
    """Return the blocks of a whole list of pieces: those with one index, in a row, are one block, and so are those with a `part`.

    Clients that join fragments by index (OpenAI's library does, string by string) get one piece that is all types at once.
    """
    blocks: list[list[Detail]] = []
    latest: object = None
    for item in details:
        detail = item if isinstance(item, Detail) else read_liberally(item, Detail)
        index = held(detail, "index")
        if blocks and ((index == latest and index not in (None, UNSET)) or part_of(detail) is not None):
            blocks[-1].append(detail)
        else:
            blocks.append([detail])
        latest = index
    return [_decode_detail(pieces) for pieces in blocks]


def _decode_detail(pieces: Sequence[Detail]) -> PlacedDetail:
    """Return the block that some pieces are, in the place that the first of them says which says one."""
    style = pieces[0].format or UNKNOWN
    rest: JsonObject = {}
    states: list[Opaque] = []
    texts: list[str] = []
    parts: dict[int, str] = {}
    number = 0
    position: dict[str, object] | None = None
    for piece in pieces:
        if piece.text:
            texts.append(piece.text)
        if piece.others is not None or piece.type not in _TYPES:
            rest |= rest_of(piece)
        states += opaque_of(piece, piece.format or style)
        if piece.part is not UNSET or piece.summary:
            part = part_of(piece)
            number = number if part is None else part
            if text := summary_of(piece):
                parts[number] = parts.get(number, "") + text
        if position is None and isinstance(piece.position, dict):
            position = piece.position
    block = ReasoningBlock(
        text=texts[0] if len(texts) == 1 else "".join(texts),
        summary=tuple([parts[number] for number in sorted(parts)]) if parts else (),
        format=style,
        opaque=tuple(dict.fromkeys(states)) if len(states) > 1 else tuple(states),
        carried=Carried(NAME, rest) if rest else None,
    )
    if not position:
        return PlacedDetail(block)
    counts = [position.get("content"), position.get("tool_calls")]
    return PlacedDetail(block, *[count if type(count) is int and count > 0 else 0 for count in counts])


def plain_before(text: str, readable: Sequence[str]) -> str:
    """Return the thinking in a plain field that stands before what the details say of it, "" where they say all."""
    behind = BLANK_LINE + BLANK_LINE.join(readable)
    return text.removesuffix(behind) if text.endswith(behind) else ""


class ThinkingBlocks:
    """Gives LiteLLM's `thinking_blocks` of one reply as pieces, whose index tells one block from the next.

    A message lists blocks as Anthropic writes them (`thinking` with a `signature`, `redacted_thinking` with `data`). A delta has one block
    with a piece of its text, and the signature comes alone at its end. The blocks go back in the message of the next request.
    Source: docs.litellm.ai, "Thinking / Reasoning Content", 2026-11.
    """

    __slots__ = ("_ended", "_index")

    def __init__(self) -> None:
        self._index = 0
        self._ended = False

    def pieces(self, blocks: Iterable[object]) -> list[Detail]:
        """Return the pieces of a message or a delta."""
        details_found: list[Detail] = []
        for block in blocks:
            beside = {**block} if isinstance(block, dict) else {FORMAT: block}
            # In a stream, a signature that is still to come is null: it says nothing, and no field of the block's keeps it.
            text, signature, data = (
                str(beside.pop(name, None) or "") if isinstance(beside.get(name), str | None) else ""
                for name in ("thinking", "signature", "data")
            )
            kind = "reasoning.encrypted" if data else "reasoning.text"
            if isinstance(named := beside.pop("type", None), str) and named not in ("thinking", "redacted_thinking"):
                kind = named
            # Names that a piece has for something else stand under the name of the field.
            others = Others({name: value for name, value in beside.items() if name not in _NAMES})
            if len(others) < len(beside):
                others[FORMAT] = {name: value for name, value in beside.items() if name in _NAMES}
            if not (text or signature or data or kind == named or any(value is not None for value in others.values())):
                continue
            if self._ended:
                self._index += 1
            # A signature ends its block, and so does what has no text.
            self._ended = bool(signature or data)
            details_found.append(
                Detail(
                    type=kind,
                    text=text if text or not data else UNSET,
                    signature=signature or UNSET,
                    data=data or UNSET,
                    format=FORMAT,
                    index=self._index,
                    others=others or None,
                )
            )
        return details_found


Key = int | str


class ThinkingReader:
    """Reads thinking into blocks; `open_block` is shared with whatever reads the rest of the choice."""

    __slots__ = ("_ids", "_latest", "_latest_fields", "_open", "_threads", "_unclaimed")

    def __init__(self, open_block: OpenBlock) -> None:
        self._open = open_block
        self._threads: dict[Key, _Thread] = {}
        # What was told of each block beside its text: MiniMax repeats its ids in every fragment.
        self._latest_fields: dict[tuple[int, str], object] = {}
        self._latest: Key = -1
        # The ids of a whole message's blocks, which streams of Responses must name first.
        self._ids: dict[Key, Opaque] | None = None
        # The latest block that was read from a plain field, as long as no detail has named it.
        self._unclaimed = -1

    def plain(self, text: str, field: str) -> list[Event]:
        """Take text of a plain field, or of a content part."""
        events: list[Event] = []
        if self._open.kind != "think":
            events = self._open.begin_thinking(field)
            self._unclaimed = self._open.number
        events.append(ThinkChunk(self._open.number, text, None, self._open.choice))
        return events

    def plain_before(self, text: str, field: str) -> list[Event]:
        """Take text of a plain field that no detail repeats."""
        events = self.plain(text, field)
        self._unclaimed = -1
        return events

    def details(self, details: Sequence[Detail | None], *, whole: bool) -> list[Event]:
        """Take the details of one delta, or of a whole message, whose summaries come as whole parts."""
        events: list[Event] = []
        summaries: set[Key] = set()
        self._ids = _ids_of(details) if whole else None
        for position, detail in enumerate(details):
            if detail is None:
                continue
            key = _key(detail, position)
            latest, part = self._threads.get(self._latest), part_of(detail)
            thread = self._threads.setdefault(key, _Thread())
            if part is not None:
                thread.part = part
                if thread.block is None and latest is not None:
                    # It goes on with the block of the detail before, whatever its key.
                    thread.block = latest.block
            elif whole and key in summaries:
                thread.part += 1
            if summary_of(detail):
                summaries.add(key)
            self._latest = key
            events += self._detail(detail, key, thread)
        return events

    def _detail(self, detail: Detail, key: Key, thread: _Thread) -> list[Event]:
        # Later fragments of a block may leave out whose it is.
        style = thread.style = detail.format or thread.style
        text, summary = detail.text or "", summary_of(detail)
        states, rest = opaque_of(detail, style), rest_of(detail)
        if not (text or summary or states or rest):
            return []
        choice = self._open.choice
        named = bool(states) and all(state.kind == "id" for state in states)
        events, block = self._block(thread, text or summary, named=named)
        own = self._ids.pop(key, None) if self._ids else None
        if own is not None and self._is_new(block, "id", own.data):
            events.append(OpaqueState(block, own, choice))
        if text:
            events.append(ThinkChunk(block, text, None, choice))
        if summary:
            events.append(ThinkChunk(block, summary, thread.part, choice))
        events += [OpaqueState(block, state, choice) for state in states if self._is_new(block, state.kind, state.data)]
        fresh = {name: value for name, value in rest.items() if self._is_new(block, f"rest.{name}", value)}
        if fresh:
            events.append(BlockFields(block, NAME, fresh, choice))
        return events

    def _is_new(self, block: int, name: str, value: object) -> bool:
        if self._latest_fields.get((block, name)) == value:
            return False
        self._latest_fields[block, name] = value
        return True

    def _block(self, thread: _Thread, text: str, *, named: bool) -> tuple[list[Event], int]:
        """Return the block a detail belongs to, and what begins it where it is new."""
        block = thread.block
        thinking = self._open.kind == "think"
        if block is not None and (thinking or not text):
            return [], block
        if block is None and self._unclaimed >= 0 and (not text or (thinking and self._open.number == self._unclaimed)):
            block = thread.block = self._unclaimed
            self._unclaimed = -1
            return [], block
        # A name alone announces a block whose text comes next (MiniMax).
        if text or (named and self._open.kind in ("", "think")):
            events = self._open.begin_thinking(thread.style)
            thread.block = self._open.number
            return events, self._open.number
        late = thread.block = self._open.fresh()
        return [ThinkStart(late, thread.style, self._open.choice), ThinkEnd(late, self._open.choice)], late


class _Thread:
    """The details with one index: the block that they belong to, where it has begun, the part of its summary, and whose they are."""

    __slots__ = ("block", "part", "style")

    def __init__(self) -> None:
        self.block: int | None = None
        self.part = 0
        self.style = UNKNOWN


def hold_text(details: Iterable[Detail | None]) -> bool:
    """Whether any of these details holds text."""
    return any(detail is not None and (detail.text or summary_of(detail)) for detail in details)


def _ids_of(details: Sequence[Detail | None]) -> dict[Key, Opaque]:
    """Return the ids in the details of a whole message, by the keys of their blocks."""
    return {
        _key(detail, position): Opaque("id", detail.id, detail.format or UNKNOWN)
        for position, detail in enumerate(details)
        if detail is not None and detail.id
    }


def _key(detail: Detail, position: int) -> Key:
    return detail.index if isinstance(detail.index, int | str) else position


_TEXTS = {"reasoning.text": "text", "reasoning.summary": "summary"}


class ReturnedDetails:
    """Collects `reasoning_details` as the host takes them back: fragments of a stream joined, all else unmodified and in order.

    Nothing is returned where it cannot be told which of them a repeated frame continued.
    """

    # OpenRouter: "the entire sequence of consecutive reasoning blocks must match the outputs generated by the model during the original
    # request; you cannot rearrange or modify the sequence of these blocks" (openrouter.ai/docs, Reasoning tokens, 2026-11-20).

    def __init__(self) -> None:
        self._pieces: list[JsonObject] = []
        self._texts: list[JoinedText] = []
        self._beside = False
        self._repeated = False

    def take(self, delta: ReplyMessage, *, whole: bool) -> None:
        """Take one delta, or a whole message."""
        details = delta.reasoning_details
        pieces = [as_it_came(detail) for detail in details if detail is not None] if isinstance(details, list) else []
        for detail in pieces:
            last = self._pieces[-1] if self._pieces else {}
            place = (detail.get("type"), detail.get("index"))
            if whole or str(place[0]) not in _TEXTS or place != (last.get("type"), last.get("index")):
                self._pieces.append(detail)
                self._texts.append(JoinedText())
            else:
                self._join(detail)
        if not pieces and (delta.reasoning or delta.reasoning_content):
            self._beside = True

    def more(self, text: str) -> None:
        """Take a further piece of text, of a frame that is the one before over again."""
        self._repeated = True
        if self._texts:
            self._texts[-1].add(text)

    def pieces(self) -> list[JsonObject]:
        """Return the details."""
        if self._beside and self._repeated:
            return []
        return [self._whole(piece, further) for piece, further in zip(self._pieces, self._texts, strict=True)]

    def _join(self, detail: JsonObject) -> None:
        last, field = self._pieces[-1], _TEXTS[str(detail["type"])]
        for name, value in detail.items():
            if name == field and isinstance(value, str) and isinstance(last.get(name), str):
                self._texts[-1].add(value)
            elif value is not None or name not in last:
                last[name] = value

    def _whole(self, piece: JsonObject, further: JoinedText) -> JsonObject:
        field = _TEXTS.get(str(piece.get("type")), "")
        return {**piece, field: f"{piece[field]}{further.text()}"} if further and field in piece else dict(piece)


def piece_of_text(text: str, part: int | None) -> JsonObject:
    """Return a piece of text, or of one part of a summary."""
    if part is None:
        return {"type": "reasoning.text", "text": text}
    if part == 0:
        return {"type": "reasoning.summary", "summary": text}
    return {"type": "reasoning.summary", "summary": BLANK_LINE + text, "part": part}


def piece_of_state(state: Opaque) -> JsonObject:
    """Return a piece that holds nothing but opaque state."""
    match state.kind:
        case "signature":
            return {"type": "reasoning.text", "signature": state.data}
        case "id":
            return {"type": "reasoning.text", "text": "", "id": state.data}
        case _:
            return {"type": "reasoning.encrypted", "data": state.data}


def is_bare(piece: JsonObject) -> bool:
    """Return whether a piece holds no content, so that it may stand in a piece of any type."""
    return not (piece.get("text") or piece.get("summary") or "data" in piece or "signature" in piece)


def encode_position(characters: int, calls: int) -> JsonObject:
    """Return the field that says what stands before a block; nothing where that is nothing."""
    return {"position": {"content": characters, "tool_calls": calls}} if characters or calls else {}


def encode_details(block: ReasoningBlock, index: int, position: JsonObject | None = None) -> list[JsonObject]:
    """Return the pieces of one whole block. `position` is what `encode_position` gave."""
    style = block.format or UNKNOWN
    pieces: list[JsonObject] = []
    if block.text:
        pieces.append({"type": "reasoning.text", "text": block.text, "format": style, "index": index})
    for number, part in enumerate(block.summary):
        pieces.append({**piece_of_text(part, number), "format": style, "index": index})
    # An id goes to what stands before it.
    for state in block.opaque if len(block.opaque) < 2 else sorted(block.opaque, key=lambda state: state.kind == "id"):
        _add_state(pieces, state, index)
    if rest := fields_for(NAME, block.carried):
        pieces = pieces or [{"type": "reasoning.text", "format": style, "index": index}]
        pieces[0] = {**pieces[0], **rest}
    if position and pieces:
        pieces[0] = {**pieces[0], **position}
    return pieces


def replay_details(block: ReasoningBlock, index: int) -> list[JsonObject]:
    """Return the pieces of one whole block as OpenRouter takes them back: without the names that are bardo's own."""
    pieces = encode_details(block, index)
    for piece in pieces:
        if piece.pop("part", None):
            piece["summary"] = piece["summary"].removeprefix(BLANK_LINE)
        piece["format"] = UNKNOWN if piece["format"] in PLAIN_FORMATS else piece["format"]
    return pieces


def _add_state(pieces: list[JsonObject], state: Opaque, index: int) -> None:
    """Put a signature on the text and an id on the ciphertext, where there are such; else it is a piece of its own."""
    style = state.format or UNKNOWN
    first, last = (pieces[0], pieces[-1]) if pieces else ({}, {})
    if state.kind == "signature" and first.get("format") == style and "text" in first and "signature" not in first:
        first["signature"] = state.data
    elif state.kind == "id" and last.get("format") == style and "id" not in last:
        last["id"] = state.data
    else:
        pieces.append({**piece_of_state(state), "format": style, "index": index})


def replay_blocks(thoughts: Sequence[ReasoningBlock]) -> list[JsonObject]:
    """Return the blocks as LiteLLM takes them back: those alone that its own servers signed."""
    blocks: list[JsonObject] = []
    for thought in thoughts:
        beside = {**fields_for(NAME, thought.carried)}
        if isinstance(beside.get(FORMAT), dict):
            beside |= beside.pop(FORMAT)
        for state in thought.opaque:
            if state.format != FORMAT:
                continue
            if state.kind == "signature":
                blocks.append({"type": "thinking", "thinking": thought.text, "signature": state.data, **beside})
            elif state.kind in ("encrypted", "redacted"):
                blocks.append({"type": "redacted_thinking", "data": state.data, **beside})
    return blocks


Place = tuple[int, int]
_STATES = frozenset({"signature", "data", "id"})


class Deltas(Protocol):
    """A reader of the deltas of thinking."""

    def thinking(self, choice: int, text: str) -> Sequence[bytes]:
        """Take thinking of which only the text is known."""
        ...

    def detailed_thinking(self, choice: int, text: str, index: int) -> Sequence[bytes]:
        """Take text that goes on with the piece `index` of the details."""
        ...

    def add(self, choice: int, delta: JsonObject) -> Sequence[bytes]:
        """Take a delta."""
        ...


class ThinkingWriter:
    """Writes thinking into `deltas`; `pending_states` says whether opaque state waits to be written.

    `detail_index` is that of the details of the block that `repeats`, -1 where it has none.

    Clients join the pieces of one index, string by string: the format of a block stands in the first piece of an index only, and what must
    not be joined, a piece of another type among it, has an index of its own with a `part`. Opaque state is written when the block is left:
    until then a later state of the same kind takes its place (OpenAI sends a provisional ciphertext first).
    """

    def __init__(self, deltas: Deltas) -> None:
        self._deltas = deltas
        self._formats: dict[Place, str] = {}
        self._plain: set[Place] = set()
        self._last: dict[int, int] = {}
        # Of each block: the index of its latest piece, the format named under it, the type of what it holds ("" as long as that is
        # nothing), and the state already written under it.
        self._indexes: dict[Place, int] = {}
        self._named: dict[Place, str] = {}
        self._types: dict[Place, str] = {}
        self._states: dict[Place, set[str]] = {}
        self._parts: dict[Place, int] = {}
        self._positions: dict[Place, JsonObject] = {}
        self._counts: dict[int, int] = {}
        self._repeats_block = self._repeats_choice = self.detail_index = -1
        self.pending_states: dict[Place, dict[str, Opaque]] = {}

    def knows(self, place: Place) -> bool:
        """Whether the block is one of thinking."""
        return place in self._formats

    def start(self, item: ThinkStart, position: JsonObject) -> None:
        """Take a block's format, and what stands before it."""
        place = (item.choice, item.block)
        self._repeats_block = -1
        self._formats[place] = item.format
        if item.format in PLAIN_FORMATS and item.choice not in self._counts and item.choice not in self._last:
            # A further stretch begins with a blank line here, so its very text stands in the details.
            self._plain.add(place)
        if position:
            self._positions[place] = position

    def chunk(self, item: ThinkChunk) -> Sequence[bytes]:
        """Write a piece of text: one that says nothing is no piece of it, as in a whole reply."""
        if not item.text and item.part is None:
            self._formats.setdefault((item.choice, item.block), "")
            return ()
        if self.repeats(item):
            if self.detail_index < 0:
                return self._deltas.thinking(item.choice, item.text)
            return self._deltas.detailed_thinking(item.choice, item.text, self.detail_index)
        place = (item.choice, item.block)
        gap = self._gap(item)
        if item.part is None and place in self._plain:
            self._repeat(place, -1)
            return self._deltas.thinking(item.choice, gap + item.text)
        delta = self._detailed(place, item, gap)
        if item.part is None and item.text:
            self._repeat(place, self._indexes[place])
        return self._deltas.add(item.choice, delta)

    def repeats(self, item: ThinkChunk) -> bool:
        """Whether a piece of text that says something is written without a look at anything else."""
        return item.block == self._repeats_block and item.choice == self._repeats_choice and item.part is None

    def _repeat(self, place: Place, index: int) -> None:
        self._repeats_choice, self._repeats_block = place
        self.detail_index = index

    def _detailed(self, place: Place, item: ThinkChunk, gap: str) -> JsonObject:
        further = item.part is not None and place in self._named and self._parts.get(place, 0) != item.part
        self._parts[place] = item.part or 0
        piece = piece_of_text(item.text, item.part if further or item.part is None else 0)
        text = gap + item.text if gap else piece.get("summary") or item.text
        style = self._formats.setdefault(place, "")
        return {"reasoning_content": text, "reasoning_details": [self._piece(place, piece, style, apart=further)]}

    def _gap(self, item: ThinkChunk) -> str:
        """Return the blank line between two stretches of thinking, for those who read them as one text: others read the details."""
        before = self._last.get(item.choice, item.block)
        if item.text:
            self._last[item.choice] = item.block
        self._repeats_block = -1
        return BLANK_LINE if item.text and before != item.block else ""

    def hold(self, item: OpaqueState) -> None:
        """Take opaque state of a block."""
        states = self.pending_states.setdefault((item.choice, item.block), {})
        kind = item.opaque.kind
        states[f"{kind} {len(states)}" if kind == "redacted" else kind] = item.opaque

    def release(self, current: Place | None) -> list[bytes]:
        """Write all state that was held, but for the block that is being written."""
        out: list[bytes] = []
        for place in [place for place in self.pending_states if place != current]:
            pieces = [
                self._piece(place, piece, style)
                for style, piece in _state_pieces(self.pending_states.pop(place).values())
            ]
            out += self._deltas.add(place[0], {"reasoning_details": pieces})
        return out

    def fields(self, item: BlockFields) -> Sequence[bytes]:
        """Write further fields of a block."""
        place = (item.choice, item.block)
        piece = {"type": "reasoning.text", **item.fields}
        return self._deltas.add(item.choice, {"reasoning_details": [self._piece(place, piece, self._formats[place])]})

    def _piece(self, place: Place, piece: JsonObject, style: str, *, apart: bool = False) -> JsonObject:
        self._repeats_block = -1
        style = style or UNKNOWN
        named, states = self._named.get(place), piece.keys() & _STATES
        held, kind = self._types.get(place, ""), "" if is_bare(piece) else piece["type"]
        joins = named == style and not apart and not (states & self._states[place])
        if joins and (not held or not kind or held == kind):
            if held and not kind:
                # What holds nothing is no further type: clients keep the last that they read.
                piece = {name: value for name, value in piece.items() if name not in ("text", "summary")} | {
                    "type": held
                }
            self._types[place] = kind or held
            self._states[place] |= states
            return {**piece, "index": self._indexes[place]}
        index = self._indexes[place] = self._counts.get(place[0], 0)
        self._counts[place[0]] = index + 1
        self._named[place], self._states[place], self._types[place] = style, set(states), kind
        added = self._positions.pop(place, {}) if named is None else {"part": self._parts.get(place, 0)}
        return {**piece, **added, "format": style, "index": index}


def _state_pieces(states: Iterable[Opaque]) -> Iterator[tuple[str, JsonObject]]:
    """Yield the pieces of a block's state with their formats. Its id stands on the first of them that is of its format."""
    ids = {state.format: state.data for state in states if state.kind == "id"}
    for state in states:
        if state.kind != "id":
            own = {"id": ids.pop(state.format)} if state.format in ids else {}
            yield state.format, {**piece_of_state(state), **own}
    for style, data in ids.items():
        yield style, piece_of_state(Opaque("id", data, style))
