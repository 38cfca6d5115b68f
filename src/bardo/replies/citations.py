"""Give a client the web pages that an answer cites, in its own dialect's form, and run the gateway's own web search.

Citations come from the provider, or from a list of pages beside the answer. Dialects differ in where citations stand (at a block, at the
choice), and in what their places count: characters or bytes, of a block or of the whole answer, or nothing, where a citation belongs to the
block in which it stands.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Sequence
from functools import cached_property, lru_cache
from typing import Any, Literal

import msgspec

from bardo.context.own_functions import OwnCall, OwnResult, OwnSteps
from bardo.dialects import dialect
from bardo.dialects.shared.content_forms import Citation, CitationForm, SearchResults, WebPage
from bardo.planning.hosted_search import SearchPlan, results_text
from bardo.values.blocks import TextBlock, ToolResultBlock
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
from bardo.values.runs import JoinedText

_STEP = 1024
_CONTINUATION = bytes(range(0x80, 0xC0))
_MOST_REPEATED = 1_000_000
_MOST_HELD = 50_000
"""Characters of an answer whose places in bytes are known: what a stream holds in memory does not grow with its length."""


class CitedText:
    """One choice. Its words are held only where `keeps_text`.

    It knows where each block begins, and its places in characters and in bytes of UTF-8. Each question takes time for at most one stretch
    of `_STEP`, so that many citations of a long answer take linear time.
    """

    def __init__(self, *, keeps_text: bool) -> None:
        self.block: int | None = None
        self.length = 0
        self._blocks: list[int] = []
        self._begins: list[int] = []
        self._begin_of: dict[int, int] = {}
        self._end_of: dict[int, int] = {}
        self._text = JoinedText() if keeps_text else None
        self._searched = 0
        self._repeated = 0
        self._whole: _Places | None = None

    def add(self, block: int, text: str) -> None:
        """Take a piece of the answer."""
        if block not in self._begin_of:
            self._blocks.append(block)
            self._begins.append(self.length)
            self._begin_of[block] = self.length
        self.block, self._whole = block, None
        self.length += len(text)
        self._end_of[block] = self.length
        if self._text is None:
            return
        if self.length <= _MOST_HELD:
            self._text.add(text)
        elif self._text:
            self._text = JoinedText()

    @property
    def too_long(self) -> bool:
        """Whether places in bytes are not known, because the answer is longer than what is held of it."""
        return self._text is not None and self.length > _MOST_HELD

    def begin_of(self, block: int) -> int:
        """Return where a block begins, in characters; one that said nothing begins where the text ends."""
        return self._begin_of.get(block, self.length)

    def end_of(self, block: int) -> int:
        """Return where a block ends, in characters."""
        return self._end_of.get(block, self.length)

    def block_at(self, place: int) -> int:
        """Return the block in which a character is; the first one where there is no text."""
        found = bisect_right(self._begins, place)
        return self._blocks[max(found - 1, 0)] if self._blocks else 0

    def from_bytes(self, one: Citation) -> Citation:
        """Return a citation whose places count characters, not bytes.

        Where other words stand there than the citation repeats (a stream may count from elsewhere), the places are those of these words.
        """
        if one.start is None or one.end is None:
            return one
        if self.too_long:
            return _without_places(one)
        places, said = self._places(), one.text.encode(errors="replace")
        if said and places.raw[one.start : one.start + len(said)] != said:
            begin = places.text.find(one.text, self._searched) if self._searched >= 0 else -1
            # One search that fails is the last: each looks at the whole text.
            self._searched = begin
            return one._replace(start=begin, end=begin + len(one.text)) if begin >= 0 else _without_places(one)
        begin, end = places.characters(one.start), places.characters(one.end)
        if self._searched >= 0:
            self._searched = max(self._searched, begin)
        return one._replace(start=begin, end=end)

    def from_bytes_of(self, block: int, one: Citation) -> Citation:
        """Return a citation whose places count characters of the answer, not bytes of a block."""
        if one.start is None or one.end is None:
            return one
        if self.too_long:
            return _without_places(one)
        before = self._places().bytes(self.begin_of(block))
        return self.from_bytes(one._replace(start=one.start + before, end=one.end + before))

    def in_bytes(self, one: Citation, base: int) -> Citation:
        """Return a citation whose places count bytes behind the character `base`, with the words between them."""
        if one.start is None or one.end is None:
            return one
        if self.too_long:
            return _without_places(one)
        places = self._places()
        before = places.bytes(base)
        self._repeated += max(one.end - one.start, 0)
        said = places.text[one.start : one.end] if self._repeated <= _MOST_REPEATED else ""
        return one._replace(start=places.bytes(one.start) - before, end=places.bytes(one.end) - before, text=said)

    def _places(self) -> _Places:
        if self._whole is None:
            self._whole = _Places("" if self._text is None else self._text.text())
        return self._whole


class _Places:
    """A text and its bytes, with the number of characters or bytes before each `_STEP` of the other."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.raw = text.encode(errors="replace")

    @cached_property
    def _characters(self) -> list[int]:
        counts = [0]
        for begin in range(0, len(self.raw), _STEP):
            counts.append(counts[-1] + _begun(self.raw[begin : begin + _STEP]))
        return counts

    @cached_property
    def _bytes(self) -> list[int]:
        counts = [0]
        for begin in range(0, len(self.text), _STEP):
            counts.append(counts[-1] + len(self.text[begin : begin + _STEP].encode(errors="replace")))
        return counts

    def characters(self, count: int) -> int:
        """Return how many characters begin within so many bytes."""
        count = min(max(count, 0), len(self.raw))
        step = count // _STEP
        return self._characters[step] + _begun(self.raw[step * _STEP : count])

    def bytes(self, count: int) -> int:
        """Return how many bytes so many characters take."""
        count = min(max(count, 0), len(self.text))
        step = count // _STEP
        return self._bytes[step] + len(self.text[step * _STEP : count].encode(errors="replace"))


def _begun(raw: bytes) -> int:
    return len(raw.translate(None, _CONTINUATION))


def _without_places(one: Citation) -> Citation:
    return one._replace(start=None, end=None)


_NO_PLACE = "the client's dialect has no place for it"
_OfBlock = ContentChunk | RefusalChunk | ThinkStart | ToolCallStart | UnknownContent
_TOO_LONG = "the answer is longer than what is held to count its places"
_WHOLE_BLOCKS = "the client's dialect cites whole blocks of text"


class TranslateCitations:
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

    def passes_run(self, pieces: Sequence[Any]) -> bool:
        """Count further pieces of the answer, which pass as they are: what waited for a block to end was given before its first piece."""
        first = pieces[0]
        if type(first) is ContentChunk:
            self._text_of(first.choice).add(first.block, "".join([piece.text for piece in pieces]))
        return True

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
        pairs = [self._place(text, block, one) for block, one in held]
        lost = self._losses([one for _, one in held], text)
        field = self._wanted.field
        if self._wanted.of_choice:
            return [*lost, ReplyFields(self._client, {field: self._wanted.write([one for _, one in pairs])}, choice)]
        by_block: dict[int, list[Citation]] = {}
        for target, one in pairs:
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
        if text.too_long and any(citation.start is not None for citation in citations):
            lost[f"{self._given.field}.places"] = _TOO_LONG
        if self._wanted.whole_blocks and any(citation.start is not None for citation in citations):
            lost[f"{self._given.field}.places"] = _WHOLE_BLOCKS
        if not self._wanted.whole_blocks and any(citation.cited_text for citation in citations):
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
    """Return how a dialect has citations, or None if it has none, and for a caller without a dialect."""
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


_CARRIED = frozenset({"url", "title"})
_MOST_PAGES = 1000


class CitedPages:
    """Adds these pages to the events of a reply as citations in the form of its dialect `source`, before its end.

    A reply's end waits for the last frame, which may be the one that lists them. Fields that hold no more than what is carried are left
    out, so that they are not reported as lost.

    Perplexity gives `search_results`, and their addresses again as `citations`; Venice `venice_parameters.web_search_citations`. They have
    no places in the text, in which `[1]` names the first of them.
    """

    passes_text = True

    def __init__(self, source: str, form: CitationForm, paths: Sequence[str]) -> None:
        self._source, self._form = source, form
        self._paths = tuple(paths)
        self._pages: dict[str, list[Citation]] = {}
        self._ends: list[Finish] = []

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, without the lists that are carried whole."""
        if isinstance(item, Finish):
            self._ends.append(item)
            return ()
        if isinstance(item, ReplyFields) and item.dialect == self._source and item.choice is None:
            return self._fields(item)
        return (item,)

    def finish(self) -> Sequence[Event]:
        """Give the citations, and the ends that waited."""
        pages = next((self._pages[path] for path in self._paths if path in self._pages), [])
        written = {self._form.field: self._form.write(pages)}
        cited = [ReplyFields(self._source, written, end.choice) for end in self._ends] if pages else []
        ends, self._ends = self._ends, []
        return (*cited, *ends)

    def _fields(self, item: ReplyFields) -> Sequence[Event]:
        fields = item.fields
        for path in self._paths:
            name, _, inner = path.partition(".")
            held = fields.get(name)
            listed = held.get(inner) if inner and isinstance(held, dict) else held
            pages = _pages_of(listed)
            if pages:
                self._pages[path] = pages
            if pages and not inner and _is_carried(listed):
                fields = {one: value for one, value in fields.items() if one != name}
        return (msgspec.structs.replace(item, fields=fields),) if fields else ()


def cited_pages(source: str, client: str, paths: Sequence[str]) -> list[CitedPages]:
    """Return the stage for a provider with such lists at these `paths`, where a client of another dialect has citations."""
    form = citation_form(source) if paths and source != client else None
    return [] if form is None or citation_form(client) is None else [CitedPages(source, form, paths)]


def _pages_of(listed: Any) -> list[Citation]:
    """Return the pages of a list of addresses, or of objects that have one; none where anything else stands in it."""
    if not isinstance(listed, list) or len(listed) > _MOST_PAGES:
        return []
    pages = [_page(one) for one in listed]
    return [page for page in pages if page is not None] if all(pages) else []


def _is_carried(listed: Any) -> bool:
    """Whether a list of pages holds no more than goes into citations."""
    return all(isinstance(one, str) or one.keys() <= _CARRIED for one in listed)


def _page(value: Any) -> Citation | None:
    if isinstance(value, str):
        return Citation(value) if value else None
    url = value.get("url") if isinstance(value, dict) else None
    title = value.get("title") if isinstance(value, dict) else None
    return Citation(url, title if isinstance(title, str) else "") if isinstance(url, str) and url else None


class SearchWeb(msgspec.Struct, frozen=True, kw_only=True):
    """The wish to search the web. It is answered with SearchResults. No page of `blocked` domains, and only pages of `allowed` ones."""

    query: str
    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()


MOST_ARGUMENTS = 20_000
"""Characters of the arguments of one call: what is longer is no query."""
_ROUNDS_BEYOND = 2
"""Replies after the last search that is allowed: a model that goes on to call the search then is stopped."""


class SearchFunction:
    """The searches of one reply. The client gets each as the blocks of its dialect, and sends them back with its next turn.

    The function is executed here: search, tell the client, and give the model the results.
    """

    cause: Literal["search", "tools"] = "search"
    why = "the model goes on with what was found"
    remembered = False
    loaded = ()

    def __init__(self, plan: SearchPlan, client: str) -> None:
        self._plan = plan
        self._client = client
        self._searched = 0
        self._pages: list[WebPage] = []
        self.names = frozenset({plan.tool})
        self.most_rounds = plan.most + _ROUNDS_BEYOND

    def answer(self, call: OwnCall, block: int) -> OwnSteps:
        """Make one search, tell the client of it, and return the results for the model."""
        query = _query(call.arguments)
        results = yield from self._one(query)
        self._pages += results.pages
        # The blocks of a finished search for a client, numbered from `block`; `key` is unique in the reply. None if it has none.
        client = self._client
        key = f"{self._searched:02d}{call.id[-16:]}"
        declared = dialect(client).reply if client else None
        form = None if declared is None else declared.searches
        values = [] if form is None else form.write(key, query, results)
        events = [UnknownContent(block + place, client, value) for place, value in enumerate(values)]
        content = (TextBlock(results_text(results)),)
        result = ToolResultBlock(call_id=call.id, name=self._plan.tool, content=content, is_error=bool(results.error))
        return OwnResult(result, tuple(events))

    def opens(self, name: str, arguments: str) -> tuple[str, int] | None:
        """Return that no search is the client's."""
        return None

    def ending(self) -> Sequence[Event]:
        """Return the pages, for a client whose dialect lists them beside the answer."""
        # The pages as citations of a client whose dialect lists them beside the answer.
        form = citation_form(self._client)
        if not self._pages or form is None or not form.of_choice:
            return []
        listed = {page.url: Citation(page.url, page.title) for page in self._pages}
        return [ReplyFields(self._client, {form.field: form.write([*listed.values()])}, 0)]

    def stopped(self) -> Degradation:
        """Return that the model went on to search."""
        return Degradation("web_search", why="the model went on to search beyond what is allowed")

    def _one(self, query: str) -> Generator[Any, Any, SearchResults]:
        if not query:
            return SearchResults(error="invalid_input")
        self._searched += 1
        if self._searched > self._plan.most:
            return SearchResults(error="max_uses_exceeded")
        results: SearchResults = yield SearchWeb(query=query, allowed=self._plan.allowed, blocked=self._plan.blocked)
        return results


def _query(arguments: str) -> str:
    """Return the query of a call; empty where its arguments have none."""
    try:
        value = msgspec.json.decode(arguments[:MOST_ARGUMENTS])
    except (ValueError, RecursionError):
        return ""
    query = value.get("query") if isinstance(value, dict) else None
    return query.strip() if isinstance(query, str) else ""
