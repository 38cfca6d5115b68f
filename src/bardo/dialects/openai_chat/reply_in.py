"""Chat Completions replies to events, whole or streamed.

A whole message is read as one delta, so both go one way. The OpenAI-compatible family puts reasoning into `reasoning_content`, `reasoning`,
`reasoning_details` or a list of content parts, some of them at once with the same text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

import msgspec
from msgspec import UNSET

from bardo.dialects.openai_chat.calls import BlockChanges, CallReader, Kind, OpenBlock
from bardo.dialects.openai_chat.errors import bare_error, error_in_reply
from bardo.dialects.openai_chat.fast import Piece, Repetition
from bardo.dialects.openai_chat.thinking import (
    BLANK_LINE,
    ReturnedDetails,
    ThinkingBlocks,
    ThinkingReader,
    decode_details,
    hold_text,
    plain_before,
)
from bardo.dialects.openai_chat.usage import decode_usage, google_counts
from bardo.dialects.openai_chat.wire import (
    FORM,
    NAME,
    Choice,
    Detail,
    Reply,
    ReplyMessage,
    ReplyText,
    ReplyThinking,
    decode_finish,
    decode_states,
)
from bardo.dialects.shared.dialect import PlainReplyDecoder, RepeatingDecoder, ReturningDecoder, SwitchableDecoder
from bardo.dialects.shared.json_values import JsonObject, WrongShape, as_text, decode_leniently, excerpt
from bardo.dialects.shared.reply_structs import held
from bardo.dialects.shared.structs import Unknown, carried_fields
from bardo.streams.frames import Frame
from bardo.streams.sse import FrameEnds
from bardo.values.blocks import Opaque
from bardo.values.errors import BrokenStream, EmptyReply, MalformedReply, ProviderError
from bardo.values.events import (
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ToolCallChunk,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.usage import Usage

MAX_CHOICES = 256
"""Twice as many as OpenAI lets a request ask for."""
_NOTHING = ReplyMessage()


class ChatDecoder(PlainReplyDecoder, RepeatingDecoder, SwitchableDecoder, ReturningDecoder):
    """Reads one reply. `excludes_reasoning` is the provider's fact about reasoning tokens, or None if it is not known."""

    def __init__(
        self, *, provider: str = "", excludes_reasoning: bool | None = None, returns_details: bool = False
    ) -> None:
        self._provider = provider
        self._excludes_reasoning = excludes_reasoning
        self._returns_details = returns_details
        self._begin()

    def _begin(self) -> None:
        self._about = ReplyFieldsReader(excludes_reasoning=self._excludes_reasoning)
        self._choices: dict[int, ChoiceReader] = {}
        self._changes = BlockChanges()
        self._repetition = Repetition()
        self._done = False
        self._failed = False
        self._whole = False
        self._seen = False
        self._read_at_once = False

    @property
    def over(self) -> bool:
        """Whether `[DONE]` has come."""
        return self._done or self._failed

    @property
    def complete(self) -> bool:
        """Whether every choice has ended; usage may come behind that, and `[DONE]`."""
        return self._whole or self._done or self._all_finished()

    def feed(self, item: Frame) -> Sequence[Event]:
        """Return the events of one frame."""
        data = item.data
        if data is None or self._failed or self._done:
            return ()
        if self._read_at_once:
            # What was read at once may be fed all the same, where it quotes a secret.
            self._begin()
        events = None if item.event else self._repetition.read(data)
        return self._read(item, data) if events is None else events

    def read_plain_frame(self, item: Frame) -> Sequence[Event] | None:
        """Return the events of a frame that any strict reader can read, and that holds no call; None for any other."""
        data = item.data
        if data is None or item.event or self._failed or self._done:
            return None
        events = None if self._changes.tells_calls else self._repetition.read(data)
        if events is not None:
            return events
        frame = FORM.decode_strict(data)
        return None if frame is None or _has_calls(frame) else self._take(frame, data, [])

    def read_plain(self, data: bytes) -> Sequence[Event] | None:
        """Return the events of a whole reply of one choice with a text and no call that any strict reader can read; None for any other."""
        reply = FORM.decode_strict(data)
        if reply is None or reply.error or reply.choices is None or len(reply.choices) != 1:
            return None
        choice = reply.choices[0]
        message = None if choice is None or choice.delta is not None or choice.error else choice.message
        if choice is None or message is None or not choice.finish_reason:
            return None
        if not message.content or not isinstance(message.content, str) or message.tool_calls or message.function_call:
            return None
        if self._read_at_once:
            self._begin()
        self._read_at_once = True
        return self._take(reply, data, [])

    def repeated(self) -> FrameEnds | None:
        """Return the bytes around the text of the frames that repeat."""
        return None if self._failed or self._done else self._repetition.around()

    def again(self, values: Sequence[bytes], *, joined: bool) -> Sequence[Event] | None:
        """Return the events of frames that repeat."""
        return self._repetition.read_all(values, joined=joined)

    def fields_to_return(self) -> dict[int, JsonObject]:
        """Return the details of each choice, where the provider takes them back."""
        by_number = {
            number: reader.returned.pieces() for number, reader in self._choices.items() if reader.returned is not None
        }
        return {number: {"reasoning_details": pieces} for number, pieces in by_number.items() if pieces}

    @property
    def lacks_ids(self) -> bool:
        """Whether a call came without its id."""
        # Asked at every read of a stream, where a loop costs half of what `any` does.
        for reader in self._choices.values():  # noqa: SIM110
            if reader.calls.lacks_ids:
                return True
        return False

    @property
    def waits(self) -> bool:
        """Whether a call waits for its id."""
        for reader in self._choices.values():  # noqa: SIM110
            if reader.calls.waiting is not None:
                return True
        return False

    @property
    def missing_end(self) -> bytes:
        """Return `[DONE]` as a frame, unless it has come. Cerebras and MiniMax send none."""
        return b"" if self._done else b"data: [DONE]\n\n"

    def finish(self) -> Sequence[Event]:
        """Close the open parts; a stream that ended too early fails here."""
        if self._failed:
            return ()
        ended = self.complete
        events = self._close(settle=ended)
        if not self._seen:
            return [*events, *self._fail(EmptyReply("the reply is empty", provider=self._provider))]
        if not ended:
            events += self._fail(BrokenStream("the stream ended before its end", provider=self._provider))
        return events

    def _all_finished(self) -> bool:
        for reader in self._choices.values():
            if not reader.finished:
                return False
        return bool(self._choices)

    def _close(self, *, settle: bool) -> list[Event]:
        return [event for reader in self._choices.values() for event in reader.close(settle=settle)]

    def _fail(self, error: ProviderError) -> list[Event]:
        self._failed = True
        return [*self._close(settle=False), Failed(error)]

    def _listener(self, piece: Piece) -> Callable[[str], object] | None:
        """Return what must hear of further text of a piece that is read elsewhere."""
        reader = self._choices[piece.choice]
        if isinstance(piece, ToolCallChunk):
            return reader.calls.listener(piece.block)
        return reader.returned.more if isinstance(piece, ThinkChunk) and reader.returned is not None else None

    def _read(self, item: Frame, data: bytes) -> Sequence[Event]:
        """Read a frame that may say anything."""
        mended: list[Event] = []
        try:
            frame = FORM.decode(data, mended)
        except WrongShape:
            self._seen = True
            return self._fail(MalformedReply(f"not a chat reply: {excerpt(data.strip())}", provider=self._provider))
        except ValueError:
            return self._read_mark(item, data.strip())
        if item.event == "error" and not frame.error:
            frame = Reply(error=decode_leniently(data))
        return self._take(frame, data, mended)

    def _read_mark(self, item: Frame, data: bytes) -> Sequence[Event]:
        """Read a frame that is no JSON: the end of the stream, an empty one, or one that no reply has."""
        if not data:
            return ()
        self._seen = True
        if data == b"[DONE]":
            self._done = True
            return ()
        if not item.complete and self._choices:
            return self._fail(BrokenStream("the stream broke off inside an event", provider=self._provider))
        return self._fail(MalformedReply(f"the reply is not JSON: {excerpt(data)}", provider=self._provider))

    def _take(self, frame: Reply, data: bytes, mended: list[Event]) -> Sequence[Event]:
        self._seen = True
        before = self._changes.count
        events = self._body(frame, data)
        if mended:
            events = [*mended, *events]
        if not self._whole:
            self._repetition.note(data, events, self._listener, steady=before == self._changes.count)
        return events

    def _body(self, frame: Reply, data: bytes) -> list[Event]:
        events = self._about.begin(frame)
        error: ProviderError | None = None
        if frame.error or frame.others is not None:
            error = error_in_reply(frame, self._provider)
        for position, choice in enumerate(frame.choices or ()):
            if choice is None or (choice.others is not None and choice.others.get("delta")):
                error = error or self._malformed("no choice", decode_leniently(data)["choices"][position])
                continue
            number = position if choice.index is None else choice.index
            reader = self._choices.get(number)
            if reader is None:
                returns = self._returns_details
                reader = self._choices[number] = ChoiceReader(number, self._changes, returns_details=returns)
            delta, message = choice.delta, choice.message
            # Perplexity sends both: its whole replies hold an empty delta, and its frames repeat the message so far.
            if message is not None and (delta is None or (frame.kind == "chat.completion" and not reader.begun)):
                self._whole = True
                events += reader.take(choice, message, whole=True)
            else:
                events += reader.take(choice, delta or _NOTHING, whole=False)
            if len(self._choices) > MAX_CHOICES:
                too_many = f"the reply has more than {MAX_CHOICES} choices"
                return [*events, *self._fail(MalformedReply(too_many, provider=self._provider))]
            if choice.error or choice.others is not None:
                error = error or error_in_reply(choice, self._provider)
        events += self._about.fields(frame)
        if frame.choices is None and error is None:
            error = self._without_choices(frame, data)
        return events + self._fail(error) if error is not None else events

    def _without_choices(self, frame: Reply, data: bytes) -> ProviderError | None:
        """Return the faults of a frame that has no list of choices, or None if it may do without."""
        body: JsonObject = decode_leniently(data)
        choices = body.get("choices")
        if choices is not None:
            return self._malformed("choices must be a list", choices)
        error = bare_error(body, self._provider)
        if error is None and "usage" not in body and not self._choices:
            return self._malformed("no choices in the reply", sorted(body))
        return error

    def _malformed(self, problem: str, value: object) -> MalformedReply:
        return MalformedReply(f"{problem}: {excerpt(msgspec.json.encode(value))}", provider=self._provider)


def _has_calls(frame: Reply) -> bool:
    for choice in frame.choices or ():
        for message in () if choice is None else (choice.delta, choice.message):
            if message is not None and (message.tool_calls or message.function_call):
                return True
    return False


class ChoiceReader:
    """Reads the deltas of one choice, in order."""

    __slots__ = ("_blocks", "_carried", "_finish", "_index", "_open", "_thinking", "calls", "returned")

    def __init__(self, index: int, changes: BlockChanges, *, returns_details: bool) -> None:
        self.returned = ReturnedDetails() if returns_details else None
        self._index = index
        self._open = OpenBlock(index, changes)
        self._thinking = ThinkingReader(self._open)
        self._blocks = ThinkingBlocks()
        self.calls = CallReader(self._open)
        self._carried: JsonObject = {}
        self._finish: Finish | None = None

    @property
    def begun(self) -> bool:
        """Whether anything has been said."""
        return self._open.number >= 0 or self.calls.any

    @property
    def finished(self) -> bool:
        """Whether a finish reason has come."""
        return self._finish is not None

    def take(self, choice: Choice, delta: ReplyMessage, *, whole: bool) -> list[Event]:
        """Take what a choice says: its whole message, or the new part of it."""
        if self.returned is not None:
            self.returned.take(delta, whole=whole)
        thinks = delta.reasoning_content or delta.reasoning or delta.reasoning_details or delta.thinking_blocks
        events = self._take_thinking(delta, whole=whole) if thinks or delta.reasoning_steps else []
        if whole and delta.extra_content:
            events += self._take_states(delta.extra_content, whole=True)
        content = delta.content
        if type(content) is str:
            events += self._text(content) if content else ()
        elif content is not None or delta.others is not None:
            thought = any(type(event) is ThinkChunk for event in events)
            events += self._take_content(held(delta, "content"), read_thinking=not thought)
        for block in delta.content_blocks or ():
            wrapped = isinstance(block, dict) and block.keys() == {"index", "block"}
            events += self._unknown(block["block"] if wrapped else block)  # type: ignore[index]
        if delta.refusal:
            events += self._enter("refusal")
            events.append(RefusalChunk(self._open.number, delta.refusal, self._index))
        if delta.extra_content and not whole:
            events += self._take_states(delta.extra_content, whole=False)
        if delta.tool_calls or delta.function_call is not None:
            events += self.calls.take(delta)
        fields = self._new_fields(choice, delta)
        if fields:
            events.append(ReplyFields(NAME, fields, self._index))
        return events + self._take_finish(choice) if choice.finish_reason else events

    def close(self, *, settle: bool) -> list[Event]:
        """Close the open parts. `settle`: the reply is complete; a choice without a finish reason gets the one that can be told."""
        broken = self._finish is not None and self._finish.reason == "error"
        events = [*self._open.leave(), *self.calls.close(complete=settle and not broken)]
        if settle and self._finish is None:
            events.append(self._finished(""))
        return events

    def _enter(self, kind: Kind) -> list[Event]:
        if self._open.kind == kind != "":
            return []
        waiting = [] if self.calls.waiting is None else self.calls.settle()
        return waiting + self._open.enter(kind)

    def _text(self, text: str) -> list[Event]:
        events = self._enter("text")
        events.append(ContentChunk(self._open.number, text, self._index))
        return events

    def _add_reasoning(self, text: str, field: str) -> list[Event]:
        waiting = [] if self.calls.waiting is None else self.calls.settle()
        return waiting + self._thinking.plain(text, field)

    def _unknown(self, value: object) -> list[Event]:
        return [*self._enter(""), UnknownContent(self._open.fresh(), NAME, value, self._index)]

    def _take_thinking(self, delta: ReplyMessage, *, whole: bool) -> list[Event]:
        """Take the details where they hold text, else the first field that does."""
        details: Sequence[Detail | None] | str | None = delta.reasoning_details
        if details is None and delta.thinking_blocks:
            details = self._blocks.pieces(delta.thinking_blocks)
        if isinstance(details, list) and hold_text(details):
            before = self._plain_before(delta.reasoning_content, details) if whole else []
            return [*self.calls.settle(), *before, *self._thinking.details(details, whole=whole)]
        events: list[Event] = []
        if delta.reasoning_content:
            events = self._add_reasoning(delta.reasoning_content, "reasoning_content")
        elif delta.reasoning:
            events = self._add_reasoning(delta.reasoning, "reasoning")
        elif details and isinstance(details, str):
            events = self._add_reasoning(details, "reasoning_details")
        elif delta.reasoning_steps:
            events = self._take_steps(delta.reasoning_steps)
        return events + self._thinking.details(details, whole=whole) if isinstance(details, list) else events

    def _take_steps(self, steps: list[object]) -> list[Event]:
        """Read Perplexity's steps: each has a thought, beside the search or the page that it led to."""
        thoughts = [step.get("thought") for step in steps if isinstance(step, dict)]
        return [
            event
            for thought in thoughts
            if isinstance(thought, str) and thought
            for event in self._add_reasoning(f"{thought}\n\n", "reasoning_steps")
        ]

    def _plain_before(self, text: str | None, details: Sequence[Detail | None]) -> list[Event]:
        """Read the thinking of a whole message that only its plain field has: bardo writes so what came before its first detail."""
        if text is None or BLANK_LINE not in text:
            return []
        blocks = [piece.block for piece in decode_details([detail for detail in details if detail is not None])]
        before = plain_before(text, [block.readable for block in blocks if block.readable])
        return self._thinking.plain_before(before, "reasoning_content") if before else []

    def _take_content(self, content: object, *, read_thinking: bool) -> list[Event]:
        if not isinstance(content, list):
            # Cloudflare answers a schema with the object itself.
            text = as_text(content)
            return self._text(text) if text else []
        events: list[Event] = []
        for part in content:
            if isinstance(part, str):
                events += self._text(part) if part else ()
            elif isinstance(part, ReplyText):
                events += self._text(part.text) if part.text else ()
                rest = {f"message.{name}": value for name, value in (part.others or {}).items() if value}
                events += [ReplyFields(NAME, rest, self._index)] if rest else ()
            elif isinstance(part, Unknown):
                events += self._unknown(part.whole.value)
            elif read_thinking:
                events += self._thinking_part(part)
        return events

    def _thinking_part(self, part: ReplyThinking) -> list[Event]:
        inner = held(part, "thinking")
        events: list[Event] = []
        for piece in inner if isinstance(inner, list) else [inner]:
            text = piece.get("text") if isinstance(piece, dict) else piece
            if isinstance(text, str):
                events += self._add_reasoning(text, "content_list") if text else ()
            elif piece is not None:
                events += self._unknown(piece)
        if part.signature and self._open.kind == "think":
            state = Opaque("signature", part.signature, "content_list")
            events.append(OpaqueState(self._open.number, state, self._index))
        return events

    def _take_states(self, extra: JsonObject, *, whole: bool) -> list[Event]:
        states, _ = decode_states(extra)
        if not states:
            return []
        events = self._enter("text")
        if whole:
            # The block begins before its state, and its text follows: who writes Gemini again knows both at once.
            events.append(ContentChunk(self._open.number, "", self._index))
        return events + [OpaqueState(self._open.number, state, self._index) for state in states]

    def _new_fields(self, choice: Choice, delta: ReplyMessage) -> JsonObject:
        """Return what bardo has no word for and is new: of the choice, of its log probabilities and of its message.

        A list that repeats is told again: log probabilities come in pieces.
        """
        if _carried_of_choice(choice) == _NONE_OF_CHOICE and _carried_of_message(delta) == _NONE_OF_MESSAGE:
            return {}
        fields = {name: value for name, value in (carried_fields(choice) or {}).items() if name not in _READ_OF_CHOICE}
        if isinstance(choice.logprobs, dict):
            fields |= {f"logprobs.{name}": value for name, value in choice.logprobs.items()}
        elif (scores := held(choice, "logprobs")) is not None:
            # OpenRouter's sum of them: OpenAI's library takes whatever stands here for an object.
            fields["logprobs.value"] = scores
        for name, value in (carried_fields(delta) or {}).items():
            if name not in _READ_OF_MESSAGE:
                fields[f"message.{name}"] = value
        if delta.extra_content:
            fields["message.extra_content"] = decode_states(delta.extra_content)[1] or None
        if delta.audio is not None:
            # Sound and its transcript come in pieces.
            fields["message.audio"] = [delta.audio]
        carried = self._carried
        new = {
            name: value
            for name, value in fields.items()
            if value is not None and (carried.get(name) != value or (isinstance(value, list) and value))
        }
        carried.update(new)
        return new

    def _take_finish(self, choice: Choice) -> list[Event]:
        raw, native = choice.finish_reason or "", choice.native_finish_reason
        # OpenRouter says "tool_calls" of a call that its provider cut off, and "max_output_tokens" beside it (gpt-4.1-mini, gpt-4o-mini).
        if native is not None and decode_finish(native, calls=False) == "length":
            raw = native
        before = self._finish
        finish = self._finished(raw)
        events = [*self._open.leave(), *self.calls.close(complete=finish.reason != "error")]
        # Some hosts say it twice, once with the usage.
        return events if finish == before else [*events, finish]

    def _finished(self, raw: str) -> Finish:
        self._finish = Finish(decode_finish(raw, calls=self.calls.any), raw, choice=self._index)
        return self._finish


# Also where they are of another type than their own.
_READ_OF_CHOICE = frozenset({"index", "delta", "message", "finish_reason", "error", "usage", "logprobs"})
_READ_OF_MESSAGE = frozenset({"role", "content", "extra_content"})
_carried_of_choice = attrgetter("others", "logprobs", *Choice.CARRIED)
_carried_of_message = attrgetter("others", "extra_content", "audio", *ReplyMessage.CARRIED)
_NONE_OF_CHOICE, _NONE_OF_MESSAGE = _carried_of_choice(Choice()), _carried_of_message(ReplyMessage())


class ReplyFieldsReader:
    """Reads what a frame says of the reply as a whole: its id and model, its usage, and fields bardo has no word for. Each is told once.

    `excludes_reasoning` is the provider's fact about reasoning tokens.
    """

    __slots__ = ("_excludes_reasoning", "_fields", "_google", "_latest", "_raw", "_start", "_usage")

    def __init__(self, *, excludes_reasoning: bool | None) -> None:
        self._excludes_reasoning = excludes_reasoning
        self._start: ReplyStart | None = None
        self._fields: JsonObject = {}
        self._latest = _NONE_OF_REPLY
        self._usage: Usage | None = None
        self._raw: JsonObject | None = None
        self._google: JsonObject | None = None

    def begin(self, frame: Reply) -> list[Event]:
        """Tell the id, the model and the time, as soon as each is known."""
        earlier = self._start or _NO_START
        if earlier.id and earlier.model and earlier.created:
            return []
        time = frame.created
        created = None if time is None or abs(time) >= _LARGEST_TIME else int(time)
        start = ReplyStart(
            id=earlier.id or frame.id or "",
            model=earlier.model or frame.model or "",
            # Azure's first frame is about the prompt, and has no time.
            created=earlier.created if created is None else earlier.created or created,
        )
        if start == self._start:
            return []
        self._start = start
        return [start]

    def fields(self, frame: Reply) -> list[Event]:
        """Tell the usage, and whatever else is new."""
        values, earlier = _carried_of_reply(frame), self._fields
        fields: JsonObject = {}
        new: JsonObject = {}
        if values != self._latest:
            self._latest = values
            fields = {name: value for name, value in zip(_CARRIED, values, strict=True) if value is not UNSET}
        if frame.others is not None:
            fields.update((name, value) for name, value in frame.others.items() if name not in _READ)
        for name, value in fields.items():
            if name not in earlier or earlier[name] != value:
                new[name] = _grown(earlier[name], value) if name in earlier else value
                earlier[name] = value
        events: list[Event] = [ReplyFields(NAME, new)] if new else []

        google = google_counts(frame)
        if google is not None:
            self._google = google
        raw = frame.usage or _usage_beside(frame)
        if isinstance(raw, dict):
            self._raw = raw
        elif google is None or self._raw is None:
            return events
        usage, doubts = decode_usage(
            self._raw or {},
            excludes_reasoning=self._excludes_reasoning,
            cost=earlier.get("cost"),
            tier=earlier.get("service_tier"),
            google=self._google,
        )
        if self._usage is not None:
            usage = _filled(usage, self._usage)
        if usage != self._usage:
            self._usage = usage
            events += (UsageUpdate(usage), *map(Degraded, doubts))
        return events


_LARGEST_TIME = 1 << 53
_NO_START = ReplyStart()
_READ = frozenset({"id", "object", "created", "model", "choices", "usage", "error", "obfuscation", "p"})
_CARRIED = tuple(
    field.name for field in msgspec.structs.fields(Reply) if field.encode_name not in _READ and field.name != "others"
)
_carried_of_reply = attrgetter(*_CARRIED)
_NONE_OF_REPLY = _carried_of_reply(Reply())


def _grown(before: object, value: object) -> object:
    """Return what a list has more than before, since lists are joined; any other value as it is."""
    if isinstance(before, list) and isinstance(value, list) and value[: len(before)] == before:
        return value[len(before) :]
    return value


def _filled(usage: Usage, before: Usage) -> Usage:
    """Return a later report with the counts that only an earlier one had."""
    missing = {
        name: count
        for name, count in msgspec.structs.asdict(before).items()
        if count is not None and getattr(usage, name) is None
    }
    return msgspec.structs.replace(usage, **missing) if missing else usage


def _usage_beside(frame: Reply) -> object:
    """Return usage that stands elsewhere: Groq's own object has it a frame earlier, Moonshot puts it on the choice."""
    if frame.others is not None and frame.others.get("usage"):
        return frame.others["usage"]
    if frame.x_groq and frame.x_groq.get("usage"):
        return frame.x_groq["usage"]
    choice = frame.choices[0] if frame.choices else None
    return None if choice is None else choice.usage or None
