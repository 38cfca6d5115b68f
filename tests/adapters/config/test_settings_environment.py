"""Variables of the environment beside those of the gateway: models of tiers, addresses, keys, and those without effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from bardo.adapters.config.settings import load_settings
from bardo.adapters.net.keys import Keyring
from bardo.catalog.load import builtin
from bardo.services.facts.directory import with_keys
from bardo.values.errors import ConfigError

FILE = '[aliases]\nt1 = "lab/small"\n[[providers]]\nid = "blockrun"\n[[providers]]\nid = "openrouter"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "my.toml").write_text(FILE)
    return tmp_path / "my.toml"


def test_models_of_tiers_are_aliases(file: Path) -> None:
    settings = load_settings(file, {"BARDO_T1_MODEL": "blockrun/claude-haiku-4-5", "BARDO_T2_MODEL": "a/b"})
    assert {name: alias.model for name, alias in settings.aliases.items()} == {
        "t1": "blockrun/claude-haiku-4-5",
        "t2": "a/b",
    }
    assert load_settings(file, {}).aliases["t1"].model == "lab/small"


def test_an_address_is_that_of_the_provider_it_names(file: Path) -> None:
    first, second = load_settings(file, {"BARDO_BLOCKRUN_ENDPOINT": "https://h.example/v1"}).providers
    assert (first.base_url, second.base_url) == ("https://h.example/v1", "")


def test_the_key_of_openrouter_has_two_names() -> None:
    row = builtin().provider("openrouter")
    assert row is not None
    assert Keyring({"BARDO_OPENROUTER_KEY": "k"}).has(row)
    assert "openrouter" in [one.id for one in with_keys(Keyring({"BARDO_OPENROUTER_KEY": "k"}))]


def test_003_the_spread_is_that_of_the_environment(file: Path) -> None:
    assert load_settings(file, {"BARDO_INFERENCE_SPREAD_PCT": "20"}).budgets.spread_percent == 20
    for wrong in ("much", "-1", "nan", "inf", "1e9"):
        with pytest.raises(ConfigError, match="BARDO_INFERENCE_SPREAD_PCT"):
            load_settings(file, {"BARDO_INFERENCE_SPREAD_PCT": wrong})


def test_kept_replies_may_be_set_by_the_environment(file: Path) -> None:
    cache = load_settings(
        file, {"BARDO_INFERENCE_CACHE_TTL": "12.5", "BARDO_CACHE_STORE": "x.db"}
    ).inference.pipeline.cache
    assert (cache.ttl_seconds, cache.store) == (12.5, "x.db")
    with pytest.raises(ConfigError, match="BARDO_INFERENCE_CACHE_TTL") as caught:
        load_settings(file, {"BARDO_INFERENCE_CACHE_TTL": "long"})
    assert "a number" in caught.value.hint


def test_retries_and_the_likeness_of_questions_may_be_set_by_the_environment(file: Path) -> None:
    environment = {"BARDO_INFERENCE_MAX_RETRIES": "3", "BARDO_INFERENCE_CACHE_THRESHOLD": "0.92"}
    settings = load_settings(file, environment)
    assert settings.failover.retries == 3
    assert settings.inference.pipeline.cache.min_cosine == 0.92


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("BARDO_INFERENCE_MAX_RETRIES", "many", "BARDO_INFERENCE_MAX_RETRIES is 'many'.*a whole number"),
        ("BARDO_INFERENCE_MAX_RETRIES", "99", "BARDO_INFERENCE_MAX_RETRIES is '99'.*<= 10"),
        ("BARDO_INFERENCE_CACHE_THRESHOLD", "92", "BARDO_INFERENCE_CACHE_THRESHOLD is '92'.*a number.*<= 1"),
    ],
)
def test_a_wrong_value_of_the_environment_is_named(file: Path, name: str, value: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_settings(file, {name: value})
