"""The endpoints that were chosen for earlier calls, so that a call like one of them is planned at one endpoint only.

Which endpoint loses least follows from the shape of a request and from the kinds of its content: which blocks stand in which order of
roles, and what is said of its tools. Only calls of text, of function calls and of their results in text are looked up. All others are
planned at each endpoint: pictures, thinking, schemas of answers, and what one dialect alone has a word for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import is_
from typing import NamedTuple

from bardo.planning.knowledge import Knowledge, TargetFacts
from bardo.planning.request_shapes import shape_of
from bardo.planning.route import Target
from bardo.values.blocks import Block, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.degradation import Degradation
from bardo.values.request import Message, Request


class CachedChoice(NamedTuple):
    """Which endpoint was taken, by its dialect, and why; what was lost there, and what was known of every endpoint."""

    dialect: str
    why: str
    lost: tuple[str, ...]
    facts: tuple[TargetFacts, ...]


class CachedChoices:
    """The choices for requests like one. They are kept with the plans of `knowledge`, and hold as long as those do.

    Nothing is looked for where the first endpoint has lost nothing of any call yet: it is planned first, and taken at once.
    `may_forward`: the client takes a reply in the framing providers are asked for.
    """

    __slots__ = ("_first", "_knowledge", "_request", "_route", "_row", "_targets")

    def __init__(self, request: Request, targets: Sequence[Target], knowledge: Knowledge, *, may_forward: bool) -> None:
        own = targets[0]
        self._request, self._targets, self._knowledge = request, targets, knowledge
        self._row, self._first = own.provider.row, knowledge.of(own)
        self._route: tuple[Hashable, ...] = (own.provider.place, own.model, request.dialect, may_forward)

    def find(self) -> CachedChoice | None:
        """Return the choice that was made for a request of this kind, with all that is known now; None where there is none."""
        plans = self._knowledge.plans
        if plans.find(self._route, self._row, self._first) is None:
            return None
        place = self._place()
        found: CachedChoice | None = None if place is None else plans.find(place, self._row, self._first)
        same = found is not None and all(map(is_, found.facts, self._facts()))
        return found if same else None

    def keep(self, dialect: str, why: str, degraded: Sequence[Degradation]) -> None:
        """Keep a choice, and what was lost at the endpoint that was taken."""
        plans, place = self._knowledge.plans, self._place()
        if place is not None:
            plans.keep(self._route, self._row, self._first, True)
            plans.keep(place, self._row, self._first, CachedChoice(dialect, why, names_of(degraded), self._facts()))

    def _facts(self) -> tuple[TargetFacts, ...]:
        return tuple(map(self._knowledge.of, self._targets))

    def _place(self) -> tuple[Hashable, ...] | None:
        kinds = kinds_of(self._request)
        shape = None if kinds is None else shape_of(self._request)
        dialects = tuple([at.provider.row.dialect for at in self._targets])
        return None if shape is None else (*self._route, dialects, shape, kinds)


def names_of(degraded: Sequence[Degradation]) -> tuple[str, ...]:
    """Return the names of differences."""
    return tuple([one.what for one in degraded])


def kinds_of(request: Request) -> frozenset[Hashable] | None:
    """Return of which kinds the content of a request is; None where more than its kind may decide what is lost of it."""
    if request.output_format is not None or request.degraded:
        return None
    kinds: set[Hashable] = set()
    before = ""
    for message in request.messages:
        held = _kinds_in(message)
        if held is None:
            return None
        kinds.add((before, message.role, held))
        before = message.role
    kinds.add(before)
    for tool in request.tools:
        if tool.carried is not None or tool.hosted:
            return None
        kinds.add((tool.strict, tool.schema is None, bool(tool.description)))
    return frozenset(kinds)


def _kinds_in(message: Message) -> tuple[Hashable, ...] | None:
    blocks = message.blocks
    if message.carried is not None or not all(map(_is_plain, blocks)):
        return None
    return (*dict.fromkeys(map(type, blocks)), len(blocks) > 1)


def _is_plain(block: Block) -> bool:
    check = _PLAIN.get(type(block))
    return check is not None and check(block)


def _is_plain_text(block: TextBlock) -> bool:
    # A text of nothing but space is left out at some endpoints.
    return bool(block.text) and not block.text.isspace() and not block.opaque and block.carried is None


def _is_plain_call(block: ToolCallBlock) -> bool:
    return bool(block.id) and not block.opaque and block.carried is None


def _is_plain_result(block: ToolResultBlock) -> bool:
    return not block.is_error and block.carried is None and all(map(_is_text, block.content))


def _is_text(part: object) -> bool:
    return type(part) is TextBlock and _is_plain_text(part)


_PLAIN: dict[type[Block], Callable[..., bool]] = {
    TextBlock: _is_plain_text,
    ToolCallBlock: _is_plain_call,
    ToolResultBlock: _is_plain_result,
}
