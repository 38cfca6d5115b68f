"""What a reply holds that the client's dialect cannot express: the one driver above all encoders of replies.

What it reports follows from what the dialects declare. Text passes without a look.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bardo.catalog.meaningful import kind_of_part
from bardo.dialects import dialect
from bardo.dialects.shared.content_forms import CitationForm
from bardo.dialects.shared.declaration import EVENTS, ReplyDeclaration
from bardo.values.degradation import Degradation
from bardo.values.errors import MalformedReply
from bardo.values.events import (
    BlockFields,
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
from bardo.values.usage import Usage

_UNDECLARED = ReplyDeclaration(lacks={})
"""A dialect that no client speaks: all of its fields are content."""
_PICTURES = 1 << 20
"""The number of the first block that holds a picture of a field: no provider's block has it."""
_NO_PLACE = "the client's dialect has no place for it"
_NO_WORD = "the client's dialect has no word for it"
_NO_COUNT = "nobody counted them, and the client's dialect must have a number"


class ForeignContent:
    """Reports what a reply holds that the client's dialect has no place or word for. A caller without a dialect gets everything."""

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
        """Report counts, now that none can come any more: those that nobody gave, and those that have no place."""
        if self._broken is not None:
            return (self._broken,)
        if not self._ended or self._declared is None:
            return ()
        return (*self._missing_counts(), *self._lost_counts())

    def _missing_counts(self) -> list[Event]:
        """Return the counts that the client reads as 0, or as another count, though nobody counted.

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
