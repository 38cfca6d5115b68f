"""What stands in the place of a provider where a stored reply is read as if it came now: a transport, keys and a log of one row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bardo.adapters.net.calls import Call, Deadlines, Transport
from bardo.adapters.net.keys import Keyring
from bardo.adapters.stores.log.row import LogRow, PendingCall
from bardo.batches.batch_prices import BatchPrices
from bardo.call.call_context import EpisodeSink
from bardo.call.runner import Runner
from bardo.call.stored_reply import StoredReply
from bardo.call.web_search import WebSearcher
from bardo.planning.attempt import Attempt
from bardo.planning.route import Provider, Target
from bardo.services.facts.health import HealthKeeper
from bardo.services.facts.price_book import PriceBook
from bardo.values.errors import BardoError, InternalError
from bardo.values.request import Request
from bardo.values.response import Response

if TYPE_CHECKING:
    from bardo.services.payments.payer import Payments
    from bardo.services.telemetry.telemetry import Telemetry


class StoredTransport:
    """Gives one stored reply to whatever is sent."""

    def __init__(self, reply: StoredReply) -> None:
        self._reply: StoredReply | None = reply

    async def send(self, call: Call, deadlines: Deadlines) -> StoredReply:
        """Return the reply. Raises InternalError the second time: a batch asks each model once."""
        reply, self._reply = self._reply, None
        if reply is None:
            raise InternalError("an item of a batch was sent again")
        return reply

    async def close(self) -> None:
        """Do nothing: no connection is held."""


class KeylessKeyring(Keyring):
    """Signs nothing: a stored reply needs no key, which may be gone by now."""

    def __init__(self, keyring: Keyring) -> None:
        super().__init__()
        self.secrets_of = keyring.secrets_of  # type: ignore[method-assign]

    async def prepare(self, provider: Provider) -> None:
        """Make nothing."""

    def sign(self, call: Call, provider: Provider, *, clock: Callable[[], float], key: str = "") -> Call:
        """Return the call as it is."""
        return call


class StoredContext:
    """What reads one stored reply: the runner's facts and settings, a transport that asks nobody, and a log of one row."""

    def __init__(self, runner: Runner, reply: StoredReply, *, started_at: float) -> None:
        self._runner = runner
        self.transport: Transport = StoredTransport(reply)
        self.keyring: Keyring = KeylessKeyring(runner.keyring)
        self.limits = runner.limits
        self.facts = runner.facts
        self.provider_ids = runner.provider_ids
        self.events = runner.events
        # A reply of hours ago says nothing of how its provider is now.
        self.health = HealthKeeper()
        self.payments: Payments | None = None
        self.telemetry: Telemetry | None = None
        self.gate = runner.gate
        self.prices: PriceBook = BatchPrices(runner.prices)
        self.estimates, self.outputs = runner.estimates, runner.outputs
        self.searcher: WebSearcher | None = None
        # The log keeps no content of batches, and so the memory keeps no thinking of them.
        self.episodes: EpisodeSink | None = None
        self.clock = lambda: started_at
        self.watch = runner.watch
        self.row: LogRow | None = None

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
        """Keep what the turns to come need."""
        await self._runner.remember(response, request, attempt, tenant, reply=reply, fields=fields, shown=shown)

    def note_begun(self, call: PendingCall, target: Target) -> None:
        """Note nothing: the item is in the state database since before its job was sent."""

    def write(self, row: LogRow) -> None:
        """Keep the row, which is stored with the item and then written."""
        self.row = row

    def clean(self, error: BardoError, extra_secrets: Sequence[str] = ()) -> None:
        """Take every secret of this process out of an error."""
        self._runner.clean(error, extra_secrets)
