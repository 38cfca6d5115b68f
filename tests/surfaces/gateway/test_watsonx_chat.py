"""IBM watsonx.ai's chat: its paths, names of fields, levels of thinking and errors, over real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bardo.simulators import Script, ToolCall, Turn
from support.any_model import Simulator
from support.gateway import SECRET, House, house
from support.talk import CLIENTS, ask, request
from surfaces.gateway.cells import whole_and_streamed

MODEL = "watsonx/ibm/granite-3-3-8b-instruct"
EACH = {"preset": "watsonx-chat", "scope": {"project_id": "p1"}}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture
def running() -> Iterator[House]:
    with house([Simulator("watsonx", key=SECRET)], each=EACH) as made:
        yield made


def asked(running: House, **fields: Any) -> Any:
    """Put a request in Chat and return the body that arrived."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "What is 27 * 43?"}], **fields}
    answer = request(running.address, "POST", "/v1/chat/completions", body)
    assert answer.status == 200, answer.body
    return running.last("watsonx")


@whole_and_streamed
@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_is_answered(running: House, client: str, stream: bool) -> None:
    answer = ask(running.address, client, MODEL, stream=stream, thinks=True)
    assert (answer.status, "1161" in answer.text) == (200, True)
    path = "/ml/v1/text/chat_stream" if stream else "/ml/v1/text/chat"
    assert running.arrived("watsonx")[-1].path == path


def test_the_model_the_project_and_the_choice_of_tools_have_the_names_of_watsonx(running: House) -> None:
    body = asked(running, tools=[TOOL], tool_choice="required", max_tokens=99)
    assert (body["model_id"], body["project_id"]) == ("ibm/granite-3-3-8b-instruct", "p1")
    assert (body["tool_choice_option"], body["max_tokens"]) == ("required", 99)
    assert body.keys() & {"model", "stream", "stream_options", "tool_choice", "parallel_tool_calls"} == set()


def test_a_named_tool_stays_an_object(running: House) -> None:
    named = {"type": "function", "function": {"name": "weather"}}
    assert asked(running, tools=[TOOL], tool_choice=named)["tool_choice"] == named


@pytest.mark.parametrize(
    ("model", "level", "field", "sent"),
    [
        ("openai/gpt-oss-120b", "low", "reasoning_effort", "low"),
        ("ibm/granite-3-3-8b-instruct", "low", "chat_template_kwargs", {"thinking": True}),
        ("ibm/granite-3-3-8b-instruct", "none", "chat_template_kwargs", {"thinking": False}),
    ],
)
def test_thinking_is_asked_for_in_its_own_fields(running: House, model: str, level: str, field: str, sent: Any) -> None:
    assert asked(running, model=f"watsonx/{model}", reasoning_effort=level, top_k=3)[field] == sent


def test_calls_come_back() -> None:
    script = Script((Turn(tool_calls=(ToolCall("weather", {"city": "Ulm"}),)),))
    with house([Simulator("watsonx", key=SECRET, script=script)], each=EACH) as running:
        body = {"model": MODEL, "messages": [{"role": "user", "content": "Hello."}], "tools": [TOOL]}
        answer = request(running.address, "POST", "/v1/chat/completions", body)
        assert answer.json["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "weather"


def test_its_list_of_errors_is_read() -> None:
    with house([Simulator("watsonx", key=SECRET)], each={"preset": "watsonx-chat"}) as running:
        body = {"model": MODEL, "messages": [{"role": "user", "content": "Hello."}]}
        answer = request(running.address, "POST", "/v1/chat/completions", body)
        assert answer.status == 400
        assert "exactly one of project_id and space_id" in answer.json["error"]["message"]
