"""Encode the thinking of one reply: `reasoning_content` for everyone, `reasoning_details` where there is more to tell than text.

Clients join the pieces of one index, string by string: the format of a block stands in the first piece of an index only, and what must not
be joined, a piece of another type among it, has an index of its own with a `part`. Opaque state is written when the block is left: until
then a later state of the same kind takes its place (OpenAI sends a provisional ciphertext first).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from bardo.dialects.openai_chat.constants import PLAIN_FORMATS
from bardo.dialects.openai_chat.details import BLANK_LINE, UNKNOWN, is_bare, piece_of_state, piece_of_text
from bardo.values.blocks import Opaque
from bardo.values.events import BlockFields, OpaqueState, ThinkChunk, ThinkStart

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
