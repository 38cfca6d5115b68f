"""Which inference events a call gives: those of its plan, before it is sent, and those of its reply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bardo.planning.attempt import Attempt
from bardo.structured import Provenance
from bardo.values.blocks import Carried, UnknownBlock
from bardo.values.degradation import Degradation
from bardo.values.inference_events import (
    CacheStats,
    CallStarted,
    InferenceEvent,
    ProfileApplied,
    ProfileDegraded,
    ReasoningCaptured,
    SchemaFallback,
    SchemaValidated,
    WebSearchUsed,
)
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.usage import estimate_tokens, usd

_IN_PROMPT = "prompt_guided"
_ADDRESSES = ("url", "uri")
_MOST_LOOKED_AT = 10_000


def events_of_plan(attempt: Attempt, cause: str = "first") -> Iterator[InferenceEvent]:
    """Yield the events of an attempt that is about to be sent; `cause` says why it is made."""
    request = attempt.request
    if request is None:
        return
    target = attempt.target
    yield CallStarted(
        subsystem=_subsystem(request),
        provider=target.provider.id,
        model=target.model,
        model_asked=request.model,
        client_dialect=request.dialect,
        streamed=request.stream,
        cause=cause,
    )
    subsystem, profile = _subsystem(request), request.options.profile
    if profile is not None:
        written = attempt.written or request
        yield ProfileApplied(
            subsystem=subsystem,
            temperature=written.sampling.temperature,
            reasoning_effort=_sent_effort(attempt),
            structured=attempt.answer is not None,
            cached=bool(profile.prompt_cache_key or profile.cache_control),
        )
        if attempt.degraded:
            yield ProfileDegraded(subsystem=subsystem, degraded=tuple(map(_line, attempt.degraded)))
    if attempt.answer is not None and attempt.answer.plan.mode == _IN_PROMPT:
        yield SchemaFallback(subsystem=subsystem, schema_name=attempt.answer.plan.name)


def events_of_reply(
    attempt: Attempt, response: Response, provenance: Provenance | None, saved_nanos: int | None = None
) -> Iterator[InferenceEvent]:
    """Yield the events of a reply that has ended; `provenance` tells how its typed answer came about, None where there was none.

    `saved_nanos` is what the provider's cache saved, as the receipt says; None where that is not known.
    """
    request = attempt.request
    if request is None:
        return
    subsystem, usage = _subsystem(request), response.usage
    if attempt.answer is not None and provenance is not None:
        name = attempt.answer.plan.name
        yield SchemaValidated(subsystem=subsystem, schema_name=name, valid=provenance.error is None)
    chain = response.reasoning
    if chain.content:
        content = usage.answer_tokens
        yield ReasoningCaptured(
            subsystem=subsystem,
            reasoning_tokens=chain.reasoning_tokens or estimate_tokens(chain.content),
            content_tokens=estimate_tokens(response.text) if content is None else content,
        )
    pages = cited_pages(response)
    searched = request.options.profile is not None and bool(request.options.profile.web_search)
    if pages or searched:
        yield WebSearchUsed(subsystem=subsystem, query=_query(response), results_count=len(pages))
    if usage.cached_input_tokens is not None and usage.input_tokens is not None:
        yield CacheStats(
            subsystem=subsystem,
            cached_tokens=usage.cached_input_tokens,
            total_tokens=usage.input_tokens,
            savings_usd=None if saved_nanos is None else usd(saved_nanos),
        )


def cited_pages(response: Response) -> frozenset[str]:
    """Return the addresses of the web pages that a reply cites, in whatever form its provider cites."""
    carried = [
        response.carried,
        response.choice_carried,
        *(getattr(block, "carried", None) for block in response.blocks),
    ]
    found: set[str] = set()
    waiting: list[Any] = [one.fields for one in carried if isinstance(one, Carried)]
    waiting += [block.value for block in response.blocks if isinstance(block, UnknownBlock)]
    for _ in range(_MOST_LOOKED_AT):
        if not waiting:
            break
        item = waiting.pop()
        if isinstance(item, dict):
            found |= {item[name] for name in _ADDRESSES if isinstance(item.get(name), str)}
        waiting += item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
    return frozenset(address for address in found if address.startswith(("http://", "https://")))


def _query(response: Response) -> str:
    """Return what was searched for, where the reply says it."""
    for block in response.blocks:
        asked = block.value.get("input") if isinstance(block, UnknownBlock) and isinstance(block.value, dict) else None
        if isinstance(asked, dict) and isinstance(asked.get("query"), str):
            return str(asked["query"])
    return ""


def _sent_effort(attempt: Attempt) -> str | None:
    """Return how the model was told to think, in a word; None where it was told nothing."""
    plan = attempt.control
    return None if plan is None or not plan.fields else plan.emitted


def _subsystem(request: Request) -> str:
    return "" if request.options.intent is None else request.options.intent.subsystem


def _line(lost: Degradation) -> str:
    """Return a difference as the documents write it: `min_p -> top_p`."""
    sent = lost.sent
    if isinstance(sent, dict) and len(sent) == 1:
        sent = next(iter(sent))
    return f"{lost.what} -> {'unsupported' if sent is None else sent}"
