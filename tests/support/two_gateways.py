"""Two gateways that share health over a real server or a file, as one store of health: each makes every second call.

They exchange news after each call.
"""

from __future__ import annotations

from collections.abc import Iterator

from bardo.routing.circuit import AttemptOutcome, Circuit
from bardo.routing.health import Latency
from bardo.routing.health_news import decode_news, encode_news
from bardo.routing.key_rests import KeyRests
from bardo.routing.shared_health import SharedHealth, TargetName
from bardo.services.facts.health_sharing import Exchange


def exchange_at(place: str) -> Exchange:
    """Return the exchange of one gateway at an address of Redis, or in a file."""
    if "://" in place:
        from bardo.services.facts.health_sharing import RedisExchange

        return RedisExchange(place, space="health", past_seconds=300.0)
    from bardo.services.facts.health_sharing import FileExchange

    return FileExchange(place, past_seconds=300.0)


class SharingGateway:
    """The health that one gateway keeps, and its connection to the server."""

    def __init__(self, address: str) -> None:
        self.store = SharedHealth()
        self.store.in_step = True
        self._server = exchange_at(address)

    def exchange(self, now: float) -> None:
        """Send and read news. They are taken as sent just now: tests set the time."""
        asked, back = self.store.trials(now)
        names = {"\n".join(name): name for name in asked}
        news = self.store.outgoing(now)
        found = self._server.exchange(
            encode_news(news) if news else b"", hold=names, give_back=["\n".join(name) for name in back]
        )
        for _, data in found.messages:
            self.store.take(decode_news(data), age=0.0, now=now)
        self.store.set_trials(asked, [names[one] for one in found.held], now)

    def close(self) -> None:
        """Close the connection."""
        self._server.close()


class TwoGateways:
    """Both gateways as one store. It asserts that they say the same, and that not both try one target at once."""

    def __init__(self, address: str) -> None:
        self.gateways = (SharingGateway(address), SharingGateway(address))
        self._turn = 0
        self._tries: SharingGateway | None = None

    @property
    def revision(self) -> int:
        return self.gateways[0].store.revision

    @property
    def troubled(self) -> bool:
        one, other = (gateway.store.troubled for gateway in self.gateways)
        assert one == other
        return one

    @property
    def rests(self) -> KeyRests:
        return self._next().store.rests

    def note(self, provider: str, model: str, outcome: AttemptOutcome, now: float) -> None:
        gateway, self._tries = self._tries or self._next(), None
        gateway.store.note(provider, model, outcome, now)
        self._exchange(now)

    def down(self, provider: str, model: str, now: float) -> float | None:
        one, other = (gateway.store.down(provider, model, now) for gateway in self.gateways)
        assert one == other
        return one

    def claim(self, provider: str, model: str, now: float) -> bool:
        if not self._may_try(provider, model, now):
            self._exchange(now)
            return self._may_try(provider, model, now)
        return True

    def count_due(self, now: float) -> int:
        one, other = (gateway.store.count_due(now) for gateway in self.gateways)
        assert one == other
        return one

    def circuit(self, provider: str, model: str, now: float) -> Circuit | None:
        return self._next().store.circuit(provider, model, now)

    def latency(self, provider: str, model: str) -> Latency:
        return self._next().store.latency(provider, model)

    def p90_ms(self, provider: str, model: str) -> int | None:
        return self._next().store.p90_ms(provider, model)

    def targets(self) -> Iterator[TargetName]:
        return self._next().store.targets()

    def close(self) -> None:
        for gateway in self.gateways:
            gateway.close()

    def _next(self) -> SharingGateway:
        self._turn += 1
        return self.gateways[self._turn % 2]

    def _exchange(self, now: float) -> None:
        """Exchange news until both know all, in an order that changes."""
        first, second = self._next(), self.gateways[(self._turn + 1) % 2]
        for gateway in (first, second, first, second):
            gateway.exchange(now)

    def _may_try(self, provider: str, model: str, now: float) -> bool:
        was_down = self.down(provider, model, now) is not None
        may = [gateway for gateway in self.gateways if gateway.store.claim(provider, model, now)]
        if was_down:
            assert len(may) < 2, "two gateways try one target at once"
            self._tries = may[0] if may else None
        return bool(may)
