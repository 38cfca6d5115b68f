"""Whose account a provider is asked with: which entries share one, and that no secret is in its digest."""

from __future__ import annotations

import time
from typing import Any

import pytest

from bardo.adapters.config.providers import ProviderEntry
from bardo.adapters.config.secrets import HeaderVariable
from bardo.adapters.config.settings import Settings, parse_settings
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.adapters.net.keys import Keyring
from bardo.services.facts.directory import ProviderDirectory
from bardo.values.errors import ConfigError

ENVIRONMENT = {
    "A": "key-of-one",
    "B": "key-of-two",
    "SAME_AS_A": "key-of-one",
    "ORGANISATION": "org-2",
    "AWS_ACCESS_KEY_ID": "AKIA",
    "VERTEX_ACCESS_TOKEN": "ya29",
}


def account(environment: dict[str, str] | None = None, **fields: Any) -> str:
    """Return the account of a provider that is configured so."""
    entries = (ProviderEntry(**{"id": "mine", "preset": "openai", "models": ("m",), **fields}),)
    transport = FakeTransport(lambda call: FakeReply())
    keyring = Keyring(ENVIRONMENT if environment is None else environment)
    directory = ProviderDirectory.of(Settings(providers=entries), transport, keyring, clock=time.monotonic)
    found = directory.providers[0].account
    assert found
    assert not any(value in found for value in ENVIRONMENT.values())
    return found


VERTEX: dict[str, Any] = {"preset": "vertex", "scope": {"project": "p", "location": "us-east1"}}
BEDROCK: dict[str, Any] = {"preset": "bedrock", "base_url": "https://bedrock-runtime.us-east-1.amazonaws.com"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"api_key_env": "A"}, {"api_key_env": "A", "id": "another entry"}),
        ({"api_key_env": "A"}, {"api_key_env": "SAME_AS_A"}),
        ({"api_key_env": "A"}, {"api_key_env": "A", "base_url": "https://eu.api.openai.com/v1"}),
        ({"api_key_env": "A"}, {"api_key_env": ("A", "B")}),
        ({"api_key_env": "A"}, {"api_key_env": "A", "headers": {"x-team": "blue"}}),
        ({"api_key_env": "A", "account": "ours"}, {"api_key_env": "B", "account": "ours"}),
        (VERTEX, {**VERTEX, "scope": {"project": "p", "location": "europe-west1"}}),
        (BEDROCK, {**BEDROCK, "base_url": "https://bedrock.eu.test", "api_key_env": "AWS_BEARER_TOKEN_BEDROCK"}),
    ],
)
def test_entries_share_an_account(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert account(**one) == account(**other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"api_key_env": "A"}, {"api_key_env": "B"}),
        ({"api_key_env": ("A", "B")}, {"api_key_env": ("B", "A")}),
        ({"api_key_env": "A"}, {"api_key_env": "A", "headers": {"OpenAI-Organization": "org-1"}}),
        (
            {"api_key_env": "A", "headers": {"OpenAI-Organization": "org-1"}},
            {"api_key_env": "A", "headers": {"OpenAI-Organization": HeaderVariable(env="ORGANISATION")}},
        ),
        ({"api_key_env": "A", "account": "ours"}, {"api_key_env": "A", "account": "theirs"}),
        ({"api_key_env": "A", "account": "ours"}, {"api_key_env": "A"}),
        (VERTEX, {**VERTEX, "scope": {"project": "q", "location": "us-east1"}}),
        (BEDROCK, {**BEDROCK, "api_key_env": "A"}),
        (
            {"preset": "vllm", "base_url": "http://127.0.0.1:1/v1"},
            {"preset": "vllm", "base_url": "http://127.0.0.1:2/v1"},
        ),
    ],
)
def test_entries_have_accounts_of_their_own(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert account(**one) != account(**other)


def test_a_token_that_is_renewed_changes_no_account() -> None:
    later = {**ENVIRONMENT, "VERTEX_ACCESS_TOKEN": "ya30", "AWS_ACCESS_KEY_ID": "ASIA"}
    assert account(**VERTEX) == account(later, **VERTEX)
    assert account(**BEDROCK) == account(later, **BEDROCK)


def test_a_provider_that_nobody_configured_has_the_account_of_its_key() -> None:
    keyring = Keyring({"OPENAI_API_KEY": "key-of-one"})
    transport = FakeTransport(lambda call: FakeReply())
    directory = ProviderDirectory.of(Settings(), transport, keyring, clock=time.monotonic)
    assert {provider.account for provider in directory.providers} == {account(api_key_env="A")}


def test_an_empty_account_is_refused_with_what_to_write() -> None:
    with pytest.raises(ConfigError, match="account is empty") as refused:
        parse_settings('[[providers]]\nid = "openai"\naccount = " "\n')
    assert "the same for all entries of one account" in refused.value.hint
