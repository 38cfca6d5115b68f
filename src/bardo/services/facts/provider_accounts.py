"""Whose account a provider is asked with: what ciphertexts and signatures are bound to, besides the platform that made them.

A key stands for the account it belongs to, so that two entries with one key are one account. Keys that take turns in one entry are one
account too, named by the first that is set. Access tokens that change by the hour name none: there the project does, or this machine's
credentials.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import pbkdf2_hmac

import msgspec

from bardo.adapters.net import aws
from bardo.adapters.net.keys import Keyring
from bardo.catalog.replay import builtin_replay
from bardo.engine.route import Provider

_ROUNDS = 4096
"""Clients see the digest in sealed state: a short key must not be found by trying all of them."""
_BYTES = 9
# Where an account's models run says nothing of whose it is.
_PLACES = ("location", "region")


def with_account(provider: Provider, keyring: Keyring, named: str | None = None) -> Provider:
    """Return the provider with a digest of whose account it is asked with, which may be `named` in its entry."""
    owner = _owner(provider, keyring) if named is None else ("named", named)
    return msgspec.structs.replace(provider, account=_digest(*owner))


@lru_cache(maxsize=512)
def _digest(*owner: str) -> str:
    return pbkdf2_hmac("sha256", "\0".join(owner).encode(), b"bardo account", _ROUNDS, _BYTES).hex()


def _owner(provider: Provider, keyring: Keyring) -> tuple[str, ...]:
    row = provider.row
    if row.auth == "google":
        project = [f"{name}={value}" for name, value in sorted(row.scope.items()) if name not in _PLACES]
        return ("project", *(project or [provider.base_url]))
    if row.auth == "aws" and aws.BEARER in row.key_variables:
        return ("credentials of this machine",)
    key = keyring.key_of(provider)
    organisation = [
        f"{name}={value}" for name, value in keyring.headers_of(row) if name in builtin_replay().account_headers
    ]
    return ("key", key, *organisation) if key else ("address", provider.base_url, *organisation)
