"""Send a request to a provider, and look at the head of its reply: an error, a web page, or a reply that is whole or a stream.

Of a web page in the place of a provider's reply only the title is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import math
import re
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from bardo.adapters.net.calls import Call, Reply
from bardo.call.services import Services
from bardo.dialects import dialect
from bardo.dialects.shared.json_values import excerpt
from bardo.planning.forwarded import passed_headers
from bardo.planning.refusals import ProviderWords
from bardo.planning.route import Provider
from bardo.routing.rest_headers import parse_wait, rest_seconds
from bardo.values.errors import MalformedReply, ProviderError
from bardo.values.wire import WireRequest

if TYPE_CHECKING:
    from bardo.services.payments.payer import CallPayments

_BEGINNINGS = (b"<!doctype html", b"<html")
_MOST_BYTES = 64 * 1024
_MOST_TITLE = 120
_TITLE = re.compile(r"<(title|h1)\b[^<>]{0,1000}>([^<]{0,2000})", re.IGNORECASE)


def is_page(kind: str, body: bytes) -> bool:
    """Return whether a body is a web page, by its content type `kind` or by how it begins."""
    beginning = body[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()[:15].lower()
    return beginning.startswith(_BEGINNINGS) or (
        kind in ("text/html", "application/xhtml+xml") and beginning[:1] == b"<"
    )


def page_text(status: int, body: bytes, provider: str) -> str:
    """Return a sentence with the provider, the status and the title of its page."""
    found = _TITLE.search(body[:_MOST_BYTES].decode("utf-8", "replace"))
    words = " ".join(html.unescape(found[2]).split()) if found else ""
    title = "".join(sign for sign in words if sign.isprintable())[:_MOST_TITLE].strip()
    return f"{provider} answered {status} with a web page" + (f" titled “{title}”" if title else "")


_ERROR_BODY_LIMIT = 1024 * 1024
# Statuses whose headers say when to come again.
_WAITS = frozenset({425, 429, 503, 529})
_PAYMENT_REQUIRED = 402
_HOW_TO_PAY = "bardo pays such providers from a wallet: [payments] wallet_key_env in bardo.toml"
_PAGE_SECONDS = 5.0
_PAGES = frozenset({"text/html", "application/xhtml+xml", "application/xml", "text/xml"})
_STREAMED = {"application/json": False, "text/event-stream": True, "application/x-ndjson": True}


async def send_wire(
    services: Services,
    provider: Provider,
    wire: WireRequest,
    key: str = "",
    payments: CallPayments | None = None,
    login: Mapping[str, str] | None = None,
) -> Reply:
    """Send a request of any operation, and return the reply with its head read. Raises BardoError where it is an error or a page.

    `key` is the label of one of the provider's keys, empty where it has no more than one. `payments` are those of the call, for providers
    that ask for a payment of each call. `login` are the headers of the client's own credential, for a provider that asks for one.
    """
    url, headers = provider.url(wire.path), provider.headers(wire)
    call = Call(method="POST", url=url, headers=headers, body=wire.body, provider=provider.id)
    if provider.row.auth == "google":
        await services.keyring.prepare(provider)
    if provider.row.auth == "client":
        # Its client pays it, and no wallet of the operator's.
        payments = None
    if payments is not None and (methods := payments.order(services, provider)):
        reply = await payments.send(services, provider, call, key, methods, partial(_refusal, sent=wire.body))
    else:
        signed = services.keyring.sign(call, provider, clock=services.clock, key=key, login=login)
        reply = await services.transport.send(signed, services.limits.deadlines)
    if provider.row.balance_headers:
        services.health.balances.note(provider.id, provider.row, reply.headers, services.clock())
    try:
        if reply.status >= 300:
            raise await _refusal(reply, provider, services.clock(), sent=wire.body)
        kind = _kind(reply)
        if kind in _PAGES:
            raise await _page(reply, provider, kind)
    except BaseException:
        await reply.close()
        raise
    return reply


async def _refusal(reply: Reply, provider: Provider, now: float, *, sent: bytes = b"") -> ProviderError:
    """Return what a reply of status 300 or more says, in the provider's own words: whoever shows them cleans them first.

    `sent` is the body of the request: what it says is not taken for the provider's words.
    """
    if reply.status < 400:
        message = f"the provider answered with status {reply.status}, a redirect"
        return MalformedReply(message, hint="check base_url", provider=provider.id)
    try:
        body = await reply.read(_ERROR_BODY_LIMIT)
    except ProviderError:
        body = b""  # The status says enough.
    if is_page(_kind(reply), body):
        # A proxy's or a host's, for people: no words of the provider's API.
        body = page_text(reply.status, body, provider.id).encode()
    refused = dialect(provider.row.dialect).decode_error(reply.status, body, reply.headers, provider.id)
    refused.passed_headers = passed_headers(reply.headers)
    if reply.status < 500:
        refused.own_words = ProviderWords(refused, sent).text
    if reply.status == _PAYMENT_REQUIRED and "x402" in provider.row.payment:
        refused.hint = refused.hint or _HOW_TO_PAY
    if reply.status in _WAITS:
        waits = rest_seconds(reply.headers, provider.row.limit_headers, now)
        # Google says it in the body of the refusal alone.
        refused.rest_seconds = parse_wait(refused.retry_after, now) if waits is None else waits
        if refused.retry_after is None and waits is not None:
            refused.retry_after = str(math.ceil(waits))
    return refused


async def _page(reply: Reply, provider: Provider, kind: str) -> MalformedReply:
    """Return what is wrong with a reply that says it is a page, with its title or its first words."""
    first = b""
    with contextlib.suppress(ProviderError, TimeoutError):
        async with asyncio.timeout(_PAGE_SECONDS):
            first = await anext(reply.chunks(), b"")
    if is_page(kind, first):
        message = f"{page_text(reply.status, first, provider.id)}, not with a reply"
        return MalformedReply(message, hint="check base_url", provider=provider.id)
    quoted = excerpt(first, 200)
    message = f"{provider.id} answered with {kind}, not with a reply{': ' if quoted else ''}{quoted}"
    return MalformedReply(message, hint="check base_url", provider=provider.id)


def is_streamed(reply: Reply, *, requested: bool) -> bool:
    """Whether a reply is a stream: its content type tells, else what was `requested`."""
    streamed = _STREAMED.get(reply.headers.get("content-type", ""))
    return _STREAMED.get(_kind(reply), requested) if streamed is None else streamed


def _kind(reply: Reply) -> str:
    named = reply.headers.get("content-type", "")
    return named if named in _STREAMED else _kind_of(named)


@lru_cache(maxsize=64)
def _kind_of(named: str) -> str:
    return named.partition(";")[0].strip().lower()
