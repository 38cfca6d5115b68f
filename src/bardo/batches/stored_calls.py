"""What stands in the place of a provider where a stored reply is read as if it came now: a transport, keys and a log of one row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from bardo.adapters.net.calls import Call, Deadlines
from bardo.adapters.net.keys import Keyring
from bardo.adapters.stores.log.row import LogRow, PendingCall
from bardo.batches.batch_prices import BatchPrices
from bardo.call.services import Services
from bardo.call.stored import StoredReply
from bardo.planning.route import Provider, Target
from bardo.services.facts.health import HealthKeeper
from bardo.values.errors import InternalError
from bardo.values.secrets import Secrets


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
    """Signs nothing: a stored reply needs no key, which may be gone by now. It knows the secrets of `services` all the same."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services

    async def prepare(self, provider: Provider) -> None:
        """Make nothing."""

    def sign(
        self,
        call: Call,
        provider: Provider,
        *,
        clock: Callable[[], float],
        key: str = "",
        login: Mapping[str, str] | None = None,
    ) -> Call:
        """Return the call as it is."""
        return call

    def secrets(self, providers: Iterable[Provider] = (), further: Iterable[str] = ()) -> Secrets:
        """Return every secret of this process, and `further` ones."""
        return self._services.secrets(tuple(further))

    def secrets_of(self, provider: Provider) -> Secrets:
        """Return the secrets of a provider."""
        return self._services.keyring.secrets_of(provider)


class StoredJournal:
    """Keeps the row of one call. Its beginning is in the state database since before its job was sent."""

    row: LogRow | None = None

    def begin(self, call: PendingCall, target: Target) -> None:
        """Note nothing."""

    def write(self, row: LogRow) -> None:
        """Keep the row, which is stored with the item and then written."""
        self.row = row


def stored_services(services: Services, reply: StoredReply, journal: StoredJournal, *, started_at: float) -> Services:
    """Return the services with which one stored reply is read: nobody is asked, and the call's row is kept in `journal`."""
    return replace(
        services,
        transport=StoredTransport(reply),
        keyring=KeylessKeyring(services),
        # A reply of hours ago says nothing of how its provider is now.
        health=HealthKeeper(),
        payments=None,
        telemetry=None,
        searcher=None,
        prices=BatchPrices(services.prices),
        # The log keeps no content of batches, and so the memory keeps no thinking of them.
        episodes=None,
        clock=lambda: started_at,
        journal=journal,
    )
