"""Read one reply: bytes become frames, frames events, events pass the stages of the attempt and are folded into one Response.

It is known when the model has begun to speak, and a whole body that broke off is read as far as it came.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Self

import msgspec

from bardo.catalog.features import shows_summaries
from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.dialects.shared.blocks import is_text
from bardo.dialects.shared.dialect import (
    Framing,
    PlainReplyDecoder,
    RepeatingDecoder,
    ReplyDecoder,
    ReturningDecoder,
    SwitchableDecoder,
)
from bardo.dialects.shared.json_values import REPAIRED, excerpt
from bardo.dialects.shared.tools import FillCallIds
from bardo.planning.attempt import Attempt
from bardo.planning.route import Provider, Target
from bardo.planning.text_formats import PLAIN, text_formats_of
from bardo.planning.tools import RestoreToolArguments, RestoreToolNames
from bardo.reasoning.inline import InlineReasoning, ThinkingPlace
from bardo.replies.reply_stages import (
    TEXTS,
    CallArguments,
    FillMissingFields,
    FoldStage,
    HeldEnds,
    counting_ids,
    lookers_of,
    pass_further,
    pass_through,
    pass_whole,
    passed_to_the_end,
)
from bardo.replies.strict_frames import EventsAndBytes, frame_without_quoted, strict_frame, without_secrets
from bardo.replies.written_tokens import WrittenTokens
from bardo.streams.eventstream import EventStreamDecoder
from bardo.streams.frames import MAX_FRAME_BYTES, Frame, FramingError, WholeBody
from bardo.streams.json_frames import JsonArrayDecoder, NdjsonDecoder
from bardo.streams.sse import FrameEnds, SseDecoder
from bardo.streams.stage import Stage
from bardo.values.error_cleaning import clean_error
from bardo.values.errors import BardoError, BrokenStream, EmptyReply, MalformedReply, ProviderError
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
    EmptyThought,
    Event,
    Failed,
    Finish,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    UsageUpdate,
    WithheldThought,
)
from bardo.values.fold import ResponseFold
from bardo.values.response import Response
from bardo.values.runs import MANY, runs_of
from bardo.values.secrets import NO_SECRETS, Secrets, SecretWatch
from bardo.values.usage import Usage
from bardo.values.wire import WireRequest

_QUOTED_BYTES = 1000
_BEFORE_TEXT = b"\xef\xbb\xbf \t\r\n"
_SSE_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
# Neither a field of an SSE frame nor the length of an event stream's message begins so.
_JSON = (b"{", b"[")
_DECODERS: dict[Framing, Callable[[], Stage[bytes, Frame]]] = {
    "sse": SseDecoder,
    "ndjson": NdjsonDecoder,
    "json_array": JsonArrayDecoder,
    "eventstream": EventStreamDecoder,
}


class ReplyFraming:
    """Cuts one reply into frames. `reframed`: its bytes are in another framing than was announced; `begun`: a frame with data came.

    The head of a reply is sometimes wrong about its framing: a server may answer a streaming request with one JSON object under a stream's
    content type, or the other way round, and a proxy may answer with a page. Bytes that are no reply at all are quoted.
    """

    __slots__ = ("_framing", "_opening", "_provider", "_streamed", "begun", "inner", "reframed")

    def __init__(self, framing: Framing, *, streamed: bool, provider: str) -> None:
        self.inner = open_framing(framing, streamed=streamed)
        self.begun = False
        self.reframed = False
        self._framing = framing
        self._streamed = streamed
        self._provider = provider
        self._opening = b""

    def feed(self, item: bytes) -> Sequence[Frame]:
        """Return the frames that `item` completes. Raises FramingError."""
        if self.begun:
            return self.inner.feed(item)
        if len(self._opening) < _QUOTED_BYTES:
            self._look(item[:_QUOTED_BYTES])
        return self._checked(self.inner.feed(item))

    def finish(self) -> Sequence[Frame]:
        """Return the rest, and the frames of a whole body that is a stream. Raises FramingError."""
        if self.begun:
            return self.inner.finish()
        frames = self.inner.finish()
        if not self._streamed and frames and _is_stream(frames[0].data or b"", self._framing):
            self.reframed = True
            self.inner = open_framing(self._framing, streamed=True)
            frames = [*self.inner.feed(frames[0].raw), *self.inner.finish()]
        return self._checked(frames)

    def _checked(self, frames: Sequence[Frame]) -> Sequence[Frame]:
        """Return the reply's first frames. Raises FramingError where they hold no JSON and nothing in their framing says they should."""
        data = next((frame.data for frame in frames if frame.data), b"")
        plain = isinstance(self.inner, WholeBody | NdjsonDecoder)
        if plain and data.strip(_BEFORE_TEXT) and not data.lstrip(_BEFORE_TEXT).startswith(_JSON):
            raise FramingError("it is no JSON object")
        self.begun = bool(data)
        return frames

    def problem(self, why: str = "") -> MalformedReply | None:
        """Return the faults of bytes that held no frame, or None if there were none, or frames."""
        if self.begun or not self._opening.strip(_BEFORE_TEXT):
            return MalformedReply(why, provider=self._provider) if why else None
        message = f"what {self._provider} sent is not a reply: {excerpt(self._opening, 200)}"
        return MalformedReply(message, hint="check base_url, and what answers there", provider=self._provider)

    def _look(self, item: bytes) -> None:
        """Keep the reply's first bytes, and read one JSON value as what it is."""
        before = self._opening.strip(_BEFORE_TEXT)
        self._opening += item
        if before or not self._streamed or self._framing not in ("sse", "eventstream"):
            return
        if self._opening.lstrip(_BEFORE_TEXT).startswith(_JSON):
            self.reframed = True
            self.inner = open_framing(self._framing, streamed=False)


class RepeatedFrames:
    """Reads the frames of a stream that are alike in one go, where the framing and the decoder of a reply can both do so."""

    __slots__ = ("_around", "decoder", "framing")

    def __init__(self, framing: SseDecoder, decoder: RepeatingDecoder) -> None:
        self.framing = framing
        self.decoder = decoder
        self._around: FrameEnds | None = None

    @classmethod
    def of(cls, framing: Stage[bytes, Frame], decoder: ReplyDecoder) -> Self | None:
        """Return the reader of these two, or None if one of them reads frame by frame."""
        both = isinstance(framing, SseDecoder) and isinstance(decoder, RepeatingDecoder)
        return cls(framing, decoder) if both else None  # type: ignore[arg-type]

    def read(self, chunk: bytes, place: int, *, joined: bool) -> tuple[Sequence[Event], int] | None:
        """Return the events of the frames at `place` of `chunk`, and where they end, or None if it must be fed."""
        self._around = around = self.decoder.repeated()
        if around is None:
            return None
        values, end = self.framing.run(chunk, place, around)
        events = self.decoder.again(values, joined=joined) if values else None
        if events is None and len(values) > 1 and not around.filled:
            # The last one begins as they do and goes on otherwise: with a signature, a null, or as the end of the block.
            *values, last = values
            end -= around.begins + len(last) + around.ends
            events = self.decoder.again(values, joined=joined)
        return None if events is None else (events, end)

    def value_of(self, chunk: bytes) -> bytes | None:
        """Return what stands in a chunk between the ends of a frame like those that were read last, or None if these are not its ends.

        Where the value is a JSON text, the chunk is just one such frame: no text holds a line end or an unescaped quote.
        """
        around = self._around
        if around is None or not chunk.startswith(around.begin) or not chunk.endswith(around.end) or around.filled:
            return None
        return chunk[around.begins : len(chunk) - around.ends]

    def read_all(self, chunk: bytes, *, joined: bool) -> Sequence[Event] | None:
        """Return the events of a chunk that holds nothing but such frames, all of them whole; None for any other."""
        value = self.value_of(chunk)
        events = None if value is None else self.decoder.again((value,), joined=joined)
        if events is not None:
            return events
        self._around = around = self.decoder.repeated()
        if around is None:
            return None
        values, end = self.framing.run(chunk, 0, around)
        return self.decoder.again(values, joined=joined) if values and end == len(chunk) else None


def open_framing(framing: Framing, *, streamed: bool) -> Stage[bytes, Frame]:
    """Begin to cut one reply: a whole one is one frame."""
    return _DECODERS[framing]() if streamed else WholeBody()


def _is_stream(body: bytes, framing: Framing) -> bool:
    """Whether a body that was announced as one JSON value is a stream."""
    text = body.lstrip(_BEFORE_TEXT)
    if framing == "ndjson":
        first, _, more = text.partition(b"\n")
        return first.rstrip().endswith(b"}") and more.lstrip().startswith(b"{")
    if framing == "eventstream":
        return body.startswith(b"\0")
    return framing == "sse" and text.startswith(_SSE_FIELDS)


_NO_CONTENT = frozenset({ReplyStart, ReplyFields, UsageUpdate, Degraded})
_NO_TOKEN = frozenset({ThinkStart, ThinkEnd, EmptyThought, WithheldThought, BlockFields, Failed})


def is_content(event: Event) -> bool:
    """Whether an event is more than the beginning and end of a reply without content."""
    if type(event) is Finish:
        # A word that is new is one; what stands there instead of a word is none.
        return event.reason != "unknown" or event.raw.isidentifier()
    return type(event) not in _NO_CONTENT


def is_token(event: Event) -> bool:
    """Whether an event shows that the model has begun to answer, or has ended.

    A block without text is none, and neither is the id of one: servers announce blocks before the model has made anything.
    """
    if type(event) in _NO_CONTENT:
        return False
    if isinstance(event, ContentChunk | ThinkChunk | RefusalChunk):
        return bool(event.text)
    if isinstance(event, ToolCallChunk):
        return bool(event.arguments)
    if isinstance(event, OpaqueState):
        return event.opaque.kind != "id"
    if isinstance(event, Finish) and event.reason == "error":
        return False
    return type(event) not in _NO_TOKEN and is_content(event)


_MOST_BYTES = 1 << 20
"""How much of a body is read as JSON; what is behind it counts as text."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\[^u]|\\u[0-9a-fA-F]{4})*+("?)|[{}\[\]]')
_HALF_PAIR = re.compile(r"\\u[dD][89aAbB][0-9a-fA-F]{2}\Z")
_LAST_WORD = re.compile(r"(?<![\w.+-])[\w.+-]*\Z")
_CLOSING = {"{": "}", "[": "]"}


def events_of_broken_body(body: bytes, row: ProviderRow) -> Sequence[Event]:
    """Return what a model had said by a body that broke off, and what was counted; nothing that says that it ended."""
    text = body[:_MOST_BYTES].decode("utf-8", "ignore")
    events: list[Event] = []
    for closed in _closed(text):
        data = closed.encode()
        try:
            msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError):
            continue
        events = [*dialect(row.dialect).open_decoder(row).feed(Frame(data, raw=data))]
        break
    rest = body[_MOST_BYTES:].decode("utf-8", "ignore")
    if rest:
        events.append(ContentChunk(0, rest))
    return [event for event in events if not isinstance(event, Failed | Finish)]


def _closed(text: str) -> Sequence[str]:
    """Return the ways in which a JSON text may be closed where it ends: behind a value, a key, a colon or comma, or in a word."""
    open_ones: list[str] = []
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token in _CLOSING:
            open_ones.append(_CLOSING[token])
        elif token in ("}", "]"):
            del open_ones[-1:]
        elif found[1] == "":
            # A text that goes on: half an escape at its end belongs to no token.
            text = _HALF_PAIR.sub("", text[: found.end()]) + '"'
            break
    closing = "".join(reversed(open_ones))
    bare = text.rstrip().removesuffix(",")
    word = _LAST_WORD.sub("", bare)
    return (bare + closing, bare + ":null" + closing, bare + "null" + closing, word + "null" + closing)


# Pieces of a text that are read together.
_MOST_POSTPONED = 64


class ReplyHandling(msgspec.Struct, frozen=True, kw_only=True):
    """What is done with a reply beside reading it.

    `forward`: the frames go to a client as they came, so what a strict reader could not read is mended in them. `make_id` names tool calls
    that come without an id; None counts them. Behind the stages that read the model's text, `budget` ends its thinking, whether or not the
    client gets it, `thinking` leaves it out for the client, `stamp` is what a provider may leave out, and `stages` look at the events last.
    `secrets` are those the provider may quote, and `clean` takes all of them out of an error. `most_text` is how many characters are held.
    """

    forward: bool = False
    make_id: Callable[[], str] | None = None
    budget: Stage[Event, Event] | None = None
    thinking: Stage[Event, Event] | None = None
    stamp: ReplyStart | None = None
    stages: Sequence[Stage[Event, Event]] = ()
    secrets: Secrets = NO_SECRETS
    clean: Callable[[BardoError], object] = clean_error
    most_text: int | None = None


class ReplyReader:
    """Reads the reply to one attempt; its events pass the stages of the attempt.

    `begun`: a first event came; comments, pings and empty lines are none. `has_content`: more came than the ends of an empty reply.
    `has_token`: the model has said something, or the reply is over. Servers send heads, roles, empty pieces and pings long before a model
    begins, and until it does, another provider can still answer. `failure` is what broke the reply, and `repeats` says whether what was
    read last held only frames like the one before.
    """

    def __init__(self, attempt: Attempt, *, streamed: bool, handling: ReplyHandling) -> None:
        row, name, model = attempt.target.provider.row, attempt.target.provider.id, attempt.target.model
        language, forward, most_text = dialect(row.dialect), handling.forward, handling.most_text
        self._row = row
        self._provider = name
        self._framing = ReplyFraming(language.stream_framing, streamed=streamed, provider=name)
        self._decoder = decoder = language.open_decoder(row)
        self.switchable = decoder if isinstance(decoder, SwitchableDecoder) else None
        self._plain_decoder = decoder if isinstance(decoder, PlainReplyDecoder) else None
        self._streamed = streamed
        self.begun = self.has_content = self.has_token = False
        self.failure: BardoError | None = None
        self._clean = handling.clean
        self._watch = SecretWatch(handling.secrets)
        self._abandoned = False
        self._body: bytes | None = None

        make_id = handling.make_id or counting_ids()
        self._calls = CallArguments("" if attempt.answer is None else attempt.answer.plan.tool_name, make_id)
        # What makes frames such as any client can read: mended where they must be, which it is told once, and with an id for each call.
        self._forward, self._told_repaired = forward, False
        ids_in = language.calls_in_frames
        self._fill_ids = FillCallIds(ids_in, make_id) if forward and ids_in is not None else None
        self._ends: HeldEnds | None = None
        if forward and streamed:
            self._ends = HeldEnds(self._calls, language.tells_call, language.without_calls, language.with_broken_calls)
        self._repeated = RepeatedFrames.of(self._framing.inner, decoder) if streamed else None
        self.repeats = False
        # Whether nobody but the fold looks at what goes on with the text that was read last, and what came of that and was not read yet.
        self._alone = False
        self._postponed: list[bytes] = []

        passing: list[Stage[Event, Event]] = []
        if attempt.formats is not PLAIN:
            passing = attempt.formats.stages(make_id)
        if attempt.tool_names:
            passing.append(RestoreToolNames(attempt.tool_names))
        if attempt.tool_forms:
            passing.append(RestoreToolArguments(attempt.tool_forms))
        if handling.budget is not None:
            passing.append(handling.budget)
        # The reply as the model gave it, where something may be left out for its client.
        self._unfiltered: ResponseFold | None = None
        if handling.thinking is not None:
            self._unfiltered = ResponseFold(provider=name, model=model, most_text=most_text, summarizes=shows_summaries)
            passing += (FoldStage(self._unfiltered), handling.thinking)
        if handling.stamp is not None:
            passing.append(FillMissingFields(handling.stamp))
        self._stages: list[Stage[Event, Event]] = [*passing, *handling.stages]
        self._lookers = lookers_of(self._stages) if self._repeated is not None else []
        self._fold = ResponseFold(
            provider=name,
            model=model,
            billed_as_output=row.billed_as_output,
            most_text=most_text,
            summarizes=shows_summaries,
        )
        self._written = WrittenTokens()

    @property
    def fold(self) -> ResponseFold:
        """The reply so far, as its client gets it."""
        if self._postponed:
            self._catch_up()
        return self._fold

    @property
    def fold_with_reasoning(self) -> ResponseFold:
        """The reply so far, with the reasoning that its client does not want."""
        return self._unfiltered or self.fold

    @property
    def lacks_ids(self) -> bool:
        """Whether the provider left a call without the id that its dialect asks for."""
        if self.switchable is not None:
            return self.switchable.lacks_ids
        return self._calls.minted and not dialect(self._row.dialect).omits_call_ids

    @property
    def broke_off(self) -> bool:
        """Whether the reply ended inside a call, which its client must not get as a complete one."""
        return self._calls.cut

    @property
    def switches(self) -> bool:
        """Whether a stream that is forwarded is to be written anew from here on."""
        return self.switchable is not None and self.switchable.lacks_ids

    @property
    def over(self) -> bool:
        """Whether the reply said its own last event: nothing that follows belongs to it."""
        return self._decoder.over and not self._abandoned

    @property
    def complete(self) -> bool:
        """Whether the reply may end here, though more may follow."""
        return self._decoder.complete

    @property
    def reframed(self) -> bool:
        """Whether the bytes are in another framing than the reply's head said: then they are not the client's."""
        return self._framing.reframed

    @property
    def thinking_place(self) -> ThinkingPlace | None:
        """Where the reply's thinking stood, or None if nobody looked, or nothing says so."""
        return next((stage.place for stage in self._stages if isinstance(stage, InlineReasoning)), None)

    @property
    def usage(self) -> Usage:
        """What the reply has used, as far as it was reported."""
        return self.fold.usage

    @property
    def written(self) -> WrittenTokens:
        """What the model wrote, as far as it has come, whether or not the client gets it."""
        if self._postponed:
            self._catch_up()
        return self._written

    def unfinished_usage(self, correction: float = 1.0) -> Usage | None:
        """Return what was used of a reply that broke, or that is read no further, or None if nothing of the model came.

        `correction` is how many tokens of the model an estimated one is.
        """
        if self.failure is None and not self._abandoned:
            # Some decoders tell at the end what was counted on the way.
            self._abandoned = True
            self.written.feed(self._decoder.finish())
        written = self.written
        if isinstance(self.failure, EmptyReply) and not self._streamed:
            return written.usage if written.usage.reported else None
        return written.unfinished_usage(correction)

    def count_broken(self, body: bytes) -> None:
        """Count what came of a whole body that broke off, which nobody can read to its end."""
        self._written.feed(events_of_broken_body(body, self._row))

    def response(self) -> Response:
        """Return the reply as far as it has come."""
        return self.fold.response()

    def unfiltered_response(self) -> Response | None:
        """Return the reply as the model gave it, where something of it is left out for the client; else None."""
        return None if self._unfiltered is None else self._unfiltered.response()

    def fields_to_return(self) -> dict[int, dict[str, Any]]:
        """Return the fields that the provider takes back unmodified in the next request, by choice."""
        if self._postponed:
            self._catch_up()
        return self._decoder.fields_to_return() if isinstance(self._decoder, ReturningDecoder) else {}

    def feed(self, item: bytes) -> list[Event]:
        """Return the events of one chunk of bytes."""
        return [*chain.from_iterable([events for events, _ in self.read(item, joined=False)])]

    def read(self, chunk: bytes, *, joined: bool) -> list[EventsAndBytes]:
        """Return the events of one chunk of bytes, beside the bytes that they were read from.

        `joined`: equal frames in a row may become one event.
        """
        self.repeats = False
        repeated = self._repeated
        if self._postponed:
            self._catch_up()
        if self._watch.feed(chunk) or repeated is None:
            return self._fed(chunk)
        begin, frames, size = repeated.framing.held_until(chunk), 1, len(chunk)
        pieces = self._fed(chunk[:begin]) if begin else []
        ends = self._ends
        while begin < size and self.failure is None and not self._decoder.over:
            # Nothing overtakes the frames that are held.
            found = None if ends is not None and ends.holds else repeated.read(chunk, begin, joined=joined)
            if found is not None:
                events, end = found
                pieces.append((self._take_repeated(events), chunk[begin:end]))
                self.repeats = end - begin == size
            else:
                # Looking at the rest once more for each frame would take more than linear time.
                end, frames = repeated.framing.end_of(chunk, begin, frames), 2 * frames
                pieces += self._fed(chunk[begin:end])
            begin = end
        return pieces

    def read_repeated(self, chunk: bytes, *, joined: bool) -> Sequence[Event] | None:
        """Return the events of a chunk in which nothing but the text of the last one goes on; None for any other, which is to be `read`."""
        repeated = self._repeated
        if repeated is None or not self.repeats or self._watch.feed(chunk):
            return None
        if self._postponed:
            self._catch_up()
        events = repeated.read_all(chunk, joined=joined)
        return None if events is None else self._take_repeated(events)

    def postpone(self, chunk: bytes) -> bool:
        """Take a chunk of which `read_repeated` would give one text that no stage looks at: it is read with those that follow."""
        repeated = self._repeated
        value = repeated.value_of(chunk) if repeated is not None and self.repeats and self._alone else None
        if value is None or not is_text(value) or self._watch.feed(chunk):
            return False
        self._postponed.append(value)
        if len(self._postponed) >= _MOST_POSTPONED:
            self._catch_up()
        return True

    def _catch_up(self) -> None:
        """Read what was postponed."""
        assert self._repeated is not None
        values, self._postponed = self._postponed, []
        events = self._repeated.decoder.again(values, joined=True)
        if events:
            self._take_further(events)

    def _take_repeated(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return what comes for the client of events of frames that are alike: pieces of a text, or of the arguments of a call."""
        if not events:
            return events
        if not self.has_token:
            self._note_beginning(events)
        says_text = type(events[0]) is not ToolCallChunk
        self._alone = says_text and not self._lookers and self.has_token
        return self._take_further(events) if says_text else self._take(events)

    def _take(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return what comes of decoded events for the client."""
        if not events:
            return events
        self._written.feed(events)
        return self.settle(pass_through(self._calls.feed(events), self._stages))

    def _take_further(self, pieces: Sequence[Event]) -> Sequence[Event]:
        """Return what comes for the client of pieces of one text, of which a piece came before."""
        self._written.feed(pieces)
        passed = pass_further(pieces, self._stages, self._lookers)
        if passed is not pieces:
            return self.settle(passed) if passed else passed
        self._fold.feed_run(pieces)
        return pieces

    def read_whole(self, body: bytes) -> EventsAndBytes:
        """Return the events of a whole body, and its bytes for a client: what `read` and `read_rest` give, at once where it is plain."""
        decoder = None if self._streamed or len(body) > MAX_FRAME_BYTES else self._plain_decoder
        # What was read once is not read again: what quotes a secret is cleaned frame by frame.
        plain = None if decoder is None or self._watch.feed(body) else decoder.read_plain(body)
        if plain is None:
            pieces = [*self.read(body, joined=False), *self.read_rest()]
            return [event for events, _ in pieces for event in events], b"".join([raw for _, raw in pieces])
        self._framing.begun = True
        self.begun = self.has_content = self.has_token = True
        events = [*plain, *self._decoder.finish()]
        self._written.feed(events)
        passed = pass_whole(events, self._stages)
        if self._unfiltered is not None and not self._unfiltered.begun:
            # Nobody thought, so that nothing is left out for the client.
            self._unfiltered = None
        return self.settle(passed), body

    def finish(self) -> list[Event]:
        """Return what was held back, and the failure of a reply that ended too early."""
        return [event for events, _ in self.read_rest() for event in events]

    def read_rest(self) -> list[EventsAndBytes]:
        """Return what was held back, and the failure of a reply that ended too early, beside the bytes they were read from."""
        try:
            pieces = self._read(self._framing.finish())
        except FramingError as problem:
            return [(self.fail(self._malformed(str(problem))), b"")]
        if self.failure is not None:
            return pieces
        foreign = self._framing.problem()
        if foreign is not None:
            return [(self.fail(foreign), b"")]
        last = self.settle(self._flush())
        self._name_failure()
        held = self.released()
        if pieces and any(type(event) is Failed for event in last):
            # What came last is no whole frame, and nobody could read an error behind it.
            pieces[-1] = (pieces[-1][0], b"")
        return [*pieces, (last, held)]

    def released(self) -> bytes:
        """Return the frames that were held for the end of a call, at the end of a reply that did not break off."""
        return b"" if self._ends is None or self.failure is not None else self._ends.released()

    def _fed(self, chunk: bytes) -> list[EventsAndBytes]:
        try:
            return self._read(self._framing.feed(chunk))
        except FramingError as problem:
            return [(self.fail(self._malformed(str(problem))), b"")]

    def _malformed(self, why: str) -> MalformedReply:
        return self._framing.problem(why) or MalformedReply(why, provider=self._provider)

    def _read(self, frames: Sequence[Frame]) -> list[EventsAndBytes]:
        """Read frames until one breaks the reply, or ends it. Frames that hold nothing but a piece of text pass the stages together."""
        decoder, plain_decoder = self._decoder, self._plain_decoder
        pieces: list[EventsAndBytes] = []
        texts: list[Event] = []
        raw: list[bytes] = []
        for frame in frames:
            if self.failure is not None or decoder.over:
                break
            if not self._streamed:
                self._body = frame.data
            plain = (
                plain_decoder.read_plain(frame.raw) if plain_decoder is not None and frame.data is frame.raw else None
            )
            if plain is not None:
                readable, decoded = frame, plain
            else:
                readable, decoded = self._mended(frame) if self._forward else (frame, decoder.feed(frame))
            if decoded and not self.has_token:
                self._note_beginning(decoded)
            # A frame is looked at by itself where it may quote a secret.
            if len(frames) > 1 and len(decoded) == 1 and type(decoded[0]) in TEXTS and not self._watch.seen:
                texts += decoded
                raw.append(readable.raw)
                continue
            if texts:
                pieces.append(self._passed(texts, Frame(None, raw=b"".join(raw))))
                texts, raw = [], []
            pieces.append(self._passed(decoded, readable))
        if texts:
            pieces.append(self._passed(texts, Frame(None, raw=b"".join(raw))))
        return pieces

    def _mended(self, frame: Frame) -> tuple[Frame, Sequence[Event]]:
        """Return a frame as its client gets it, and its events; at the first that is mended, also the one that tells so."""
        if self._plain_decoder is not None and frame.alone:
            plain = self._plain_decoder.read_plain_frame(frame)
            if plain is not None:
                return frame, plain
        readable = strict_frame(frame)
        tells = readable.data is not frame.data and not self._told_repaired
        self._told_repaired = self._told_repaired or tells
        if self._fill_ids is not None:
            readable = self._fill_ids.feed(readable)
        decoded = self._decoder.feed(readable)
        return readable, [*decoded, REPAIRED] if tells else decoded

    def _note_beginning(self, events: Sequence[Event]) -> None:
        """Take the events of a frame, as they were decoded, of a reply of which the model had said nothing before."""
        self.begun = True
        self.has_content = self.has_content or any(map(is_content, events))
        self.has_token = any(map(is_token, events))

    def _passed(self, decoded: Sequence[Event], frame: Frame) -> EventsAndBytes:
        """Return what comes of decoded events for the client, beside what it gets of their frame; nothing behind a failure."""
        events = self._take(decoded) if self.failure is None else ()
        if self.failure is not None:
            self._name_failure()
            return events, b""
        if self._watch.seen:
            frame = frame_without_quoted(frame, events, self._watch.secrets)
        return events, frame.raw if self._ends is None else self._ends.feed(frame, decoded)

    def _name_failure(self) -> None:
        """Say which provider's reply it was, by its id in the configuration: a decoder knows only its row."""
        if isinstance(self.failure, ProviderError):
            self.failure.provider = self._provider

    def fail(self, error: BardoError) -> Sequence[Event]:
        """End the reply with an error from outside: a connection that broke, a deadline. A reply that was complete is no failure."""
        if self.failure is not None:
            return []
        # What the stages held was already the model's word.
        return self.settle(self._flush(None if self._decoder.complete else error))

    def settle(self, events: Sequence[Event]) -> Sequence[Event]:
        """Fold events that have passed the stages, or were made behind the reply's end, and return them without secrets."""
        if self._watch.seen:
            events = [without_secrets(event, self._watch.secrets) for event in events]
        if Failed in map(type, events):
            for event in events:
                if type(event) is Failed and self.failure is None:
                    self._clean(event.error)
                    self.failure = event.error
        elif len(events) >= MANY:
            for run in runs_of(events):
                self._fold.feed_run(run)
            return events
        self._fold.feed_all(events)
        return events

    def _flush(self, error: BardoError | None = None) -> list[Event]:
        """Return what the decoder and each stage still had to say; a reply that says nothing at all is a failure.

        `error` is what broke the reply off: no stage ends what is open then.
        """
        last = self._decoder.finish()
        self._written.feed(last)
        if error is not None:
            last = [*(event for event in last if type(event) is not Failed), Failed(error)]
        last = self._calls.feed(last)
        said = [event for event in last if not (type(event) is Failed and type(event.error) is BrokenStream)]
        if error is None and len(said) < len(last) and self._is_empty_object() and not any(map(is_content, said)):
            # A body that came to its end and holds nothing is no reply that broke off.
            last = said
        if not any(type(event) is Failed for event in last):
            last = [*last, *self._calls.finish()]
        if error is None and not self.has_content and not any(map(is_content, last)):
            last = [*last, Failed(EmptyReply(f"the reply of {self._provider} is empty", provider=self._provider))]
        return passed_to_the_end(last, self._stages)

    def _is_empty_object(self) -> bool:
        """Whether the reply is a whole body that is a JSON object, and nothing of the model stood in it."""
        if self._streamed or self.has_content or self._body is None:
            return False
        try:
            return isinstance(msgspec.json.decode(self._body), dict)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False


def row_reader(
    row: ProviderRow, *, streamed: bool, model: str = "", provider: str = "", handling: ReplyHandling | None = None
) -> ReplyReader:
    """Return a reader of a reply of which no more is known than its provider's row and, maybe, whose text it is."""
    target = Target(provider=Provider(id=provider or row.id, row=row, base_url=""), model=model)
    attempt = Attempt(target=target, wire=WireRequest(path="", body=b""), formats=text_formats_of(row, model))
    return ReplyReader(attempt, streamed=streamed, handling=handling or ReplyHandling())
