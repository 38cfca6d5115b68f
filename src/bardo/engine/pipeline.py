"""A reply's bytes to events, and the events to one Response: the stages of one reply, in order.

bytes → frames → events → thinking and calls in the text separated → what the client does not want left out → ids filled in. Each stage
belongs to this reply alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.dialects.base import ReturningDecoder, SwitchableDecoder
from bardo.engine.call_ids import CallIds
from bardo.engine.framing import open_framing
from bardo.engine.quoted import without_quoted, without_secrets
from bardo.engine.reading import Reading, reading_of
from bardo.engine.run import Run
from bardo.streams.frames import Frame, FramingError
from bardo.streams.stage import Stage
from bardo.values.error_cleaning import clean_error
from bardo.values.errors import BardoError, MalformedReply
from bardo.values.events import (
    Event,
    Failed,
    OpaqueState,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
)
from bardo.values.fold import ResponseFold
from bardo.values.response import Response
from bardo.values.secrets import NO_SECRETS, Secrets, SecretWatch

Taken = tuple[Sequence[Event], bytes]
"""Events, and the bytes of the provider that said them; no bytes where the reply broke."""


class ReplyReader:
    """Reads one reply from one provider.

    `reading` is how its text is read; by default, as the row and the model say. `make_id` names tool calls that come without an id.
    `secrets` are those the provider may quote, and `clean` takes all of them out of an error.
    """

    def __init__(
        self,
        row: ProviderRow,
        *,
        streamed: bool,
        provider: str = "",
        model: str = "",
        reading: Reading | None = None,
        make_id: Callable[[], str] | None = None,
        omit_reasoning: bool = False,
        stamp: ReplyStart | None = None,
        further: Sequence[Stage[Event, Event]] = (),
        secrets: Secrets = NO_SECRETS,
        clean: Callable[[BardoError], object] = clean_error,
    ) -> None:
        language = dialect(row.dialect)
        self._framing = open_framing(language.stream_framing, streamed=streamed)
        self._decoder = language.open_decoder(row)
        self._run = Run.of(self._framing, self._decoder)
        self._provider = provider or row.id
        read = reading if reading is not None else reading_of(row, model)
        names = make_id or _counting()
        self._ids = CallIds(names)
        self._lets_ids_out = language.omits_call_ids
        self._stages = read.stages(names)
        self._all: ResponseFold | None = None
        if omit_reasoning:
            self._all = ResponseFold(provider=self._provider, model=model)
            self._stages += [_Heard(self._all), WithoutReasoning()]
        if stamp is not None:
            self._stages.append(Stamped(stamp))
        self._stages += further
        self._fold = ResponseFold(provider=self._provider, model=model, billed_as_output=row.billed_as_output)
        self._failed: BardoError | None = None
        self._secrets = secrets
        self._watch = SecretWatch(secrets)
        self._clean = clean

    @property
    def failure(self) -> BardoError | None:
        """What broke the reply, if something did."""
        return self._failed

    @property
    def lacks_ids(self) -> bool:
        """Whether the provider left a call without the id that its dialect asks for."""
        return self._ids.minted and not self._lets_ids_out

    @property
    def switches(self) -> bool:
        """Whether a stream that is forwarded is to be written anew from here on."""
        return self._ids.minted and isinstance(self._decoder, SwitchableDecoder)

    @property
    def waits(self) -> bool:
        """Whether the latest frames, which gave no events, are not to be forwarded yet."""
        return isinstance(self._decoder, SwitchableDecoder) and self._decoder.waits

    @property
    def fold(self) -> ResponseFold:
        """The reply so far."""
        return self._fold

    def heard(self) -> Response:
        """Return the reply as far as it has come, with the reasoning that the client does not want."""
        return (self._all or self._fold).response()

    def fields_to_return(self) -> dict[int, dict[str, Any]]:
        """Return the fields that the provider takes back unmodified in the next request, by choice."""
        return self._decoder.fields_to_return() if isinstance(self._decoder, ReturningDecoder) else {}

    def feed(self, item: bytes) -> list[Event]:
        """Return the events of one chunk of bytes."""
        return [event for events, _ in self.take(item, joined=False) for event in events]

    def take(self, chunk: bytes, *, joined: bool) -> list[Taken]:
        """Return the events of one chunk of bytes, beside the bytes that said them.

        `joined`: what many frames say in turn may be one event.
        """
        if self._watch.feed(chunk) or self._run is None:
            return self._fed(chunk)
        begin = self._run.framing.held_until(chunk)
        taken = self._fed(chunk[:begin]) if begin else []
        found = self._run.read(chunk[begin:], joined=joined) if self._failed is None else None
        if found is not None:
            events, length = found
            taken.append((self._through(events), chunk[begin : begin + length]))
            begin += length
        return taken + self._fed(chunk[begin:]) if begin < len(chunk) else taken

    def finish(self) -> list[Event]:
        """Return what was held back, and the failure of a reply that ended too early."""
        return [event for events, _ in self.take_rest() for event in events]

    def take_rest(self) -> list[Taken]:
        """Return what was held back, and the failure of a reply that ended too early, beside the bytes that said them."""
        taken = self._read(self._framing.finish())
        return [*taken, (self._note(self._held()), b"")] if self._failed is None else taken

    def _fed(self, chunk: bytes) -> list[Taken]:
        try:
            return self._read(self._framing.feed(chunk))
        except FramingError as problem:
            return [(self.fail(MalformedReply(str(problem), provider=self._provider)), b"")]

    def _read(self, frames: Sequence[Frame]) -> list[Taken]:
        """Read frames until one breaks the reply."""
        taken: list[Taken] = []
        for frame in frames:
            if self._failed is not None:
                break
            events = self._through(self._decoder.feed(frame))
            raw = frame.raw if self._failed is None else b""
            taken.append((events, without_quoted(raw, events, self._secrets) if self._watch.seen else raw))
        return taken

    def fail(self, error: BardoError) -> list[Event]:
        """End the reply with an error from outside: a connection that broke, a deadline."""
        if self._failed is not None:
            return []
        # What the stages held was already the model's word.
        held = [event for event in self._held() if type(event) is not Failed]
        return [*self._note([*held, Failed(error)])]

    def settle(self, events: Sequence[Event]) -> list[Event]:
        """Take events that were made of what the stages held, after the reply's end."""
        return [*self._note(events)]

    def _held(self) -> list[Event]:
        """Return what the decoder and each stage still had to say."""
        events = list(_pass(self._ids.filled(self._decoder.finish()), self._stages))
        for position, stage in enumerate(self._stages):
            events += _pass(stage.finish(), self._stages[position + 1 :])
        return events

    def _through(self, events: Sequence[Event]) -> Sequence[Event]:
        return self._note(_pass(self._ids.filled(events), self._stages)) if events else events

    def _note(self, events: Sequence[Event]) -> Sequence[Event]:
        if self._watch.seen:
            events = [without_secrets(event, self._secrets) for event in events]
        for event in events:
            if type(event) is Failed and self._failed is None:
                self._clean(event.error)
                self._failed = event.error
            self._fold.feed(event)
        return events


def _pass(events: Sequence[Event], stages: Sequence[Stage[Event, Event]]) -> Sequence[Event]:
    for stage in stages:
        events = [given for event in events for given in stage.feed(event)]
    return events


def _counting() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"call_{next(numbers)}"


class _Heard:
    """Collects all that passes, before some of it is left out."""

    def __init__(self, fold: ResponseFold) -> None:
        self._fold = fold

    def feed(self, item: Event) -> Sequence[Event]:
        self._fold.feed(item)
        return (item,)

    def finish(self) -> Sequence[Event]:
        return ()


class WithoutReasoning:
    """Leaves all thinking out, its opaque state included."""

    def __init__(self) -> None:
        self._thinking: set[tuple[int, int]] = set()

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on what is not thinking."""
        match item:
            case ThinkStart(block=block, choice=choice):
                self._thinking.add((choice, block))
                return ()
            case ThinkChunk() | ThinkEnd():
                return ()
            case OpaqueState(block=block, choice=choice) if (choice, block) in self._thinking:
                return ()
            case _:
                return (item,)

    def finish(self) -> Sequence[Event]:
        """Nothing is held."""
        return ()


class Stamped:
    """Fills in the id, the model and the time that a provider left out, before any block of the reply.

    A start without an id waits for the next, which may bring it: a client that was told one id is not told another.
    """

    def __init__(self, stamp: ReplyStart) -> None:
        self._stamp = stamp
        self._begun = False

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, after a complete ReplyStart."""
        if type(item) is ReplyStart:
            return self._start(item)
        if self._begun or type(item) is ReplyFields:
            return (item,)
        return (*self.finish(), item)

    def finish(self) -> Sequence[Event]:
        """Give a start that waited in vain."""
        if self._begun:
            return ()
        self._begun = True
        return (self._stamp,)

    def _start(self, item: ReplyStart) -> Sequence[Event]:
        self._stamp = ReplyStart(
            id=item.id or self._stamp.id,
            model=item.model or self._stamp.model,
            created=item.created if item.created is not None else self._stamp.created,
        )
        if not item.id and not self._begun:
            return ()
        self._begun = True
        return (self._stamp,)
