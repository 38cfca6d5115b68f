"""The keys that this process knows: those of the state database as it was last read, and those of `[[keys]]`."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from bardo.adapters.config.accounts import Account, digest_of
from bardo.catalog.matching import broken_class
from bardo.services.accounts.access_keys import id_of
from bardo.values.errors import Unauthorized

_log = logging.getLogger("bardo.keys")
HOW_TO_SEND = "send it as `Authorization: Bearer …`, `x-api-key`, `x-goog-api-key` or `api-key`; whoever runs bardo gives keys out"


class RegisteredKey(Protocol):
    """A key and whose it is."""

    @property
    def digest(self) -> bytes: ...
    @property
    def account(self) -> Account: ...


class KeyRegistry:
    """Finds the account of a key. No key is held: only digests."""

    def __init__(self, configured: Mapping[bytes, Account]) -> None:
        self._configured = dict(configured)
        self._stored: dict[str, RegisteredKey] = {}
        self._configured_ids = {account.id: account for account in configured.values()}

    def __iter__(self) -> Iterator[Account]:
        yield from self._configured.values()
        for stored in self._stored.values():
            yield stored.account

    def set_stored(self, keys: Iterable[RegisteredKey]) -> None:
        """Take the keys of the state database, in the place of those that were known from it.

        A glob that no model can fit, as earlier versions took it, is logged once.
        """
        before, self._stored = self._stored, {stored.account.id: stored for stored in keys}
        for own_id, stored in self._stored.items():
            earlier = before.get(own_id)
            is_new = earlier is None or earlier.account.models != stored.account.models
            for glob in stored.account.models if is_new else ():
                if broken := broken_class(glob):
                    words = "a glob of the key %s allows no model, as the range %s ends before it begins: %s (see bardo keys limit)"
                    _log.warning(words, own_id, broken, glob)

    def find(self, key: str) -> Account | None:
        """Return the account of a key, or None if the key is not known. It may have expired, or been revoked."""
        digest = digest_of(key)
        # The id is no secret. What proves the key is compared in a time that does not tell how much of it is right.
        stored = self._stored.get(key[6:18])
        if stored is not None and hmac.compare_digest(stored.digest, digest):
            return stored.account
        return self._configured.get(digest)

    def by_id(self, own_id: str) -> Account | None:
        """Return the account of an id, or None if there is none."""
        stored = self._stored.get(own_id)
        return self._configured_ids.get(own_id) if stored is None else stored.account

    def is_stored(self, own_id: str) -> bool:
        """Whether the account of an id is from the state database."""
        return own_id in self._stored

    def may_be_new(self, key: str) -> bool:
        """Whether a key that is not known may have been made since the keys were read."""
        own = id_of(key)
        return bool(own) and own not in self._stored


def configured_accounts(accounts: Sequence[tuple[str, Account]]) -> dict[bytes, Account]:
    """Return accounts by the digests of their keys."""
    return {digest_of(key): account for key, account in accounts}


def check_active(account: Account, now: float) -> None:
    """Raise Unauthorized for a key that has expired or was revoked."""
    if account.revoked is not None or (account.expires is not None and now >= account.expires):
        raise Unauthorized(f"the key {account.id} is {account.state(now)}", hint="ask whoever runs bardo for another")


HOW_TO_GET_IN = (
    "`bardo keys create NAME` makes one; `bardo keys delete` of all, and a new start, has nobody asked for one"
)


def unknown_key(key: str, *, any_active: bool = True) -> Unauthorized:
    """Return the error for a key that is missing or not known. `any_active`: whether there is any that would be taken."""
    if not any_active:
        return Unauthorized(
            "this gateway asks for a key, and none of its keys is active",
            hint="whoever runs bardo makes one with `bardo keys create NAME`, or has nobody asked for one by deleting all "
            "with `bardo keys delete` and starting again",
        )
    if not key:
        return Unauthorized("this gateway asks for a key, and the request has none", hint=HOW_TO_SEND)
    return Unauthorized("the key is not one of this gateway's", hint="check it; whoever runs bardo gives keys out")
