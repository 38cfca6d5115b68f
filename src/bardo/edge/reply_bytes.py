"""The bytes of a reply: whether they are one at all, what each network read of them gives, and which the client gets as they came."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence

import msgspec

from bardo.dialects import dialect
from bardo.edge.http_calls import Reply
from bardo.engine.exchange import Attempt
from bardo.engine.pipeline import ReplyReader, Taken
from bardo.engine.route import Provider
from bardo.values.errors import MalformedReply, ProviderError
from bardo.values.events import Event, UsageUpdate

_ERROR_BODY_LIMIT = 1024 * 1024


class Step(msgspec.Struct, frozen=True, gc=False):
    """What one network read of a reply gave: events, and the bytes to forward where frames are forwarded."""

    events: list[Event]
    raw: bytes = b""


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


def is_streamed(reply: Reply, provider: Provider, *, asked: bool) -> bool:
    """Whether a reply is a stream: its content type tells, else what was `asked`. Raises MalformedReply for a page."""
    kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in ("text/html", "application/xhtml+xml", "application/xml", "text/xml"):
        message = f"the provider answered with {kind}, not with a reply"
        raise MalformedReply(message, hint="check base_url", provider=provider.id)
    return {"application/json": False, "text/event-stream": True, "application/x-ndjson": True}.get(kind, asked)


def read_whole(body: bytes, reader: ReplyReader) -> Step:
    """Return the one step of a reply that came whole. Raises BardoError where it is a failure."""
    events = [*reader.feed(body), *reader.finish()]
    if reader.failure is not None:
        raise reader.failure
    return Step(events, body)


async def read_pieces(
    chunks: AsyncIterator[bytes], reader: ReplyReader, attempt: Attempt
) -> AsyncGenerator[Step, None]:
    """Yield what each piece gives, to the end or to the first failure: that is an event, in the last step."""
    forward = attempt.forward
    try:
        async for chunk in chunks:
            step = _forwarded(reader.take(chunk, joined=True), attempt) if forward else Step(reader.feed(chunk))
            if step.events or step.raw:
                yield step
            if reader.failure is not None:
                return
    except ProviderError as problem:
        yield Step(reader.fail(problem))
    else:
        yield _forwarded(reader.take_rest(), attempt)


def _forwarded(taken: Sequence[Taken], attempt: Attempt) -> Step:
    """Keep the bytes the client gets: not those of usage it did not ask for."""
    withhold = attempt.withhold_usage
    events: list[Event] = []
    raw: list[bytes] = []
    for given, said in taken:
        events += given
        only_usage = withhold and given and all(type(event) is UsageUpdate for event in given)
        if not only_usage:
            raw.append(said)
    return Step(events, b"".join(raw))
