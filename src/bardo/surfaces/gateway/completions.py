"""Complete a prompt: OpenAI's older endpoint, by whoever gives replies to a chat. Each prompt of a request is a call of its own."""

from __future__ import annotations

import asyncio

import msgspec

from bardo.adapters.long_work import run_by_size, size_of_body
from bardo.call.open import open_call
from bardo.call.reply import LiveReply
from bardo.dialects.openai_chat.completions import (
    CompletionRequest,
    CompletionStream,
    decode_completion,
    encode_completion,
)
from bardo.replies.receipt import headers_of_calls
from bardo.surfaces.gateway.answer import Answer, Draining, run_until_disconnect
from bardo.surfaces.gateway.callers import Caller, caller_of, with_headers
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.generate import stream_replies
from bardo.surfaces.gateway.http import Receive, Scope
from bardo.surfaces.gateway.routes import Route
from bardo.values.request import Request


async def complete(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer a request for completions. Raises BardoError where none begins."""
    body = await context.body(scope, receive)
    asked = await run_by_size(size_of_body(body), lambda: decode_completion(body))
    requests = tuple(with_headers(request, scope) for request in asked.requests)
    asked = msgspec.structs.replace(asked, requests=requests)
    caller, draining = caller_of(scope), context.draining(answer)
    if asked.stream:
        replies = list(zip(requests, CompletionStream(asked).encoders(), strict=True))
        work = stream_replies(context, replies, caller, answer, may_forward=False, draining=draining)
    else:
        work = _whole(context, asked, caller, answer, draining)
    try:
        await run_until_disconnect(receive, work, draining.leave)
    finally:
        draining.end()


async def _whole(
    context: GatewayContext, asked: CompletionRequest, caller: Caller, answer: Answer, draining: Draining
) -> None:
    """Send the completions of all prompts, with the headers of all their calls."""
    lives = []
    for request in asked.requests:
        lives.append(await _reply(context, request, caller, draining))
        if draining.left:
            return
    responses = [live.response() for live in lives]
    calls = [
        (live.request_id, live.attempt, response, live.cost_of_request)
        for live, response in zip(lives, responses, strict=True)
    ]
    await answer.whole(200, encode_completion(responses, asked), headers_of_calls(calls))


async def _reply(context: GatewayContext, request: Request, caller: Caller, draining: Draining) -> LiveReply:
    """Return a reply that was read to its end. Raises BardoError where it broke."""
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
    return live
