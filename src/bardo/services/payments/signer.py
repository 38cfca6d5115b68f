"""Sign payments with a key of this machine. The key is read from the environment, and shown nowhere.

The packages `eth-account` and `x402` are loaded with the first signature. `x402`'s own client is not used: it draws a new nonce for each
challenge, so that a repeated request pays twice (x402-foundation/x402#3438, read 2026-11-23), and it loads web3.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import threading
from typing import Any

import msgspec

from bardo.accounting.payments import Quote
from bardo.services.payments.challenge import Challenge
from bardo.services.payments.packages import load
from bardo.values.errors import ConfigError

_KEY = re.compile(r"(?:0x)?([0-9a-fA-F]{64})")
_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
"""How many private keys there are: the order of the curve secp256k1."""
_TRANSFER = {
    "TransferWithAuthorization": [
        {"name": "from", "type": "address"},
        {"name": "to", "type": "address"},
        {"name": "value", "type": "uint256"},
        {"name": "validAfter", "type": "uint256"},
        {"name": "validBefore", "type": "uint256"},
        {"name": "nonce", "type": "bytes32"},
    ]
}


class Authorization(msgspec.Struct, frozen=True, kw_only=True):
    """A transfer by EIP-3009 that is to be signed: it can be made once, because its nonce is used up by it, and until `valid_before`."""

    payer: str
    recipient: str
    atomic: int
    valid_before: int
    nonce: str

    def fields(self) -> dict[str, str]:
        """Return the authorization as x402 writes it."""
        return {
            "from": self.payer,
            "to": self.recipient,
            "value": str(self.atomic),
            "validAfter": "0",
            "validBefore": str(self.valid_before),
            "nonce": self.nonce,
        }


class Signer:
    """A wallet whose key this process holds. `variable` is the name of the environment variable that the key came from."""

    __slots__ = ("_account", "_key", "_lock", "variable")

    def __init__(self, key: str, variable: str = "") -> None:
        """Raises ConfigError where the key is none; the message does not quote it."""
        self.variable = variable
        matched = _KEY.fullmatch(key.strip())
        if matched is None or not 0 < int(matched[1], 16) < _ORDER:
            raise ConfigError(
                f"the private key of the wallet in {variable or 'the environment'} is not one",
                hint="it is 64 hexadecimal digits, with 0x before them or without",
            )
        self._key = bytes.fromhex(matched[1])
        self._account: Any = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Signer({self.variable}, …)"

    def __reduce__(self) -> Any:
        raise TypeError("a wallet is never written down")

    @property
    def secrets(self) -> tuple[str, ...]:
        """The forms of the key that must never be shown."""
        return self._key.hex(), f"0x{self._key.hex()}"

    @property
    def address(self) -> str:
        """The wallet's address. Raises ConfigError where the packages are not installed."""
        return str(self._loaded().address)

    def digest(self, *parts: bytes) -> bytes:
        """Return 32 bytes that only this wallet derives from `parts`, always the same ones."""
        mac = hmac.new(hashlib.sha256(b"bardo payments" + self._key).digest(), digestmod=hashlib.sha256)
        for part in parts:
            mac.update(len(part).to_bytes(8, "big") + part)
        return mac.digest()

    def nonce_of(self, payment_id: str) -> str:
        """Return the nonce of a payment. It does not reveal the request, although it stands on a public network."""
        return f"0x{self.digest(b'nonce', payment_id.encode()).hex()}"

    def header(self, challenge: Challenge, quote: Quote, wanted: Authorization, identifier: str) -> dict[str, str]:
        """Return the header that pays: the signed authorization with what the provider wants back. Takes milliseconds."""
        payload = {"authorization": wanted.fields(), "signature": self._sign(quote, wanted)}
        offer, encode, schemas = (
            quote.offer,
            load("x402.http.utils").encode_payment_signature_header,
            load("x402.schemas"),
        )
        if challenge.version == 1:
            payment = load("x402.schemas.v1").PaymentPayloadV1
            return {
                "x-payment": encode(
                    payment(x402_version=1, scheme=offer.scheme, network=offer.network, payload=payload)
                )
            }
        second = schemas.PaymentPayload(
            x402_version=2,
            payload=payload,
            accepted=schemas.PaymentRequirements.model_validate(challenge.accepts[offer.position]),
            resource=None if challenge.resource is None else schemas.ResourceInfo.model_validate(challenge.resource),
            extensions=_extensions(challenge, identifier) or None,
        )
        return {"payment-signature": encode(second)}

    def _sign(self, quote: Quote, wanted: Authorization) -> str:
        message = {**wanted.fields(), "value": wanted.atomic, "validAfter": 0, "validBefore": wanted.valid_before}
        domain = {
            "name": quote.asset.name,
            "version": quote.asset.version,
            "chainId": quote.asset.chain_id,
            "verifyingContract": quote.asset.address,
        }
        signed = self._loaded().sign_typed_data(
            domain, _TRANSFER, {**message, "nonce": bytes.fromhex(wanted.nonce[2:])}
        )
        return f"0x{bytes(signed.signature).hex()}"

    def _loaded(self) -> Any:
        """Return the account of the key, made once."""
        with self._lock:
            if self._account is None:
                self._account = load("eth_account").Account.from_key(self._key)
            return self._account


def _extensions(challenge: Challenge, identifier: str) -> dict[str, Any]:
    """Return the provider's extensions as they are given back: with the payment's identifier, where it takes one."""
    if not challenge.takes_identifier:
        return {}
    declared = challenge.extensions["payment-identifier"]
    info = declared.get("info")
    return {"payment-identifier": {**declared, "info": {**(info if isinstance(info, dict) else {}), "id": identifier}}}
