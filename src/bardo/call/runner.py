"""Runs exchanges: tries one target after the other until a reply has begun. The gateway and the library share it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bardo.adapters.config.accounts import ClientKeys
from bardo.adapters.log_filter import SecretHolder, cover, known_values
from bardo.adapters.net.client import Transport
from bardo.adapters.net.keys import Keyring
from bardo.adapters.stores.log.row import LogRow, PendingCall
from bardo.call.call_beginning import begin_call
from bardo.call.call_context import EpisodeSink, Limits
from bardo.call.call_routing import CallRouting
from bardo.call.cascade import escalations_of, open_cascade
from bardo.call.client_secrets import without_key_as_model
from bardo.call.failover import Failover
from bardo.call.live_reply import LiveReply
from bardo.call.runner_parts import CallJournal, CallMemory, CallOptions, LogSink, ServerFacts
from bardo.call.server_choice import ServerChoice
from bardo.call.verification import Verifier
from bardo.planning.aliases import ThinkingRules, with_display, with_effort
from bardo.planning.attempt import Attempt
from bardo.planning.route import Target
from bardo.planning.route_steps import Steps, record_of, targets_in_steps
from bardo.planning.typed_answer import AnswerValidator
from bardo.planning.verification import judge_of, with_verification
from bardo.planning.vitality import refuse_tick, without_workload
from bardo.planning.workload_requests import NOTHING_FOUND, CallNeeds, check_contradiction, needs_of, with_found
from bardo.routing.cascade import EscalatedCall
from bardo.services.facts.directory import Placement, ProviderDirectory
from bardo.services.facts.event_feed import finished_event
from bardo.services.facts.model_facts import ModelFacts
from bardo.services.facts.price_book import PriceBook
from bardo.values.error_cleaning import clean_error
from bardo.values.errors import BardoError, BrokenStream, InternalError, ProviderError, Unreachable
from bardo.values.request import Request, SearchLimit, with_search_limit
from bardo.values.response import Response
from bardo.values.secrets import Secrets

if TYPE_CHECKING:
    from bardo.adapters.config.accounts import Account
    from bardo.adapters.stores.replay_store import ReplayKeeper
    from bardo.call.unary_operations import UnaryAnswer
    from bardo.call.web_search import WebSearcher
    from bardo.services.accounts.agent_calls import AgentCalls, LocalAnswer
    from bardo.services.accounts.call_gate import CallGate
    from bardo.services.facts.provider_ids import ProviderIds
    from bardo.services.payments.payer import Payments
    from bardo.services.pipeline.affinity import Affinity
    from bardo.services.pipeline.pipeline import Pipeline
    from bardo.services.telemetry.telemetry import Telemetry
    from bardo.values.operations import Embeddings, EmbedRequest


class Runner(SecretHolder):
    """Opens exchanges over one transport. `clock` gives Unix time, `watch` measures how long calls take."""

    agent: AgentCalls | None = None
    """What settles the calls of an agent; None where none is configured."""
    searcher: WebSearcher | None = None
    """What searches the web for models; None where nobody does."""
    gate: CallGate | None = None
    """What calls of clients with keys pass before they are sent; None where no keys are asked for."""
    provider_ids: ProviderIds | None = None
    """Whose the ids are that providers know; None where no keys are asked for."""
    affinity: Affinity | None = None
    """What targets probably have cached; None where no layer asks for it."""
    pipeline: Pipeline | None = None
    """The layers that work on calls before they are sent; None where calls have none."""
    episodes: EpisodeSink | None = None
    """Where the thinking of calls is kept; None where it is not."""
    telemetry: Telemetry | None = None
    """What monitoring systems are told of calls by; None where nobody is told."""

    def __init__(
        self,
        directory: ProviderDirectory,
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
        prices: PriceBook | None = None,
        failover: Failover | None = None,
        payments: Payments | None = None,
        memory: CallMemory | None = None,
        clock: Callable[[], float] = time.time,
        watch: Callable[[], float] = time.monotonic,
    ) -> None:
        self.directory = directory
        self.transport = transport
        self.keyring = keyring
        self.limits = limits or Limits()
        self.facts = facts or ModelFacts()
        self.prices = prices or PriceBook()
        self.payments = payments
        memory = memory or CallMemory(clock)
        self.events, self.estimates, self.prompts = memory.events, memory.estimates, memory.prompts
        self.outputs = memory.outputs
        self.failover = failover or Failover()
        self.clock = clock
        self.watch = watch
        self._log = log
        self._journal = journal
        self.replay = replay
        self.server_facts = servers
        self.routing = routing or CallRouting(directory, self.facts, prices=self.prices, watch=watch)
        self.health = self.routing.health
        self.health.events = self.events
        self.servers = ServerChoice(self.health, watch, servers)
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
        account: Account | None = None,
    ) -> LiveReply:
        """Send a request until a provider takes it, and return its reply with the first piece read.

        `may_forward`: the client takes a provider's frames as they come, where nothing has to be changed. `tenant` is whose earlier
        reasoning may be recalled, `client_key` what it came with, `account` whose key that is; `most_text` how many characters of a
        stream are held for the log and for replay. Raises BardoError where nobody takes it; the call is in the log then too.
        """
        request, local, refused = await self._settle(request, account, tenant)
        options = request.options
        workload = self.directory.workloads.of_call(options.intent, self.directory.found(request.model).model)
        is_sent = local is None and refused is None
        judge = judge_of(options, workload) if is_sent else None
        if judge is not None:
            request = with_verification(request)
        call = CallOptions(
            tenant, validator, client_key, most_text, may_forward, account, judge, local=local, refused=refused
        )
        escalate = escalations_of(options, workload) if is_sent else ()
        if escalate:
            return await open_cascade(partial(self._open, call), request, escalate, self.routing)
        return await self._open(call, request)

    async def _settle(
        self, request: Request, account: Account | None, tenant: str
    ) -> tuple[Request, LocalAnswer | None, BardoError | None]:
        """Return a request with the step of the agent that it is, its answer where no model is asked, and why it is refused."""
        if (most := self.limits.search_usd_per_day) is not None:
            whose = tenant if account is None else account.id
            key = f"day {int(self.clock() // 86_400)} of {whose}"
            request = with_search_limit(request, SearchLimit(setting="[budgets] search_usd_per_day", key=key, usd=most))
        try:
            if self.agent is None:
                refuse_tick(request)
                return request, None, None
            request, local = await self.agent.prepare(request, account, tenant)
        except BardoError as problem:
            return request, None, problem
        return request, local, None

    async def _open(
        self, call: CallOptions, request: Request, *, earlier: tuple[EscalatedCall, ...] = (), judged: bool = False
    ) -> LiveReply:
        """Send one request until a provider takes it. `earlier` are calls of the same cascade; one that is `judged` keeps its text."""
        tenant, validator, client_key, most_text, _, account, judge, *_ = call
        most_text = None if judged else most_text
        if client_key:
            request = without_key_as_model(request, client_key, is_known=account is not None)
        found, rules = self.directory.found(request.model), self._client_keys.rules(client_key)
        request = with_display(request, found, rules)
        live = LiveReply(
            self,
            request,
            tenant=tenant,
            validator=validator,
            client_key=client_key,
            most_text=most_text,
            account=account,
        )
        if judge is not None:
            live.verifier = Verifier(judge, partial(self._open, call.of_judge()), self.placed)
        if judged:
            self.routing.await_verdict(live.request_id)
            live.recorder.awaits_verdict = True
        try:
            if self.telemetry is not None:
                request = self.telemetry.begin(live.request_id, request)
            if self.provider_ids is not None:
                await self.provider_ids.check(request, tenant)
            if call.refused is not None:
                raise call.refused
            asked = with_effort(request, await self.directory.found_as_listed(request.model), rules)
            await begin_call(self, live, asked, call, earlier=earlier)
            return live
        except BardoError as problem:
            final = live.final(problem)
            await self.directory.suggest(final, request.model)
            live.clean(final)
            final.request_id = live.request_id
            live.log("error", final)
            live.recorder.judge(escalated=isinstance(problem, ProviderError))
            final.cost_nanos = live.cost.nanos
            raise final from final.__cause__
        except Exception as mistake:
            live.log("error", InternalError(f"a mistake in bardo: {type(mistake).__name__}"))
            live.recorder.judge(escalated=False)
            raise
        except asyncio.CancelledError as cancelled:
            live.log_cancelled(cancelled)
            raise
        except BaseException:
            live.log("cancelled")
            raise

    async def placed(
        self, request: Request, request_id: str = "", *, found: Mapping[str, Any] = NOTHING_FOUND, session: str = ""
    ) -> tuple[Request, Placement]:
        """Return a request with all that it needs, and who is asked for it, best first. `found` are fields of an intent that layers found.

        `session` is the conversation whose prompt a cache may hold, empty where nobody asks for that.

        Raises UnknownModel, InvalidRequest, Unsupported and Unavailable.
        """
        needs = needs_of(request, self.directory.found(request.model), self.directory.workloads)
        if needs is None:
            if request.options.vitality is not None:
                request = without_workload(request, self.directory.workloads)
            return request, await self.placement(request.model)
        needs = with_found(needs, found) if found else needs
        return needs.request, await self.routed(needs, request_id, session)

    async def placement(self, *models: str) -> Placement:
        """Return who may serve the models, best first, each server asked once what it knows of its models. Raises UnknownModel."""
        placed = await self.directory.placement(*models)
        if self.health.store.troubled:
            placed = self.health.arranged(placed, self.watch)
        if self.server_facts is not None:
            await self.server_facts.ask_before(placed.targets)
        return placed

    async def routed(self, needs: CallNeeds, request_id: str = "", session: str = "") -> Placement:
        """Return who is asked for what a request needs, in order, and why. Raises UnknownModel, Unsupported and Unavailable."""
        placed = await self.directory.placement(*needs.models) if needs.models else None
        targets, steps = (placed.targets, {}) if placed is not None else await self._in_steps(needs)
        name = "" if needs.workload is None else needs.workload.name
        discounts = None if self.affinity is None else self.affinity.discounts(session, needs.request, self)
        found = await self.routing.route(
            needs.request, targets or None, request_id=request_id, workload=name, discounts=discounts
        )
        check_contradiction(needs, found.decision)
        skipped = () if placed is None else placed.skipped
        made = Placement(found.targets, skipped=skipped, route=record_of(found.record, needs, steps))
        made = self.health.arranged(made, self.watch)
        if self.server_facts is not None:
            await self.server_facts.ask_before(made.targets)
        return made

    async def _in_steps(self, needs: CallNeeds) -> tuple[Sequence[Target], Steps]:
        """Return the targets that the steps of a workload lead to, with the step of each; none where they lead nowhere."""
        if needs.workload is not None and needs.workload.route:
            await self.directory.discover()
        return targets_in_steps(needs, self.directory.providers, self.routing.candidate)

    def rules(self, client_key: str) -> tuple[ThinkingRules, ...]:
        """Return what the configuration says of the calls of a key."""
        return self._client_keys.rules(client_key)

    def rules_of(self, client_key: str) -> tuple[ThinkingRules, ...]:
        """Return what holds for the calls of a key, for calls that are made later without it."""
        names = ThinkingRules.__struct_fields__
        found = self._client_keys.rules(client_key)
        return tuple([ThinkingRules(**{name: getattr(one, name) for name in names}) for one in found])

    async def embed(self, request: EmbedRequest) -> UnaryAnswer[Embeddings]:
        """Return the vectors of texts that bardo itself needs, made by a provider in a call of its own. Raises BardoError."""
        # Such calls are run by runners.
        from bardo.call.unary_operations import embed

        return await embed(self, request)

    async def remember(
        self,
        response: Response,
        request: Request,
        attempt: Attempt,
        tenant: str,
        *,
        reply: str,
        fields: Mapping[int, dict[str, Any]],
        shown: Response | None = None,
    ) -> None:
        """Keep what of a reply is needed in the turns to come."""
        if self.replay is not None:
            await self.replay.remember(response, request, attempt, tenant, reply=reply, fields=fields, shown=shown)

    def clean(self, error: BardoError, extra_secrets: Sequence[str] = ()) -> None:
        """Take every secret of this process, and `extra_secrets` ones, out of an error, and note a server that was not there."""
        if self.server_facts is not None and isinstance(error, Unreachable | BrokenStream):
            for provider in self.directory.providers:
                if provider.id == error.provider:
                    self.server_facts.note_loss(provider)
        clean_error(error, self.secrets(extra_secrets), now=self.clock())

    def secrets(self, extra_secrets: Sequence[str] = ()) -> Secrets:
        """Return every secret of this process, and `extra_secrets` ones."""
        own = () if self.payments is None else self.payments.wallet.signer.secrets
        return self.keyring.secrets(self.directory.providers, (*own, *extra_secrets, *known_values()))

    def note_begun(self, call: PendingCall, target: Target) -> None:
        """Note a call before it is sent, so that neither it nor its money is lost with this process."""
        if self._journal is not None:
            self._journal.begin(call if self.gate is None else self.gate.with_estimate(call, target))

    def write(self, row: LogRow) -> None:
        """Note a finished call, and how long it took."""
        self.routing.note(row)
        if self.agent is not None:
            self.agent.spending.note(row)
        if self.gate is not None:
            self.gate.settle(row)
        if self.telemetry is not None:
            self.telemetry.note(row)
        if self.events.active:
            self.events.publish(row.request_id, (finished_event(row),), row.key_id)
        if self._log is not None:
            self._log.write(row)
