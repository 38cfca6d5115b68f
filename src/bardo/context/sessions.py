"""Which conversation a call belongs to: as its client says it, or by what all turns of a conversation have in common."""

from __future__ import annotations

import re
from functools import cache
from hashlib import blake2b
from typing import Any

import msgspec

from bardo.catalog.layer_rows import session_rows
from bardo.values.operations import EmbedRequest
from bardo.values.request import Request

_heads = msgspec.msgpack.Encoder(enc_hook=repr)

_LONGEST = 1000
"""Characters of a client's id of a session that are looked at."""


def session_of(request: Request, tenant: str) -> str:
    """Return what is the same for all turns of one conversation of one tenant, and says nothing of what is in them."""
    named = session_name(request)
    if not named:
        return conversation_head(request, tenant).hex()
    return named_session(named, tenant)


def session_name(request: Request) -> str:
    """Return what the client calls the conversation; empty where it does not say."""
    return request.options.session or _named_by_client(request)


def named_session(name: str, tenant: str) -> str:
    """Return what stands for a conversation that a client of a tenant gives a name."""
    return blake2b(f"{tenant}\0{name}".encode("utf-8", "replace"), digest_size=16).hexdigest()


def _named_by_client(request: Request) -> str:
    """Return the id that a client gives in a header or a field that is known to hold one; empty where there is none."""
    headers, fields = request.client_headers, request.body if request.body is not None else request.extra
    header_names, field_names = _places_of_names()
    if header_names.isdisjoint(headers) and (not fields or field_names.isdisjoint(fields)):
        return ""
    for header, path, pattern in _session_fields():
        value: Any = headers.get(header) if header else fields.get(path[0]) if fields else None
        for name in path[1:]:
            value = value.get(name) if isinstance(value, dict) else None
        if not value or not isinstance(value, str):
            continue
        if pattern is None:
            return value[:_LONGEST]
        found = pattern.search(value[:_LONGEST])
        if found is not None:
            return found[1]
    return ""


@cache
def _places_of_names() -> tuple[frozenset[str], frozenset[str]]:
    """Return the headers, and the fields of a body, that may hold a client's id of a session."""
    rows = _session_fields()
    return frozenset(header for header, _, _ in rows if header), frozenset(
        path[0] for header, path, _ in rows if not header
    )


@cache
def _session_fields() -> tuple[tuple[str, tuple[str, ...], re.Pattern[str] | None], ...]:
    return tuple(
        (row.header, tuple(row.field.split(".")), re.compile(row.pattern) if row.pattern else None)
        for row in session_rows()
    )


def conversation_head(request: Request | EmbedRequest, tenant: str) -> bytes:
    """Return what all turns of one conversation have in common: its tenant, its system prompt and the first thing its user said.

    Empty for vectors, which no cached prompt makes cheaper.
    """
    if not isinstance(request, Request):
        return b""
    count = 0
    for message in request.messages:
        count += 1
        if message.role == "user":
            break
    return blake2b(_heads.encode((tenant, request.messages[:count])), digest_size=16).digest()
