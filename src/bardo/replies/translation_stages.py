"""Say in the client's own form why a provider refused, where that stands in a field which only the provider's dialect has.

Give a client the log probabilities of an answer's tokens in its own dialect's form and place.

The stages of a reply that is written anew for a client of another dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from bardo.catalog.fragments import value_at
from bardo.dialects import dialect
from bardo.dialects.shared.content_forms import Entry, LogprobForm
from bardo.planning.attempt import Attempt
from bardo.reasoning.replay import Origins
from bardo.replies.citations import citations_between, cited_pages
from bardo.replies.foreign_content import ForeignContent
from bardo.replies.reply_stages import TextObserver
from bardo.streams.stage import Stage
from bardo.values.events import BlockFields, ContentChunk, Event, Failed, Finish, RefusalChunk, ReplyFields
from bardo.values.request import Request


class ExplainedRefusal:
    """Adds the explanation of a refusal before the reply's end: in the `field` of the client's dialect, or as the words of a refusal.

    `path` is where it stands in fields of `source`.
    """

    passes_text = True

    def __init__(self, source: str, path: str, client: str, field: str) -> None:
        self._source = source
        self._path = path
        self._client = client
        self._field = field
        self._last = -1
        self._words: dict[int, str] = {}
        self._refused: set[int] = set()

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, with the explanation where the model gave no words of its own for its refusal."""
        self._last = max(self._last, getattr(item, "block", -1))
        if type(item) is ReplyFields and item.dialect == self._source:
            words = value_at(item.fields, self._path)
            if isinstance(words, str) and words:
                self._words[item.choice or 0] = words
        elif type(item) is RefusalChunk:
            self._refused.add(item.choice)
        elif type(item) is Finish and item.reason == "refusal" and item.choice not in self._refused:
            words = self._words.pop(item.choice, "")
            return (self._explanation(words, item.choice), item) if words else (item,)
        return (item,)

    def _explanation(self, words: str, choice: int) -> Event:
        if self._field:
            return ReplyFields(self._client, {self._field: words}, choice)
        self._last += 1
        return RefusalChunk(self._last, words, choice)

    def finish(self) -> Sequence[Event]:
        """Nothing is held."""
        return ()


def refusal_stages(source: str, client: str) -> list[Stage[Event, Event]]:
    """Return what explains refusals of a provider that speaks `source` to a client of another dialect."""
    given, wanted = dialect(source).reply, dialect(client).reply if client else None
    if source == client or given is None or not given.refusal_words:
        return []
    return [ExplainedRefusal(source, given.refusal_words, client, "" if wanted is None else wanted.refusal_field)]


class TranslateLogprobs(TextObserver):
    """Writes the log probabilities of a reply, which came as `given` in the dialect `source`, as `wanted` in the dialect `client`.

    Where the client has them at blocks and the provider does not, they stand at the last block of text.
    """

    acts_on: frozenset[type] = frozenset((BlockFields, ReplyFields))

    def __init__(self, source: str, given: LogprobForm, client: str, wanted: LogprobForm) -> None:
        self._source, self._given = source, given
        self._client, self._wanted = client, wanted
        self._text_blocks: dict[int, int] = {}
        self._held: dict[int, list[Entry]] = {}

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, with log probabilities as the client reads them in place of those that came."""
        match item:
            case ContentChunk():
                self._text_blocks[item.choice] = item.block
            case BlockFields() | ReplyFields() if item.dialect == self._source and self._given.field in item.fields:
                return self._translated(item)
            case Finish():
                return (*self._release(item.choice), item)
            case Failed():
                return (*self.finish(), item)
        return (item,)

    def passes_run(self, piece: Any) -> bool:
        """Whether text passes as it is: always."""
        return True

    def observe_run(self, pieces: Sequence[Any]) -> None:
        """Take pieces of the answer."""
        if type(pieces[0]) is ContentChunk:
            self._text_blocks[pieces[0].choice] = pieces[0].block

    def finish(self) -> Sequence[Event]:
        """Give what is still held."""
        return [event for choice in list(self._held) for event in self._release(choice)]

    def _translated(self, item: BlockFields | ReplyFields) -> Sequence[Event]:
        entries = self._given.read(item.fields[self._given.field])
        if not entries:
            return (item,)
        fields = {name: value for name, value in item.fields.items() if name != self._given.field}
        choice = item.choice or 0
        kept: tuple[Event, ...] = ()
        if fields and isinstance(item, BlockFields):
            kept = (BlockFields(item.block, item.dialect, fields, item.choice),)
        elif fields:
            kept = (ReplyFields(item.dialect, fields, item.choice),)
        if isinstance(item, BlockFields) and self._wanted.of == "block":
            return (*kept, self._at(choice, item.block, entries))
        self._held.setdefault(choice, []).extend(entries)
        return kept if self._wanted.of == "block" else (*kept, *self._release(choice))

    def _release(self, choice: int) -> Sequence[Event]:
        held = self._held.pop(choice, [])
        return [self._at(choice, self._text_blocks.get(choice, 0), held)] if held else []

    def _at(self, choice: int, block: int, entries: Sequence[Entry]) -> Event:
        fields = {self._wanted.field: self._wanted.write(entries)}
        if self._wanted.of == "block":
            return BlockFields(block, self._client, fields, choice)
        return ReplyFields(self._client, fields, choice if self._wanted.of == "choice" else None)


def logprobs_between(source: str, client: str) -> list[TranslateLogprobs]:
    """Return the stage that gives a client the log probabilities of a provider's dialect, where both have them."""
    given, wanted = logprob_form(source), logprob_form(client)
    if source == client or given is None or wanted is None:
        return []
    return [TranslateLogprobs(source, given, client, wanted)]


def logprob_form(name: str) -> LogprobForm | None:
    """Return how a dialect has log probabilities; None where it has none, and for a caller without a dialect."""
    declared = dialect(name).reply if name else None
    return declared.logprobs if declared is not None else None


def stages_of_translation(attempt: Attempt, request: Request, *, forward: bool) -> list[Stage[Event, Event]]:
    """Return the stages of the reply to an attempt: one whose bytes are forwarded has none."""
    if forward:
        return []
    row, client = attempt.target.provider.row, request.dialect
    asks_more = bool(request.extra)
    stages: list[Stage[Event, Event]] = []
    for make in _makers(row.dialect, client, row.quirks.cited_pages, attempt.target.model, asks_more=asks_more):
        stages += make()
    stages.append(ForeignContent(client))
    if attempt.origin is not None:
        stages.append(Origins(attempt.origin))
    return stages


@lru_cache(maxsize=256)
def _makers(
    source: str, client: str, paths: tuple[str, ...], model: str, *, asks_more: bool
) -> tuple[Callable[[], Sequence[Stage[Event, Event]]], ...]:
    """Return what makes the stages between two dialects, which differ with each reply; without what makes none."""
    makers: list[Callable[[], Sequence[Stage[Event, Event]]]] = [
        partial(cited_pages, source, client, paths),
        partial(citations_between, source, client, model),
        partial(refusal_stages, source, client),
    ]
    if asks_more:
        makers.insert(2, partial(logprobs_between, source, client))
    return tuple([make for make in makers if make()])
