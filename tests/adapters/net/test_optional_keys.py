"""A gateway that need not be sent a key answers whatever a library sends as one, and refuses only what is a key of bardo's."""

from __future__ import annotations

import pytest

from bardo.adapters.config.accounts import Account, digest_of
from bardo.services.accounts.access_keys import make_key
from bardo.services.accounts.accounts import Accounts
from bardo.values.errors import Unauthorized

OWN = make_key().text
ACCOUNT = Account(id="team", name="team", created=0.0)


def accounts(*, optional: bool, revoked: float | None = None) -> Accounts:
    account = Account(id="team", name="team", created=0.0, revoked=revoked)
    return Accounts({digest_of(OWN): account}, optional=optional, clock=lambda: 5.0)


@pytest.mark.parametrize("key", ["", "any", "sk-proj-1"])
def test_any_key_is_nobodys_where_none_is_needed(key: str) -> None:
    assert accounts(optional=True).authenticate(key) is None
    with pytest.raises(Unauthorized):
        accounts(optional=False).authenticate(key)


def test_a_key_of_bardos_is_checked_all_the_same() -> None:
    assert accounts(optional=True).authenticate(OWN) == ACCOUNT
    for known, key in ((accounts(optional=True), make_key().text), (accounts(optional=True, revoked=1.0), OWN)):
        with pytest.raises(Unauthorized):
            known.authenticate(key)


def test_who_is_refused_where_no_key_is_active_is_told_how_one_gets_in_again() -> None:
    for key in ("", "any", make_key().text):
        with pytest.raises(Unauthorized) as refused:
            accounts(optional=False, revoked=1.0).authenticate(key)
        assert "bardo keys create NAME" in refused.value.hint
        with pytest.raises(Unauthorized) as refused:
            accounts(optional=False).authenticate(key)
        assert "keys create" not in refused.value.hint
