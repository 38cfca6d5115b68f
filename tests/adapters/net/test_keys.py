"""Providers' keys: found, put on a request, never shown."""

from __future__ import annotations

import pytest

from bardo.adapters.config.providers import ProviderEntry, provider_of
from bardo.adapters.config.secrets import secrets_of
from bardo.adapters.config.settings import parse_settings
from bardo.adapters.net.client import Call
from bardo.adapters.net.keys import Keyring, secret_values
from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.planning.route import Provider
from bardo.values.errors import ConfigError, MissingKey
from bardo.values.secrets import secrets_of as secrets_in


def row(preset: str) -> ProviderRow:
    found = builtin().provider(preset)
    assert found is not None
    return found


def headers(preset: str, **environment: str) -> dict[str, str]:
    provider = Provider(id="mine", row=row(preset), base_url="http://x")
    call = Call(url="https://somewhere.test/v1")
    return Keyring(environment).sign(call, provider, clock=float).headers


@pytest.mark.parametrize(
    ("preset", "variable", "expected"),
    [
        ("openai", "OPENAI_API_KEY", {"authorization": "Bearer k"}),
        ("anthropic", "ANTHROPIC_API_KEY", {"x-api-key": "k"}),
        ("gemini", "GEMINI_API_KEY", {"x-goog-api-key": "k"}),
        ("gemini", "GOOGLE_API_KEY", {"x-goog-api-key": "k"}),
        ("vllm", "VLLM_API_KEY", {"authorization": "Bearer k"}),
    ],
)
def test_a_key_is_sent_as_the_provider_wants_it(preset: str, variable: str, expected: dict[str, str]) -> None:
    assert headers(preset, **{variable: " k\n"}) == expected


def test_the_first_variable_that_is_set_counts() -> None:
    assert headers("gemini", GEMINI_API_KEY="a", GOOGLE_API_KEY="b") == {"x-goog-api-key": "a"}
    assert headers("gemini", GEMINI_API_KEY="  ", GOOGLE_API_KEY="b") == {"x-goog-api-key": "b"}


def test_a_local_server_needs_none() -> None:
    assert headers("vllm") == {}
    assert headers("openai-compatible") == {}


def test_a_missing_key_names_the_variables() -> None:
    with pytest.raises(MissingKey, match=r"no key for mine .*set GEMINI_API_KEY or GOOGLE_API_KEY"):
        headers("gemini", GEMINI_API_KEY="")


def test_a_keyring_shows_nothing() -> None:
    keyring = Keyring({"OPENAI_API_KEY": "sk-secret"})
    assert keyring.has(row("openai"))
    assert not keyring.has(row("anthropic"))
    assert "sk-secret" not in repr(keyring) + str(keyring)


def test_a_provider_that_quotes_the_key_does_not_give_it_away() -> None:
    keyring = Keyring({"OPENAI_API_KEY": "sk-secret"})
    assert keyring.secrets().in_text("wrong key sk-secret") == "wrong key [key]"


@pytest.mark.parametrize(
    ("address", "key", "expected"),
    [
        ("http://me:pass%40word@lab.test:8000/v1/chat", "", {"authorization": "Basic bWU6cGFzc0B3b3Jk"}),
        ("http://me@lab.test:8000/v1/chat", "", {"authorization": "Basic bWU="}),
        ("http://me:pw@lab.test:8000/v1/chat", "k", {"authorization": "Bearer k"}),
    ],
    ids=["user and password", "user only", "a key comes first"],
)
def test_the_user_and_password_of_an_address_go_into_a_header(address: str, key: str, expected: dict[str, str]) -> None:
    provider = Provider(id="lab", row=row("vllm"), base_url=address)
    signed = Keyring({"VLLM_API_KEY": key}).sign(Call(url=address), provider, clock=float)
    assert (signed.url, signed.headers) == ("http://lab.test:8000/v1/chat", expected)


def test_an_at_sign_in_a_path_is_part_of_the_path() -> None:
    provider = Provider(id="lab", row=row("vllm"), base_url="http://lab.test/v1")
    signed = Keyring({}).sign(Call(url="http://lab.test/v1/models/a@b"), provider, clock=float)
    assert (signed.url, signed.headers) == ("http://lab.test/v1/models/a@b", {})


PORTKEY = """
[[providers]]
id = "portkey"
preset = "openai-compatible"
base_url = "https://api.portkey.test/v1"
headers = { X-Portkey-Api-Key = { env = "PORTKEY_KEY" }, x-team = "research" }
"""


def test_a_header_is_read_from_its_variable() -> None:
    (entry,) = parse_settings(PORTKEY).providers
    provider = provider_of(entry)
    environment = {"PORTKEY_KEY": " recognisable-value\n"}
    keyring = Keyring(environment)
    call = Call(url="https://api.portkey.test/v1", headers=provider.row.headers)
    assert keyring.sign(call, provider, clock=float).headers == {
        "x-team": "research",
        "x-portkey-api-key": "recognisable-value",
    }
    assert not keyring.lacks(provider)
    for secrets in (keyring.secrets_of(provider), keyring.secrets([provider])):
        assert "recognisable-value" not in secrets.in_text("it said recognisable-value")
    assert secrets_of(entry) == []


def test_a_header_whose_variable_is_not_set_is_said() -> None:
    provider = provider_of(parse_settings(PORTKEY).providers[0])
    assert Keyring({}).lacks(provider)
    with pytest.raises(MissingKey, match="no value for the header x-portkey-api-key of portkey") as caught:
        Keyring({}).sign(Call(url="https://api.portkey.test/v1"), provider, clock=float)
    assert caught.value.hint == "set PORTKEY_KEY where bardo runs"


@pytest.mark.parametrize("value", ['{ env = "" }', '{ env = "my key" }', '{ env = "sk-recognisable0123456789abcdef" }'])
def test_a_header_without_the_name_of_a_variable_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="does not name an environment variable") as caught:
        parse_settings(PORTKEY.replace('{ env = "PORTKEY_KEY" }', value))
    assert "recognisable" not in f"{caught.value} {caught.value.hint}"
    assert 'env = "X_PORTKEY_API_KEY"' in str(caught.value.hint)


def test_a_reference_in_a_header_is_answered_with_the_form_to_write() -> None:
    with pytest.raises(ConfigError, match="names a variable, and is sent as it is") as caught:
        parse_settings(PORTKEY.replace('{ env = "PORTKEY_KEY" }', '"$PORTKEY_KEY"'))
    assert caught.value.hint == 'write X-Portkey-Api-Key = { env = "PORTKEY_KEY" }'


SEVERAL = '[[providers]]\nid = "openai"\napi_key_env = {keys}\n'


def several(*names: str) -> Provider:
    (entry,) = parse_settings(SEVERAL.format(keys=list(names)).replace("'", '"')).providers
    return provider_of(entry)


def test_several_variables_are_keys_that_take_turns() -> None:
    provider = several("ONE", "TWO")
    assert (provider.row.key_variables, provider.row.several_keys) == (("ONE", "TWO"), True)
    assert not several("ONE").row.several_keys
    keyring = Keyring({"ONE": "1", "TWO": " 2 "})
    call = Call(url="https://somewhere.test/v1")
    assert keyring.sign(call, provider, clock=float, key="TWO").headers == {"authorization": "Bearer 2"}
    assert keyring.sign(call, provider, clock=float).headers == {"authorization": "Bearer 1"}
    assert keyring.labels(provider) == ("ONE", "TWO")


def test_every_one_of_several_keys_is_a_secret_of_its_provider() -> None:
    keyring = Keyring({"ONE": "sk-first-0123456789", "TWO": "sk-second-0123456789"})
    cleaned = keyring.secrets_of(several("ONE", "TWO")).in_text("sk-first-0123456789 and sk-second-0123456789")
    assert "first" not in cleaned
    assert "second" not in cleaned


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('["ONE", "ONE"]', "line 3: api_key_env of provider 'openai' names ONE twice"),
        ('["ONE", "sk-proj-0123456789abcdef"]', "line 3: api_key_env of provider 'openai' holds what is not the name"),
        ('["ONE", ""]', "line 3: api_key_env of provider 'openai' holds what is not the name"),
        ('["ONE", 2]', "line 3"),
        ("5", "line 3"),
    ],
)
def test_a_wrong_list_of_variables_names_its_line_and_shows_no_key(keys: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        parse_settings(SEVERAL.format(keys=keys))
    assert "0123456789abcdef" not in str(caught.value)


def test_a_key_that_an_operator_names_for_a_server_that_asks_for_none_is_sent_as_a_token() -> None:
    entry = ProviderEntry(id="box", preset="ds4", base_url="http://127.0.0.1:9/v1", api_key_env="BOX_KEY")
    call = Call(url="http://127.0.0.1:9/v1")
    signed = Keyring({"BOX_KEY": "the-key"}).sign(call, provider_of(entry), clock=float)
    assert signed.headers == {"authorization": "Bearer the-key"}


@pytest.mark.parametrize(
    ("headers", "url"),
    [
        ({"x-tenant": "canary-7f3e9a1c5d"}, ""),
        ({"x-odd": "a-long-word-without-digits"}, ""),
        ({"x-anything": "Bearer canary-7f3e9a1c5d"}, ""),
        ({}, "http://canary-7f3e9a1c5d@host.example/v1"),
        ({}, "http://user:canary-7f3e9a1c5d@host.example/v1"),
        ({}, "http://host.example/v1?sig=canary-7f3e9a1c5d"),
        ({}, "http://host.example/v1?tenant=canary-7f3e9a1c5d&api-version=2024-10-21"),
    ],
)
def test_what_may_be_a_secret_is_one_whatever_its_name(headers: dict[str, str], url: str) -> None:
    cleaned = secrets_in(tuple(secret_values(headers, url))).in_text(
        "it got canary-7f3e9a1c5d or a-long-word-without-digits"
    )
    assert "[key]" in cleaned


def test_a_user_and_a_password_are_hidden_together_in_base64() -> None:
    values = secret_values({}, "http://someone:else@host.example/v1")
    assert "c29tZW9uZTplbHNl" not in secrets_in(tuple(values)).in_text("you sent Basic c29tZW9uZTplbHNl")


@pytest.mark.parametrize(
    "headers",
    [{"anthropic-beta": "output-128k-2025-02-19"}, {"api-version": "2024-10-21-preview"}, {"x-stage": "production"}],
)
def test_what_is_known_to_be_no_secret_is_shown(headers: dict[str, str]) -> None:
    assert secret_values(headers) == []
