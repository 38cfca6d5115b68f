"""Ask a server one adapter's questions, within a time, and read what it says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from bardo.dialects.lenient import decode_leniently
from bardo.edge.http import Call, Deadlines, Transport
from bardo.edge.introspect.adapters import Adapter, Question
from bardo.edge.introspect.live import LiveFacts
from bardo.edge.introspect.looking import NotAnAnswer
from bardo.edge.introspect.readers import READERS
from bardo.edge.keys import Keyring
from bardo.engine.route import Provider
from bardo.values.errors import BardoError, MalformedReply

_MOST_BYTES = 16 * 1024 * 1024


async def ask(
    adapter: Adapter,
    provider: Provider,
    model: str,
    *,
    transport: Transport,
    keyring: Keyring,
    seconds: float,
    clock: Callable[[], float] = time.time,
) -> dict[str, LiveFacts]:
    """Return facts by model id. Raises BardoError, or TimeoutError after `seconds` for all questions together."""
    deadlines = Deadlines(connect=min(2.0, seconds), first_byte=seconds, idle=seconds)
    answers: dict[str, Any] = {}
    async with asyncio.timeout(seconds):
        # One after the other: a server with one slot renders one prompt at a time.
        for question in adapter.questions:
            if not question.due(answers):
                continue
            call = _call(question, provider, model)
            answer = await _answer(keyring.sign(call, provider, clock=clock), question, transport, deadlines)
            if answer is not None:
                answers[question.name] = answer
    try:
        return READERS[adapter.name](answers, model)
    except NotAnAnswer as problem:
        raise MalformedReply(f"{problem}", provider=provider.id) from problem


def _call(question: Question, provider: Provider, model: str) -> Call:
    content = question.content(model)
    headers = {**provider.row.headers, "accept": "application/json"}
    if content:
        headers["content-type"] = "application/json"
    method = "POST" if content else "GET"
    return Call(method=method, url=question.url(provider, model), headers=headers, body=content, provider=provider.id)


async def _answer(call: Call, question: Question, transport: Transport, deadlines: Deadlines) -> Any:
    """Return a parsed body; None where an optional question is not known there, or not understood."""
    reply = await transport.send(call, deadlines)
    try:
        body = await reply.read(_MOST_BYTES)
    finally:
        await reply.close()
    if reply.status == 200:
        try:
            return decode_leniently(body)
        except ValueError as problem:
            if not question.optional:
                raise MalformedReply(f"its answer is no JSON: {problem}", provider=call.provider) from problem
    if question.optional:
        return None
    raise MalformedReply(f"it answered with status {reply.status}", provider=call.provider)


def why_not(problem: BaseException) -> str:
    """Return in a few words why nothing was learnt."""
    if isinstance(problem, BardoError):
        return problem.message
    return "it took too long" if isinstance(problem, TimeoutError) else f"a mistake in bardo: {type(problem).__name__}"
