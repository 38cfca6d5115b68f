"""Texts that clients keep for the gateway: nobody else reads them, and none that was changed is opened."""

from __future__ import annotations

import logging
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.adapters.config.settings import Settings, parse_settings
from bardo.adapters.sealing import Sealer, new_sealer, open_sealer
from bardo.values.errors import ConfigError

SEALER = new_sealer()


@given(text=st.binary(max_size=300), owner=st.text(max_size=20))
def test_what_is_sealed_is_opened_by_its_owner_and_shows_nothing(text: bytes, owner: str) -> None:
    sealed = SEALER.seal(text, "compaction", owner)
    assert SEALER.open(sealed, "compaction", owner) == text
    assert SEALER.seal(text, "compaction", owner) != sealed, "no two seals are alike"
    assert SEALER.open(sealed, "compaction", f"{owner}x") is None
    assert SEALER.open(sealed, "thinking", owner) is None
    assert new_sealer().open(sealed, "compaction", owner) is None


def test_a_changed_letter_a_cut_and_an_addition_are_all_refused() -> None:
    sealed = SEALER.seal(b"what was agreed on", "compaction", "a")
    for place, letter in enumerate(sealed):
        changed = sealed[:place] + ("A" if letter != "A" else "B") + sealed[place + 1 :]
        assert SEALER.open(changed, "compaction", "a") is None, place
        assert SEALER.open(sealed[:place], "compaction", "a") is None, place
    for more in ("=", "\n", " ", "AAAA", "é"):
        assert SEALER.open(sealed + more, "compaction", "a") is None
        assert SEALER.open(more + sealed, "compaction", "a") is None


def test_purpose_and_owner_are_not_one_text() -> None:
    sealed = SEALER.seal(b"x", "ab", "c")
    assert SEALER.open(sealed, "a", "bc") is None


def settings(toml: str = "") -> Settings:
    return parse_settings(toml)


def test_the_operators_key_opens_on_every_machine(tmp_path: Path) -> None:
    toml = '[responses]\nseal_key_env = "SEAL"'
    one, two, other = (
        open_sealer(settings(toml), {"SEAL": key, "XDG_DATA_HOME": str(tmp_path)})
        for key in ("k" * 16, "k" * 16, "o" * 16)
    )
    sealed = one.seal(b"x", "compaction", "a")
    assert two.open(sealed, "compaction", "a") == b"x"
    assert other.open(sealed, "compaction", "a") is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("key", "said"), [(None, "SEAL, which holds"), ("short", "has 5 bytes")])
def test_a_key_that_is_missing_or_short_is_told_at_the_start(key: str | None, said: str) -> None:
    environment = {} if key is None else {"SEAL": key}
    with pytest.raises(ConfigError, match=said) as caught:
        open_sealer(settings('[responses]\nseal_key_env = "SEAL"'), environment)
    assert key is None or key not in str(caught.value)


def sealer_at(folder: Path) -> Sealer:
    return open_sealer(settings(f'[state]\nurl = "{folder}/state.db"'), {})


def test_without_a_key_one_is_made_when_it_is_needed_and_outlives_the_gateway(tmp_path: Path) -> None:
    first, second = sealer_at(tmp_path / "data"), sealer_at(tmp_path / "data")
    assert not (tmp_path / "data").exists()
    sealed = first.seal(b"x", "compaction", "a")
    assert second.open(sealed, "compaction", "a") == b"x"
    assert sealer_at(tmp_path / "data").open(sealed, "compaction", "a") == b"x"
    [kept] = (tmp_path / "data").iterdir()
    assert (kept.name, stat.S_IMODE(kept.stat().st_mode)) == ("sealing.key", 0o600)


@pytest.mark.parametrize("content", ["", "no key", "00"])
def test_a_key_file_that_cannot_be_read_is_told_of_and_left_as_it_is(
    tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "sealing.key").write_text(content)
    sealer = sealer_at(tmp_path)
    with caplog.at_level(logging.WARNING):
        sealed = sealer.seal(b"x", "compaction", "a")
    assert "cannot be read after a restart" in caplog.text
    assert sealer.open(sealed, "compaction", "a") == b"x"
    assert (tmp_path / "sealing.key").read_text() == content
    assert len(list(tmp_path.iterdir())) == 1


def test_workers_whose_state_is_in_a_database_share_the_key_of_their_folder(tmp_path: Path) -> None:
    toml = '[state]\nurl = "postgresql://host/bardo"'
    shared = {"BARDO_WORKERS_FOLDER": str(tmp_path)}
    sealed = open_sealer(settings(toml), shared).seal(b"x", "compaction", "a")
    assert open_sealer(settings(toml), shared).open(sealed, "compaction", "a") == b"x"
    assert open_sealer(settings(toml), {}).open(sealed, "compaction", "a") is None
