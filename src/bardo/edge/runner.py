"""Runs exchanges: tries one target after the other until a reply has begun. The gateway and the library share it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from bardo.edge.call_context import Limits
from bardo.edge.call_routing import CallRouting
from bardo.edge.cascade import escalations_of, open_cascade, with_cascade
from bardo.edge.client_keys import ClientKeys
from bardo.edge.directory import Directory, Placement
from bardo.edge.event_bus import EventBus
from bardo.edge.http import Transport
from bardo.edge.keys import Keyring
from bardo.edge.live_reply import LiveReply
from bardo.edge.log.row import CallBegun, LogRow
from bardo.edge.log_filter import SecretHolder, cover
from bardo.edge.model_facts import ModelFacts
from bardo.engine.aliases import with_display, with_effort
from bardo.engine.exchange import Exchange, attempts
from bardo.engine.knowledge import Lesson
from bardo.engine.planning import Attempt
from bardo.engine.route import Provider, Target
from bardo.engine.route_steps import Steps, record_of, targets_in_steps
from bardo.engine.typed.plan import AnswerValidator
from bardo.engine.vitality import without_workload
from bardo.engine.workload_requests import Needs, check_contradiction, needs_of
from bardo.reasoning.replay import NOTHING
from bardo.routing.cascade import EscalatedCall
from bardo.routing.profiles import LOCKED
from bardo.values.error_cleaning import clean_error
from bardo.values.errors import BardoError, BrokenStream, InternalError, Unreachable
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.secrets import Secrets

if TYPE_CHECKING:
    from bardo.edge.replay_store import ReplayKeeper

_log = logging.getLogger("bardo.control")


class LogSink(Protocol):
    """Where finished calls are noted."""

    def write(self, row: LogRow) -> None: ...


class CallJournal(Protocol):
    """Where calls are noted before they are sent: the log itself, as a rule."""

    def begin(self, call: CallBegun) -> None: ...


class ServerFacts(Protocol):
    """What servers say of their models, and what calls tell of the servers."""

    async def ask_before(self, targets: Sequence[Target]) -> None: ...

    def answered(self, target: Target) -> None: ...

    def lost(self, provider: Provider) -> None: ...


class CallOptions(NamedTuple):
    """How a caller wants a call run, as `Runner.open` takes it."""

    tenant: str
    validator: AnswerValidator | None
    client_key: str
    most_text: int | None
    may_forward: bool


class Runner(SecretHolder):
    """Opens exchanges over one transport. `clock` gives Unix time, `watch` measures how long calls take."""

    def __init__(
        self,
        directory: Directory,
        transport: Transport,
        keyring: Keyring,
        *,
        limits: Limits | None = None,
        facts: ModelFacts | None = None,
        log: LogSink | None = None,
        journal: CallJournal | None = None,
        replay: ReplayKeeper | None = None,
        servers: ServerFacts | None = None,
        routing: CallRouting | None = None,
        client_keys: ClientKeys | None = None,
        clock: Callable[[], float] = time.time,
        watch: Callable[[], float] = time.monotonic,
    ) -> None:
        self.directory = directory
        self.transport = transport
        self.keyring = keyring
        self.limits = limits or Limits()
        self.facts = facts or ModelFacts()
        self.events = EventBus()
        self.clock = clock
        self.watch = watch
        self._log = log
        self._journal = journal
        self._replay = replay
        self._servers = servers
        self.routing = routing or CallRouting(directory, self.facts)
        self._client_keys = client_keys or ClientKeys()
        cover(self)

    async def open(
        self,
        request: Request,
        *,
        may_forward: bool = True,
        tenant: str = "",
        validator: AnswerValidator | None = None,
        client_key: str = "",
        most_text: int | None = None,
    ) -> LiveReply:
        """Send a request until a provider takes it, and return its reply with the first piece read.

        `may_forward`: the client takes a provider's frames as they come, where nothing has to be changed. `tenant` is whose earlier
        reasoning may be recalled, `client_key` what it came with; `most_text` how many characters of a
        stream are held for the log and for replay. Raises BardoError where nobody takes it; the call is in the log then too.
        """
        call = CallOptions(tenant, validator, client_key, most_text, may_forward)
        escalate = escalations_of(request, self.directory.found(request.model), self.directory.workloads)
        if escalate:
            return await open_cascade(partial(self._open, call), request, escalate, self.routing)
        return await self._open(call, request)

    async def _open(
        self, call: CallOptions, request: Request, *, earlier: tuple[EscalatedCall, ...] = (), judged: bool = False
    ) -> LiveReply:
        """Send one request until a provider takes it. `earlier` are calls of the same cascade; one that is `judged` keeps its text."""
        tenant, validator, client_key, most_text, may_forward = call
        most_text = None if judged else most_text
        found, rules = self.directory.found(request.model), self._client_keys.rules(client_key)
        request = with_display(request, found, rules)
        live = LiveReply(self, request, tenant=tenant, validator=validator, client_key=client_key, most_text=most_text)
        if judged:
            self.routing.await_verdict(live.request_id)
        try:
            asked = with_effort(request, found, rules)
            await self._begin(live, asked, tenant, may_forward=may_forward, earlier=earlier)
            return live
        except BardoError as problem:
            live.clean(problem)
            problem.request_id = live.request_id
            live.log("error", problem)
            raise
        except Exception as mistake:
            live.log("error", InternalError(f"a mistake in bardo: {type(mistake).__name__}"))
            raise
        except asyncio.CancelledError as cancelled:
            live.log_cancelled(cancelled)
            raise
        except BaseException:
            live.log("cancelled")
            raise

    async def _begin(
        self, live: LiveReply, request: Request, tenant: str, *, may_forward: bool, earlier: tuple[EscalatedCall, ...]
    ) -> None:
        """Try one target after the other until a reply has begun. Raises BardoError where none does."""
        request, placed = await self.placed(request, live.request_id)
        targets = placed.targets
        if placed.skipped:
            request = msgspec.structs.replace(request, degraded=(*request.degraded, *placed.skipped))
        recalled = NOTHING if self._replay is None else await self._replay.recall(request, tenant)
        knowledge = self.facts.knowledge(targets)
        route = with_cascade(placed.route, earlier)
        exchange = attempts(
            request, targets, knowledge=knowledge, recalled=recalled, may_forward=may_forward, route=route
        )
        attempt = self._attempt(next(exchange), exchange)
        while True:
            self.facts.warn_of_unclassified(attempt)
            self.facts.warn_of_shutdown(attempt.target)
            _warn_of_locked(attempt)
            try:
                await live.begin(attempt, knowledge)
            except BardoError as problem:
                attempt = self._next_attempt(exchange, problem)
            else:
                if self._servers is not None:
                    self._servers.answered(attempt.target)
                return

    async def placed(self, request: Request, request_id: str = "") -> tuple[Request, Placement]:
        """Return a request with all that it needs, and who is asked for it, best first.

        Raises UnknownModel, InvalidRequest, Unsupported and Unavailable.
        """
        needs = needs_of(request, self.directory.found(request.model), self.directory.workloads)
        if needs is None:
            request = without_workload(request, self.directory.workloads)
            return request, await self.placement(request.model)
        return needs.request, await self.routed(needs, request_id)

    async def placement(self, *models: str) -> Placement:
        """Return who may serve the models, best first, each server asked once what it knows of its models. Raises UnknownModel."""
        placed = await self.directory.placement(*models)
        if self._servers is not None:
            await self._servers.ask_before(placed.targets)
        return placed

    async def routed(self, needs: Needs, request_id: str = "") -> Placement:
        """Return who is asked for what a request needs, in order, and why. Raises UnknownModel, Unsupported and Unavailable."""
        placed = await self.placement(*needs.models) if needs.models else None
        targets, steps = (placed.targets, {}) if placed is not None else await self._in_steps(needs)
        name = "" if needs.workload is None else needs.workload.name
        found = await self.routing.route(needs.request, targets or None, request_id=request_id, workload=name)
        check_contradiction(needs, found.decision)
        if placed is None and self._servers is not None:
            await self._servers.ask_before(found.targets)
        skipped = () if placed is None else placed.skipped
        return Placement(found.targets, skipped=skipped, route=record_of(found.record, needs, steps))

    async def _in_steps(self, needs: Needs) -> tuple[Sequence[Target], Steps]:
        """Return the targets that the steps of a workload lead to, with the step of each; none where they lead nowhere."""
        if needs.workload is not None and needs.workload.route:
            await self.directory.discover()
        return targets_in_steps(needs.workload, self.directory.providers)

    def _next_attempt(self, exchange: Exchange, problem: BardoError) -> Attempt:
        """Return what is tried after an attempt that failed. Raises its `problem` where nothing is."""
        try:
            return self._attempt(exchange.send(problem), exchange)
        except StopIteration:
            raise problem from None

    def _attempt(self, item: Attempt | Lesson, exchange: Exchange) -> Attempt:
        """Keep what was learned, and return the attempt that follows it."""
        while not isinstance(item, Attempt):
            self.facts.learn(item)
            item = next(exchange)
        return item

    async def remember(
        self,
        response: Response,
        request: Request,
        attempt: Attempt,
        tenant: str,
        *,
        reply: str,
        fields: Mapping[int, dict[str, Any]],
    ) -> None:
        """Keep what of a reply is needed in the turns to come."""
        if self._replay is not None:
            await self._replay.remember(response, request, attempt, tenant, reply=reply, fields=fields)

    def clean(self, error: BardoError, further: Sequence[str] = ()) -> None:
        """Take every secret of this process, and `further` ones, out of an error, and note a server that was not there."""
        if self._servers is not None and isinstance(error, Unreachable | BrokenStream):
            for provider in self.directory.providers:
                if provider.id == error.provider:
                    self._servers.lost(provider)
        clean_error(error, self.secrets(further), now=self.clock())

    def secrets(self, further: Sequence[str] = ()) -> Secrets:
        """Return every secret of this process, and `further` ones."""
        return self.keyring.secrets(self.directory.providers, further)

    def note_begun(self, call: CallBegun) -> None:
        """Note a call before it is sent, so that it is not lost with this process."""
        if self._journal is not None:
            self._journal.begin(call)

    def write(self, row: LogRow) -> None:
        """Note a finished call, and how long it took."""
        self.routing.note(row)
        if self._log is not None:
            self._log.write(row)


def _warn_of_locked(attempt: Attempt) -> None:
    """Warn of what a locked profile did not honour in one call."""
    for lost in attempt.degraded:
        if lost.why == LOCKED:
            about = {"field": lost.what, "provider": attempt.target.provider.id, "model": attempt.target.model}
            _log.warning("%s was asked for otherwise: %s", lost.what, LOCKED, extra=about)
