"""What `[[keys]]` and `[aliases]` say of thinking: how much, and how it is shown, for a key, a model or a name."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from bardo.adapters.config.accounts import ClientKeys
from bardo.adapters.config.settings import parse_settings
from bardo.simulators import Script, Turn
from bardo.values.errors import ConfigError
from support.any_model import Simulator
from support.gateway import KEY_VARIABLE, SECRET, House, house
from support.sdk import openai_client
from surfaces.gateway.cells import whole_and_streamed

TABLE = """
[aliases]
best = { model = "deepseek/m1", effort = "high" }
plain = { model = "deepseek/m1", reasoning = "tags" }
"deepseek-*" = { model = "deepseek-*", reasoning = "tags" }

[[keys]]
id = "thrifty"
key_env = "THRIFTY_KEY"
forced_effort = "off"

[[keys]]
id = "usual"
key_env = "USUAL_KEY"
effort = "high"
reasoning = "omit"

[[keys]]
id = "unset"
key_env = "UNSET_KEY"
effort = "max"
"""
VARIABLES = {KEY_VARIABLE: SECRET, "THRIFTY_KEY": "thrifty-1", "USUAL_KEY": "usual-1"}
SAID = "<think>\nI think.\n</think>\n\nHello."


@pytest.fixture(scope="module")
def town() -> Iterator[House]:
    with house(
        [Simulator("deepseek", script=Script((Turn(reasoning="I think.", text="Hello."),)))],
        toml=TABLE,
        environment=VARIABLES,
    ) as running:
        yield running


def ask(town: House, model: str, key: str = "other", *, stream: bool = False, **asked: Any) -> Any:
    with openai_client(town.address).with_options(api_key=key) as client:
        create: Any = client.chat.completions.create
        said = {"model": model, "messages": [{"role": "user", "content": "hi"}], **asked}
        if not stream:
            return create(**said).choices[0].message.content
        return "".join(chunk.choices[0].delta.content or "" for chunk in create(**said, stream=True) if chunk.choices)


def test_a_key_has_an_effort_of_its_own(town: House) -> None:
    ask(town, "deepseek/m1", "thrifty-1", reasoning_effort="high")
    assert town.last("deepseek")["thinking"] == {"type": "disabled"}
    ask(town, "best", "thrifty-1")
    assert town.last("deepseek")["thinking"] == {"type": "disabled"}
    ask(town, "deepseek/m1", "usual-1")
    assert town.last("deepseek")["thinking"] == {"type": "enabled"}
    ask(town, "deepseek/m1", "usual-1", reasoning_effort="none")
    assert town.last("deepseek")["thinking"] == {"type": "disabled"}
    ask(town, "deepseek/m1")
    assert "thinking" not in town.last("deepseek")


@whole_and_streamed
def test_a_name_may_show_thinking_between_tags(town: House, stream: bool) -> None:
    assert ask(town, "plain", stream=stream) == SAID
    assert ask(town, "deepseek-m1", stream=stream) == SAID
    assert ask(town, "deepseek/m1", stream=stream) == "Hello."


@whole_and_streamed
def test_a_client_that_says_how_thinking_is_shown_is_heard(town: House, stream: bool) -> None:
    assert ask(town, "plain", stream=stream, extra_headers={"X-Bardo-Reasoning": "include"}) == "Hello."
    assert ask(town, "plain", stream=stream, extra_body={"bardo": {"reasoning": "include"}}) == "Hello."
    assert ask(town, "deepseek/m1", stream=stream, extra_headers={"X-Bardo-Reasoning": "tags"}) == SAID


def test_what_a_key_says_of_showing_goes_before_a_name(town: House) -> None:
    assert ask(town, "plain", "usual-1") == "Hello."


def test_a_key_that_is_not_set_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "bardo.keys"):
        keys = ClientKeys(parse_settings(TABLE).keys, VARIABLES)
    assert "UNSET_KEY is not set" in caplog.text
    assert keys.rules("") == ()
    assert "thrifty-1" not in repr(vars(keys))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[keys]]\nid = "a"\nkey_env = "sk-abc-123"', "names no environment variable"),
        ('[[keys]]\nid = "a"', "'key_env' is missing"),
        ('[[keys]]\nid = "a"\nkey_env = "K"\nreasoning = "hidden"', "include"),
        ('[[keys]]\nid = "a"\nkey_env = "K"\n[[keys]]\nid = "a"\nkey_env = "L"', "ids are unique"),
        ('[keys.a]\nkey_env = "K"', "[[keys]]"),
    ],
)
def test_a_mistake_is_named(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(text)
    assert said in str(caught.value)
