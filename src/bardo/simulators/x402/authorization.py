"""The terms of a seller, and a payer's signed authorization of a transfer by EIP-3009, as the headers of x402 carry both."""

from __future__ import annotations

import base64
import binascii
import json
import re
import sys
from dataclasses import dataclass
from typing import Any

from bardo.simulators.fields import Fields, compact, fields, text

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_NONCE = re.compile(r"0x[0-9a-fA-F]{64}")
_SIGNATURE = re.compile(r"0x[0-9a-fA-F]{130}")
_NUMBER = re.compile(r"[0-9]{1,78}")
_TRANSFER = [
    {"name": "from", "type": "address"},
    {"name": "to", "type": "address"},
    {"name": "value", "type": "uint256"},
    {"name": "validAfter", "type": "uint256"},
    {"name": "validBefore", "type": "uint256"},
    {"name": "nonce", "type": "bytes32"},
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentTerms:
    """What a seller wants for a call. `version` is that of x402; `domain_name` and `domain_version` are the token's."""

    amount: int = 2_500
    recipient: str = "0x00000000000000000000000000000000000000A1"
    network: str = "eip155:84532"
    asset: str = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
    domain_name: str = "USDC"
    domain_version: str = "2"
    seconds: int = 60
    scheme: str = "exact"
    version: int = 2

    @property
    def chain_id(self) -> int:
        """The number of the network in a signature."""
        return int(self.network.rpartition(":")[2])

    def offer(self) -> Fields:
        """Return the terms as one of the ways to pay that a challenge lists."""
        extra: Fields = {"name": self.domain_name, "version": self.domain_version}
        offer: Fields = {
            "scheme": self.scheme,
            "network": self.network,
            "asset": self.asset,
            "payTo": self.recipient,
            "maxTimeoutSeconds": self.seconds,
            "extra": extra,
        }
        if self.version == 1:
            named = {"eip155:84532": "base-sepolia", "eip155:8453": "base"}.get(self.network, self.network)
            words: Fields = {"resource": "https://seller.example/v1", "description": "", "mimeType": "application/json"}
            return {**offer, **words, "network": named, "maxAmountRequired": str(self.amount)}
        return {**offer, "amount": str(self.amount)}

    def challenge(self, why: str = "Payment required") -> Fields:
        """Return the challenge that asks for a payment."""
        if self.version == 1:
            return {"x402Version": 1, "error": why, "accepts": [self.offer()]}
        return {
            "x402Version": 2,
            "error": why,
            "resource": {
                "url": "https://seller.example/v1",
                "description": "An answer",
                "mimeType": "application/json",
            },
            "accepts": [self.offer()],
            "extensions": {"payment-identifier": {"info": {"required": False}, "schema": {"type": "object"}}},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """A signed authorization as it was sent. `identifier` is the payer's own name of the payment, where it gave one."""

    payer: str
    recipient: str
    value: int
    valid_after: int
    valid_before: int
    nonce: str
    signature: str
    network: str
    identifier: str = ""

    def is_signed(self, terms: PaymentTerms) -> bool:
        """Whether the payer signed exactly this transfer of the token of `terms`."""
        packages = _packages()
        if packages is None:
            return True
        account, encode_typed_data = packages
        domain = {
            "name": terms.domain_name,
            "version": terms.domain_version,
            "chainId": terms.chain_id,
            "verifyingContract": terms.asset,
        }
        message = {
            "from": self.payer,
            "to": self.recipient,
            "value": self.value,
            "validAfter": self.valid_after,
            "validBefore": self.valid_before,
            "nonce": bytes.fromhex(self.nonce[2:]),
        }
        signed = encode_typed_data(domain, {"TransferWithAuthorization": _TRANSFER}, message)
        try:
            signer: str = account.recover_message(signed, signature=self.signature)
        except Exception:  # noqa: BLE001 - whatever the library finds wrong with it, it is not the payer's signature.
            return False
        return signer.lower() == self.payer.lower()


def _packages() -> tuple[Any, Any] | None:
    """Return what checks a signature, or None if it is not installed. What it needs raises the process's recursion limit, which stays."""
    limit = sys.getrecursionlimit()
    try:
        from eth_account import Account
        from eth_account.messages import encode_typed_data
    except ImportError:
        return None
    finally:
        sys.setrecursionlimit(limit)
    return Account, encode_typed_data


def read_authorization(headers: dict[str, str]) -> Authorization | None:
    """Return the payment that a request carries, in either version, or None if it carries none that can be read."""
    header = headers.get("payment-signature") or headers.get("x-payment")
    if not header:
        return None
    try:
        sent = fields(json.loads(base64.b64decode(header, validate=True)))
    except (ValueError, binascii.Error):
        return None
    payload = fields(sent.get("payload"))
    said = fields(payload.get("authorization"))
    network = text(fields(sent.get("accepted")).get("network")) or text(sent.get("network"))
    numbers = [text(said.get(name)) for name in ("value", "validAfter", "validBefore")]
    addresses = [text(said.get(name)) for name in ("from", "to")]
    nonce, signature = text(said.get("nonce")), text(payload.get("signature"))
    well_formed = all(_NUMBER.fullmatch(one) for one in numbers) and all(_ADDRESS.fullmatch(one) for one in addresses)
    if not well_formed or not _NONCE.fullmatch(nonce) or not _SIGNATURE.fullmatch(signature):
        return None
    info = fields(fields(fields(sent.get("extensions")).get("payment-identifier")).get("info"))
    return Authorization(
        payer=addresses[0],
        recipient=addresses[1],
        value=int(numbers[0]),
        valid_after=int(numbers[1]),
        valid_before=int(numbers[2]),
        nonce=nonce,
        signature=signature,
        network=network,
        identifier=text(info.get("id")),
    )


def in_base64(value: Fields) -> str:
    """Write JSON as a header of x402 carries it."""
    return base64.b64encode(compact(value)).decode()
