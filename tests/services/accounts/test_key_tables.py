"""The tables of keys: new ones have the form that the migrations lead to, and what is stored reads back."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from bardo.accounting.limits import KeyLimits
from bardo.adapters.config.accounts import Account
from bardo.adapters.stores.migrations import VERSIONS
from bardo.services.accounts.key_store import KeyStore, holds_keys, metadata, open_keys
from support.databases import open_database
from support.revisions import upgrade


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An address where there are no keys yet."""
    return str(tmp_path / "state.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


def test_new_tables_have_the_form_the_migrations_lead_to(place: str) -> None:
    engine = open_database(place)
    with engine.begin() as connection:
        upgrade(connection, "keys@head")
        context = MigrationContext.configure(connection, opts={"version_table": VERSIONS, "compare_type": True})
        assert compare_metadata(context, metadata) == [], (
            "src/bardo/services/accounts/key_store.py has another form than the migrations make: add a file to "
            "src/bardo/adapters/stores/migrations/versions and name its revision in KEYS_BRANCH"
        )
    engine.dispose()
    open_keys(place).dispose()


def test_an_account_reads_back_as_it_was_stored(place: str) -> None:
    limits = KeyLimits(requests_per_minute=1, tokens_per_minute=2, concurrency=3, usd_per_day=4, usd_per_month=2**60)
    account = Account(
        id="", name="tëam", tenant="house", tags=("a", "b"), models=("x*",), limits=limits, created=1.5, expires=9.0
    )
    engine = open_keys(place)
    store = KeyStore(engine)
    made, key = store.create(account)
    assert made == msgspec.structs.replace(account, id=key.id)
    revision, [known] = store.load()
    assert known.account == made
    assert store.change(key.id, {"concurrency": None}, revoked=2.0).limits.concurrency is None
    assert store.load()[0] == revision + 1
    engine.dispose()
    assert holds_keys(place)


def test_tables_without_a_key_hold_no_keys(place: str) -> None:
    made = open_database(place)
    made.connect().close()
    made.dispose()
    assert not holds_keys(place)
    open_keys(place).dispose()
    assert not holds_keys(place)
