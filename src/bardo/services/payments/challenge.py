"""Read what a provider asks to be paid, and what it says of a payment. Both are text of a stranger and are bounded before they are read.

Version 2 of x402 has both in headers, version 1 has the challenge in the body. Source: the specifications of both versions in
github.com/x402-foundation/x402, read 2026-11-23.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import msgspec

from bardo.accounting.payments import Offer
from bardo.values.payments import PaymentRefused

REQUIRED_HEADER = "payment-required"
_RESPONSE_HEADERS = ("payment-response", "x-payment-response")
_MOST_BYTES = 64 * 1024
_MOST_OFFERS = 32
_MOST_DEPTH = 12
_IDENTIFIER = "payment-identifier"


class Challenge(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's request for payment. `accepts`, `resource` and `extensions` are its own words, which a payment gives back."""

    version: int
    offers: tuple[Offer, ...]
    accepts: tuple[dict[str, Any], ...]
    resource: dict[str, Any] | None = None
    extensions: dict[str, Any] = {}
    why: str = ""

    @property
    def takes_identifier(self) -> bool:
        """Whether the provider knows payments by an identifier of ours: a repeated one is answered from what it kept."""
        return isinstance(self.extensions.get(_IDENTIFIER), dict)


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's report on a payment. `success` None: it says nothing that can be read."""

    success: bool | None = None
    transaction: str = ""
    reason: str = ""


class _Offer(msgspec.Struct, rename="camel"):
    scheme: str
    network: str
    asset: str
    pay_to: str
    max_timeout_seconds: int
    amount: str = ""
    max_amount_required: str = ""
    extra: dict[str, Any] | None = None


class _Challenge(msgspec.Struct, rename="camel"):
    x402_version: int
    accepts: list[dict[str, Any]]
    error: str | None = None
    resource: dict[str, Any] | str | None = None
    extensions: dict[str, Any] | None = None


class _Objection(msgspec.Struct):
    error: str | None = None


class _Settlement(msgspec.Struct, rename="camel"):
    success: bool
    transaction: str | None = None
    error_reason: str | None = None


def read_challenge(headers: Mapping[str, str], body: bytes, provider: str) -> Challenge:
    """Return what a reply of status 402 asks to be paid. Raises PaymentRefused where that cannot be read."""
    text = headers.get(REQUIRED_HEADER)
    source = body if text is None else _decoded(text)
    if source is None or not source.strip():
        raise _unreadable(provider, "it asks for a payment and says nothing that x402 knows")
    if len(source) > _MOST_BYTES:
        raise _unreadable(provider, f"what it asks to be paid is longer than {_MOST_BYTES} bytes")
    try:
        read = msgspec.json.decode(source, type=_Challenge)
        if read.x402_version not in (1, 2):
            raise _unreadable(provider, f"it speaks version {read.x402_version} of x402, and bardo versions 1 and 2")
        if not read.accepts or len(read.accepts) > _MOST_OFFERS:
            raise _unreadable(provider, f"it offers {len(read.accepts)} ways to pay, and 1 to {_MOST_OFFERS} are read")
        if _depth(read.accepts) > _MOST_DEPTH or _depth(read.extensions) > _MOST_DEPTH:
            raise _unreadable(provider, "what it asks to be paid is nested too deeply")
        return Challenge(
            version=read.x402_version,
            offers=tuple(offer for place, row in enumerate(read.accepts) if (offer := _offer(row, place)) is not None),
            accepts=tuple(read.accepts),
            resource=read.resource if isinstance(read.resource, dict) else None,
            extensions=read.extensions or {},
            why=(read.error or "")[:200],
        )
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        # The text of the problem may quote the stranger at any length.
        raise _unreadable(provider, "what it asks to be paid cannot be read") from problem


def _offer(fields: dict[str, Any], place: int) -> Offer | None:
    """Return one way to pay; None for one that says too little, as those of other kinds of networks may."""
    try:
        read = msgspec.convert(fields, _Offer)
    except msgspec.ValidationError:
        return None
    transfer = (read.extra or {}).get("assetTransferMethod", "eip3009")
    return Offer(
        scheme=read.scheme,
        network=read.network,
        asset=read.asset,
        amount=read.amount or read.max_amount_required,
        pay_to=read.pay_to,
        seconds=read.max_timeout_seconds,
        transfer=transfer if isinstance(transfer, str) else "",
        position=place,
    )


def read_settlement(headers: Mapping[str, str]) -> Settlement:
    """Return what a reply says of the payment that it was sent."""
    text = next((headers[name] for name in _RESPONSE_HEADERS if name in headers), None)
    source = None if text is None else _decoded(text)
    if source is None or len(source) > _MOST_BYTES:
        return Settlement()
    try:
        read = msgspec.json.decode(source, type=_Settlement)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Settlement()
    reason = (read.error_reason or "")[:100]
    return Settlement(success=read.success, transaction=(read.transaction or "")[:200], reason=reason)


def read_objection(headers: Mapping[str, str]) -> str:
    """Return why a provider asks for a payment once more, in its own words; empty where it does not say."""
    source = _decoded(headers.get(REQUIRED_HEADER, "")) or b""
    if len(source) > _MOST_BYTES:
        return ""
    try:
        return (msgspec.json.decode(source, type=_Objection).error or "")[:200]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


def _decoded(text: str) -> bytes | None:
    """Return what a header holds in base64, or None if it does not."""
    if len(text) > 2 * _MOST_BYTES:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _depth(value: object, depth: int = 0) -> int:
    """Return how deeply lists and objects are nested, counted no further than one past the bound."""
    if depth > _MOST_DEPTH or not isinstance(value, dict | list):
        return depth
    inner = value.values() if isinstance(value, dict) else value
    return max((_depth(part, depth + 1) for part in inner), default=depth)


def _unreadable(provider: str, why: str) -> PaymentRefused:
    return PaymentRefused(
        f"{provider} was not paid: {why}", hint="check base_url and the provider's status", provider=provider
    )
