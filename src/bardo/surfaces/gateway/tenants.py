"""Whose request it is, as long as bardo knows no accounts: everyone who comes with the same key."""

from __future__ import annotations

import hashlib

from bardo.surfaces.gateway.http import Scope, header

_KEYS = (b"authorization", b"x-api-key", b"x-goog-api-key")


def key_of(scope: Scope) -> str:
    """Return the key a client came with, empty where it came without one."""
    found = next((value for name in _KEYS if (value := header(scope, name))), "")
    return found.removeprefix("Bearer ").removeprefix("bearer ").strip()


def tenant_of(key: str) -> str:
    """Return a digest of the key a client came with, empty where it came without one. The key cannot be had from it."""
    return hashlib.sha256(f"bardo tenant {key}".encode()).hexdigest()[:32] if key else ""
