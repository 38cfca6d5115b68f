"""The thinking of one choice, from whichever field it stands in.

Hosts repeat the same text in `reasoning`, `reasoning_content` and `reasoning_details`, so within one delta one of them is read: the details
where they hold text, else the first plain field. Over a stream they may take turns. Details say more than text: whose it is, and
signatures and ciphertext, which may come after the answer and belong to the thinking that was read before.

`reasoning_details`: OpenRouter's typed pieces of reasoning, which several hosts share.

A piece is `reasoning.text` (text, maybe a signature), `reasoning.summary` or `reasoning.encrypted`; in streams each is a fragment, and the
pieces of one block share an `index`. Clients that join fragments by index (OpenAI's library does, string by string) get one piece that is
all of these at once; it is read as well. bardo's own names are `part`: a piece with it belongs to the block before it, whatever its index,
and a part above 0 begins a further part of the summary, after a blank line; and `position`: how many characters of the content and how many
calls stand before a block, where any do.
Source: the recordings of OpenRouter, Vercel's gateway, Venice, MiniMax and Snowflake.

`thinking_blocks`: LiteLLM's form of signed thinking, beside the same text in `reasoning_content`.

A message lists blocks as Anthropic writes them (`thinking` with a `signature`, `redacted_thinking` with `data`). A delta has one block
with a piece of its text, and the signature comes alone at its end. The blocks go back in the message of the next request.
Source: docs.litellm.ai, "Thinking / Reasoning Content", 2026-11.

Encode the thinking of one reply: `reasoning_content` for everyone, `reasoning_details` where there is more to tell than text.

Clients join the pieces of one index, string by string: the format of a block stands in the first piece of an index only, and what must not
be joined, a piece of another type among it, has an index of its own with a `part`. Opaque state is written when the block is left: until
then a later state of the same kind takes its place (OpenAI sends a provisional ciphertext first).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import msgspec

from bardo.dialects.openai_chat.calls import OpenBlock
from bardo.dialects.openai_chat.wire import ANTHROPIC, BEDROCK, NAME, PLAIN_FORMATS
from bardo.values.blocks import Carried, Opaque, OpaqueKind, ReasoningBlock, fields_for
from bardo.values.events import BlockFields, Event, OpaqueState, ThinkChunk, ThinkEnd, ThinkStart

BLANK_LINE = "\n\n"
UNKNOWN = "unknown"
_TYPES = frozenset({"reasoning.text", "reasoning.summary", "reasoning.encrypted"})
_READ = frozenset({"type", "text", "summary", "signature", "data", "id", "format", "index", "part", "position"})


def text_of(detail: dict[str, Any]) -> str:
    """Return a piece's full text."""
    text = detail.get("text")
    return text if isinstance(text, str) else ""


def summary_of(detail: dict[str, Any]) -> str:
    """Return a piece's summary; the blank line before a further part is not of it."""
    summary = detail.get("summary")
    if not isinstance(summary, str):
        return ""
    return summary.removeprefix(BLANK_LINE) if part_of(detail) else summary


def part_of(detail: dict[str, Any]) -> int | None:
    """Return which part of a summary a piece begins, where it says so."""
    part = detail.get("part")
    return part if isinstance(part, int) and not isinstance(part, bool) and 0 <= part < 1 << 20 else None


def format_of(detail: dict[str, Any], otherwise: str = UNKNOWN) -> str:
    """Return whose piece it is; later fragments of a block may leave that out."""
    style = detail.get("format")
    return style if isinstance(style, str) and style else otherwise


def opaque_of(detail: dict[str, Any], style: str) -> list[Opaque]:
    """Return a piece's id, signature and ciphertext."""
    # The redacted blocks of Anthropic, and of Bedrock, travel as encrypted pieces.
    data: OpaqueKind = "redacted" if style in (ANTHROPIC, BEDROCK) else "encrypted"
    fields: tuple[tuple[str, OpaqueKind], ...] = (("id", "id"), ("signature", "signature"), ("data", data))
    return [
        Opaque(kind, value, style) for field, kind in fields if isinstance(value := detail.get(field), str) and value
    ]


def rest_of(detail: dict[str, Any]) -> dict[str, Any]:
    """Return what a piece says beside that: further fields, and a type of its own."""
    rest = {name: value for name, value in detail.items() if name not in _READ and value is not None}
    kind = detail.get("type")
    return rest | ({"type": kind} if isinstance(kind, str) and kind not in _TYPES else {})


def piece_of_text(text: str, part: int | None) -> dict[str, Any]:
    """Return a piece of text, or of one part of a summary."""
    if part is None:
        return {"type": "reasoning.text", "text": text}
    if part == 0:
        return {"type": "reasoning.summary", "summary": text}
    return {"type": "reasoning.summary", "summary": BLANK_LINE + text, "part": part}


def piece_of_state(state: Opaque) -> dict[str, Any]:
    """Return a piece that holds nothing but opaque state."""
    match state.kind:
        case "signature":
            return {"type": "reasoning.text", "signature": state.data}
        case "id":
            return {"type": "reasoning.text", "text": "", "id": state.data}
        case _:
            return {"type": "reasoning.encrypted", "data": state.data}


def is_bare(piece: dict[str, Any]) -> bool:
    """Return whether a piece holds no content, so that it may stand in a piece of any type."""
    return not (piece.get("text") or piece.get("summary") or "data" in piece or "signature" in piece)


def encode_position(characters: int, calls: int) -> dict[str, Any]:
    """Return the field that says what stands before a block; nothing where that is nothing."""
    return {"position": {"content": characters, "tool_calls": calls}} if characters or calls else {}


def encode_details(block: ReasoningBlock, index: int, position: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return the pieces of one whole block. `position` is what `encode_position` gave."""
    named = {"format": block.format or UNKNOWN, "index": index}
    pieces = [{**piece_of_text(block.text, None), **named}] if block.text else []
    pieces += [{**piece_of_text(part, number), **named} for number, part in enumerate(block.summary)]
    for state in sorted(block.opaque, key=lambda state: state.kind == "id"):
        _add_state(pieces, state, index)
    rest = fields_for(NAME, block.carried)
    if rest:
        pieces = pieces or [{"type": "reasoning.text", **named}]
        pieces[0] = {**pieces[0], **rest}
    if position and pieces:
        pieces[0] = {**pieces[0], **position}
    return pieces


def replay_details(block: ReasoningBlock, index: int) -> list[dict[str, Any]]:
    """Return the pieces of one whole block as OpenRouter takes them back: without the names that are bardo's own."""
    pieces = encode_details(block, index)
    for piece in pieces:
        if piece.pop("part", None):
            piece["summary"] = piece["summary"].removeprefix(BLANK_LINE)
        piece["format"] = UNKNOWN if piece["format"] in PLAIN_FORMATS else piece["format"]
    return pieces


def _add_state(pieces: list[dict[str, Any]], state: Opaque, index: int) -> None:
    """Put a signature on the text and an id on the ciphertext, where there are such; else it is a piece of its own."""
    style = state.format or UNKNOWN
    first, last = (pieces[0], pieces[-1]) if pieces else ({}, {})
    if state.kind == "signature" and first.get("format") == style and "text" in first and "signature" not in first:
        first["signature"] = state.data
    elif state.kind == "id" and last.get("format") == style and "id" not in last:
        last["id"] = state.data
    else:
        pieces.append({**piece_of_state(state), "format": style, "index": index})


class PlacedDetail(msgspec.Struct, frozen=True):
    """A block of thinking, and how many characters of the content and how many calls stand before it."""

    block: ReasoningBlock
    characters: int = 0
    calls: int = 0


def decode_details(details: Sequence[dict[str, Any]]) -> list[PlacedDetail]:
    """Return the blocks of a whole list of pieces: those with one index, in a row, are one block, and so are those with a `part`."""
    blocks: list[list[dict[str, Any]]] = []
    for detail in details:
        index = detail.get("index")
        same = index is not None and bool(blocks) and blocks[-1][-1].get("index") == index
        if same or (blocks and part_of(detail) is not None):
            blocks[-1].append(detail)
        else:
            blocks.append([detail])
    return [PlacedDetail(_block(pieces), *_position(pieces)) for pieces in blocks]


def plain_before(text: str, readable: Sequence[str]) -> str:
    """Return the thinking in a plain field that stands before what the details say of it, "" where they say all."""
    behind = BLANK_LINE + BLANK_LINE.join(readable)
    return text.removesuffix(behind) if text.endswith(behind) else ""


def _position(pieces: Sequence[dict[str, Any]]) -> tuple[int, int]:
    said = next((found for piece in pieces if isinstance(found := piece.get("position"), dict)), {})
    counts = (said.get("content"), said.get("tool_calls"))
    characters, calls = (count if type(count) is int and count > 0 else 0 for count in counts)
    return characters, calls


def _block(pieces: list[dict[str, Any]]) -> ReasoningBlock:
    style = format_of(pieces[0])
    rest = {name: value for piece in pieces for name, value in rest_of(piece).items()}
    states = [state for piece in pieces for state in opaque_of(piece, format_of(piece, style))]
    return ReasoningBlock(
        text="".join(map(text_of, pieces)),
        summary=_summary(pieces),
        format=style,
        opaque=tuple(dict.fromkeys(states)),
        carried=Carried(NAME, rest) if rest else None,
    )


def _summary(pieces: list[dict[str, Any]]) -> tuple[str, ...]:
    parts: dict[int, str] = {}
    number = 0
    for piece in pieces:
        part = part_of(piece)
        number = number if part is None else part
        text = summary_of(piece)
        if text:
            parts[number] = parts.get(number, "") + text
    return tuple(parts[number] for number in sorted(parts))


Key = int | str


class ThinkingReader:
    """Reads thinking into blocks; `open_block` is shared with whatever reads the rest of the choice."""

    def __init__(self, open_block: OpenBlock) -> None:
        self._open = open_block
        self._blocks: dict[Key, int] = {}
        self._parts: dict[Key, int] = {}
        self._styles: dict[Key, str] = {}
        self._said: dict[tuple[int, str], Any] = {}
        self._latest: Key = -1
        # The ids of a whole message's blocks, which streams of Responses must name first.
        self._ids: dict[Key, Opaque] = {}
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

    def details(self, details: list[Any], *, whole: bool) -> list[Event]:
        """Take the details of one delta, or of a whole message, whose summaries come as whole parts."""
        events: list[Event] = []
        summaries: set[Key] = set()
        self._ids = _ids_of(details) if whole else {}
        for position, detail in enumerate(details):
            if isinstance(detail, dict):
                key = _key(detail, position)
                part = part_of(detail)
                if part is not None:
                    self._parts[key] = part
                    self._join(key)
                elif whole and key in summaries:
                    self._parts[key] = self._parts.get(key, 0) + 1
                if summary_of(detail):
                    summaries.add(key)
                self._latest = key
                events += self._detail(detail, key)
        return events

    def _join(self, key: Key) -> None:
        """Have a new key name the block of the detail before, as a detail with a `part` says."""
        block = self._blocks.get(self._latest)
        if key not in self._blocks and block is not None:
            self._blocks[key] = block

    def _detail(self, detail: dict[str, Any], key: Key) -> list[Event]:
        style = self._styles[key] = format_of(detail, self._styles.get(key, UNKNOWN))
        text, summary = text_of(detail), summary_of(detail)
        states, rest = opaque_of(detail, style), rest_of(detail)
        if not (text or summary or states or rest):
            return []
        choice = self._open.choice
        named = bool(states) and all(state.kind == "id" for state in states)
        events, block = self._block(key, style, text or summary, named=named)
        state = self._ids.pop(key, None)
        if state is not None and self._new(block, "id", state.data):
            events.append(OpaqueState(block, state, choice))
        if text:
            events.append(ThinkChunk(block, text, None, choice))
        if summary:
            events.append(ThinkChunk(block, summary, self._parts.get(key, 0), choice))
        events += [OpaqueState(block, state, choice) for state in states if self._new(block, state.kind, state.data)]
        fresh = {name: value for name, value in rest.items() if self._new(block, f"rest.{name}", value)}
        if fresh:
            events.append(BlockFields(block, NAME, fresh, choice))
        return events

    def _new(self, block: int, name: str, value: Any) -> bool:
        # MiniMax repeats its ids in every fragment.
        if self._said.get((block, name)) == value:
            return False
        self._said[block, name] = value
        return True

    def _block(self, key: Key, style: str, text: str, *, named: bool) -> tuple[list[Event], int]:
        """Return the block a detail belongs to, and what begins it where it is new."""
        known = self._blocks.get(key)
        thinking = self._open.kind == "think"
        if known is not None and (thinking or not text):
            return [], known
        if known is None and self._unclaimed >= 0 and (not text or (thinking and self._open.number == self._unclaimed)):
            known = self._blocks[key] = self._unclaimed
            self._unclaimed = -1
            return [], known
        # A name alone announces a block whose text comes next (MiniMax).
        if text or (named and self._open.kind in ("", "think")):
            events = self._open.begin_thinking(style)
            self._blocks[key] = self._open.number
            return events, self._open.number
        late = self._blocks[key] = self._open.fresh()
        return [ThinkStart(late, style, self._open.choice), ThinkEnd(late, self._open.choice)], late


def hold_text(details: Any) -> bool:
    """Whether any of these details holds text."""
    return isinstance(details, list) and any(
        isinstance(one, dict) and (text_of(one) or summary_of(one)) for one in details
    )


def _ids_of(details: list[Any]) -> dict[Key, Opaque]:
    """Return the ids in the details of a whole message, by the keys of their blocks."""
    return {
        _key(detail, position): state
        for position, detail in enumerate(details)
        if isinstance(detail, dict) and isinstance(detail.get("id"), str)
        for state in opaque_of(detail, format_of(detail))
        if state.kind == "id"
    }


def _key(detail: dict[str, Any], position: int) -> Key:
    index = detail.get("index")
    return index if isinstance(index, int | str) else position


FORMAT = "thinking_blocks"


class ThinkingBlocks:
    """Gives the blocks of one reply as typed pieces, whose index tells one block from the next."""

    __slots__ = ("_ended", "_index")

    def __init__(self) -> None:
        self._index = 0
        self._ended = False

    def pieces(self, blocks: Iterable[Any]) -> list[dict[str, Any]]:
        """Return the pieces of a message or a delta."""
        found: list[dict[str, Any]] = []
        for block in blocks:
            piece = piece_of(block)
            if piece is None:
                continue
            if self._ended:
                self._index += 1
            # A signature ends its block, and so does what has no text.
            self._ended = "signature" in piece or "data" in piece
            found.append({**piece, "index": self._index})
        return found


def piece_of(block: Any) -> dict[str, Any] | None:
    """Return a block as a typed piece; None where it says nothing."""
    if not isinstance(block, dict):
        return None
    text, signature, data = (_text(block.get(name)) for name in ("thinking", "signature", "data"))
    if data:
        return {"type": "reasoning.encrypted", "data": data, "format": FORMAT}
    if not text and not signature:
        return None
    signed = {"signature": signature} if signature else {}
    return {"type": "reasoning.text", "text": text, "format": FORMAT, **signed}


def replay_blocks(thoughts: Sequence[ReasoningBlock]) -> list[dict[str, Any]]:
    """Return the blocks as LiteLLM takes them back: those alone that its own servers signed."""
    blocks: list[dict[str, Any]] = []
    for thought in thoughts:
        for state in thought.opaque:
            if state.format != FORMAT:
                continue
            if state.kind == "signature":
                blocks.append({"type": "thinking", "thinking": thought.text, "signature": state.data})
            elif state.kind in ("encrypted", "redacted"):
                blocks.append({"type": "redacted_thinking", "data": state.data})
    return blocks


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


Place = tuple[int, int]
_STATES = frozenset({"signature", "data", "id"})


class Deltas(Protocol):
    """What takes the deltas of thinking."""

    def thinking(self, choice: int, text: str) -> Sequence[bytes]:
        """Take thinking of which only the text is known."""
        ...

    def detailed_thinking(self, choice: int, text: str, index: int) -> Sequence[bytes]:
        """Take text that goes on with the piece `index` of the details."""
        ...

    def add(self, choice: int, delta: dict[str, Any]) -> Sequence[bytes]:
        """Take a delta."""
        ...


class ThinkingWriter:
    """Writes thinking into `deltas`; `pending_states` says whether opaque state waits to be written."""

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
        self._positions: dict[Place, dict[str, Any]] = {}
        self._counts: dict[int, int] = {}
        # The block whose next piece of text is written without a look at anything else, and the index of its details, -1 without.
        self._repeats_block = self._repeats_choice = self._repeats_index = -1
        self.pending_states: dict[Place, dict[str, Opaque]] = {}

    def knows(self, place: Place) -> bool:
        """Whether the block is one of thinking."""
        return place in self._formats

    def start(self, item: ThinkStart, position: dict[str, Any]) -> None:
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
        if item.block == self._repeats_block and item.choice == self._repeats_choice and item.part is None:
            if self._repeats_index < 0:
                return self._deltas.thinking(item.choice, item.text)
            return self._deltas.detailed_thinking(item.choice, item.text, self._repeats_index)
        place = (item.choice, item.block)
        gap = self._gap(item)
        if item.part is None and place in self._plain:
            self._repeat(place, -1)
            return self._deltas.thinking(item.choice, gap + item.text)
        delta = self._detailed(place, item, gap)
        if item.part is None and item.text:
            self._repeat(place, self._indexes[place])
        return self._deltas.add(item.choice, delta)

    def _repeat(self, place: Place, index: int) -> None:
        self._repeats_choice, self._repeats_block = place
        self._repeats_index = index

    def _detailed(self, place: Place, item: ThinkChunk, gap: str) -> dict[str, Any]:
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

    def _piece(self, place: Place, piece: dict[str, Any], style: str, *, apart: bool = False) -> dict[str, Any]:
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


def _state_pieces(states: Iterable[Opaque]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the pieces of a block's state with their formats. Its id stands on the first of them that is of its format."""
    ids = {state.format: state.data for state in states if state.kind == "id"}
    for state in states:
        if state.kind != "id":
            own = {"id": ids.pop(state.format)} if state.format in ids else {}
            yield state.format, {**piece_of_state(state), **own}
    for style, data in ids.items():
        yield style, piece_of_state(Opaque("id", data, style))
