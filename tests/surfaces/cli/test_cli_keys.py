"""`bardo keys`: what is shown, what is kept, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bardo.adapters.config.accounts import Account, digest_of
from bardo.adapters.config.settings import Settings, state_path
from bardo.services.accounts.access_keys import id_of, make_key
from bardo.services.accounts.key_store import KeyStore, open_keys
from bardo.values.secrets import NO_SECRETS
from surfaces.cli.support import bardo


def stored() -> bytes:
    """Return all bytes of the state database."""
    folder = Path(state_path(Settings())).parent
    return b"".join(file.read_bytes() for file in folder.glob("state.db*"))


def test_a_key_is_shown_once_and_kept_as_a_digest() -> None:
    ran = bardo("keys", "create", "team")
    key = ran.out.strip()
    assert re.fullmatch(r"bardo_[0-9a-z]{12}_[0-9A-Za-z]{42}", key)
    assert key not in ran.err
    assert "shown this once" in ran.err
    listed = bardo("keys", "list")
    assert id_of(key) in listed.out
    assert key not in listed.out + bardo("keys", "list", "--json").out
    assert key.encode() not in stored()
    assert key[-42:].encode() not in stored()
    assert digest_of(key).hex().encode() in stored()


def test_a_key_has_what_it_was_made_with() -> None:
    options = [
        "--model",
        "small-*",
        "--model",
        "best",
        "--requests-per-minute",
        "3",
        "--usd-per-day",
        "0.1",
        "--tag",
        "red",
    ]
    made = bardo("keys", "create", "team", *options, "--expires", "90d", "--tenant", "house", "--json").json
    [listed] = bardo("keys", "list", "--json").json["keys"]
    assert {name: value for name, value in made.items() if name != "key"} == listed
    assert listed["models"] == ["small-*", "best"]
    assert listed["limits"]["requests_per_minute"] == 3
    assert listed["limits"]["usd_per_day"] == 0.1
    assert listed["limits"]["concurrency"] is None
    assert (listed["tenant"], listed["tags"], listed["state"]) == ("house", ["red"], "active")
    assert listed["expires_at"] > listed["created_at"]


def test_limits_are_changed_and_taken_away() -> None:
    bardo("keys", "create", "team", "--requests-per-minute", "3", "--concurrency", "2", "--model", "small")
    changed = bardo(
        "keys", "limit", "team", "--usd-per-month", "9", "--remove", "concurrency", "--remove", "models", "--json"
    ).json
    assert changed["limits"] == {
        "requests_per_minute": 3,
        "tokens_per_minute": None,
        "concurrency": None,
        "usd_per_day": None,
        "usd_per_month": 9,
        "usd_per_session": None,
    }
    assert changed["models"] == []


def test_a_key_is_revoked_by_its_id_its_name_or_the_beginning_of_its_id() -> None:
    own = bardo("keys", "create", "team", "--json").json["id"]
    assert bardo("keys", "revoke", own[:6]).code == 0
    assert bardo("keys", "list", "--json").json["keys"][0]["state"] == "revoked"
    assert bardo("keys", "revoke", own).code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "one", "--usd-per-day", "much"), "no amount"),
        (("create", "one", "--usd-per-day", "-1"), "no amount"),
        (("create", "one", "--usd-per-day", "nan"), "no amount"),
        (("create", "one", "--expires", "soon"), "no time"),
        (("create", "one", "--model", " "), "empty"),
        (("create",), "needs a name"),
        (("create", " "), "needs a name"),
        (("create", "team"), "called 'team' already"),
        (("delete", "nobody"), "no key is called"),
        (("revoke", "nobody"), "no key is called"),
        (("limit", "team"), "nothing is to be changed"),
        (("limit", "team", "--remove", "rpm"), "requests-per-minute"),
    ],
)
def test_a_mistake_is_named(arguments: tuple[str, ...], said: str) -> None:
    bardo("keys", "create", "team")
    ran = bardo("keys", *arguments)
    assert ran.code == 2
    assert said in ran.err


def test_two_keys_of_one_name_are_told_apart_by_their_ids() -> None:
    engine = open_keys(state_path(Settings()))
    store = KeyStore(engine)
    # As earlier versions allowed, and the panel does.
    first, second = (store.create(Account(id="", name="team", created=float(at)))[0].id for at in range(2))
    engine.dispose()
    assert "2 keys are called" in bardo("keys", "revoke", "team").err
    assert bardo("keys", "revoke", second).code == 0
    states = {one["id"]: one["state"] for one in bardo("keys", "list", "--json").json["keys"]}
    assert states == {first: "active", second: "revoked"}


def test_a_key_that_was_changed_is_another_revision() -> None:
    bardo("keys", "create", "team")
    engine = open_keys(state_path(Settings()))
    store = KeyStore(engine)
    before = store.revision()
    assert before == store.load()[0]
    bardo("keys", "revoke", "team")
    assert store.revision() > before
    engine.dispose()


def test_keys_are_random_and_a_mistyped_one_is_seen() -> None:
    keys = [make_key() for _ in range(200)]
    assert len({key.text for key in keys} | {key.id for key in keys}) == 400
    for key in keys:
        assert id_of(key.text) == key.id
        for place in (8, 20, 40, len(key.text) - 1):
            other = "a" if key.text[place] != "a" else "b"
            assert id_of(key.text[:place] + other + key.text[place + 1 :]) == ""


def test_a_key_is_known_by_its_shape_and_hidden_in_what_is_logged() -> None:
    key = make_key().text
    assert NO_SECRETS.in_text(f"refused: {key}, again") == "refused: [key], again"


def test_no_key_is_made_without_a_name() -> None:
    assert bardo("keys", "create").out == ""
    assert bardo("keys", "list", "--json").json["keys"] == []


def test_the_first_key_says_what_it_changes_and_the_last_that_goes_too() -> None:
    first = bardo("keys", "create", "my team")
    assert "from its next start the gateway answers only who sends a key" in first.err
    assert "bardo keys delete 'my team'" in first.err
    assert "next start" not in bardo("keys", "create", "other").err
    assert bardo("keys", "revoke", "other").code == 0
    gone = bardo("keys", "delete", "my team")
    assert (gone.code, "no key that is left is active" in gone.err) == (0, True)
    assert "asks nobody for one" in bardo("keys", "delete", "other").err
    assert bardo("keys", "list", "--json").json["keys"] == []


def test_a_deleted_key_gives_its_name_back() -> None:
    bardo("keys", "create", "team")
    bardo("keys", "delete", "team")
    assert bardo("keys", "create", "team").code == 0
