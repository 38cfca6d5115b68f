"""The bytes of a reply: whether they are one at all, what each network read of them gives, and which the client gets as they came."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from itertools import takewhile

import msgspec

from bardo.dialects import dialect
from bardo.dialects.lenient import excerpt
from bardo.edge.http_calls import Reply
from bardo.engine.exchange import Attempt
from bardo.engine.pipeline import ReplyReader, Taken
from bardo.engine.route import Provider
from bardo.values.errors import MalformedReply, ProviderError
from bardo.values.events import Event, Finish, ReplyStart, UsageUpdate

_ERROR_BODY_LIMIT = 1024 * 1024
# How long a server that keeps the connection open may take to send what comes behind the end of an answer: its usage.
_BEHIND_THE_END_SECONDS = 5.0
_PAGE_SECONDS = 5.0


class Step(msgspec.Struct, frozen=True, gc=False):
    """What one network read of a reply gave: events, and the bytes to forward where frames are forwarded.

    `rewritten` are those of the events that are written anew all the same, behind these bytes.
    """

    events: list[Event]
    raw: bytes = b""
    rewritten: Sequence[Event] = ()


async def refusal(reply: Reply, provider: Provider) -> ProviderError:
    """Return what a reply of status 300 or more says, in the provider's own words: whoever shows them cleans them first."""
    if reply.status < 400:
        message = f"the provider answered with status {reply.status}, a redirect"
        return MalformedReply(message, hint="check base_url", provider=provider.id)
    try:
        body = await reply.read(_ERROR_BODY_LIMIT)
    except ProviderError:
        body = b""  # The status says enough.
    return dialect(provider.row.dialect).decode_error(reply.status, body, reply.headers, provider.id)


_PAGES = frozenset({"text/html", "application/xhtml+xml", "application/xml", "text/xml"})


async def page(reply: Reply, provider: Provider) -> MalformedReply | None:
    """Return what is wrong with a reply that says it is a page, with its first words; None for any other."""
    kind = _kind(reply)
    if kind not in _PAGES:
        return None
    quoted = ""
    with contextlib.suppress(ProviderError, TimeoutError):
        async with asyncio.timeout(_PAGE_SECONDS):
            quoted = excerpt(await anext(reply.chunks(), b""), 200)
    message = f"{provider.id} answered with {kind}, not with a reply{': ' if quoted else ''}{quoted}"
    return MalformedReply(message, hint="check base_url", provider=provider.id)


def is_streamed(reply: Reply, *, asked: bool) -> bool:
    """Whether a reply is a stream: its content type tells, else what was `asked`."""
    kind = _kind(reply)
    return {"application/json": False, "text/event-stream": True, "application/x-ndjson": True}.get(kind, asked)


def _kind(reply: Reply) -> str:
    return reply.headers.get("content-type", "").partition(";")[0].strip().lower()


def read_whole(body: bytes, reader: ReplyReader) -> Step:
    """Return the one step of a reply that came whole. Raises BardoError where it is a failure."""
    taken = [*reader.take(body, joined=False), *reader.take_rest()]
    if reader.failure is not None:
        raise reader.failure
    return Step([event for events, _ in taken for event in events], b"".join([said for _, said in taken]))


async def read_pieces(
    chunks: AsyncIterator[bytes],
    reader: ReplyReader,
    attempt: Attempt,
    *,
    limit: int,
    ending: list[bytes] | None = None,
) -> AsyncGenerator[Step, None]:
    """Yield what each piece gives, to the reply's last event, or to the first failure: that is an event, in the last step.

    More than `limit` bytes are a failure too. `ending` takes the forwarded frames from the one on that ends the reply, for a reply that is
    judged before it may end.
    """
    size = 0
    forwarding = _Forwarding(reader, attempt, ending)
    try:
        while (chunk := await _next_chunk(chunks, reader)) is not None:
            size += len(chunk)
            if size > limit:
                raise _too_long(attempt.target.provider, limit)
            step = forwarding.step(reader.take(chunk, joined=True)) if attempt.forward else Step(reader.feed(chunk))
            if step.events or step.raw:
                yield step
            if reader.failure is not None:
                return
            if reader.over:
                break
    except ProviderError as problem:
        yield Step(reader.fail(problem))
    else:
        last = forwarding.step(reader.take_rest())
        yield msgspec.structs.replace(last, raw=b"") if reader.reframed else last


async def _next_chunk(chunks: AsyncIterator[bytes], reader: ReplyReader) -> bytes | None:
    """Return the next piece, None at the end: also where a server that said all keeps the connection open."""
    if not reader.complete:
        return await anext(chunks, None)
    try:
        async with asyncio.timeout(_BEHIND_THE_END_SECONDS):
            return await anext(chunks, None)
    except TimeoutError:
        return None


def _too_long(provider: Provider, limit: int) -> MalformedReply:
    hint = "limit the tokens of the reply, or raise gateway.max_stream_bytes in bardo.toml"
    return MalformedReply(f"the streamed reply is larger than {limit} bytes", hint=hint, provider=provider.id)


class _Forwarding:
    """Keeps the bytes the client gets: not those of usage it did not ask for, and none once a call has come without its id."""

    def __init__(self, reader: ReplyReader, attempt: Attempt, ending: list[bytes] | None) -> None:
        self._reader = reader
        self._attempt = attempt
        self._ending = ending
        self._ended = False
        self._held: list[bytes] = []

    def step(self, taken: Sequence[Taken]) -> Step:
        """Return the step of one network read."""
        waits = self._reader.waits
        if len(taken) == 1 and not waits and self._is_plain(taken[0]):
            return Step([*taken[0][0]], taken[0][1])
        events = [event for given, _ in taken for event in given]
        if self._attempt.forward and self._reader.switches:
            held = self._reader.fold.response()
            return Step(events, b"", [ReplyStart(id=held.id, model=held.model, created=held.created), *events])
        withhold = self._attempt.withhold_usage
        raw = [
            *self._held,
            *self._before_end((given, said) for given, said in taken if not (withhold and _is_usage(given))),
        ]
        self._held = _without_events(taken) if waits and not self._ended else []
        return Step(events, b"".join(raw[: len(raw) - len(self._held)]))

    def _is_plain(self, taken: Taken) -> bool:
        """Whether bytes are sent on as they came, as most are. Nothing is held, and no call has come without its id."""
        given, _ = taken
        if self._held or self._ending is not None or not given or type(given[0]) is UsageUpdate:
            return False
        return not (self._attempt.forward and self._reader.switches)

    def _before_end(self, taken: Iterable[Taken]) -> Iterator[bytes]:
        """Yield the bytes that may be sent; the others wait in `ending`."""
        for given, said in taken:
            if self._ending is not None and (self._ended or any(type(event) is Finish for event in given)):
                self._ended = True
                self._ending.append(said)
            else:
                yield said


def _without_events(taken: Sequence[Taken]) -> list[bytes]:
    """Return the last frames that gave no events."""
    return [said for _, said in reversed([*takewhile(lambda one: not one[0], reversed(taken))])]


def _is_usage(given: Sequence[Event]) -> bool:
    return bool(given) and all(type(event) is UsageUpdate for event in given)
