"""The simulated Converse speaks as the real one: its shapes, its binary stream, and to AWS's own library."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from bardo.simulators import Fault, Running, Script, ToolCall, Turn, Usage
from bardo.simulators.delivery import Head, Send
from bardo.simulators.exchange import read_incoming
from simulators.support import Body, answered, body_for, headers_for, incoming, key_paths, path_for, recorded
from support.any_model import Simulator

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
GPT = "openai.gpt-oss-120b-1:0"
NOVA = "us.amazon.nova-micro-v1:0"
TURN = Turn(reasoning="I think.", text="Answer.", usage=Usage(100, 10, 30, cached_input_tokens=40))
CALL = Turn(reasoning="I look.", tool_calls=(ToolCall("weather", {"city": "Paris"}),))


def said(turn: Turn, *, model: str = CLAUDE, streamed: bool = False, tools: bool = False, **fields: Any) -> bytes:
    asked = incoming("bedrock", body_for("bedrock", tools=tools) | fields, model=model, streamed=streamed)
    actions = Simulator("bedrock", script=Script((turn,))).actions(asked)
    return b"".join(action.data for action in actions if isinstance(action, Send))


def content(turn: Turn, **asked: Any) -> list[Body]:
    blocks: list[Body] = json.loads(said(turn, **asked))["output"]["message"]["content"]
    return blocks


def messages(stream: bytes) -> Iterator[tuple[dict[str, str], Any]]:
    """Read a binary stream by the format's page, checksums included."""
    while stream:
        total, size, checksum = struct.unpack_from(">III", stream)
        assert zlib.crc32(stream[:8]) == checksum
        assert zlib.crc32(stream[: total - 4]) == struct.unpack_from(">I", stream, total - 4)[0]
        yield dict(headers(stream[12 : 12 + size])), json.loads(stream[12 + size : total - 4])
        stream = stream[total:]


def headers(block: bytes) -> Iterator[tuple[str, str]]:
    while block:
        end = 1 + block[0]
        assert block[end] == 7
        length = struct.unpack_from(">H", block, end + 1)[0]
        yield block[1:end].decode(), block[end + 3 : end + 3 + length].decode()
        block = block[end + 3 + length :]


def events(turn: Turn, **asked: Any) -> list[tuple[str, Any]]:
    return [(head[":event-type"], payload) for head, payload in messages(said(turn, streamed=True, **asked))]


def deltas(turn: Turn, **asked: Any) -> list[Any]:
    return [payload["delta"] for name, payload in events(turn, **asked) if name == "contentBlockDelta"]


def test_claude_signs_its_reasoning() -> None:
    thought, text = content(TURN)
    assert thought["reasoningContent"]["reasoningText"]["text"] == "I think."  # type: ignore[index]
    assert thought["reasoningContent"]["reasoningText"]["signature"]  # type: ignore[index]
    assert text == {"text": "Answer."}
    pieces = [delta.get("reasoningContent", {}) for delta in deltas(TURN)]
    assert "".join(piece.get("text", "") for piece in pieces) == "I think."
    assert [piece["signature"] for piece in pieces if "signature" in piece] == [
        thought["reasoningContent"]["reasoningText"]["signature"]  # type: ignore[index]
    ]


def test_others_do_not_and_begin_with_an_empty_text() -> None:
    assert content(TURN, model=GPT)[0] == {"reasoningContent": {"reasoningText": {"text": "I think."}}}
    assert deltas(TURN, model=GPT)[0] == {"text": ""}
    assert not any("signature" in delta.get("reasoningContent", {}) for delta in deltas(TURN, model=GPT))


def test_the_first_nova_writes_tags_that_are_cut_in_two() -> None:
    said_pieces = [delta["text"] for delta in deltas(TURN, model=NOVA)]
    assert "".join(said_pieces) == "<thinking>I think.</thinking>\nAnswer."
    assert said_pieces[0] == "<thinking"


def test_redacted_reasoning_is_base64_of_base64() -> None:
    turn = Turn(reasoning="I think.", redacted=True, text="x")
    data = content(turn)[0]["reasoningContent"]["redactedContent"]  # type: ignore[index]
    assert base64.b64decode(base64.b64decode(data))
    assert deltas(turn)[0] == {"reasoningContent": {"redactedContent": data}}


def test_only_tool_calls_begin_with_an_event() -> None:
    starts = [payload for name, payload in events(CALL, tools=True) if name == "contentBlockStart"]
    assert [start["start"]["toolUse"]["name"] for start in starts] == ["weather"]
    pieces = [delta["toolUse"]["input"] for delta in deltas(CALL, tools=True) if "toolUse" in delta]
    assert json.loads("".join(pieces)) == {"city": "Paris"}
    assert [payload["stopReason"] for name, payload in events(CALL, tools=True) if name == "messageStop"] == [
        "tool_use"
    ]


def test_the_cache_is_counted_beside_the_input() -> None:
    usage = json.loads(said(TURN))["usage"]
    assert usage["inputTokens"] + usage["cacheReadInputTokens"] == 100
    assert usage["inputTokens"] + usage["outputTokens"] + usage["cacheReadInputTokens"] == usage["totalTokens"] == 140


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_no_key_is_invented(streamed: bool) -> None:
    real: set[str] = set()
    for row, raw in recorded("bedrock-converse"):
        if row["framing"] == "eventstream":
            values = [{head[":event-type"]: payload} for head, payload in messages(raw)]
        else:
            values = [json.loads(raw)]
        if (row["framing"] == "eventstream") is streamed:
            real |= {path for value in values for path in key_paths(value)}
    ours: set[str] = set()
    for model in (CLAUDE, GPT, NOVA):
        for turn, tools in ((TURN, False), (CALL, True)):
            if streamed:
                found: list[Body] = [{name: payload} for name, payload in events(turn, model=model, tools=tools)]
            else:
                found = [json.loads(said(turn, model=model, tools=tools))]
            ours |= {path for value in found for path in key_paths(value)}
    invented = {path for path in ours - real if ".input." not in path}
    # The recorded streams have no reply that read from a cache.
    assert {path for path in invented if "cache" not in path} == set()


def test_events_come_in_the_real_order() -> None:
    raw = next(
        raw for row, raw in recorded("bedrock-converse") if "nova-2-lite-v1-0-stream-tool-5d14" in str(row["file"])
    )
    real = [head[":event-type"] for head, _ in messages(raw)]
    ours = [name for name, _ in events(Turn(tool_calls=(ToolCall("x", {}),)), tools=True)]
    assert ours == real


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"messages": [{"role": "user", "content": [{"text": " "}]}]}, "is blank"),
        ({"messages": [{"role": "assistant", "content": [{"text": "x"}]}]}, "must start with a user message"),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"text": "x"}]},
                    {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": "t"}}}]},
                ]
            },
            "thinking.signature: Field required",
        ),
        (
            {"messages": [{"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": []}}]}]},
            "Expected toolResult blocks",
        ),
    ],
    ids=["blank", "first", "unsigned", "answer"],
)
def test_what_bedrock_refuses_is_refused(body: Body, words: str) -> None:
    asked = read_incoming(
        "POST", path_for("bedrock", CLAUDE, streamed=False), headers_for("bedrock"), json.dumps(body).encode()
    )
    head, sent, *_ = Simulator("bedrock").actions(asked)
    assert isinstance(head, Head)
    assert isinstance(sent, Send)
    assert head.status == 400
    assert dict(head.headers)["x-amzn-errortype"].startswith("ValidationException:")
    assert words in json.loads(sent.data)["message"]


def test_an_error_inside_a_stream_is_an_exception() -> None:
    simulator = Simulator("bedrock", fault=Fault("error-event", after=2))
    *_, (head, payload) = messages(answered(simulator, streamed=True))
    assert head[":exception-type"] == "modelStreamErrorException"
    assert payload["message"]


@contextmanager
def client_of(server: Running) -> Iterator[Any]:
    boto3 = pytest.importorskip("boto3")
    config = pytest.importorskip("botocore.config").Config(retries={"max_attempts": 0})
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=server.root,
        region_name="us-east-1",
        aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key="secret",
        config=config,
    )
    with closing(client):
        yield client


QUESTION = [{"role": "user", "content": [{"text": "27 * 43?"}]}]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_awss_own_library_reads_a_whole_reply() -> None:
    simulator = Simulator("bedrock", key="AKIDEXAMPLE", script=Script((TURN,)))
    with simulator.running() as server, client_of(server) as client:
        answer = client.converse(modelId=CLAUDE, messages=QUESTION)
    assert answer["output"]["message"]["content"][1] == {"text": "Answer."}
    assert answer["stopReason"] == "end_turn"
    assert server.requests[0].path == f"/model/{CLAUDE}/converse"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_awss_own_library_reads_a_stream() -> None:
    tools = {"tools": [{"toolSpec": {"name": "weather", "inputSchema": {"json": {"type": "object"}}}}]}
    with Simulator("bedrock", script=Script((CALL,))).running() as server, client_of(server) as client:
        found = list(client.converse_stream(modelId=CLAUDE, messages=QUESTION, toolConfig=tools)["stream"])
    names = [next(iter(one)) for one in found]
    assert names[0] == "messageStart"
    assert names[-2:] == ["messageStop", "metadata"]
    pieces = [one["contentBlockDelta"]["delta"] for one in found if "contentBlockDelta" in one]
    assert "".join(piece.get("reasoningContent", {}).get("text", "") for piece in pieces) == "I look."


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_awss_own_library_raises_what_befalls_a_stream() -> None:
    errors = pytest.importorskip("botocore.exceptions")
    simulator = Simulator("bedrock", fault=Fault("error-event", after=2))
    with simulator.running() as server, client_of(server) as client:
        stream = client.converse_stream(modelId=CLAUDE, messages=QUESTION)["stream"]
        with closing(stream), pytest.raises(errors.EventStreamError, match="modelStreamErrorException"):
            list(stream)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_awss_own_library_names_a_refusal() -> None:
    errors = pytest.importorskip("botocore.exceptions")
    simulator = Simulator("bedrock", fault=Fault("status", status=429))
    with simulator.running() as server, client_of(server) as client:
        with pytest.raises(errors.ClientError, match="ThrottlingException") as caught:
            client.converse(modelId=CLAUDE, messages=QUESTION)
        assert isinstance(caught.value, client.exceptions.ThrottlingException)
