"""The thinking of one choice, from whichever field it stands in.

Hosts repeat the same text in `reasoning`, `reasoning_content` and `reasoning_details`, so within one delta one of them is read: the details
where they hold text, else the first plain field. Over a stream they may take turns. Details say more than text: whose it is, and
signatures and ciphertext, which may come after the answer and belong to the thinking that was read before.
"""

from __future__ import annotations

from typing import Any

from bardo.dialects.openai_chat.constants import NAME
from bardo.dialects.openai_chat.details import UNKNOWN, format_of, opaque_of, part_of, rest_of, summary_of, text_of
from bardo.dialects.openai_chat.open_block import OpenBlock
from bardo.values.blocks import Opaque
from bardo.values.events import BlockFields, Event, OpaqueState, ThinkChunk, ThinkEnd, ThinkStart

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
