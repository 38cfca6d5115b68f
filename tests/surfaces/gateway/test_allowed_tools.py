"""A choice among some of the tools, by the official clients, over providers of other dialects that have no such choice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bardo.simulators import Script, Turn
from support.any_model import Simulator
from support.gateway import House, house, model_of
from support.sdk import gemini_client, openai_client
from surfaces.gateway.test_codex_tools import forms

NAMES = ("look", "listen", "wait")
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"at": {"type": "string"}}}


@pytest.fixture(scope="module")
def town() -> Iterator[House]:
    with house(
        [Simulator(name, script=Script((Turn(text="Done."),))) for name in ("anthropic", "gemini", "deepseek")]
    ) as running:
        yield running


def chat(town: House, provider: str, names: list[str], *, required: bool) -> Any:
    tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in NAMES]
    listed = [{"type": "function", "function": {"name": name}} for name in names]
    choice = {"mode": "required" if required else "auto", "tools": listed}
    with openai_client(town.address) as client:
        create: Any = client.chat.completions.with_raw_response.create
        return create(
            model=model_of(provider),
            messages=[{"role": "user", "content": "hi"}],
            tools=tools,
            tool_choice={"type": "allowed_tools", "allowed_tools": choice},
        ).headers


def gemini(town: House, provider: str, names: list[str], *, required: bool) -> Any:
    with gemini_client(town.address) as client:
        generate: Any = client.models.generate_content
        reply = generate(
            model=model_of(provider),
            contents="hi",
            config={
                "tools": [
                    {"function_declarations": [{"name": name, "parameters_json_schema": SCHEMA} for name in NAMES]}
                ],
                "tool_config": {
                    "function_calling_config": {
                        "mode": "ANY" if required else "VALIDATED",
                        "allowed_function_names": names,
                    }
                },
            },
        )
        return reply.sdk_http_response.headers


CASES = [(chat, "anthropic"), (chat, "gemini"), (gemini, "anthropic"), (gemini, "deepseek")]


@pytest.mark.parametrize(("client", "provider"), CASES)
@pytest.mark.parametrize(("names", "required"), [(["look", "wait"], True), (["look", "wait"], False), (["wait"], True)])
def test_only_the_tools_that_may_be_called_are_sent(
    town: House, client: Any, provider: str, names: list[str], required: bool
) -> None:
    headers = client(town, provider, names, required=required)
    told, mode = forms(town.last(provider))
    # Gemini has no other way to name one tool that must be called: the choice is known then, and the tools stay.
    assert told == (list(NAMES) if client is gemini and len(names) == 1 else names)
    assert mode == ("named" if required and len(names) == 1 else "required" if required else "auto")
    if len(names) > 1:
        assert "tool_choice.allowed_tools" in headers["x-bardo-degraded"]
