"""What every call works with, made once from the settings: connections, keys, limits, facts, and where calls are noted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

from bardo.adapters.config.accounts import ClientKeys
from bardo.adapters.log_filter import SecretHolder, configured_secrets
from bardo.adapters.net.calls import Deadlines, Transport
from bardo.adapters.net.keys import Keyring
from bardo.adapters.stores.log.row import LogRow, PendingCall
from bardo.dialects.shared.content_forms import SearchResults
from bardo.planning.route import Target
from bardo.planning.token_counting import PromptEstimates
from bardo.replies.citations import SearchWeb
from bardo.replies.written_tokens import OutputEstimates
from bardo.services.facts.cache_health import PromptTracker
from bardo.services.facts.call_routing import CallRouting
from bardo.services.facts.directory import ProviderDirectory
from bardo.services.facts.event_feed import EventBus, finished_event
from bardo.services.facts.failover import Failover
from bardo.services.facts.health import HealthKeeper
from bardo.services.facts.model_facts import ModelFacts
from bardo.services.facts.price_book import PriceBook
from bardo.services.facts.server_choice import ServerFacts
from bardo.values.error_cleaning import clean_error
from bardo.values.errors import BardoError, BrokenStream, Unreachable
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.secrets import Secrets

if TYPE_CHECKING:
    from bardo.adapters.stores.replay_store import ReplayKeeper
    from bardo.services.accounts.agent_calls import AgentCalls
    from bardo.services.accounts.call_gate import CallGate
    from bardo.services.facts.provider_ids import ProviderIds
    from bardo.services.payments.payer import Payments
    from bardo.services.pipeline.affinity import Affinity
    from bardo.services.pipeline.pipeline import Pipeline
    from bardo.services.telemetry.telemetry import Telemetry


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a call may take, how large its reply may be, whole or streamed, and what the searches of a key may cost in a day."""

    deadlines: Deadlines = Deadlines()
    max_reply_bytes: int = 64 * 1024 * 1024
    max_stream_bytes: int = 256 * 1024 * 1024
    keep_content: bool = False
    search_usd_per_day: float | None = None


class RowWriter(Protocol):
    """Where the rows of finished calls are written."""

    def write(self, row: LogRow) -> None: ...


class PendingWriter(Protocol):
    """Where calls are written before they are sent: the journal of the log, as a rule."""

    def begin(self, call: PendingCall) -> None: ...


class EpisodeSink(Protocol):
    """Where the thinking of calls is kept, to be found again."""

    def keep(
        self,
        row: LogRow,
        request: Request,
        response: Response,
        *,
        asked: Request,
        session: str = "",
        schema_ok: bool | None = None,
    ) -> None:
        """Keep a call's thinking, off the request path. `request` and `response` are what was said as the log keeps it.

        `asked` is the client's request, by which its conversation is known where `session` is empty. Never raises.
        """
        ...


class WebSearcher(Protocol):
    """Searches the web."""

    async def search(self, search: SearchWeb) -> SearchResults:
        """Return what a search gave. Raises nothing: what failed is an error of the results."""
        ...


class CallMemory:
    """What calls leave for later ones in this process: who listens to events, what texts were estimated at, and how prompts began."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.events = EventBus(clock)
        self.estimates = PromptEstimates()
        self.outputs = OutputEstimates()
        self.prompts = PromptTracker()


class CallJournal(Protocol):
    """Takes each call before it is sent, and its row when it has ended."""

    def begin(self, call: PendingCall, target: Target) -> None:
        """Note a call before it is sent to a target, so that neither it nor its money is lost with this process."""
        ...

    def write(self, row: LogRow) -> None:
        """Note a finished call, and how long it took."""
        ...


class CallNotes:
    """Tells all who want to know of calls: the log, limits and budgets, routing, the agent's day, telemetry, and who listens to events."""

    def __init__(
        self,
        routing: CallRouting,
        events: EventBus,
        *,
        log: RowWriter | None = None,
        pending: PendingWriter | None = None,
        gate: CallGate | None = None,
        agent: AgentCalls | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._routing = routing
        self._events = events
        self._log = log
        self._pending = pending
        self._gate = gate
        self._agent = agent
        self._telemetry = telemetry

    def begin(self, call: PendingCall, target: Target) -> None:
        """Note a call before it is sent to a target."""
        if self._pending is not None:
            self._pending.begin(call if self._gate is None else self._gate.with_estimate(call, target))

    def write(self, row: LogRow) -> None:
        """Note a finished call."""
        self._routing.note(row)
        if self._agent is not None:
            self._agent.spending.note(row)
        if self._gate is not None:
            self._gate.settle(row)
        if self._telemetry is not None:
            self._telemetry.note(row)
        if self._events.active:
            self._events.publish(row.request_id, (finished_event(row),), row.key_id)
        if self._log is not None:
            self._log.write(row)


@dataclass(frozen=True, kw_only=True, eq=False)
class Services(SecretHolder):
    """What every call works with. `clock` gives Unix time; `watch` counts seconds and never jumps. What is None was not configured."""

    directory: ProviderDirectory
    transport: Transport
    keyring: Keyring
    client_keys: ClientKeys
    limits: Limits
    facts: ModelFacts
    prices: PriceBook
    routing: CallRouting
    health: HealthKeeper
    failover: Failover
    journal: CallJournal
    events: EventBus
    estimates: PromptEstimates
    """How many tokens prompts have that were not counted."""
    outputs: OutputEstimates
    """How many tokens a model writes that is not counted."""
    prompts: PromptTracker
    clock: Callable[[], float]
    watch: Callable[[], float]
    replay: ReplayKeeper | None = None
    """What keeps the reasoning of replies for the turns to come."""
    server_facts: ServerFacts | None = None
    """What servers say of their models."""
    payments: Payments | None = None
    """What pays providers that ask for a payment of each call."""
    gate: CallGate | None = None
    """What lets the calls of keys through, and says what they are charged."""
    provider_ids: ProviderIds | None = None
    """Whose the ids are that providers know."""
    agent: AgentCalls | None = None
    """What settles the calls of an agent."""
    pipeline: Pipeline | None = None
    """The layers that work on calls before they are sent."""
    searcher: WebSearcher | None = None
    """What searches the web for models."""
    episodes: EpisodeSink | None = None
    """Where the thinking of calls is kept."""
    telemetry: Telemetry | None = None
    """What monitoring systems are told of calls by."""

    @property
    def affinity(self) -> Affinity | None:
        """What targets probably have cached, or None if no layer asks for it."""
        return None if self.pipeline is None else self.pipeline.affinity

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
        return self.keyring.secrets(self.directory.providers, (*own, *extra_secrets, *configured_secrets()))
