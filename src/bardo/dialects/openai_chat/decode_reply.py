"""Chat Completions replies to events, whole or streamed.

A whole message is read as one delta, so both go one way. Reading is liberal: the OpenAI-compatible family puts reasoning into
`reasoning_content`, `reasoning`, `reasoning_details` or a list of content parts, some of them at once with the same text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.dialects.base import PlainReplyDecoder, RepeatingDecoder, ReturningDecoder, SwitchableDecoder
from bardo.dialects.lenient import decode_leniently, excerpt
from bardo.dialects.openai_chat.choice import ChoiceReader
from bardo.dialects.openai_chat.errors import bare_error, error_in_choice, error_in_reply
from bardo.dialects.openai_chat.plain_frame import PlainChoice, PlainFrame, read_plain_frame
from bardo.dialects.openai_chat.plain_reply import read_plain
from bardo.dialects.openai_chat.repeated import Repetition
from bardo.dialects.openai_chat.reply_fields import ReplyFieldsDecoder
from bardo.streams.frames import Frame
from bardo.streams.sse import FrameEnds
from bardo.values.errors import BrokenStream, EmptyReply, MalformedReply, ProviderError
from bardo.values.events import Event, Failed

MAX_CHOICES = 256
"""Twice as many as OpenAI lets a request ask for."""


class ChatDecoder(PlainReplyDecoder, RepeatingDecoder, SwitchableDecoder, ReturningDecoder):
    """Reads one reply. `excludes_reasoning` is the provider's fact about reasoning tokens, None where it is not known."""

    def __init__(
        self, *, provider: str = "", excludes_reasoning: bool | None = None, returns_details: bool = False
    ) -> None:
        self._provider = provider
        self._excludes_reasoning = excludes_reasoning
        self._reply = ReplyFieldsDecoder(excludes_reasoning=excludes_reasoning)
        self._choices: dict[int, ChoiceReader] = {}
        self._repetition = Repetition()
        self._returns_details = returns_details
        self._done = False
        self._failed = False
        self._whole = False
        self._seen = False

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
        if item.event:
            return self._read(item, data)
        events = self._repetition.read(data)
        if events is None:
            events = self.read_plain_frame(item)
        return self._read(item, data) if events is None else events

    def read_plain_frame(self, item: Frame) -> Sequence[Event] | None:
        """Return the events of a frame of a stream that says no more than text, its end, or usage."""
        data = item.data
        if data is None or item.event or self._failed or self._done or not data.startswith(b"{"):
            return None
        frame = read_plain_frame(data)
        if frame is None:
            return None
        choice = frame.choices[0] if frame.choices else None
        if choice is not None and self._choices:
            reader = self._choices.get(0)
            if reader is None or not reader.takes_plain(choice.delta):
                return None
        return self._take_plain(frame, choice, data)

    def read_plain(self, data: bytes) -> Sequence[Event] | None:
        """Return the events of a whole reply that is one choice of text."""
        events = read_plain(data, excludes_reasoning=self._excludes_reasoning)
        if events is not None:
            self._seen = self._whole = True
        return events

    def repeated(self) -> FrameEnds | None:
        """Return the bytes around the text of the frames that repeat."""
        return None if self._failed or self._done else self._repetition.around()

    def again(self, values: Sequence[bytes], *, joined: bool) -> Sequence[Event] | None:
        """Return the events of frames that repeat."""
        return self._repetition.read_all(values, joined=joined)

    def fields_to_return(self) -> dict[int, dict[str, Any]]:
        """Return the details of each choice, where the provider takes them back."""
        found = {
            number: reader.returned.pieces() for number, reader in self._choices.items() if reader.returned is not None
        }
        return {number: {"reasoning_details": pieces} for number, pieces in found.items() if pieces}

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
            if reader.calls.waiting:
                return True
        return False

    @property
    def missing_end(self) -> bytes:
        """Return `[DONE]` as a frame, unless it has come. Cerebras and MiniMax send none."""
        return b"" if self._done else b"data: [DONE]\n\n"

    def finish(self) -> Sequence[Event]:
        """Close what is open; a stream that ended too early fails here."""
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

    def _read(self, item: Frame, data: bytes) -> Sequence[Event]:
        """Read a frame that may say anything."""
        data = data.strip()
        if data == b"[DONE]":
            self._seen = self._done = True
            return ()
        if not data:
            return ()
        self._seen = True
        mended: list[Event] = []
        try:
            body = decode_leniently(data, mended)
        except ValueError:
            return self._not_json(data, complete=item.complete)
        if not isinstance(body, dict):
            return self._fail(MalformedReply(f"not a chat reply: {excerpt(data)}", provider=self._provider))
        if item.event == "error" and not body.get("error"):
            body = {"error": body}
        before = self._positions()
        events = [*mended, *self._body(body)]
        self._repetition.note(data, events, self._choices.__getitem__, steady=before == self._positions())
        return events

    def _take_plain(self, frame: PlainFrame, choice: PlainChoice | None, data: bytes) -> Sequence[Event]:
        self._seen = True
        events = self._reply.begin_plain(frame)
        steady = True
        if choice is not None:
            reader = self._reader_of(0)
            before = reader.position
            events += reader.take_plain(choice.delta, choice.finish_reason)
            steady = before == reader.position
        events += self._reply.plain_fields(frame)
        self._repetition.note(data, events, self._choices.__getitem__, steady=steady)
        return events

    def _not_json(self, data: bytes, *, complete: bool) -> Sequence[Event]:
        if not complete and self._choices:
            return self._fail(BrokenStream("the stream broke off inside an event", provider=self._provider))
        return self._fail(MalformedReply(f"the reply is not JSON: {excerpt(data)}", provider=self._provider))

    def _body(self, body: dict[str, Any]) -> list[Event]:
        events: list[Event] = self._reply.begin(body)
        choices = body.get("choices")
        error: ProviderError | None = error_in_reply(body, self._provider)
        for position, choice in enumerate(choices if isinstance(choices, list) else ()):
            if not isinstance(choice, dict) or not isinstance(choice.get("delta") or {}, dict):
                error = error or MalformedReply(f"no choice: {_excerpt(choice)}", provider=self._provider)
                continue
            events += self._choice(choice, position, body.get("object"))
            if len(self._choices) > MAX_CHOICES:
                message = f"the reply has more than {MAX_CHOICES} choices"
                return [*events, *self._fail(MalformedReply(message, provider=self._provider))]
            error = error or error_in_choice(choice, self._provider)
        events += self._reply.fields(body)
        if error is None and choices is None:
            error = bare_error(body, self._provider)
        if error is None and choices is None and "usage" not in body and not self._choices:
            error = MalformedReply(f"no choices in the reply: {_excerpt(sorted(body))}", provider=self._provider)
        if error is None and choices is not None and not isinstance(choices, list):
            error = MalformedReply(f"choices must be a list: {_excerpt(choices)}", provider=self._provider)
        return events + self._fail(error) if error is not None else events

    def _choice(self, choice: dict[str, Any], position: int, kind: Any) -> list[Event]:
        index = choice.get("index")
        reader = self._reader_of(index if isinstance(index, int) else position)
        delta, message = choice.get("delta"), choice.get("message")
        # Perplexity sends both: its whole replies hold an empty delta, and its frames repeat the message so far.
        whole = isinstance(message, dict) and (
            not isinstance(delta, dict) or (kind == "chat.completion" and not reader.begun)
        )
        self._whole = self._whole or whole
        return reader.take(choice, message if whole else delta or {}, whole=whole)  # type: ignore[arg-type]

    def _reader_of(self, number: int) -> ChoiceReader:
        reader = self._choices.get(number)
        if reader is None:
            reader = self._choices[number] = ChoiceReader(number, returns_details=self._returns_details)
        return reader

    def _positions(self) -> list[object]:
        return [reader.position for reader in self._choices.values()]


def _excerpt(value: Any) -> str:
    return excerpt(msgspec.json.encode(value))
