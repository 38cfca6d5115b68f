"""Collect the blocks of a reply into the parts of one candidate, as a client would from a stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bardo.dialects.gemini.constants import FORMAT, NAME, is_native, opaque_of
from bardo.dialects.gemini.encode_parts import Part, call_part, is_malformed, text_part
from bardo.values.blocks import (
    ReasoningBlock,
    RefusalBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    UnknownBlock,
    fields_for,
)
from bardo.values.collected import OpaqueStates


class PartCollector:
    """Collect the parts of one candidate: a chunk may begin with more of the text or the thought before it.

    `malformed` are the calls whose arguments are no JSON object.
    """

    def __init__(self) -> None:
        self.malformed: list[ToolCallBlock] = []
        self._parts: list[Part] = []
        self._texts: list[str] = []

    def add_blocks(self, blocks: Sequence[ReplyBlock]) -> None:
        """Take the blocks of a reply."""
        for block in blocks:
            _ADD[type(block)](self, block)

    def add(self, parts: Sequence[Part]) -> None:
        """Take the parts of one chunk."""
        for place, part in enumerate(parts):
            last = self._parts[-1] if self._parts else None
            if last is None or not _is_plain(last) or last.get("thought") != part.get("thought"):
                self._append(part)
            elif _is_plain(part) and not place:
                self._texts.append(part["text"])
            elif _is_late_state(part):
                self._parts[-1] = {**part, "text": last["text"]}
            else:
                self._append(part)

    def parts(self) -> list[Part]:
        """Return the parts."""
        self._join()
        return self._parts

    def _add_text(self, block: TextBlock) -> None:
        fields = fields_for(NAME, block.carried)
        if not fields and not block.opaque:
            if block.text:
                self.add((text_part(block.text),))
            return
        states = OpaqueStates.of(block.opaque).states()
        # Gemini's own state stands on its text, any other behind it.
        if block.text and not all(map(is_native, states)):
            self.add((text_part(block.text),))
            self.add((text_part("", fields=fields, opaque=states),))
        else:
            self.add((text_part(block.text, fields=fields, opaque=states),))

    def _add_refusal(self, block: RefusalBlock) -> None:
        self._add_text(TextBlock(block.text, carried=block.carried))

    def _add_thinking(self, block: ReasoningBlock) -> None:
        if block.text:
            self.add((text_part(block.text, thought=True),))
        for number, text in enumerate(block.summary):
            if not number:
                self.add((text_part(text, thought=True),) if text else ())
            elif block.format == FORMAT:
                self.add((text_part("", thought=True), text_part(text, thought=True)))
            else:
                self.add((text_part("\n\n" + text, thought=True),))
        fields = fields_for(NAME, block.carried)
        if fields or block.opaque:
            # A stream gives the id of thinking first.
            states = OpaqueStates.of(sorted(block.opaque, key=lambda state: state.kind != "id")).states()
            self.add((text_part("", thought=True, fields=fields, opaque=states),))

    def _add_call(self, block: ToolCallBlock) -> None:
        if not block.complete:
            return
        if is_malformed(block):
            self.malformed.append(block)
        self.add((call_part(block),))

    def _add_unknown(self, block: UnknownBlock) -> None:
        if block.dialect == NAME:
            self.add((block.value,))

    def _append(self, part: Part) -> None:
        self._join()
        self._parts.append(part)
        self._texts.append(part.get("text", ""))

    def _join(self) -> None:
        if len(self._texts) > 1:
            self._parts[-1] = {**self._parts[-1], "text": "".join(self._texts)}
        self._texts.clear()


def _is_plain(part: Part) -> bool:
    return "text" in part and len(part) == 1 + ("thought" in part)


def _is_late_state(part: Part) -> bool:
    """Whether the part holds nothing but the state of the thought before it, or state that bardo sealed of the text before it."""
    signature = part.get("thoughtSignature", "")
    return part.get("text") == "" and (bool(part.get("thought")) or opaque_of(signature)[1])


_ADD: dict[type[ReplyBlock], Callable[[PartCollector, Any], None]] = {
    TextBlock: PartCollector._add_text,
    RefusalBlock: PartCollector._add_refusal,
    ReasoningBlock: PartCollector._add_thinking,
    ToolCallBlock: PartCollector._add_call,
    UnknownBlock: PartCollector._add_unknown,
}
