"""The blocks of a reply that is still arriving, and the choices they belong to. `values/fold.py` gives them its events."""

from __future__ import annotations

from typing import Any

from bardo.values.blocks import (
    Carried,
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    UnknownBlock,
)
from bardo.values.collected import CarriedFields, OpaqueStates
from bardo.values.events import Finish


class GrowingBlock:
    """A block that is still arriving."""

    __slots__ = ("carried", "format", "id", "name", "opaque", "parts", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.parts: dict[int, list[str]] | None = None
        self.opaque: OpaqueStates | None = None
        self.carried: CarriedFields | None = None
        self.id = self.name = self.format = ""

    def think(self, text: str, part: int | None) -> None:
        """Add thinking text, or a piece of one part of its summary."""
        if part is None:
            self.pieces.append(text)
            return
        if self.parts is None:
            self.parts = {}
        self.parts.setdefault(part, []).append(text)

    def add_state(self, opaque: Opaque) -> None:
        """Add a piece of opaque state."""
        if self.opaque is None:
            self.opaque = OpaqueStates()
        self.opaque.add(opaque)

    def add_fields(self, dialect: str, fields: dict[str, Any]) -> None:
        """Add fields of a dialect."""
        if self.carried is None:
            self.carried = CarriedFields()
        self.carried.merge(dialect, fields)

    @property
    def states(self) -> tuple[Opaque, ...]:
        """The pieces of opaque state."""
        return () if self.opaque is None else self.opaque.states()

    @property
    def fields(self) -> Carried | None:
        """The fields of a dialect."""
        return None if self.carried is None else self.carried.carried()

    def block(self) -> ReplyBlock:
        """Return the block as far as it has come."""
        raise NotImplementedError


class GrowingText(GrowingBlock):
    """Text of an answer, or a block of which only state or fields have come."""

    __slots__ = ()

    def block(self) -> ReplyBlock:
        """Return the block as far as it has come."""
        opaque = () if self.opaque is None else self.opaque.states()
        return TextBlock("".join(self.pieces), opaque, None if self.carried is None else self.carried.carried())


class GrowingRefusal(GrowingBlock):
    """The words of a refusal."""

    __slots__ = ()

    def block(self) -> ReplyBlock:
        """Return the block as far as it has come."""
        return RefusalBlock("".join(self.pieces), self.fields)


class GrowingThinking(GrowingBlock):
    """A stretch of thinking, with the parts of its summary."""

    __slots__ = ()

    def block(self) -> ReplyBlock:
        """Return the block as far as it has come."""
        return ReasoningBlock(
            text="".join(self.pieces),
            summary=tuple(["".join(pieces) for _, pieces in sorted(self.parts.items())]) if self.parts else (),
            format=self.format,
            opaque=() if self.opaque is None else self.opaque.states(),
            carried=None if self.carried is None else self.carried.carried(),
        )


class GrowingCall(GrowingBlock):
    """A tool call, whose arguments arrive in pieces, until it `ended`."""

    __slots__ = ("ended",)

    def __init__(self) -> None:
        super().__init__()
        self.ended = False

    def block(self) -> ReplyBlock:
        """Return the block as far as it has come."""
        return ToolCallBlock(
            id=self.id,
            name=self.name,
            arguments="".join(self.pieces),
            opaque=self.states,
            carried=self.fields,
            complete=self.ended,
        )


class GrowingChoice:
    """The blocks of one choice, in order of first appearance."""

    def __init__(self) -> None:
        self.blocks_begun: dict[int, GrowingBlock | UnknownBlock] = {}
        self.finish: Finish | None = None
        self.carried: CarriedFields | None = None
        self.empty_thought = self.withheld_thought = False

    def growing(self, number: int, kind: type[GrowingBlock]) -> GrowingBlock:
        """Return block `number`, begun as `kind` where it is new."""
        block = self.blocks_begun.get(number)
        if block is None or isinstance(block, UnknownBlock):
            block = self.blocks_begun[number] = kind()
        elif type(block) is GrowingText and kind is not GrowingText and not block.pieces:
            # State or fields came before the block itself, and nobody knew yet what it would be.
            known, block = block, kind()
            block.opaque, block.carried = known.opaque, known.carried
            self.blocks_begun[number] = block
        return block

    def add_fields(self, dialect: str, fields: dict[str, Any]) -> None:
        """Add fields of a dialect that belong to the choice itself."""
        if self.carried is None:
            self.carried = CarriedFields()
        self.carried.merge(dialect, fields)

    @property
    def fields(self) -> Carried | None:
        """The fields that belong to the choice itself."""
        return None if self.carried is None else self.carried.carried()

    def put(self, number: int, block: UnknownBlock) -> None:
        """Place a whole block."""
        self.blocks_begun[number] = block

    def blocks(self) -> tuple[ReplyBlock, ...]:
        """Return the blocks as values."""
        begun = self.blocks_begun.values()
        return tuple([block.block() if isinstance(block, GrowingBlock) else block for block in begun])
