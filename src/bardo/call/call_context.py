"""What a reply needs of whoever runs it: a transport, keys, limits, and somewhere to keep what is worth keeping."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from bardo.adapters.net.calls import Deadlines, Transport
from bardo.adapters.net.keys import Keyring
from bardo.adapters.stores.log.row import LogRow, PendingCall
from bardo.call.web_search import WebSearcher
from bardo.planning.attempt import Attempt
from bardo.planning.route import Target
from bardo.planning.token_counting import PromptEstimates
from bardo.replies.written_tokens import OutputEstimates
from bardo.services.facts.event_feed import EventBus
from bardo.services.facts.health import HealthKeeper
from bardo.services.facts.model_facts import ModelFacts
from bardo.services.facts.price_book import PriceBook
from bardo.values.chance import CHANCE
from bardo.values.errors import BardoError
from bardo.values.request import Request
from bardo.values.response import Response

if TYPE_CHECKING:
    from bardo.services.accounts.call_gate import CallGate
    from bardo.services.facts.provider_ids import ProviderIds
    from bardo.services.payments.payer import Payments
    from bardo.services.telemetry.telemetry import Telemetry


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a call may take, how large its reply may be, whole or streamed, and what the searches of a key may cost in a day."""

    deadlines: Deadlines = Deadlines()
    max_reply_bytes: int = 64 * 1024 * 1024
    max_stream_bytes: int = 256 * 1024 * 1024
    keep_content: bool = False
    search_usd_per_day: float | None = None


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


class CallContext(Protocol):
    """What a reply needs of whoever runs it."""

    transport: Transport
    keyring: Keyring
    limits: Limits
    facts: ModelFacts
    events: EventBus
    health: HealthKeeper
    searcher: WebSearcher | None
    prices: PriceBook
    estimates: PromptEstimates
    """How many tokens prompts have that were not counted."""
    outputs: OutputEstimates
    """How many tokens a model writes that is not counted."""
    payments: Payments | None
    """What pays providers that ask for a payment of each call; None where nothing is configured."""
    gate: CallGate | None
    """What lets the calls of keys through, and says what they are charged; None where there are no keys."""
    telemetry: Telemetry | None
    """What monitoring systems are told of calls by; None where nobody is told."""
    episodes: EpisodeSink | None
    """Where the thinking of calls is kept; None where it is not."""
    provider_ids: ProviderIds | None
    """Whose the ids are that providers know; None where no keys are asked for."""
    clock: Callable[[], float]
    """Unix time: when a thing happened."""
    watch: Callable[[], float]
    """Seconds that never jump: how long a thing took."""

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
    ) -> None: ...

    def note_begun(self, call: PendingCall, target: Target) -> None:
        """Note a call before it is sent to a target."""
        ...

    def write(self, row: LogRow) -> None: ...

    def clean(self, error: BardoError, extra_secrets: Sequence[str] = ()) -> None:
        """Take every secret of this process, and `extra_secrets` ones, out of an error."""
        ...


def new_request_id(now: float) -> str:
    """Return the id of a call that begins at `now`, Unix time: four digits for its second, which come again after 18 hours, 80 random bits.

    Calls of one second stand side by side in the log's index of ids, so a batch of rows changes few of its pages.
    """
    return f"req_{int(now) & 0xFFFF:04x}{CHANCE.getrandbits(80):020x}"
