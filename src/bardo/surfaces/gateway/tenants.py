"""Whose request it is: that of the account whose key it has, or of everyone who comes with the same key where no keys are asked for."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qs

from bardo.adapters.config.accounts import Account
from bardo.surfaces.gateway.client_head import head_of
from bardo.surfaces.gateway.http import Scope

_LONGEST_CACHED = 512


ACCOUNT = "bardo.account"
"""Where a request's scope holds the account of its key."""
KEY = "bardo.key"
"""Where it holds the key that was accepted: a request may have others beside it, which are for somebody else."""


class Caller(NamedTuple):
    """Who sent a request: the key it came with, whose earlier replies it may go on from, and its account, where keys are asked for."""

    key: str
    tenant: str
    account: Account | None

    def __repr__(self) -> str:
        """Return who it is, without the key."""
        return f"Caller(tenant={self.tenant!r})"


def caller_of(scope: Scope) -> Caller:
    """Return who sent a request."""
    head, account = head_of(scope), scope.get(ACCOUNT)
    if account is not None:
        return Caller(key_of(scope), account.tenant, account)
    caller: Caller | None = head.caller
    if caller is None:
        key = key_of(scope)
        caller = Caller(key, tenant_of(key), None)
        if head.key:
            head.caller = caller
    return caller


def key_of(scope: Scope) -> str:
    """Return the key a client came with, the id of the key where it signs requests as AWS's do, empty where it came without one."""
    accepted: str | None = scope.get(KEY)
    return accepted or head_of(scope).key or next(iter(_keys_in_query(scope.get("query_string", b""))), "")


def keys_of(scope: Scope) -> tuple[str, ...]:
    """Return the different keys of a request, those of its headers first. A signature is no key."""
    own, query = head_of(scope).keys, scope.get("query_string", b"")
    return tuple(dict.fromkeys((*own, *_keys_in_query(query)))) if b"key=" in query else own


def is_signed(scope: Scope) -> bool:
    """Whether a request is signed as AWS's are, so that it holds no key."""
    return head_of(scope).is_signed


def _keys_in_query(query: bytes) -> list[str]:
    """Return the keys of `?key=`, as Gemini's clients may send it."""
    if b"key=" not in query:
        return []
    found = parse_qs(query.decode("latin-1")).get("key", [])
    return [key for one in found if (key := one.strip())]


def tenant_of(key: str) -> str:
    """Return a digest of the key a client came with, empty where it came without one. The key cannot be had from it."""
    if not key:
        return ""
    return _cached_digest(key) if len(key) <= _LONGEST_CACHED else _digest(key)


def _digest(key: str) -> str:
    return hashlib.sha256(f"bardo tenant {key}".encode()).hexdigest()[:32]


_cached_digest = lru_cache(maxsize=1024)(_digest)
