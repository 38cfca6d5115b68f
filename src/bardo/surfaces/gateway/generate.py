"""Generate a reply: whole, or as a stream in the client's dialect that ends with an error event where it breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import msgspec

from bardo.adapters.long_work import run_by_size, size_of_body
from bardo.call.open import open_call
from bardo.call.reply import LiveReply
from bardo.dialects import dialect
from bardo.dialects.openai_chat.completions import (
    CompletionRequest,
    CompletionStream,
    decode_completion,
    encode_completion,
)
from bardo.dialects.openai_responses.compaction import is_triggered
from bardo.dialects.shared.blocks import encode_all
from bardo.dialects.shared.dialect import Dialect, ReplyEncoder
from bardo.planning.token_counting import PromptEstimates
from bardo.replies.forwarding import ClientModelEncoder, ForwardedModel, ReplyUpdate, named_as_asked, with_client_model
from bardo.replies.receipt import cost_headers, early_headers, headers_of_calls, late_headers
from bardo.streams.eventstream import CONTENT_TYPE as EVENT_STREAM
from bardo.surfaces.gateway.answer import Answer, Draining, KeepAlive, ReplyStorage, run_until_disconnect
from bardo.surfaces.gateway.callers import Caller, caller_of, with_headers, with_trace
from bardo.surfaces.gateway.compaction import read_summaries
from bardo.surfaces.gateway.context import GatewayContext, mistake
from bardo.surfaces.gateway.http import Receive, Scope
from bardo.surfaces.gateway.routes import Route
from bardo.values.errors import BardoError, InvalidRequest, Unsupported, shutdown_of
from bardo.values.events import Event, Failed, Finish, Partial, ReplyStart, UsageUpdate
from bardo.values.request import Request
from bardo.values.usage import CallCost, Usage

_SHARE = 8
_TAKE_MESSAGES = ("text/event-stream", "application/x-ndjson")


class PartialEncoder:
    """Writes what `inner` writes, and partial answers as messages that readers of the dialect pass over.

    They are for requests with `"include": ["partials"]`. Each message holds the whole answer so far. The distance between two of them grows
    with the answer, so that all together have a size in proportion to the answer.
    """

    def __init__(self, inner: ReplyEncoder, dialect: Dialect) -> None:
        self._inner = inner
        self._dialect = dialect
        self._start = ReplyStart()
        self._due = 0
        self._waiting: Partial | None = None

    @property
    def content_type(self) -> str:
        return self._inner.content_type

    @property
    def keep_alive(self) -> bytes:
        return self._inner.keep_alive

    def feed(self, item: Event) -> Sequence[bytes]:
        """Write one event."""
        if isinstance(item, Partial):
            self._waiting = item
            return self._partial() if item.size >= self._due else ()
        if isinstance(item, ReplyStart):
            self._start = item
        if isinstance(item, Finish | Failed) and self._waiting is not None:
            return [*self._partial(), *self._inner.feed(item)]
        return self._inner.feed(item)

    def finish(self) -> Sequence[bytes]:
        """Close the stream."""
        return self._inner.finish()

    def _partial(self) -> Sequence[bytes]:
        item, self._waiting = self._waiting, None
        # A JSON array has no place for what is not an element of the reply.
        if item is None or self.content_type not in _TAKE_MESSAGES:
            return ()
        written = self._dialect.encode_partial(item.value, self._start)
        self._due = item.size + len(written) // _SHARE
        return (written,)


def with_partials(encoder: ReplyEncoder, language: Dialect, include: Sequence[str]) -> ReplyEncoder:
    """Return the encoder that writes partial answers too, where they were asked for.

    Raises Unsupported for a stream whose readers take every message for an event of their dialect.
    """
    if "partials" in include and encoder.content_type == EVENT_STREAM:
        raise Unsupported("a binary event stream has no place for partial answers", hint="leave them out of `include`")
    return PartialEncoder(encoder, language) if "partials" in include else encoder


_CHAT, _RESPONSES = "openai_chat", "openai_responses"
MOST_STREAMED_TEXT = 1_000_000
"""Characters of a stream that are held for the log and for replay: its own client has them already."""

MOST_MESSAGES = 100_000
"""Messages of one request, as Anthropic's Messages API takes them (documentation of 2026-11): each step of a call looks at all of them."""
_ROLE, _COUNTED_BYTES = b'"role"', 64 * 1024


async def generate(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer a request for a reply. Raises BardoError where none begins."""
    request = await read_request(context, route, scope, receive)
    if request.dialect == _RESPONSES:
        request = await read_summaries(context, request, route, caller_of(scope).tenant)
        if is_triggered(request):
            message = "only a reply of the Responses API can hold a compacted conversation"
            raise Unsupported(message, hint="send it to /v1/responses", param="input")
    await answer_request(context, route, request, scope, receive, answer)


async def read_request(context: GatewayContext, route: Route, scope: Scope, receive: Receive) -> Request:
    """Return the request for a reply that a client sent. Raises InvalidRequest and what reading its body raises."""
    body = await context.body(scope, receive)
    return await run_by_size(size_of_body(body), partial(decoded_request, body, route))


def decoded_request(body: bytes, route: Route) -> Request:
    """Return the request of a body in the dialect of its path; a Responses body at the path of Chat Completions as what it is.

    Cursor asks so, and reads the reply as Chat Completions (LiteLLM's `/cursor/chat/completions`, 2026-11). Raises InvalidRequest.
    """
    # A quotation mark within a text is written with a backslash, so that this counts fields alone, and spares decoding them. A slice at a
    # time: other threads get the interpreter only between two calls of C.
    if len(body) > len(_ROLE) * MOST_MESSAGES:
        starts = range(0, len(body), _COUNTED_BYTES)
        count = sum(body.count(_ROLE, start, start + _COUNTED_BYTES + len(_ROLE) - 1) for start in starts)
        if count > MOST_MESSAGES:
            raise _too_many(count)
    try:
        request = dialect(route.dialect).decode_request(body, route.arrival)
        if request.messages or route.dialect != _CHAT or not _has_input_alone(body):
            return request
    except InvalidRequest:
        if route.dialect != _CHAT or not _has_input_alone(body):
            raise
    request = dialect(_RESPONSES).decode_request(body, route.arrival)
    # A Chat client gets the usage of a stream only where it asks; this one cannot, and reads it where it comes.
    return msgspec.structs.replace(request, stream_usage=request.stream)


class _Prompts(msgspec.Struct):
    """The fields in which the two dialects of OpenAI have the prompt."""

    messages: msgspec.Raw = msgspec.Raw(b"null")
    input: msgspec.Raw = msgspec.Raw(b"null")


def _has_input_alone(body: bytes) -> bool:
    """Whether a body has an input, as Responses clients write it, and no messages. What is no JSON has neither."""
    try:
        found = msgspec.json.decode(body, type=_Prompts)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return bytes(found.input) != b"null" and bytes(found.messages) in (b"null", b"[]")


async def answer_request(
    context: GatewayContext,
    route: Route,
    request: Request,
    scope: Scope,
    receive: Receive,
    answer: Answer,
    *,
    kept: ReplyStorage | None = None,
) -> None:
    """Answer a request that was decoded. `kept` keeps its reply. Raises BardoError where no reply begins."""
    if len(request.messages) > MOST_MESSAGES:
        raise _too_many(len(request.messages))
    request = with_headers(request, scope)
    if context.services.telemetry is not None:
        request = with_trace(request, scope)
    if context.unasked_thinking and request.options.omit_unasked:
        request = msgspec.structs.replace(request, options=msgspec.structs.replace(request.options, omit_unasked=False))
    caller, draining, spoken = caller_of(scope), context.draining(answer), dialect(route.dialect)
    # What is sent goes on as it came where the endpoint's own dialect is that of the request, and not only a wrapping around it.
    may_forward = kept is None and request.dialect == spoken.name
    if request.stream:
        named = ClientModelEncoder(spoken.open_encoder(request, route.arrival), request.model)
        encoder = with_partials(named, spoken, request.options.include)
        # Frames do so in the framing of the client's streams alone.
        may_forward = may_forward and route.arrival.framing == spoken.stream_framing
        replies = [(request, encoder)]
        work = stream_replies(context, replies, caller, answer, may_forward=may_forward, kept=kept, draining=draining)
    else:
        work = _send_whole(context, spoken, request, caller, answer, kept, draining, may_forward=may_forward)
    try:
        await run_until_disconnect(receive, work, draining.leave)
    finally:
        draining.end()


def _too_many(messages: int) -> InvalidRequest:
    message = f"the request has {messages:,} messages, and bardo takes at most {MOST_MESSAGES:,}"
    return InvalidRequest(message, hint="leave out or join earlier messages", param="messages")


async def _send_whole(
    context: GatewayContext,
    spoken: Dialect,
    request: Request,
    caller: Caller,
    answer: Answer,
    kept: ReplyStorage | None,
    draining: Draining,
    *,
    may_forward: bool,
) -> None:
    live = await open_call(
        context.services,
        request,
        may_forward=may_forward,
        tenant=caller.tenant,
        client_key=caller.key,
        account=caller.account,
        login=caller.login,
    )
    draining.take(live)
    try:
        raw = await live.read()
        attempt, reader, asked = live.attempt, live.reader, live.request
        response = reader.response()
        headers = [
            *early_headers(live.request_id, attempt, response),
            *_age_headers(live),
            *late_headers(response, attempt, live.cost_of_request, live.verdict),
            *live.passed_headers,
        ]
        if live.forwarded and not (reader.lacks_ids or reader.broke_off):
            body = await run_by_size(len(raw), partial(with_client_model, raw, spoken, response, asked.model))
        else:
            if spoken.starts_with_usage and response.usage.input_tokens is None:
                # As in a stream, which names it where it begins: clients watch by it how full the context is.
                estimate = context.prompt_estimates.estimate(asked, attempt.target, live.call.tenant)
                usage = msgspec.structs.replace(response.usage, input_tokens=estimate)
                response = msgspec.structs.replace(response, usage=usage)
            body = await run_by_size(
                len(raw), lambda: spoken.encode_response(named_as_asked(response, asked.model), asked)
            )
        if kept is not None:
            body = await kept.whole(body)
        await answer.whole(200, body, headers)
    except asyncio.CancelledError as cancelled:
        live.log_cancelled(cancelled)
        raise
    finally:
        await live.close()


async def stream_replies(
    context: GatewayContext,
    replies: Sequence[tuple[Request, ReplyEncoder]],
    caller: Caller,
    answer: Answer,
    *,
    may_forward: bool,
    kept: ReplyStorage | None = None,
    draining: Draining | None = None,
) -> None:
    """Send `replies`, each as its encoder writes it, one after the other as one stream. Raises BardoError where none begins.

    `kept` keeps the last of them, and `draining` reads on the one that is being sent where their client leaves.
    """
    encoder = replies[0][1]
    alive = KeepAlive(answer, encoder, context.keep_alive_seconds)
    alive.begin()
    try:
        for place, (request, encoder) in enumerate(replies):
            live = await open_call(
                context.services,
                request,
                may_forward=may_forward,
                tenant=caller.tenant,
                client_key=caller.key,
                account=caller.account,
                login=caller.login,
                most_text=MOST_STREAMED_TEXT,
            )
            if draining is not None:
                draining.take(live)
            try:
                last = place == len(replies) - 1
                await _send_stream(live, encoder, answer, context.prompt_estimates, last=last, kept=kept)
            except asyncio.CancelledError as cancelled:
                live.log_cancelled(cancelled)
                raise
            finally:
                await live.close()
            if answer.ended or (draining is not None and draining.left):
                return
    except asyncio.CancelledError as cancelled:
        stopped = shutdown_of(cancelled)
        if stopped is not None:
            await _end_with_error(answer, encoder, stopped)
        raise
    except Exception as problem:
        if not answer.started:
            raise
        failure = problem if isinstance(problem, BardoError) else mistake(replies[0][0].dialect)
        await _end_with_error(answer, encoder, failure)
    finally:
        alive.end()


def _age_headers(live: LiveReply) -> list[tuple[str, str]]:
    """Return the headers that say how old a reply is: one that was given because nobody answered, and one of the cache."""
    headers = [] if live.stale_seconds is None else [("X-Bardo-Stale", f"{max(0.0, live.stale_seconds):.0f}")]
    if live.call.layers is not None and (cache := live.call.layers.cache_header):
        headers.append(("X-Bardo-Cache", cache))
    return headers


async def _send_stream(
    live: LiveReply,
    encoder: ReplyEncoder,
    answer: Answer,
    estimates: PromptEstimates,
    *,
    last: bool,
    kept: ReplyStorage | None,
) -> None:
    headers = [*early_headers(live.request_id, live.attempt), *_age_headers(live), *live.passed_headers]
    if last and not answer.started and live.call.layers is not None and live.call.layers.answer is not None:
        headers += cost_headers(CallCost(nanos=0))
    await answer.start(headers, encoder.content_type)
    forward = live.forwarded
    named = ForwardedModel(dialect(live.request.dialect), live.request.model) if forward else None
    if not forward and dialect(live.request.dialect).starts_with_usage:
        live.note_prompt_estimate(estimates.estimate(live.request, live.attempt.target, live.call.tenant))
        encoder.feed(UsageUpdate(Usage(input_tokens=live.prompt_estimate)))
    written = partial(_encode_update, encoder=encoder)
    if named is not None:
        written = partial(_forward_frames, named=named, encoder=encoder)
    live.give_directly(answer.takes_piece, lambda update: answer.piece_at_once(written(update)))
    try:
        async for update in live.updates():
            if piece := written(update):
                await answer.piece(piece)
    except Exception:  # noqa: BLE001 - a stream that has begun ends with an error event, never silently
        failure = Failed(mistake(live.request.dialect))
        live.log("error", failure.error)
        await answer.end(b"".join(encoder.feed(failure)))
        return
    if live.prompt_estimate:
        counted = live.response().usage.input_tokens or 0
        estimates.learn(live.prompt_estimate, counted, live.attempt.target, live.call.tenant)
    frames = () if forward and not live.reader.switches else encoder.finish()
    rest = b"".join(frames if kept is None else await kept.end(frames))
    if last or live.reader.failure is not None:
        await answer.end(rest)
    elif rest:
        await answer.piece(rest)


async def _end_with_error(answer: Answer, encoder: ReplyEncoder, problem: BardoError) -> None:
    """End a stream that has begun with the dialect's error event."""
    if answer.started and not answer.ended:
        await answer.end(b"".join(encoder.feed(Failed(problem))))


def _encode_update(update: ReplyUpdate, encoder: ReplyEncoder) -> bytes:
    return b"".join(encode_all(encoder, update.events))


def _forward_frames(update: ReplyUpdate, named: ForwardedModel, encoder: ReplyEncoder) -> bytes:
    """Return the provider's own frames, what is written anew, and an error event where the reply broke."""
    raw, events = named.in_frames(update), update.events
    again = update.rewritten or (Failed in map(type, events) and [event for event in events if type(event) is Failed])
    if not again:
        return raw
    return raw + b"".join([written for one in again for written in encoder.feed(one)])


async def complete(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer a request for completions, OpenAI's older endpoint, by whoever gives replies to a chat. Each prompt is a call of its own.

    Raises BardoError where none begins.
    """
    body = await context.body(scope, receive)
    asked = await run_by_size(size_of_body(body), lambda: decode_completion(body))
    requests = tuple(with_headers(request, scope) for request in asked.requests)
    asked = msgspec.structs.replace(asked, requests=requests)
    caller, draining = caller_of(scope), context.draining(answer)
    if asked.stream:
        replies = list(zip(requests, CompletionStream(asked).encoders(), strict=True))
        work = stream_replies(context, replies, caller, answer, may_forward=False, draining=draining)
    else:
        work = _send_completions(context, asked, caller, answer, draining)
    try:
        await run_until_disconnect(receive, work, draining.leave)
    finally:
        draining.end()


async def _send_completions(
    context: GatewayContext, asked: CompletionRequest, caller: Caller, answer: Answer, draining: Draining
) -> None:
    """Send the completions of all prompts, with the headers of all their calls. Raises BardoError where a reply broke."""
    lives = []
    for request in asked.requests:
        live = await open_call(
            context.services,
            request,
            may_forward=False,
            tenant=caller.tenant,
            client_key=caller.key,
            account=caller.account,
            login=caller.login,
        )
        draining.take(live)
        try:
            async for _ in live.updates():
                continue
        except asyncio.CancelledError as cancelled:
            live.log_cancelled(cancelled)
            raise
        finally:
            await live.close()
        lives.append(live)
        if draining.left:
            return
    responses = [live.response() for live in lives]
    calls = [
        (live.request_id, live.attempt, response, live.cost_of_request)
        for live, response in zip(lives, responses, strict=True)
    ]
    await answer.whole(200, encode_completion(responses, asked), headers_of_calls(calls))
