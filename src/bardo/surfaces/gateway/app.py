"""The ASGI application: one request in, one answer out, and an error in the caller's own dialect where it cannot be."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from bardo.dialects import dialect
from bardo.dialects.base import ReplyEncoder
from bardo.dialects.jsonfield import header_value
from bardo.dialects.options import includable
from bardo.edge.lifecycle import shutdown_of, shutting_down
from bardo.edge.live_reply import LiveReply
from bardo.edge.reply_bytes import Step
from bardo.edge.runner import Runner
from bardo.edge.server_limits import ErrorReply
from bardo.edge.settings_gateway import GatewaySettings
from bardo.engine.receipt import early_headers, late_headers
from bardo.surfaces.gateway.access import (
    Access,
    Pairs,
    answer_preflight,
    for_origin,
    is_preflight,
    origin_headers,
    require_json,
)
from bardo.surfaces.gateway.answer import JSON, Answer, error_body, error_headers
from bardo.surfaces.gateway.http import (
    ClientGone,
    Receive,
    Scope,
    Send,
    encode_headers,
    header,
    read_body,
)
from bardo.surfaces.gateway.keep_alive import KeepAlive
from bardo.surfaces.gateway.leaving import until_gone
from bardo.surfaces.gateway.listing import count_tokens, list_models
from bardo.surfaces.gateway.partials import with_partials
from bardo.surfaces.gateway.routes import Route, dialect_of_path, find_route
from bardo.surfaces.gateway.tenants import key_of, tenant_of
from bardo.values.errors import BardoError, InternalError, InvalidRequest
from bardo.values.events import Failed
from bardo.values.request import Request

MOST_STREAMED_TEXT = 1_000_000
"""Characters of a stream that are held for the log and for replay: its own client has them already."""

_log = logging.getLogger("bardo.gateway")


class Gateway:
    """Answers requests with the help of one Runner. `start` and `stop` are run with the server's own."""

    def __init__(
        self,
        runner: Runner,
        settings: GatewaySettings,
        *,
        start: Callable[[], Coroutine[Any, Any, None]] | None = None,
        stop: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        self.bounds = settings.bounds
        self._runner = runner
        self._max_body = settings.max_body_bytes
        self._keep_alive_seconds = settings.keep_alive_seconds
        self._access = Access(settings)
        self._start = start
        self._stop = stop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)

    def encode_error(self, path: str, headers: Pairs, problem: BardoError) -> ErrorReply:
        """Return the answer to a request that the server refused before it came here."""
        language = dialect_of_path(path)
        own = encode_headers([("content-type", JSON), *error_headers(problem)])
        origin = self._access.allowed_origin(headers)
        visible = origin_headers(origin) if origin else []
        return ErrorReply(status=problem.status, headers=[*own, *visible], body=error_body(problem, language))

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            hook, event = (
                (self._start, "startup") if message["type"] == "lifespan.startup" else (self._stop, "shutdown")
            )
            if hook is not None:
                await hook()
            await send({"type": f"lifespan.{event}.complete"})
            if event == "shutdown":
                return

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        language = dialect_of_path(scope["path"])
        answer = Answer(send)
        try:
            origin = self._access.check(scope)
            if origin:
                send = for_origin(send, origin)
                answer = Answer(send)
                if is_preflight(scope, origin):
                    await answer_preflight(scope, send)
                    return
            route = find_route(scope["method"], scope["path"], scope["query_string"])
            language = route.dialect
            await self._serve(route, scope, receive, answer)
        except ClientGone:
            return
        except BardoError as problem:
            self._runner.clean(problem, (key_of(scope),))
            await answer.error(problem, language)
        except asyncio.CancelledError:
            await answer.error(shutting_down(), language)
            raise
        except Exception:  # noqa: BLE001 - the last line of defence: one request fails, bardo keeps serving
            await answer.error(_mistake(scope["path"]), language)

    async def _serve(self, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
        match route.endpoint:
            case "health":
                await answer.json({"status": "ok"})
            case "ready":
                providers = [provider.id for provider in self._runner.directory.providers]
                await answer.json({"status": "ready", "providers": providers})
            case "models":
                await answer.json(await list_models(self._runner.directory, route, scope))
            case "count_tokens":
                await answer.json(count_tokens(await self._body(scope, receive)))
            case "generate":
                await self._generate(route, scope, receive, answer)

    async def _generate(self, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
        request = dialect(route.dialect).decode_request(await self._body(scope, receive), route.arrival)
        request = with_headers(with_header_options(request, scope), scope)
        reply = self._stream if request.stream else self._whole
        await until_gone(receive, reply(route, request, key_of(scope), answer))

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        require_json(scope)
        return await read_body(scope, receive, self._max_body)

    async def _whole(self, route: Route, request: Request, key: str, answer: Answer) -> None:
        live = await self._runner.open(request, tenant=tenant_of(key), client_key=key)
        try:
            await _send_whole(live, route, answer)
        except asyncio.CancelledError as cancelled:
            live.note_cancelled(cancelled)
            raise
        finally:
            await live.close()

    async def _stream(self, route: Route, request: Request, key: str, answer: Answer) -> None:
        encoder = dialect(route.dialect).open_encoder(request, route.arrival)
        encoder = with_partials(encoder, route.dialect, request.options.include)
        alive = KeepAlive(answer, encoder, self._keep_alive_seconds)
        alive.begin()
        try:
            live = await self._runner.open(
                request,
                may_forward=route.arrival.framing == "sse",
                tenant=tenant_of(key),
                client_key=key,
                most_text=MOST_STREAMED_TEXT,
            )
            try:
                await _send_stream(live, encoder, answer)
            except asyncio.CancelledError as cancelled:
                live.note_cancelled(cancelled)
                raise
            finally:
                await live.close()
        except asyncio.CancelledError as cancelled:
            stopped = shutdown_of(cancelled)
            if stopped is not None:
                await _end_with_error(answer, encoder, stopped)
            raise
        except Exception as problem:
            if not answer.started:
                raise
            failure = problem if isinstance(problem, BardoError) else _mistake(request.dialect)
            await _end_with_error(answer, encoder, failure)
        finally:
            alive.end()


async def _send_whole(live: LiveReply, route: Route, answer: Answer) -> None:
    raw = b""
    async for step in live.steps():
        raw += step.raw
    response = live.response()
    headers = [*early_headers(live.request_id, live.attempt, response), *late_headers(response, live.attempt)]
    as_it_came = live.attempt.forward and not live.reader.lacks_ids
    body = raw if as_it_came else dialect(route.dialect).encode_response(response, live.request)
    await answer.whole(200, body, headers)


async def _send_stream(live: LiveReply, encoder: ReplyEncoder, answer: Answer) -> None:
    await answer.start(early_headers(live.request_id, live.attempt), encoder.content_type)
    forward = live.attempt.forward
    try:
        async for step in live.steps():
            written = _forwarded(step, encoder) if forward else _translated(step, encoder)
            if written:
                await answer.piece(written)
    except Exception:  # noqa: BLE001 - a stream that has begun ends with an error event, never silently
        failure = Failed(_mistake(live.request.dialect))
        live.note("error", failure.error)
        await answer.end(b"".join(encoder.feed(failure)))
        return
    await answer.end(b"" if forward and not live.reader.switches else b"".join(encoder.finish()))


async def _end_with_error(answer: Answer, encoder: ReplyEncoder, problem: BardoError) -> None:
    """End a stream that has begun with the dialect's error event."""
    if answer.started and not answer.ended:
        await answer.end(b"".join(encoder.feed(Failed(problem))))


def _translated(step: Step, encoder: ReplyEncoder) -> bytes:
    return b"".join([written for event in step.events for written in encoder.feed(event)])


def _forwarded(step: Step, encoder: ReplyEncoder) -> bytes:
    """Return the provider's own frames, what is written anew, and an error event where the reply broke."""
    again = step.rewritten or [event for event in step.events if type(event) is Failed]
    return step.raw + b"".join([written for one in again for written in encoder.feed(one)]) if again else step.raw


def _mistake(where: str) -> InternalError:
    _log.exception("a mistake in bardo, at %s", where)
    return InternalError("bardo failed", hint="the gateway's log says where")


def with_header_options(request: Request, scope: Scope) -> Request:
    """Return the request with what the `X-Bardo-*` headers ask for. Raises InvalidRequest."""
    include = header(scope, b"x-bardo-include")
    reasoning = header(scope, b"x-bardo-reasoning").strip().lower()
    allowed = header(scope, b"x-bardo-allow-loss")
    if not include and not reasoning and not allowed:
        return request
    if reasoning not in ("", "include", "omit"):
        raise InvalidRequest(
            f"X-Bardo-Reasoning is {reasoning!r}", hint="use include or omit", param="X-Bardo-Reasoning"
        )
    asked = [includable(name, "X-Bardo-Include") for name in _listed(include)]
    options = msgspec.structs.replace(
        request.options,
        include=tuple(dict.fromkeys((*request.options.include, *asked))),
        omit_reasoning=request.options.omit_reasoning or reasoning == "omit",
        allow_loss=(*request.options.allow_loss, *_listed(allowed)),
    )
    return msgspec.structs.replace(request, options=options)


def _listed(value: str) -> list[str]:
    return [name.strip() for name in value.split(",") if name.strip()]


# Headers that belong to a dialect: they ask its provider for features, and hold no secret.
_DIALECT_HEADERS = (b"anthropic-beta", b"openai-beta")


def with_headers(request: Request, scope: Scope) -> Request:
    """Return the request with the headers of its dialect. Raises InvalidRequest for a value that cannot be sent on."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        if name in _DIALECT_HEADERS and value:
            key = name.decode()
            text = header_value(str(value, "latin-1"), key)
            found[key] = f"{found[key]}, {text}" if key in found else text
    return msgspec.structs.replace(request, headers=found) if found else request
