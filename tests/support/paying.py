"""A gateway with a wallet, in front of a seller that is paid by each call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bardo.adapters.net.client import Deadlines
from bardo.services.payments.ledger import Ledger, LedgerEntry, open_ledger
from bardo.simulators.x402 import PaidSimulator, PaymentTerms, SellerBehaviour, SimulatedNetwork
from support.gateway import House, house
from support.patience import PATIENCE

WALLET_VARIABLE = "BARDO_TEST_WALLET_KEY"
# A well-known test account's key: of no value anywhere.
WALLET_KEY = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"
WALLET_ADDRESS = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"


@dataclass
class Shop:
    """A gateway, the seller behind it, and the network that the seller is paid on."""

    house: House
    seller: PaidSimulator
    network: SimulatedNetwork
    state: Path | str

    def ask(self, text: str = "hello", *, stream: bool = False, **fields: Any) -> httpx.Response:
        """Return the answer to a call, in OpenAI's dialect; a stream is read to its end."""
        body = {"model": "openai_chat/m1", "messages": [{"role": "user", "content": text}], "stream": stream}
        return httpx.post(f"{self.house.address}/v1/chat/completions", json={**body, **fields}, timeout=PATIENCE)

    def entries(self) -> list[LedgerEntry]:
        """Return the payments of the ledger, oldest first."""
        with opened(self.state) as ledger:
            return ledger.latest(1000)[::-1]


@contextmanager
def opened(state: Path | str) -> Iterator[Ledger]:
    """Open the ledger of a shop."""
    ledger = open_ledger(state)
    try:
        yield ledger
    finally:
        ledger.close()


def payments_toml(terms: PaymentTerms, *, server: str = "", **changes: Any) -> str:
    """Return `[payments]` that pays a seller on its terms."""
    values = {
        "wallet_key_env": WALLET_VARIABLE,
        "recipients": [terms.recipient],
        "networks": [terms.network],
        "wait_seconds": 0.3,
        **changes,
    }
    lines = ["[payments]", *(f"{name} = {_toml(value)}" for name, value in values.items())]
    if server:
        lines += ["[payments.servers]", f'"{terms.network}" = "{server}"']
    return "\n".join(lines)


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{name}" = {_toml(one)}' for name, one in value.items()) + "}"
    return repr(value).replace("'", '"')


@contextmanager
def shop(
    state: Path | str,
    behaviour: SellerBehaviour = "honest",
    *,
    terms: PaymentTerms | None = None,
    network: SimulatedNetwork | None = None,
    reachable: bool = True,
    key: str | None = None,
    first_byte: float = PATIENCE,
    keep_content: bool = False,
    **changes: Any,
) -> Iterator[Shop]:
    """Run a gateway whose wallet pays a seller; `changes` are keys of `[payments]`. `reachable`: the network can be asked."""
    books = network or SimulatedNetwork(terms)
    seller = PaidSimulator("openai_chat", books, behaviour, models=())
    with ExitStack() as stack:
        server = stack.enter_context(books.running()) if reachable else ""
        environment = {WALLET_VARIABLE: WALLET_KEY, **({"BARDO_TEST_KEY": key} if key else {})}
        toml = payments_toml(books.terms, server=server, **changes)
        each = {"payment": ("diem", "x402", "prepaid")}
        deadlines = Deadlines(connect=PATIENCE, first_byte=first_byte, idle=PATIENCE)
        gateway = stack.enter_context(
            house(
                [seller],
                each=each,
                environment=environment,
                toml=toml,
                state=state,
                deadlines=deadlines,
                keep_content=keep_content,
            )
        )
        yield Shop(gateway, seller, books, state)
