"""Give a client the web pages that an answer cites, in its own dialect's form and with places that count as it counts.

Dialects differ in where citations stand (at a block, at the choice), and in what their places count: characters or bytes, of a block or
of the whole answer, or nothing, where a citation belongs to the block in which it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

from bardo.dialects import dialect
from bardo.dialects.shared.content_forms import Citation, CitationForm
from bardo.engine.cited_text import CitedText
from bardo.engine.reply_stages import TextObserver
from bardo.values.degradation import Degradation
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
    RefusalChunk,
    ReplyFields,
    ThinkStart,
    ToolCallStart,
    UnknownContent,
)

_text_of: Callable[[Any], str] = attrgetter("text")
_NO_PLACE = "the client's dialect has no place for it"
_OfBlock = ContentChunk | RefusalChunk | ThinkStart | ToolCallStart | UnknownContent
_TOO_LONG = "the answer is longer than what is held to count its places"
_WHOLE_BLOCKS = "the client's dialect cites whole blocks of text"


class TranslateCitations(TextObserver):
    """Adds the client's form of each citation to the events of a reply.

    `given` is the form that came in the dialect `source`, `wanted` the one of the dialect `client`. The text is held only where one of
    them counts bytes.
    """

    acts_on: frozenset[type] = frozenset((BlockFields, ReplyFields))

    def __init__(self, source: str, given: CitationForm, client: str, wanted: CitationForm) -> None:
        self._source, self._given = source, given
        self._client, self._wanted = client, wanted
        self._in_bytes = given.in_bytes or wanted.in_bytes
        self._texts: dict[int, CitedText] = {}
        self._held: dict[int, list[tuple[int | None, Citation]]] = {}
        self._reported: set[str] = set()
        # The answer of one field is one block of text: its length is not needed where both count characters.
        self._places_kept = given.of_choice and not self._in_bytes

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, with what the client can read of citations."""
        take = _TAKE.get(type(item))
        return (item,) if take is None else take(self, item)

    def passes_run(self, piece: Any) -> bool:
        """Whether text of a choice passes as it is: nothing waits for it."""
        return not self._held.get(piece.choice)

    def observe_run(self, pieces: Sequence[Any]) -> None:
        """Count pieces of the answer."""
        first = pieces[0]
        if type(first) is ContentChunk:
            self._text_of(first.choice).add(first.block, "".join(map(_text_of, pieces)))

    def finish(self) -> Sequence[Event]:
        """Give what is still held."""
        return [event for choice in list(self._held) for event in self._release(choice)]

    def _text_of(self, choice: int) -> CitedText:
        if choice not in self._texts:
            self._texts[choice] = CitedText(keeps_text=self._in_bytes)
        return self._texts[choice]

    def _text(self, item: ContentChunk) -> Sequence[Event]:
        given = self._of_block_before(item)
        self._text_of(item.choice).add(item.block, item.text)
        return (*given, item) if given else (item,)

    def _other_block(self, item: _OfBlock) -> Sequence[Event]:
        return (*self._of_block_before(item), item)

    def _end(self, item: Finish) -> Sequence[Event]:
        return (*self._release(item.choice), item)

    def _fail(self, item: Failed) -> Sequence[Event]:
        return (*self.finish(), item)

    def _of_block_before(self, item: _OfBlock) -> Sequence[Event]:
        """Return the citations of a block that is over, as another begins. Anthropic gives those of a block before its text, or within."""
        held = self._held.get(item.choice)
        if not held or not self._given.whole_blocks or self._wanted.at_end or held[-1][0] == item.block:
            return ()
        return self._release(item.choice)

    def _fields(self, item: BlockFields | ReplyFields) -> Sequence[Event]:
        of_choice = isinstance(item, ReplyFields)
        if item.dialect != self._source or of_choice is not self._given.of_choice or item.choice is None:
            return (item,)
        value = item.fields.get(self._given.field)
        if value is None:
            return (item,)
        block = item.block if isinstance(item, BlockFields) else None
        self._held.setdefault(item.choice, []).extend((block, one) for one in self._given.read(value).found)
        # What ends with its block is not known before the block is over.
        waits = self._given.whole_blocks or self._wanted.at_end or self._text_of(item.choice).block is None
        return (item,) if waits else (item, *self._release(item.choice))

    def _release(self, choice: int) -> list[Event]:
        """Return what is held of a choice as the client reads it."""
        held = self._held.pop(choice, [])
        if not held:
            return []
        text = self._text_of(choice)
        placed = [self._place(text, block, one) for block, one in held]
        lost = self._losses([one for _, one in held], text)
        field = self._wanted.field
        if self._wanted.of_choice:
            return [*lost, ReplyFields(self._client, {field: self._wanted.write([one for _, one in placed])}, choice)]
        by_block: dict[int, list[Citation]] = {}
        for target, one in placed:
            by_block.setdefault(target, []).append(one)
        blocks = by_block.items()
        return [
            *lost,
            *(BlockFields(at, self._client, {field: self._wanted.write(cited)}, choice) for at, cited in blocks),
        ]

    def _place(self, text: CitedText, block: int | None, one: Citation) -> tuple[int, Citation]:
        """Return the block of a citation, and its places as the client's dialect counts them."""
        one = self._in_answer(text, block, one)
        target = text.block_at(one.start or 0) if block is None else block
        base = 0 if self._wanted.of_choice else text.begin_of(target)
        if self._wanted.in_bytes:
            return target, text.in_bytes(one, base)
        if one.start is None or one.end is None or not base:
            return target, one
        return target, one._replace(start=one.start - base, end=one.end - base)

    def _in_answer(self, text: CitedText, block: int | None, one: Citation) -> Citation:
        """Return a citation whose places count characters of the whole answer. Without places it stands at the end."""
        if block is not None and self._given.whole_blocks:
            return one._replace(start=text.begin_of(block), end=text.end_of(block))
        if self._given.in_bytes and block is None:
            one = text.from_bytes(one)
        elif self._given.in_bytes and block is not None:
            one = text.from_bytes_of(block, one)
        elif block is not None and one.start is not None and one.end is not None:
            base = text.begin_of(block)
            one = one._replace(start=one.start + base, end=one.end + base)
        if (one.start is None or one.end is None) and not self._places_kept:
            return one._replace(start=text.length, end=text.length)
        return one

    def _losses(self, citations: Sequence[Citation], text: CitedText) -> list[Event]:
        lost: dict[str, str] = {}
        if text.too_long and any(one.start is not None for one in citations):
            lost[f"{self._given.field}.places"] = _TOO_LONG
        if self._wanted.whole_blocks and any(one.start is not None for one in citations):
            lost[f"{self._given.field}.places"] = _WHOLE_BLOCKS
        if not self._wanted.whole_blocks and any(one.cited_text for one in citations):
            lost[f"{self._given.field}.cited_text"] = _NO_PLACE
        new = {what: why for what, why in lost.items() if what not in self._reported}
        self._reported |= new.keys()
        return [Degraded(Degradation(what, why=why)) for what, why in new.items()]


_TAKE: dict[type, Callable[[TranslateCitations, Any], Sequence[Event]]] = {
    ContentChunk: TranslateCitations._text,
    BlockFields: TranslateCitations._fields,
    ReplyFields: TranslateCitations._fields,
    Finish: TranslateCitations._end,
    Failed: TranslateCitations._fail,
    **dict.fromkeys((RefusalChunk, ThinkStart, ToolCallStart, UnknownContent), TranslateCitations._other_block),
}


def citation_form(name: str) -> CitationForm | None:
    """Return how a dialect has citations; None where it has none, and for a caller without a dialect."""
    declared = dialect(name).reply if name else None
    return declared.citations if declared is not None else None


def citations_between(source: str, client: str, model: str = "") -> list[TranslateCitations]:
    """Return the stage that gives a client the citations of a provider's dialect, where both have them.

    `model` says which dialect one that only wraps others has inside.
    """
    forms = _forms_between(source, client, model)
    return [] if forms is None else [TranslateCitations(*forms)]


@lru_cache(maxsize=256)
def _forms_between(source: str, client: str, model: str) -> tuple[str, CitationForm, str, CitationForm] | None:
    """Return two dialects and their forms, where they differ and both have citations."""
    wraps = dialect(source).wraps
    source = source if wraps is None else wraps(model).name
    given, wanted = citation_form(source), citation_form(client)
    return None if source == client or given is None or wanted is None else (source, given, client, wanted)
