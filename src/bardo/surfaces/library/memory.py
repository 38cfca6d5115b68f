"""Past calls from Python: `client.memory` searches their thinking, and `replan` tells what a configuration would choose for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from bardo.catalog.routing_rows import CallSize
from bardo.dialects import DIALECTS
from bardo.dialects.shared.options import read_intent
from bardo.planning.routing import size_of
from bardo.surfaces.library.explaining import RoutePlanner, read_request
from bardo.values.episodes import Episode, EpisodeMatch, Erased, MemoryStats, SearchBy
from bardo.values.errors import BardoError, ClientMisuse, InvalidRequest, NotStored
from bardo.values.request import BardoOptions, Request

if TYPE_CHECKING:
    from bardo.adapters.stores.memory.episodes import EpisodeSelection
    from bardo.adapters.stores.memory.reasoning_memory import ReasoningMemory

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, Any]], Any]
When = float | datetime


class AsyncMemory:
    """The reasoning memory of a client: of all tenants, as whoever has the log may see them, unless a tenant is named.

    Times are Unix times or datetimes. Its methods raise ClientMisuse where the memory is off, and LogUnusable where it cannot be read.
    """

    def __init__(self, memory: ReasoningMemory | None) -> None:
        self._memory = memory

    async def search(
        self,
        text: str,
        *,
        limit: int = 10,
        by: SearchBy = "both",
        tenant: str | None = None,
        key: str | None = None,
        session: str | None = None,
        subsystem: str | None = None,
        model: str | None = None,
        since: When | None = None,
        before: When | None = None,
    ) -> list[EpisodeMatch]:
        """Return the episodes that fit, the best first: by the words of their texts, and by what they mean.

        Words, `"phrases"` and `begin*` are looked for. `by` takes `words` or `meaning` alone. `key` is the id of a client's key.
        """
        chosen = _selection(
            tenant=tenant,
            key=key,
            session=session,
            subsystem=subsystem,
            model=model,
            since=_time(since),
            before=_time(before),
        )
        return await asyncio.to_thread(self._opened().search, text, chosen, limit=limit, by=by)

    async def show(self, episode: str, *, tenant: str | None = None) -> Episode:
        """Return an episode by its id, its call's id or a beginning that only it has. Raises NotStored where there is none."""
        found = await asyncio.to_thread(self._opened().show, episode, tenant=tenant)
        if found is None:
            raise no_episode(episode)
        return found

    async def forget(
        self,
        episode: str | None = None,
        *,
        tenant: str | None = None,
        key: str | None = None,
        session: str | None = None,
        before: When | None = None,
        everything: bool = False,
    ) -> Erased:
        """Remove episodes for good, and the content of their calls from the log. `everything` is needed where nothing else is said.

        The file of an SQLite database is written anew, which takes as long as copying it.
        """
        chosen = _selection(id=episode, tenant=tenant, key=key, session=session, before=_time(before))
        if everything is (chosen != _selection()):
            hint = "give an id, tenant, key, session or before, which may be combined; or everything=True"
            raise ClientMisuse("it must be said which episodes are forgotten", hint=hint)
        return await asyncio.to_thread(self._opened().forget, chosen)

    async def stats(self, *, tenant: str | None = None) -> MemoryStats:
        """Return what the memory holds."""
        return await asyncio.to_thread(self._opened().stats, tenant=tenant)

    def _opened(self) -> ReasoningMemory:
        if self._memory is None:
            hint = "turn it on: MemorySettings(enabled=True), and LogSettings(content=True)"
            raise ClientMisuse("this client keeps no reasoning memory", hint=hint)
        return self._memory


class Memory:
    """The reasoning memory of a client without asyncio; see AsyncMemory."""

    def __init__(self, inner: AsyncMemory, run: Run) -> None:
        self._inner = inner
        self._run = run

    def search(
        self,
        text: str,
        *,
        limit: int = 10,
        by: SearchBy = "both",
        tenant: str | None = None,
        key: str | None = None,
        session: str | None = None,
        subsystem: str | None = None,
        model: str | None = None,
        since: When | None = None,
        before: When | None = None,
    ) -> list[EpisodeMatch]:
        """Return the episodes that fit, the best first, as AsyncMemory does."""
        found: list[EpisodeMatch] = self._run(
            self._inner.search(
                text,
                limit=limit,
                by=by,
                tenant=tenant,
                key=key,
                session=session,
                subsystem=subsystem,
                model=model,
                since=since,
                before=before,
            )
        )
        return found

    def show(self, episode: str, *, tenant: str | None = None) -> Episode:
        """Return an episode, as AsyncMemory does. Raises NotStored where there is none."""
        found: Episode = self._run(self._inner.show(episode, tenant=tenant))
        return found

    def forget(
        self,
        episode: str | None = None,
        *,
        tenant: str | None = None,
        key: str | None = None,
        session: str | None = None,
        before: When | None = None,
        everything: bool = False,
    ) -> Erased:
        """Remove episodes for good, as AsyncMemory does."""
        work = self._inner.forget(
            episode, tenant=tenant, key=key, session=session, before=before, everything=everything
        )
        erased: Erased = self._run(work)
        return erased

    def stats(self, *, tenant: str | None = None) -> MemoryStats:
        """Return what the memory holds."""
        found: MemoryStats = self._run(self._inner.stats(tenant=tenant))
        return found


def no_episode(name: str) -> NotStored:
    """Return the error for an id that no episode has."""
    return NotStored(f"no episode has the id {name[:200]!r}", hint="a search lists the ids of what it finds")


def _selection(**fields: Any) -> EpisodeSelection:
    from bardo.adapters.stores.memory.episodes import EpisodeSelection

    return EpisodeSelection(**fields)


def _time(when: When | None) -> float | None:
    return when.timestamp() if isinstance(when, datetime) else when


_MARKS = ("request_id", "model_asked")
"""What a row of the log has and no body of a request."""


NOTHING: Mapping[str, Any] = MappingProxyType({})


class PastRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it was, with what the log tells of its call: its id, who answered, its tokens and its cost where these are known.

    A line is the body of a client's request, or a row of the log as `bardo log --json` prints it. Where the log kept no content, a row is
    judged by the model that was asked for, its intent and its tokens.
    """

    request: Request
    request_id: str = ""
    answered_by: str = ""
    size: CallSize | None = None
    cost_usd: float | None = None


class ReplannedRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What would be chosen for the request on a `line`, and what it would cost in US dollars, or None if no price is known.

    `asked` is the model that the request names, `answered_by` who answered it, and `cost_usd` what that cost, as far as the log tells.
    `error` says why nobody could be asked.
    """

    line: int
    asked: str = ""
    request_id: str = ""
    workload: str = ""
    provider: str = ""
    model: str = ""
    relaxed: bool = False
    degraded: tuple[str, ...] = ()
    estimated_cost_usd: float | None = None
    answered_by: str = ""
    cost_usd: float | None = None
    error: str = ""


def replan(
    line: int, text: bytes, planner: RoutePlanner, *, dialect: str, model: str = "", needs: Mapping[str, Any] = NOTHING
) -> ReplannedRequest:
    """Return what would be chosen for the request on a line.

    `model` takes the place of the one that was asked for, and `needs` are fields of an intent that go before the request's own.
    """
    asked = ""
    try:
        past = read_past(text, dialect, needs)
        asked = past.request.model
        request = msgspec.structs.replace(past.request, model=model or asked)
        planned = planner.plan(request)
        if planned.why:
            return ReplannedRequest(line=line, asked=asked, request_id=past.request_id, error=planned.why)
        target, intent, routed = planned.targets[0], planned.request.options.intent, planned.routed
        first = None if routed is None else routed.decision.considered[0]
        size = past.size or size_of(planned.request)
        return ReplannedRequest(
            line=line,
            asked=past.request.model,
            request_id=past.request_id,
            workload="" if intent is None else intent.subsystem,
            provider=target.provider.id,
            model=target.model,
            relaxed=first is not None and first.relaxed,
            degraded=() if first is None else first.degraded,
            estimated_cost_usd=planner.candidate(target).cost(size, diem=intent is not None and intent.diem_available),
            answered_by=past.answered_by,
            cost_usd=past.cost_usd,
        )
    except BardoError as problem:
        return ReplannedRequest(line=line, asked=asked, error=str(problem))


def read_past(text: bytes, dialect: str, needs: Mapping[str, Any]) -> PastRequest:
    """Return the request on a line. Raises InvalidRequest."""
    try:
        fields = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise InvalidRequest(f"the line is not valid JSON: {str(problem)[:200]}") from problem
    if not isinstance(fields, dict):
        raise InvalidRequest("the line is no JSON object", hint="give the body of a request, or a row of the log")
    if all(name in fields for name in _MARKS):
        model, tokens = str(fields["model_asked"]), (fields.get("input_tokens"), fields.get("output_tokens"))
        known = all(isinstance(count, int) for count in tokens)
        size = CallSize(input_tokens=tokens[0], output_tokens=tokens[1]) if known else None  # type: ignore[arg-type]
        provider, served = fields.get("provider") or "", fields.get("model") or ""
        cost = fields.get("cost_usd")
        return PastRequest(
            request=_request_of_row(fields, model, needs),
            request_id=str(fields["request_id"]),
            answered_by=f"{provider}/{served}" if provider else "",
            size=size,
            cost_usd=cost if isinstance(cost, int | float) else None,
        )
    return PastRequest(request=read_request(_with_needs(fields, needs), dialect))


def _request_of_row(row: dict[str, Any], model: str, needs: Mapping[str, Any]) -> Request:
    """Return the request of a row: its body where the log kept it, else one without content."""
    dialect, content = row.get("client_dialect") or "", row.get("request_content")
    if isinstance(content, str) and dialect in DIALECTS:
        try:
            body = msgspec.json.decode(content)
        except msgspec.DecodeError:
            body = None  # Content that was too long is cut.
        if isinstance(body, dict):
            # What was asked of bardo itself is no part of the content.
            return read_request(_with_needs(body, {**_needs_of_row(row), **needs}), dialect, model)
    intent, given = read_intent({**_needs_of_row(row), **needs} or None, "intent")
    options = BardoOptions(intent=intent, intent_fields=given)
    return Request(model=model, messages=(), dialect=dialect, options=options)


def _needs_of_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return the intent of a call whose model is no workload: a workload's needs are those that it has now."""
    route = row.get("route")
    intent = route.get("intent") if isinstance(route, dict) and not route.get("workload") else None
    return dict(intent) if isinstance(intent, dict) else {}


def _with_needs(body: dict[str, Any], needs: Mapping[str, Any]) -> dict[str, Any]:
    if not needs:
        return body
    own = _object(body.get("bardo"))
    return {**body, "bardo": {**own, "intent": {**_object(own.get("intent")), **needs}}}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
