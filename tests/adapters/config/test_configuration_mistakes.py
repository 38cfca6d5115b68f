"""Mistakes that people make in a configuration: each is told with its line and the setting that was meant."""

from __future__ import annotations

import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.values.errors import ConfigError

LAB = '[[providers]]\nid = "lab"\npreset = "openai-compatible"\nbase_url = "http://127.0.0.1:9/v1"\n'

# The text, the line that is named, and what the error says to write.
MISTAKES: dict[str, tuple[str, int, str]] = {
    "a cache of its own": ("[cache]\nenabled = true", 1, "[inference.pipeline.cache]"),
    "privacy of its own": ("\n[privacy]\nengine = 'own'", 2, "[inference.pipeline.privacy]"),
    "a pipeline at the top": ("[pipeline]\nprofile = 'full'", 1, "write [inference.pipeline]"),
    "a layer that is enabled": (
        "[inference.pipeline.cache]\nenabled = true",
        2,
        "the profile below [inference.pipeline]",
    ),
    "another layer": ("[inference.pipeline.privacy]\non = true", 2, "the profile below [inference.pipeline]"),
    "a layer's typo": (
        "[inference.pipeline]\nprofile = 'full'\n[inference.pipeline.cache]\nmax_entres = 3",
        4,
        "max_entries",
    ),
    "a word of a layer": ('[inference.pipeline.cache]\nsemantic = "on"', 2, 'use one of "off", "shadow", "serve"'),
    "a profile": ('[inference.pipeline]\nprofile = "ful"', 2, "did you mean 'full'?"),
    "a file of the log": ('[log]\nfile = "x"', 2, "write path"),
    "a level of the log": ('[log]\nlevel = "debug"', 2, "leave it out"),
    "fallbacks at the top": ('fallbacks = ["a"]', 1, "[aliases]"),
    "fallbacks of a provider": (f'{LAB}fallbacks = ["a"]', 5, "tried in their order"),
    "a budget at the top": ("budget = 5", 1, "usd_per_day"),
    "a budget of the gateway": ("[gateway]\nbudget = 5", 2, "usd_per_day"),
    "a budget of a key": ('[[keys]]\nid = "a"\nkey_env = "K"\nbudget = 5', 4, "usd_per_day"),
    "a key's name": ('[[keys]]\nname = "a"\nkey_env = "K"', 2, "write id"),
    "a key's amount": ('[[keys]]\nid = "a"\nkey_env = "K"\nusd_per_day = "x"', 4, "write a number"),
    "metrics at the top": ("metrics = true", 1, "[telemetry]"),
    "a metric": ("[telemetry]\nmetric = true", 2, "did you mean 'metrics'?"),
    "retries at the top": ("retries = 3", 1, "[failover]"),
    "retry": ("[failover]\nretry = 3", 2, "did you mean 'retries'?"),
    "a timeout at the top": ("timeout = 3", 1, "[timeouts]"),
    "a read timeout": ("[timeouts]\nread = 3", 2, "first_byte and idle"),
    "a typo": ("[gateway]\nprot = 1", 2, "did you mean 'port'?"),
    "a number in quotes": ('[gateway]\nport = "8484"', 2, "write a whole number"),
    "a port that is none": ("[gateway]\nport = 99999", 2, "at most 65535"),
    "an address to bind": ('[gateway]\nbind = "0.0.0.0"', 2, "write host"),
    "origins": ('[gateway]\ncors = ["*"]', 2, "write allowed_origins"),
    "a limit": ("[gateway]\nrate_limit = 5", 2, "requests_per_minute in [[keys]]"),
    "a server": ("[server]\nport = 1", 1, "write [gateway]"),
    "the panel": ("[panel]\nenabled = false", 1, "[gateway]"),
    "batch": ("[batch]\nenabled = true", 1, "write [batches]"),
    "a key in the file": ('[[providers]]\nid = "openai"\napi_key = "x"', 3, "OPENAI_API_KEY"),
    "an id of one's own": (
        '[[providers]]\nid = "zzzlab"\nbase_url = "http://127.0.0.1:9/v1"',
        2,
        'preset = "openai-compatible"',
    ),
    "a preset": ('[[providers]]\nid = "x"\npreset = "antropic"', 3, "did you mean anthropic"),
    "a url": (f'{LAB}url = "http://x"', 5, "write base_url"),
    "one model": ('[[providers]]\nid = "openai"\nmodels = "gpt-5"', 3, "write a list"),
    "a path of the API": (LAB.replace("/v1", "/v1/chat/completions"), 4, 'base_url = "http://127.0.0.1:9/v1"'),
    "another path": (
        '[[providers]]\nid = "anthropic"\nbase_url = "https://api.anthropic.com/v1/messages/"',
        3,
        'base_url = "https://api.anthropic.com/v1"',
    ),
    "paths of several": (
        '[[providers]]\nid = "lab"\npreset = "vllm"\nbase_urls = ["http://a/v1", "http://b/v1/completions"]',
        4,
        'base_urls = "http://b/v1"',
    ),
    "a single table": ('[providers]\nid = "openai"', 1, "[[providers]]"),
    "a named table": ('[providers.openai]\nmodels = ["x"]', 1, 'id = "openai"'),
    "one id twice": ('[[providers]]\nid = "openai"\n[[providers]]\nid = "openai"', 4, "unique"),
    "another HTTP client": ('[http]\nclient = "aiohttp"', 1, "leave it out: there is one HTTP client"),
    "a word that chooses no HTTP client": (
        '[http]\nclient = "direct"\nretries = 1',
        1,
        "leave it out: there is one HTTP client",
    ),
    "a strategy": ('[routing]\nstrategy = "cheap"', 2, '"score"'),
    "an effort": ('[reasoning]\neffort = "high"', 2, "[aliases]"),
    "an alias of nothing": ('[aliases]\nfast = ""', 2, "provider/model"),
}


@pytest.mark.parametrize(("text", "line", "meant"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_with_its_line_and_what_was_meant(text: str, line: int, meant: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(f"{text}\n", "my.toml")
    assert f"my.toml, line {line}: " in caught.value.message
    assert meant in caught.value.hint


def test_the_word_for_the_http_client_that_is_left_may_stay() -> None:
    assert parse_settings('[http]\nclient = "direct"\n') == parse_settings("")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"gateway": {"port": 8484}}', "JSON"),
        ("gateway:\n  port: 8484\n", "YAML"),
        ("---\nmodel_list:\n- model_name: x\n", "YAML"),
        ("# a comment\nproviders:\n", "YAML"),
    ],
)
def test_another_format_is_told_as_what_it_is(text: str, named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(text)
    assert f"this looks like {named}" in caught.value.hint


def test_what_is_nearly_toml_is_not_told_as_another_format() -> None:
    for text in ("[gateway\nport = 1", 'host = "a:b', "[gateway]\nport = \n"):
        with pytest.raises(ConfigError) as caught:
            parse_settings(text)
        assert "looks like" not in caught.value.hint
