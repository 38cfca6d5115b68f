"""Compact a conversation for a Responses client over a provider that has no such thing: the model that is asked summarizes it.

The whole conversation is sent as it was, so that its cached beginning is used. One that is longer than the model's window goes as text, in
parts: each summary holds the one before it. Every call is in the log and on the key of its caller like any other.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from bardo.adapters.long_work import run_by_size, size_of
from bardo.call.open import open_call
from bardo.catalog.layer_rows import compaction_path
from bardo.dialects import dialect
from bardo.dialects.openai_responses.compaction import (
    PURPOSE,
    TRIGGER,
    Summary,
    part_request,
    parts_of,
    sealed_item,
    summary_request,
    with_summaries,
)
from bardo.dialects.openai_responses.stored import input_of, missing_response
from bardo.dialects.openai_responses.wire import NAME
from bardo.dialects.shared.blocks import encode_all
from bardo.dialects.shared.json_values import JsonObject
from bardo.dialects.shared.spellings import overflow_of
from bardo.planning.attempt import Attempt
from bardo.planning.route import Target
from bardo.replies.forwarding import ClientModelEncoder, named_as_asked
from bardo.replies.receipt import headers_of_calls
from bardo.surfaces.gateway.answer import Answer, KeepAlive, ReplyStorage, run_until_disconnect
from bardo.surfaces.gateway.callers import Caller, caller_of, with_headers, with_trace
from bardo.surfaces.gateway.context import GatewayContext, mistake, new_id
from bardo.surfaces.gateway.http import Receive, Scope
from bardo.surfaces.gateway.routes import Route
from bardo.values.blocks import UnknownBlock
from bardo.values.degradation import Degradation, distinct
from bardo.values.errors import BardoError, EmptyReply, InvalidRequest, shutdown_of
from bardo.values.events import Event, Failed, Finish, ReplyStart, UnknownContent, UsageUpdate
from bardo.values.reasoning import ReasoningChain
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.usage import CallCost, Usage

_PART_SHARE = 0.5
"""How much of a window a part of a conversation may fill: tokens are estimated, a summary goes before it, and one is made behind it."""
_CHARACTERS_PER_TOKEN = 3
_USUAL_WINDOW = 128_000
"""In place of a window that neither the catalog nor the refusal tells."""
_LEAST_PART = 2_000
_MOST_PARTS = 64


async def read_summaries(context: GatewayContext, request: Request, route: Route, tenant: str) -> Request:
    """Return a request with what compacted conversations in it say. Raises InvalidRequest for one that cannot be read."""
    opens = partial(context.sealer.open, purpose=PURPOSE, owner=tenant)
    return await run_by_size(size_of(request), lambda: with_summaries(request, route.arrival, opens))


async def targets_to_summarize(context: GatewayContext, request: Request) -> tuple[Target, ...] | None:
    """Return who is asked for a conversation that is to be compacted here, or None if each of them does that itself, or nobody is found."""
    try:
        targets = (await context.services.routing.find(request))[1].targets
    except BardoError:
        # The call itself says so, and is in the log.
        return None
    rows = [target.provider.row for target in targets]
    return None if all(compaction_path(row.id, row.dialect) for row in rows) else targets


class Compactor:
    """Makes the summary of one conversation. `calls` are the calls it took: of each its id, its attempt, its response and its cost."""

    def __init__(
        self, context: GatewayContext, route: Route, request: Request, caller: Caller, targets: tuple[Target, ...]
    ) -> None:
        """Raises InvalidRequest for a conversation that goes on from what nobody here knows, and for an empty one."""
        body = request.body or {}
        if previous := body.get("previous_response_id"):
            raise missing_response(str(previous))
        if body.get("conversation") or body.get("prompt"):
            name = "conversation" if body.get("conversation") else "prompt"
            message = f"only the provider that keeps the {name} knows what there is to compact"
            raise InvalidRequest(message, hint="send the whole conversation as input", param=name)
        said = body.get("input") and any(item.get("type") != TRIGGER for item in input_of(request))
        if not said and not body.get("instructions"):
            raise InvalidRequest("there is no conversation to compact", hint="send it as input", param="input")
        why = "the provider compacts no conversations: the model that is asked has summarized this one"
        self._lost = [Degradation("compaction", sent="summary", why=why)]
        self._context = context
        # A summary takes long to write: a provider that streams it shows that it is at work.
        self._arrival = msgspec.structs.replace(route.arrival, stream=None)
        self._request = request
        self._caller = caller
        self._targets = targets
        self.calls: list[tuple[str, Attempt, Response, CallCost]] = []

    async def compact(self) -> tuple[JsonObject, Response]:
        """Return the item that stands for the conversation, and the response that holds it alone. Raises BardoError."""
        text = await self._summarize()
        request_id, attempt, last, cost = self.calls[-1]
        if any(response.finish.reason == "length" for _, _, response, _ in self.calls):
            self._lost.append(Degradation("compaction.summary", why="it was cut at the limit of output tokens"))
        target = attempt.target
        seal = partial(self._context.sealer.seal, purpose=PURPOSE, owner=self._caller.tenant)
        summary = Summary(text, f"{target.provider.id}/{target.model}")
        item = sealed_item(summary, seal, new_id("cmp"))
        response = msgspec.structs.replace(
            last,
            id=new_id("resp"),
            created=int(self._context.services.clock()),
            blocks=(UnknownBlock(NAME, item),),
            reasoning=ReasoningChain(),
            usage=_sum_usage([response.usage for _, _, response, _ in self.calls]),
            finish=Finish("stop"),
            degraded=distinct((*last.degraded, *self._lost)),
            carried=None,
            choice_carried=None,
        )
        self.calls[-1] = request_id, attempt, response, cost
        return item, response

    async def _summarize(self) -> str:
        """Return a summary: of the conversation as it is where the model can take it, else of its parts."""
        windows = [window for target in self._targets if (window := self._context.services.facts.of(target).context)]
        window, estimates, tenant = min(windows, default=0), self._context.prompt_estimates, self._caller.tenant
        request = await run_by_size(size_of(self._request), partial(summary_request, self._request, self._arrival))
        tokens = await run_by_size(
            size_of(request), lambda: max(estimates.estimate(request, target, tenant) for target in self._targets)
        )
        why = "the conversation is longer than the model's window"
        if not window or tokens < window:
            try:
                return await self._ask(request)
            except BardoError as problem:
                if overflow := overflow_of(problem):
                    window = overflow.limit or window or min(tokens, _USUAL_WINDOW)
                elif isinstance(problem, EmptyReply) and self.calls and self.calls[-1][2].finish.reason == "tool_calls":
                    # Not every provider can be told that no tool may be called. As text, a conversation goes without its tools.
                    why, window = "the model called a tool in place of a summary", window or _USUAL_WINDOW
                else:
                    raise
        return await self._summarize_parts(window, request, why)

    async def _summarize_parts(self, window: int, whole: Request, why: str) -> str:
        most = max(_LEAST_PART, int(window * _PART_SHARE) * _CHARACTERS_PER_TOKEN)
        parts = deque(await run_by_size(size_of(self._request), partial(parts_of, self._request.messages, most)))
        if not parts:
            # Only the instructions or the tools are long: the provider itself says what it makes of them.
            return await self._ask(whole)
        why = f"{why}: it was summarized in parts, as text and without pictures"
        self._lost.append(Degradation("compaction.parts", sent=len(parts), why=why))
        if len(parts) > _MOST_PARTS:
            why = f"a conversation is summarized in {_MOST_PARTS} parts at most: what is older was left out"
            self._lost.append(Degradation("compaction.beginning", asked=len(parts), sent=_MOST_PARTS, why=why))
            parts = deque([*parts][-_MOST_PARTS:])
        summary, cut = "", 0
        while parts:
            part = parts.popleft()
            try:
                summary = await self._ask(part_request(self._request, self._arrival, part, summary))
            except BardoError as problem:
                cut += 1
                if overflow_of(problem) is None or len(part) <= _LEAST_PART or cut > _MOST_PARTS:
                    raise
                half = len(part) // 2
                parts.extendleft((part[half:], part[:half]))
        return summary

    async def _ask(self, request: Request) -> str:
        """Return what the model writes. Raises BardoError, also where it writes nothing."""
        lost = distinct((*request.degraded, *self._lost))
        caller = self._caller
        live = await open_call(
            self._context.services,
            msgspec.structs.replace(request, degraded=lost),
            may_forward=False,
            tenant=caller.tenant,
            client_key=caller.key,
            account=caller.account,
            login=caller.login,
        )
        try:
            await live.read()
            response = live.response()
        except asyncio.CancelledError as cancelled:
            live.log_cancelled(cancelled)
            raise
        finally:
            await live.close()
        if response.error is not None:
            raise response.error
        self.calls.append((live.request_id, live.attempt, response, live.cost_of_request))
        text = response.text.strip()
        # What stands before a call of a tool, or before a refusal, is no summary.
        if not text or response.finish.reason in ("tool_calls", "refusal", "error"):
            said = f"it ended with {response.finish.reason}"
            raise EmptyReply(
                f"the model wrote no summary of the conversation: {said}", provider=live.attempt.target.provider.id
            )
        return text


async def answer_compaction(
    context: GatewayContext,
    route: Route,
    request: Request,
    scope: Scope,
    receive: Receive,
    answer: Answer,
    targets: tuple[Target, ...],
    *,
    kept: ReplyStorage | None,
) -> None:
    """Answer a request that ends with a trigger, whole or as a stream, by the summary alone. Raises BardoError where no reply begins."""
    request = prepared(context, request, scope)
    compactor = Compactor(context, route, request, caller_of(scope), targets)
    if request.stream:
        await run_until_disconnect(receive, _stream(compactor, context, route, request, answer, kept))
    else:
        await run_until_disconnect(receive, _whole(compactor, route, request, answer, kept))


def prepared(context: GatewayContext, request: Request, scope: Scope) -> Request:
    """Return a request with what its headers say."""
    request = with_headers(request, scope)
    return request if context.services.telemetry is None else with_trace(request, scope)


async def _whole(
    compactor: Compactor, route: Route, request: Request, answer: Answer, kept: ReplyStorage | None
) -> None:
    _, response = await compactor.compact()
    body = dialect(route.dialect).encode_response(named_as_asked(response, request.model), request)
    if kept is not None:
        body = await kept.whole(body)
    await answer.whole(200, body, headers_of_calls(compactor.calls))


async def _stream(
    compactor: Compactor,
    context: GatewayContext,
    route: Route,
    request: Request,
    answer: Answer,
    kept: ReplyStorage | None,
) -> None:
    encoder = ClientModelEncoder(dialect(route.dialect).open_encoder(request, route.arrival), request.model)
    alive = KeepAlive(answer, encoder, context.keep_alive_seconds)
    alive.begin()
    try:
        item, response = await compactor.compact()
        events: Sequence[Event] = (
            ReplyStart(id=response.id, model=response.model, created=response.created),
            UnknownContent(0, NAME, item),
            UsageUpdate(response.usage),
            response.finish,
        )
        written, frames = encode_all(encoder, events), encoder.finish()
        frames = frames if kept is None else await kept.end(frames)
        await answer.start(headers_of_calls(compactor.calls), encoder.content_type)
        await answer.end(b"".join((*written, *frames)))
    except asyncio.CancelledError as cancelled:
        stopped = shutdown_of(cancelled)
        if stopped is not None and answer.started and not answer.ended:
            await answer.end(b"".join(encoder.feed(Failed(stopped))))
        raise
    except Exception as problem:
        if not answer.started or answer.ended:
            raise
        failure = problem if isinstance(problem, BardoError) else mistake(route.dialect)
        await answer.end(b"".join(encoder.feed(Failed(failure))))
    finally:
        alive.end()


def _sum_usage(usages: Sequence[Usage]) -> Usage:
    """Return what several calls used together; of a count that one of them does not tell, what the others do."""
    if len(usages) == 1:
        return usages[0]
    sums: dict[str, Any] = {}
    for name in ("input_tokens", "output_tokens", "reasoning_tokens", "cached_input_tokens", "cache_write_tokens"):
        counts = [count for usage in usages if (count := getattr(usage, name)) is not None]
        if counts:
            sums[name] = sum(counts)
    return Usage(**sums, approx=any(usage.approx for usage in usages))
