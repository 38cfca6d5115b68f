"""The stages by which a client sees a reply: its thinking left out or between tags, and what another dialect has no place for.

That is refusals, log probabilities, and reports of what is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from bardo.catalog.fragments import value_at
from bardo.catalog.meaningful import kind_of_part
from bardo.dialects import dialect
from bardo.dialects.shared.content_forms import CitationForm, Entry, LogprobForm
from bardo.dialects.shared.declaration import EVENTS, ReplyDeclaration
from bardo.planning.attempt import Attempt
from bardo.reasoning.replay import Origins
from bardo.replies.citations import citations_between, cited_pages
from bardo.streams.stage import Stage
from bardo.values.degradation import Degradation
from bardo.values.errors import MalformedReply
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ThinkStart,
    ToolCallStart,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.request import Request
from bardo.values.usage import Usage

_UNDECLARED = ReplyDeclaration(lacks={})
"""A dialect that no client speaks: all of its fields are content."""
_PICTURES = 1 << 20
"""The number of the first block that holds a picture of a field: no provider's block has it."""
_NO_PLACE = "the client's dialect has no place for it"
_NO_WORD = "the client's dialect has no word for it"
_NO_COUNT = "nobody counted them, and the client's dialect must have a number"


class ForeignContent:
    """Reports what a reply holds that the client's dialect has no place or word for. A caller without a dialect gets everything.

    It is the one driver above all encoders of replies: its reports follow from what the dialects declare. Text passes without a look.
    """

    passes_text = True
    touches: frozenset[type]

    def __init__(self, client_dialect: str) -> None:
        self._client = client_dialect
        self._declared = dialect(client_dialect).reply if client_dialect else None
        self._reported: set[str] = set()
        self._usage = Usage()
        self._thought = self._ended = False
        self._broken: Failed | None = None
        self._pictures = 0

    def feed(self, item: Event) -> tuple[Event, ...]:
        """Pass on, after a report the first time something is lost."""
        look = _LOOK.get(type(item))
        if look is None or self._declared is None:
            return (item,)
        if type(item) is UsageUpdate:
            look(self, item)
            return (item,)
        if type(item) is Finish:
            return () if self._breaks_off(item) else (*self._look_at_finish(item), item)
        pictures = self._pictures_of(item) if isinstance(item, UnknownContent | ReplyFields) else []
        return (*look(self, item), item, *self._carried(item), *pictures)

    def finish(self) -> tuple[Event, ...]:
        """Report counts, now that none can come any more: those that were not given, and those that have no place."""
        if self._broken is not None:
            return (self._broken,)
        if not self._ended or self._declared is None:
            return ()
        return (*self._missing_counts(), *self._lost_counts())

    def _missing_counts(self) -> list[Event]:
        """Return the counts that the client reads as 0, or as another count, though they were not counted.

        Reasoning that is not known to have happened may be 0.
        """
        assert self._declared is not None
        usage = self._usage
        if not usage.reported and not self._declared.counts_always:
            return []
        missing = [name for name in self._declared.counts if getattr(usage, name) is None]
        if not missing and not self._declared.counts_instead:
            return []
        zeros: dict[str, Any] = {name: 0 for name in missing if name != "reasoning_tokens" or self._thought}
        if "reasoning_tokens" in zeros:
            zeros["reasoning_tokens"] = "an estimate"
        if "input_tokens" in zeros and dialect(self._client).starts_with_usage:
            zeros["input_tokens"] = "an estimate"
        others = {name: getattr(usage, other) for name, other in self._declared.counts_instead.items()}
        return [
            Degraded(Degradation(f"usage.{name}", sent=sent, why=_NO_COUNT))
            for name, sent in {**zeros, **others}.items()
            if sent is not None and getattr(usage, name) is None
        ]

    def _lost_counts(self) -> list[Event]:
        assert self._declared is not None
        lost: list[Event] = []
        for name, attribute in self._declared.lacked_counts:
            if count := getattr(self._usage, attribute):
                lost += self._report(name, asked=count)
        return lost

    def _look_at_block(self, item: UnknownContent) -> list[Event]:
        if item.dialect == self._client:
            return []
        kind = kind_of_part(item.value) or "unknown"
        lost = [f"content.{kind}"]
        if self._picture_values(item):
            lost = [f"content.{kind}.{name}" for name in _beside_picture(item)]
        return [*(event for name in lost for event in self._report(name)), *self._look_at_choice(item)]

    def _look_at_fields(self, item: BlockFields | ReplyFields) -> list[Event]:
        if item.dialect == self._client:
            return []
        source = dialect(item.dialect).reply if item.dialect else None
        content = (source or _UNDECLARED).content(item.fields)
        shared = self._shared_with(item)
        lost = [name for name in content if name not in shared]
        lost = [name for name in lost if not (type(item) is ReplyFields and self._pictures_in(item, name))]
        if source is not None and source.citations is not None and source.citations.field in lost:
            place = lost.index(source.citations.field)
            lost[place : place + 1] = self._lost_of_citations(source.citations, item)
        return [event for name in lost for event in self._report(name)]

    def _lost_of_citations(self, form: CitationForm, item: BlockFields | ReplyFields) -> Sequence[str]:
        """Return what of a field of citations does not reach the client, which may have another place for them."""
        assert self._declared is not None
        if self._declared.citations is None or form.of_choice is not (type(item) is ReplyFields):
            return (form.field,)
        return form.read(item.fields[form.field]).lost

    def _pictures_of(self, item: UnknownContent | ReplyFields) -> list[Event]:
        """Return the pictures of a block, or of a field of the choice, as the client's dialect has them."""
        form = self._declared.pictures if self._declared is not None else None
        values = self._picture_values(item)
        places = range(self._pictures, self._pictures + len(values))
        self._pictures += len(values)
        choice = item.choice or 0
        if form is None or not form.field:
            return [
                UnknownContent(_PICTURES + place, self._client, value, choice)
                for place, value in zip(places, values, strict=True)
            ]
        # OpenAI's library joins the entries of a stream's lists by their `index`.
        listed = [{**value, "index": place} for place, value in zip(places, values, strict=True)]
        return [ReplyFields(self._client, {form.field: listed}, choice)] if listed else []

    def _picture_values(self, item: UnknownContent | ReplyFields) -> list[dict[str, Any]]:
        source = dialect(item.dialect).reply if item.dialect and item.dialect != self._client else None
        form = None if source is None else source.pictures
        wanted = None if self._declared is None else self._declared.pictures
        if form is None or wanted is None:
            return []
        if isinstance(item, UnknownContent):
            return [] if form.field else [wanted.write(picture) for picture in form.read(item.value)]
        held = item.fields.get(form.field) if form.field else None
        return [wanted.write(picture) for one in (held if isinstance(held, list) else ()) for picture in form.read(one)]

    def _pictures_in(self, item: ReplyFields, name: str) -> bool:
        """Whether a field lists pictures, and the client gets all of them."""
        source = dialect(item.dialect).reply if item.dialect else None
        form = source.pictures if source is not None else None
        listed = form is not None and form.field == name
        return listed and len(self._picture_values(item)) == len(item.fields[name])

    def _shared_with(self, item: BlockFields | ReplyFields) -> frozenset[str]:
        """Return the names of fields of the reply as a whole that say something and that the client's dialect has too."""
        source = dialect(item.dialect).reply if item.dialect else None
        if source is None or self._declared is None or type(item) is not ReplyFields or item.choice is not None:
            return frozenset()
        both = (source.shared & self._declared.shared).intersection(item.fields)
        return frozenset(source.content({name: item.fields[name] for name in both}))

    def _carried(self, item: Event) -> list[Event]:
        """Return the fields of the reply as a whole that the client's dialect has too."""
        if type(item) is not ReplyFields or item.dialect == self._client:
            return []
        shared = {name: item.fields[name] for name in self._shared_with(item)}
        return [ReplyFields(self._client, shared)] if shared else []

    def _look_at_kind(self, item: RefusalChunk | ToolCallStart | OpaqueState) -> list[Event]:
        return [*self._lack(EVENTS[type(item)]), *self._look_at_choice(item)]

    def _look_at_thought(self, item: ThinkStart) -> list[Event]:
        self._thought = True
        return self._lack("reasoning")

    def _look_at_choice(self, item: Any) -> list[Event]:
        return self._lack("choices") if item.choice else []

    def _look_at_finish(self, item: Finish) -> list[Event]:
        self._ended = True
        assert self._declared is not None
        lack = self._declared.lacked_reasons.get(item.reason)
        if lack is None and not item.choice and not item.stop_sequence:
            return []
        found = [*self._look_at_choice(item), *(self._lack("finish.stop_sequence") if item.stop_sequence else ())]
        if lack is None or item.raw in self._declared.finish_words:
            return found
        asked = item.raw or item.reason
        return [*found, Degraded(Degradation("finish_reason", asked=asked, sent=lack.sent, why=_NO_WORD))]

    def _breaks_off(self, item: Finish) -> bool:
        """Whether the provider calls the reply broken, and the client's dialect would have to call it complete: it fails at its end.

        So it is with Gemini's MALFORMED_FUNCTION_CALL: agents took the empty answer for the end of their work.
        """
        assert self._declared is not None
        lacks = item.reason == "error" and "finish.error" in self._declared.lacks and not item.choice
        if not lacks or item.raw in self._declared.finish_words:
            return False
        message = f"the model's reply broke off: the provider ended it with {item.raw or 'an error'}"
        self._broken = Failed(MalformedReply(message, hint="ask again"))
        return True

    def _look_at_usage(self, item: UsageUpdate) -> list[Event]:
        self._usage = item.usage
        return []

    def _look_at_failure(self, item: Failed) -> list[Event]:
        self._ended = False
        self._broken = None
        return []

    def _lack(self, name: str) -> list[Event]:
        """Report content that the dialect declares to lack."""
        assert self._declared is not None
        lack = self._declared.lacks.get(name)
        return [] if lack is None else self._report(name, sent=lack.sent, why=lack.why)

    def _report(self, what: str, *, asked: Any = None, sent: Any = None, why: str = _NO_PLACE) -> list[Event]:
        if what in self._reported:
            return []
        self._reported.add(what)
        return [Degraded(Degradation(what, asked=asked, sent=sent, why=why))]


def _beside_picture(item: UnknownContent) -> list[str]:
    """Return the members of a block with a picture that say more than the picture: the prompt that it was made from."""
    source = dialect(item.dialect).reply
    form = None if source is None else source.pictures
    known = frozenset() if form is None else form.members
    return [name for name, value in item.value.items() if name not in known and value is not None]


_LOOK: dict[type, Callable[[ForeignContent, Any], list[Event]]] = {
    UnknownContent: ForeignContent._look_at_block,
    BlockFields: ForeignContent._look_at_fields,
    ReplyFields: ForeignContent._look_at_fields,
    RefusalChunk: ForeignContent._look_at_kind,
    ToolCallStart: ForeignContent._look_at_kind,
    OpaqueState: ForeignContent._look_at_kind,
    ThinkStart: ForeignContent._look_at_thought,
    Finish: ForeignContent._look_at_finish,
    UsageUpdate: ForeignContent._look_at_usage,
    Failed: ForeignContent._look_at_failure,
}
ForeignContent.touches = frozenset(_LOOK)


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


class TranslateLogprobs:
    """Writes the log probabilities of a reply, which came as `given` in the dialect `source`, as `wanted` in the dialect `client`.

    Where the client has them at blocks and the provider does not, they stand at the last block of text.
    """

    passes_text = True
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
    """Return how a dialect has log probabilities, or None if it has none, and for a caller without a dialect."""
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
