"""Several addresses of one provider in `bardo.toml`: what is refused, and what is made of them."""

from __future__ import annotations

import msgspec
import pytest

from bardo.adapters.config.secrets import secrets_of
from bardo.adapters.config.settings import parse_settings, provider_of
from bardo.adapters.net.keys import Keyring
from bardo.values.errors import ConfigError

WRONG = [
    ('base_url = "http://a:1"\nbase_urls = ["http://b:1"]', "base_url and base_urls"),
    ('base_urls = ["http://a:1", "ftp://b"]', "'ftp://b' as an address"),
    ('base_urls = ["http://a:1/v1", "http://a:1/v1/"]', "the server a:1/v1 twice"),
    (f"base_urls = {[f'http://a:{port}' for port in range(1, 66)]}".replace("'", '"'), "65 addresses"),
]


@pytest.mark.parametrize(("text", "told"), WRONG)
def test_a_mistake_in_the_addresses_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(f'[[providers]]\nid = "pods"\npreset = "vllm"\n{text}\n', "my.toml")
    assert told in caught.value.message
    assert "line" in caught.value.message


def test_each_address_is_a_server_of_its_own() -> None:
    text = '[[providers]]\nid = "pods"\npreset = "vllm"\nbase_urls = ["http://a:1/v1", "http://b:1/v1"]\n'
    (entry,) = parse_settings(text).providers
    found = provider_of(entry)
    assert [(one.place, one.url("chat/completions")) for one in found.servers] == [
        ("pods at a:1", "http://a:1/v1/chat/completions"),
        ("pods at b:1", "http://b:1/v1/chat/completions"),
    ]
    assert found.servers is found.servers


def test_one_address_in_the_list_is_as_base_url() -> None:
    text = '[[providers]]\nid = "pods"\npreset = "vllm"\n{} = {}\n'
    (listed,) = parse_settings(text.format("base_urls", '["http://a:1/v1"]')).providers
    (plain,) = parse_settings(text.format("base_url", '"http://a:1/v1"')).providers
    assert provider_of(listed) == provider_of(plain)


def test_secrets_of_every_address_are_known_and_warned_of() -> None:
    text = (
        '[[providers]]\nid = "pods"\npreset = "vllm"\nbase_urls = ["http://a:1", "http://me:hidden-word@b:1?sig=1"]\n'
    )
    (entry,) = parse_settings(text).providers
    assert secrets_of(entry) == ["the user and password of base_urls", "the query of base_urls"]
    secrets = Keyring({}).secrets([provider_of(entry)])
    assert "hidden-word" not in secrets.in_text("it said hidden-word")
    assert "hidden-word" not in repr([one.place for one in provider_of(msgspec.structs.replace(entry)).servers])
