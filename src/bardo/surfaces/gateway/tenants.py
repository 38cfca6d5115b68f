"""Whose request it is, as long as bardo knows no accounts: everyone who comes with the same key."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

from bardo.surfaces.gateway.http import Scope, headers_of

_KEYS = (b"authorization", b"x-api-key", b"x-goog-api-key")
# Each signature of AWS is another; the id of the key that made it stays.
_SIGNED = re.compile(r"AWS4-[A-Z0-9-]+ .*?Credential=([^/,\s]+)")
_LONGEST_CACHED = 512


def key_of(scope: Scope) -> str:
    """Return the key a client came with, the id of the key where it signs requests as AWS's do, empty where it came without one."""
    fields = headers_of(scope)
    raw = fields.get(_KEYS[0]) or fields.get(_KEYS[1]) or fields.get(_KEYS[2])
    if not raw:
        return ""
    found = str(raw, "latin-1")
    if found.startswith("AWS4-") and (signed := _SIGNED.match(found)):
        return signed[1]
    return found.removeprefix("Bearer ").removeprefix("bearer ").strip()


def tenant_of(key: str) -> str:
    """Return a digest of the key a client came with, empty where it came without one. The key cannot be had from it."""
    if not key:
        return ""
    return _cached_digest(key) if len(key) <= _LONGEST_CACHED else _digest(key)


def _digest(key: str) -> str:
    return hashlib.sha256(f"bardo tenant {key}".encode()).hexdigest()[:32]


_cached_digest = lru_cache(maxsize=1024)(_digest)
