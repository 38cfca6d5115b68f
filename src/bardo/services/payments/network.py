"""Ask a network itself whether a payment was made: a token that knows EIP-3009 remembers every nonce that was used up.

The questions are JSON-RPC over the transport of all calls, so that no further package is needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from bardo.adapters.net.calls import Call, Deadlines, Transport
from bardo.services.payments.ledger import LedgerEntry
from bardo.values.errors import OperatorError, ProviderError

Verdict = Literal["paid", "paid_at_latest", "unpaid", "open"]
"""`paid` and `unpaid` are final. `paid_at_latest`: in a block that may still be replaced. `open`: not paid, and it may still be."""

# The first four bytes of the Keccak hash of `authorizationState(address,bytes32)`, by which a contract's function is called.
_AUTHORIZATION_STATE = "e94a0102"
_MOST_BYTES = 256 * 1024
_WORD = re.compile(r"0x[0-9a-f]{64}", re.IGNORECASE)
_QUANTITY = re.compile(r"0x[0-9a-f]{1,16}", re.IGNORECASE)
_DEADLINES = Deadlines(connect=10.0, first_byte=20.0, idle=20.0, total=30.0)


class NetworkUnavailable(OperatorError):
    """A network could not be asked what became of a payment."""


class _Answer(msgspec.Struct):
    result: Any = None
    error: Any = None


class PaymentNetworks:
    """The networks that can be asked, by their CAIP-2 names, each with the address of a server that speaks JSON-RPC."""

    def __init__(self, transport: Transport, servers: Mapping[str, str]) -> None:
        self._transport = transport
        self._servers = servers

    def knows(self, network: str) -> bool:
        """Whether there is a server of this network to ask."""
        return network in self._servers

    async def verdict(self, entry: LedgerEntry) -> Verdict:
        """Return what became of a payment. Raises NetworkUnavailable where its network cannot be asked, or is not the right one."""
        server = self._servers.get(entry.network)
        if server is None:
            hint = f'name a server of it in bardo.toml: [payments.servers] "{entry.network}" = "https://…"'
            raise NetworkUnavailable(f"{entry.network} cannot be asked what became of a payment", hint=hint)
        chain = await self._ask(server, entry.network, "eth_chainId", [])
        if _number(chain, entry.network) != int(entry.network.partition(":")[2]):
            raise NetworkUnavailable(
                f"the server of {entry.network} belongs to another network", hint="check [payments.servers]"
            )
        block = await self._ask(server, entry.network, "eth_getBlockByNumber", ["finalized", False])
        fields = block if isinstance(block, dict) else {}
        if await self._used(server, entry, str(fields.get("number", ""))):
            return "paid"
        if _number(fields.get("timestamp"), entry.network) > entry.valid_before:
            return "unpaid"
        return "paid_at_latest" if await self._used(server, entry, "latest") else "open"

    async def _used(self, server: str, entry: LedgerEntry, block: str) -> bool:
        """Return whether the nonce of a payment is used up at a block."""
        data = f"0x{_AUTHORIZATION_STATE}{entry.payer[2:].lower():0>64}{entry.nonce[2:]}"
        word = await self._ask(server, entry.network, "eth_call", [{"to": entry.asset, "data": data}, block])
        if not isinstance(word, str) or not _WORD.fullmatch(word):
            raise NetworkUnavailable(f"{entry.network} has no token at {entry.asset}", hint="check [payments.servers]")
        return int(word, 16) != 0

    async def _ask(self, server: str, network: str, method: str, params: list[Any]) -> Any:
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        call = Call(url=server, headers={"content-type": "application/json"}, body=body, provider=network)
        try:
            reply = await self._transport.send(call, _DEADLINES)
            try:
                answer = msgspec.json.decode(await reply.read(_MOST_BYTES), type=_Answer)
            finally:
                await reply.close()
        except (ProviderError, msgspec.DecodeError, RecursionError) as problem:
            raise _silent(network, method) from problem
        if answer.error is not None or answer.result is None:
            raise _silent(network, method)
        return answer.result


def _silent(network: str, method: str) -> NetworkUnavailable:
    return NetworkUnavailable(
        f"the server of {network} did not answer {method}", hint="check its address in [payments.servers]"
    )


def _number(value: object, network: str) -> int:
    """Return a number as JSON-RPC of Ethereum writes it. Raises NetworkUnavailable for anything else."""
    if not isinstance(value, str) or not _QUANTITY.fullmatch(value):
        raise _silent(network, "with a number")
    return int(value, 16)
