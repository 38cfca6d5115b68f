"""What gateways send each other, whatever carries it: `RedisExchange` between machines, `FileExchange` between the workers of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

LEASE_SECONDS = 30.0
MOST_MESSAGES = 20_000


class Message(NamedTuple):
    """What another gateway sent, and how many seconds ago."""

    age: float
    data: bytes


class ExchangeResult(NamedTuple):
    """What others sent since the last time, and which of the leases that were asked for this gateway holds."""

    messages: Sequence[Message]
    held: Sequence[str]


class Exchange(Protocol):
    """The messages of one gateway, and the leases that one gateway holds at a time. Calls may fail with `problems`."""

    @property
    def problems(self) -> tuple[type[Exception], ...]: ...

    def exchange(self, data: bytes, *, hold: Iterable[str] = (), give_back: Iterable[str] = ()) -> ExchangeResult: ...

    def close(self) -> None: ...
