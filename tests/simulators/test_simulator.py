"""Scripts, records, and a server that leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import re
import socket
import tomllib
import warnings
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import bardo.simulators
from bardo.simulators import PRESETS, Conversation, Script, Tool, ToolCall, Turn, presets, running_many, serve_many
from simulators.support import SCHEMA, answered, body_for, events_of, headers_for, path_for, post, request
from simulators.test_simulated_faults import address, raw_request
from support.any_model import Simulator
from support.offenders import each_case
from support.own_threads import own_threads
from support.patience import PATIENCE

pytestmark = pytest.mark.each_python


def asked(question: str = "x", **others: object) -> Conversation:
    return Conversation(model="m", question=question, **others)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "answer", "step"),
    [
        ("What is 27 * 43?", "1161", "1080 + 81"),
        ("27 × 43", "1161", "27 * 3 = 81"),
        ("And 5 plus 7?", "12", "5 + 7"),
        ("12 - 30", "-18", "12 - 30"),
    ],
)
def test_sums_are_worked_out(question: str, answer: str, step: str) -> None:
    turn = Script().turn(asked(question))
    assert turn.text == answer
    assert step in turn.reasoning


def test_the_fitting_tool_is_called_with_arguments_of_its_schema() -> None:
    tools = (Tool("clock", "Tell the time", {}), Tool("weather", "Tell the weather", SCHEMA))
    turn = Script().turn(asked("What is the weather in Paris?", tools=tools))
    assert turn.tool_calls == (ToolCall("weather", {"city": "Paris"}),)
    forced = Script().turn(asked("What is the weather in Paris?", tools=tools, forced_tool="clock"))
    assert forced.tool_calls[0].name == "clock"


def test_a_schema_is_filled() -> None:
    schema: dict[str, object] = {
        "type": "object",
        "properties": {
            "kind": {"enum": ["b", "a"]},
            "count": {"type": "integer", "maximum": 5},
            "items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
            "left_out": {"type": "string"},
        },
        "required": ["kind", "count", "items"],
        "$defs": {"item": {"type": "object", "properties": {"done": {"type": ["null", "boolean"]}}}},
    }
    turn = Script().turn(asked("Take 9 of these", schema=schema))
    assert json.loads(turn.text) == {"kind": "b", "count": 5, "items": [{"done": True}]}


def test_turns_follow_the_rounds_of_the_request() -> None:
    script = Script((Turn(tool_calls=(ToolCall("f", {}),)), Turn(text="It is {tool_result}."), Turn(text="Bye.")))
    tools = (Tool("f", "", {}),)
    assert script.turn(asked(tools=tools)).tool_calls
    assert script.turn(asked(tools=tools, rounds=1, tool_results=("sunny",))).text == "It is sunny."
    assert script.turn(asked(tools=tools, rounds=9)).text == "Bye."
    assert script.turn(asked(tool_results=("rain",))).text == "It is rain."


def test_a_script_may_be_a_function() -> None:
    script = Script(otherwise=lambda conversation: Turn(text=conversation.question.upper()))
    assert b"WHAT IS 27" in answered(Simulator("ollama", script=script))


@pytest.mark.parametrize("preset", presets())
def test_a_request_is_recorded(preset: str) -> None:
    with Simulator(preset).running() as server:
        status, _, _ = post(server, preset, body_for(preset), headers={"x-mark": "here"})
    assert status == 200
    (seen,) = server.requests
    assert (seen.method, seen.path) == ("POST", path_for(preset, "any-model", streamed=False).partition("?")[0])
    assert seen.headers["x-mark"] == "here"
    assert seen.body == body_for(preset)


@pytest.mark.parametrize("preset", presets())
def test_replies_are_the_same_at_every_run(preset: str) -> None:
    for streamed in (False, True):
        first, second = (_timeless(answered(Simulator(preset), streamed=streamed)) for _ in range(2))
        assert first == second


def test_a_connection_serves_one_request_after_another() -> None:
    async def scenario(simulator: Simulator) -> list[bytes]:
        async with simulator.serve() as base_url:
            reader, writer = await asyncio.open_connection(*address(base_url))
            ends: list[bytes] = []
            for _ in range(3):
                writer.write(raw_request("vllm", "m"))
                ends.append(await reader.readuntil(b"0\r\n\r\n"))
            writer.close()
            return ends

    replies = asyncio.run(scenario(Simulator("vllm")))
    assert [b"[DONE]" in reply for reply in replies] == [True] * 3


def test_fifty_streams_at_once_stay_separate() -> None:
    script = Script(
        otherwise=lambda conversation: Turn(reasoning=f"<{conversation.model}>" * 40, text=conversation.model)
    )
    simulator = Simulator("deepseek", script=script, pace=0.001)

    async def stream(base_url: str, number: int) -> str:
        reader, writer = await asyncio.open_connection(*address(base_url))
        writer.write(raw_request("deepseek", f"model-{number}").replace(b"host:", b"connection: close\r\nhost:"))
        raw = await reader.read()
        writer.close()
        return raw.decode()

    async def scenario() -> list[str]:
        async with simulator.serve() as base_url:
            return await asyncio.gather(*(stream(base_url, number) for number in range(50)))

    for number, raw in enumerate(asyncio.run(scenario())):
        assert raw.endswith("0\r\n\r\n")
        assert raw.count(f'"model":"model-{number}"') == raw.count('"model":')
    assert len(simulator.requests) == 50


def test_no_code_is_shared_with_the_rest_of_bardo() -> None:
    folder = Path(bardo.simulators.__file__).parent
    imported = {
        name
        for file in folder.rglob("*.py")
        for name in re.findall(r"^\s*(?:from|import) (bardo[\w.]*)", file.read_text(), re.MULTILINE)
    }
    assert imported
    assert {name for name in imported if not name.startswith("bardo.simulators")} == set()


@each_case("preset", presets())
def test_the_catalog_knows_the_real_one(preset: str) -> None:
    provider = PRESETS[preset]
    file = Path(bardo.simulators.__file__).parents[1] / "catalog" / "data" / "providers.toml"
    rows = {row["id"]: row for row in tomllib.loads(file.read_text())["providers"]}
    row = rows[provider.catalog_name]
    assert row["dialect"] == provider.dialect
    # Where the address differs from region to region, the row has none; or the parts that each customer fills in.
    address = (
        row.get("base_url", provider.base_path).replace("{project}", "simulated").replace("{location}", "us-central1")
    )
    assert urlsplit(address).path == provider.base_path


def test_nothing_is_left_behind() -> None:
    async def scenario() -> set[asyncio.Task[None]]:
        before = asyncio.all_tasks()
        async with serve_many([Simulator("vllm"), Simulator("anthropic")]) as addresses:
            for preset, base_url in addresses.items():
                _, writer = await asyncio.open_connection(*address(base_url))
                writer.write(raw_request(preset, "m+fault:stall"))
                await writer.drain()
                writer.close()
        return asyncio.all_tasks() - before

    threads = own_threads()
    assert asyncio.run(scenario()) == set()
    with Simulator("groq").running() as server:
        assert len(own_threads() - threads) == 1
    assert own_threads() <= threads
    with pytest.raises(ConnectionRefusedError):
        request(server, "GET", "/")


@pytest.mark.parametrize("turns", range(7))
def test_a_connection_that_comes_while_the_server_closes_is_closed_too(turns: int) -> None:
    async def scenario() -> socket.socket:
        async with Simulator("vllm").serve() as base_url:
            client = socket.create_connection(address(base_url))
            for _ in range(turns):
                await asyncio.sleep(0)
        return client

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with asyncio.run(scenario()) as client:
            gc.collect()
            client.settimeout(PATIENCE)
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(1) == b""
    assert [str(one.message) for one in found] == []


def test_all_presets_run_side_by_side() -> None:
    with running_many(map(Simulator, presets())) as servers:
        assert sorted(servers) == presets()
        statuses = {preset: post(server, preset, body_for(preset))[0] for preset, server in servers.items()}
    assert set(statuses.values()) == {200}


def test_a_port_in_use_is_said_at_once() -> None:
    with Simulator("vllm").running() as server:
        port = address(server.root)[1]
        with pytest.raises(OSError, match="in use"), Simulator("groq").running(port=port):
            raise AssertionError("two servers on one port")


def test_an_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="anthropic"):
        Simulator("nobody")


def test_a_large_body_with_a_pause_before_it_is_read() -> None:
    body = body_for("vllm", question="x" * 300_000)
    with Simulator("vllm").running() as server:
        status, _, _ = post(server, "vllm", body, headers={"expect": "100-continue"})
        assert status == 200
        assert request(server, "HEAD", "/v1/models", headers=headers_for("vllm"))[0] == 405
    assert len(server.requests[0].raw) > 300_000


def test_a_scripted_usage_is_given_as_it_is() -> None:
    turn = Turn(text="x", usage=None, reasoning="a" * 400)
    values = [value for _, value in events_of(answered(Simulator("deepseek", script=Script((turn,))), streamed=True))]
    usage = values[-1]["usage"]
    assert isinstance(usage, dict)
    assert usage["completion_tokens_details"] == {"reasoning_tokens": 100}


def _timeless(reply: bytes) -> str:
    """Leave out the only things that differ: the time."""
    return re.sub(r'"(created|created_at|completed_at|updated)": ?"?[\d.:TZ-]+|gen-\d+', "", reply.decode("latin-1"))


def test_a_simulator_that_keeps_no_requests_answers_all_the_same() -> None:
    with Simulator("vllm", keep_requests=False).running() as server:
        assert request(server, "GET", "/v1/models", headers=headers_for("vllm"))[0] == 200
        assert server.requests == []
