"""Conversations that Responses clients have compacted: by OpenAI itself, and over every other provider by bardo."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import openai
import pytest

from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply
from bardo.adapters.sealing import new_sealer
from bardo.adapters.stores.response_store import ResponseStore
from bardo.adapters.stores.state import MemoryStore
from bardo.batches.item_requests import GenerateItem
from bardo.dialects.openai_responses.compaction import HEADING, PROMPT, PURPOSE, Summary, sealed_item
from bardo.simulators import Fault, Script, Turn
from bardo.surfaces.gateway.batches import read_item
from bardo.values.errors import InvalidRequest, Unsupported
from support.any_model import Simulator
from support.gateway import House, Remembering, Watched, house, model_of
from support.keyed_gateway import keyed_gateway
from support.patience import PATIENCE
from support.sdk import openai_client
from support.talk import Caller
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.scripted import Scripted, chat_reply, scripted
from surfaces.gateway.test_keep_alive import Pondering

SUMMARY = "The user wants a site in Rust. Next: build it."
TRIGGER: dict[str, Any] = {"type": "compaction_trigger"}
TOOL: dict[str, Any] = {
    "type": "function",
    "name": "shell",
    "strict": False,
    "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}},
}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PICTURE = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "Build a site"},
    {"role": "assistant", "content": "Which language?"},
    {"role": "user", "content": [{"type": "input_text", "text": "As drawn, in Rust"}, PICTURE]},
    {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": '{"cmd": "ls"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "main.rs"},
]
OPEN_CALL = {"type": "function_call", "call_id": "c2", "name": "shell", "arguments": '{"cmd": "make"}'}
OTHERS = (
    "anthropic",
    "gemini",
    "bedrock",
    "openrouter",
    "deepseek",
    "mistral",
    "ollama",
    "cohere",
    "gemini_interactions",
)


def script(text: str = SUMMARY, **turn: Any) -> Script:
    return Script((Turn(text=text, **turn),))


@contextmanager
def compacting(*providers: str, **options: Any) -> Iterator[House]:
    """Run a gateway over providers whose models summarize."""
    simulators = [Remembering(name, script=script(reasoning="Hm.")) for name in providers]
    with (
        closing(ResponseStore(MemoryStore())) as responses,
        house(simulators, responses=responses, **options) as running,
    ):
        yield running


@contextmanager
def client_of(running: House, key: str = "of-the-client") -> Iterator[Any]:
    with openai_client(running.address).with_options(api_key=key) as client:
        yield client


def ask(client: Any, *, stream: bool, **asked: Any) -> Any:
    if not stream:
        return client.responses.create(**asked)
    events = list(client.responses.create(stream=True, **asked))
    kinds = [event.type.removeprefix("response.") for event in events]
    assert kinds == ["created", "in_progress", "output_item.added", "output_item.done", "completed"]
    assert events[3].item == events[4].response.output[0]
    return events[-1].response


@pytest.mark.parametrize("provider", OTHERS)
@whole_and_streamed
def test_a_conversation_is_summarized_by_its_model_and_goes_on_from_the_item(provider: str, stream: bool) -> None:
    with compacting(provider) as running, client_of(running) as client:
        asked: dict[str, Any] = {
            "model": model_of(provider),
            "tools": [TOOL],
            "instructions": "Be brief.",
            "store": False,
        }
        made = ask(client, stream=stream, input=[*HISTORY, OPEN_CALL, TRIGGER], **asked)
        [item] = made.output
        assert (made.status, item.type, made.model) == ("completed", "compaction", model_of(provider))
        assert SUMMARY not in made.model_dump_json()
        body = running.arrived(provider)[0].raw.decode()
        for text in ("Be brief.", "Build a site", "Which language?", PNG, "main.rs", "make", PROMPT[:60]):
            assert text in body
        assert "compaction_trigger" not in body
        [row] = running.log.wait(lambda row: True)
        assert (made.usage.input_tokens, made.usage.output_tokens) == (row.input_tokens, row.output_tokens)
        assert "compaction" in [one["what"] for one in row.degraded]
        answer = client.responses.create(
            input=[HISTORY[0], item.model_dump(exclude_none=True), {"role": "user", "content": "Go on"}], **asked
        )
        assert answer.output_text == SUMMARY
        body = running.arrived(provider)[-1].raw.decode()
        assert HEADING in body
        assert body.index("Build a site") < body.index(SUMMARY) < body.index("Go on")
        assert "compaction" not in [one["what"] for one in running.log.rows[-1].degraded]


@pytest.mark.parametrize("provider", ["anthropic", "deepseek"])
def test_the_endpoint_answers_with_what_the_user_said_and_the_item(provider: str) -> None:
    with compacting(provider) as running, client_of(running) as client:
        reply = client.responses.with_raw_response.compact(
            model=model_of(provider), input=[{"role": "developer", "content": "Be brief."}, *HISTORY]
        )
        made = reply.parse()
        assert made.object == "response.compaction"
        assert [item.type for item in made.output] == ["message", "message", "compaction"]
        assert [item.role for item in made.output[:2]] == ["user", "user"]
        assert made.usage.input_tokens
        assert running.last(provider)["stream"] is True
        [row] = running.log.wait(lambda row: True)
        assert reply.headers["x-bardo-request-id"] == row.request_id
        assert reply.headers["x-bardo-provider"] == provider
        assert "compaction" in reply.headers["x-bardo-degraded"]
        going_on = [one.model_dump(exclude_none=True, warnings=False) for one in made.output]
        again = client.responses.compact(
            model=model_of(provider), input=[*going_on, {"role": "user", "content": "More"}]
        )
        assert [item.type for item in again.output] == ["message", "message", "message", "compaction"]
        body = running.arrived(provider)[-1].raw.decode()
        assert body.index("As drawn") < body.index(SUMMARY) < body.index("More")


@pytest.mark.parametrize("given", ["Build a site", [{"type": None, "role": "user", "content": "Build a site"}]])
def test_what_is_given_as_a_string_or_without_a_type_is_compacted_too(given: Any) -> None:
    with compacting("deepseek") as running:
        body = {"model": model_of("deepseek"), "input": given}
        headers = {"authorization": "Bearer of-the-client"}
        made = httpx.post(f"{running.address}/v1/responses/compact", json=body, headers=headers, timeout=PATIENCE)
        assert [item["type"] for item in made.json()["output"]] == ["message", "compaction"]
        assert [turn["content"] for turn in running.last("deepseek")["messages"]] == ["Build a site", PROMPT]


@whole_and_streamed
def test_a_kept_conversation_goes_on_from_its_last_compaction_by_its_id(stream: bool) -> None:
    with compacting("anthropic") as running, client_of(running) as client:
        asked: dict[str, Any] = {"model": model_of("anthropic")}
        first = client.responses.create(input=HISTORY, tools=[TOOL], **asked)
        compacted = ask(client, stream=stream, input=[TRIGGER], previous_response_id=first.id, **asked)
        assert client.responses.retrieve(compacted.id).output[0].type == "compaction"
        client.responses.create(input="Go on", previous_response_id=compacted.id, **asked)
        body = running.arrived("anthropic")[-1].raw.decode()
        assert SUMMARY in body
        assert "Build a site" not in body
        before = client.responses.compact(model=model_of("anthropic"), input="More", previous_response_id=first.id)
        assert "Build a site" in running.arrived("anthropic")[-1].raw.decode()
        assert len(before.output) == 4


@whole_and_streamed
def test_openai_compacts_itself_and_reads_its_items(stream: bool) -> None:
    with compacting("openai_responses", "anthropic") as running, client_of(running) as client:
        asked: dict[str, Any] = {"model": model_of("openai_responses"), "store": False}
        made = ask(client, stream=stream, input=[*HISTORY, TRIGGER], **asked)
        assert running.last("openai_responses")["input"][-1] == TRIGGER
        item = made.output[0].model_dump(exclude_none=True)
        client.responses.create(input=[item, {"role": "user", "content": "Go on"}], **asked)
        assert running.last("openai_responses")["input"][0]["encrypted_content"] == item["encrypted_content"]
        lost = client.responses.with_raw_response.create(
            model=model_of("anthropic"), input=[item, {"role": "user", "content": "Go on"}]
        )
        assert "compaction" in lost.headers["x-bardo-degraded"]
        assert item["encrypted_content"] not in running.arrived("anthropic")[-1].raw.decode()
        # What bardo made is read at OpenAI too.
        own = ask(client, stream=stream, model=model_of("anthropic"), input=[*HISTORY, TRIGGER]).output[0]
        client.responses.create(
            input=[own.model_dump(exclude_none=True), {"role": "user", "content": "Go on"}], **asked
        )
        assert SUMMARY in json.dumps(running.last("openai_responses")["input"])


def test_openais_endpoint_is_forwarded_priced_and_logged() -> None:
    with compacting("openai_responses") as running, client_of(running) as client:
        reply = client.responses.with_raw_response.compact(
            model=model_of("openai_responses"), input=HISTORY, instructions="s"
        )
        incoming = running.arrived("openai_responses")[-1]
        assert incoming.path.endswith("/responses/compact")
        assert json.loads(incoming.raw)["input"] == HISTORY
        made = reply.parse()
        assert made.output[-1].encrypted_content.startswith("gAAAA")
        [row] = running.log.wait(lambda row: row.operation == "compact")
        assert (row.input_tokens, row.output_tokens) == (made.usage.input_tokens, made.usage.output_tokens)
        assert float(reply.headers["x-bardo-cost-usd"]) == (row.cost_nanos or 0) / 1e9 > 0


def test_a_name_that_stands_for_openai_and_others_is_summarized_whoever_answers() -> None:
    toml = f'[aliases]\nmine = ["{model_of("openai_responses")}", "{model_of("anthropic")}"]'
    with compacting("openai_responses", "anthropic", toml=toml) as running, client_of(running) as client:
        item = ask(client, stream=False, model="mine", input=[*HISTORY, TRIGGER], tools=[TOOL]).output[0]
        assert item.encrypted_content.startswith("bardo_compaction_1.")
        assert TRIGGER not in running.last("openai_responses")["input"]


def test_an_item_of_another_key_and_one_that_was_changed_are_refused_in_the_same_words(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [Simulator("anthropic", script=script())]) as running:
        mine, other, shared = (running.key(tenant="ours"), running.key(), running.key(tenant="ours"))

        def post(key: str, item: Any, stream: bool = False) -> httpx.Response:
            body = {"model": model_of("anthropic"), "input": [HISTORY[0], item], "stream": stream}
            headers = {"authorization": f"Bearer {key}"}
            return httpx.post(f"{running.address}/v1/responses", json=body, headers=headers, timeout=PATIENCE)

        item = post(mine, TRIGGER).json()["output"][0]
        assert post(mine, item).status_code == post(shared, item).status_code == 200
        text = item["encrypted_content"]
        asked = len(running.servers["anthropic"].requests)
        changed = {**item, "encrypted_content": text[:-9] + ("A" if text[-9] != "A" else "B") + text[-8:]}
        told = set()
        for key, sent in ((other, item), (mine, changed), (mine, {**item, "encrypted_content": text[:-4]})):
            for stream in (False, True):
                refused = post(key, sent, stream)
                error = refused.json()["error"]
                assert (refused.status_code, error["param"]) == (400, "input[1].encrypted_content")
                told.add(error["message"])
        assert len(told) == 1
        assert SUMMARY not in told.pop()
        headers = {"authorization": f"Bearer {other}"}
        for path in ("responses/compact", "responses/input_tokens"):
            body = {"model": model_of("anthropic"), "input": [HISTORY[0], item]}
            found = httpx.post(f"{running.address}/v1/{path}", json=body, headers=headers, timeout=PATIENCE)
            assert found.status_code == 400
        assert len(running.servers["anthropic"].requests) == asked
    # The same key reads it after a restart.
    with keyed_gateway(tmp_path, [Simulator("gemini", script=script())], first_key=False) as running:
        body = {"model": model_of("gemini"), "input": [item, {"role": "user", "content": "Go on"}]}
        headers = {"authorization": f"Bearer {mine}"}
        assert (
            httpx.post(f"{running.address}/v1/responses", json=body, headers=headers, timeout=PATIENCE).status_code
            == 200
        )
        assert SUMMARY in running.servers["gemini"].requests[-1].raw.decode()


@whole_and_streamed
def test_a_conversation_longer_than_the_window_is_summarized_in_parts(stream: bool) -> None:
    long = [{"role": "user", "content": f"Number {number}: " + "word " * 900} for number in range(8)]
    toml = '[[models]]\nprovider = "anthropic"\nmatch = ["claude-sonnet-4-5"]\ncontext = 6000\n'
    with compacting("anthropic", toml=toml) as running, client_of(running) as client:
        asked = {"model": model_of("anthropic"), "input": [*long, *HISTORY, TRIGGER], "stream": stream}
        reply = client.responses.with_raw_response.create(**asked)
        made = list(reply.parse())[-1].response if stream else reply.parse()
        parts = [incoming.raw.decode() for incoming in running.arrived("anthropic")]
        assert len(parts) > 3
        assert all(SUMMARY in part for part in parts[1:]), "each part is told what came before it"
        assert SUMMARY not in parts[0]
        whole = "".join(parts)
        assert all(f"Number {number}:" in whole for number in range(8))
        assert "[a picture]" in whole
        assert PNG not in whole
        rows = running.log.rows
        assert made.usage.input_tokens == sum(row.input_tokens or 0 for row in rows)
        assert reply.headers["x-bardo-request-id"].split(", ") == [row.request_id for row in rows]
        assert "compaction.parts" in reply.headers["x-bardo-degraded"]
        assert float(reply.headers["x-bardo-cost-usd"]) == pytest.approx(sum(row.cost_nanos or 0 for row in rows) / 1e9)


@whole_and_streamed
def test_a_conversation_of_instructions_alone_that_are_too_long_is_left_to_its_provider(stream: bool) -> None:
    toml = '[[models]]\nprovider = "deepseek"\nmatch = ["m1"]\ncontext = 6000\n'
    with compacting("deepseek", toml=toml) as running, client_of(running) as client:
        asked = {"model": model_of("deepseek"), "instructions": "word " * 9000, "input": [TRIGGER]}
        assert ask(client, stream=stream, **asked).output[0].type == "compaction"
        assert len(running.arrived("deepseek")) == 1


@whole_and_streamed
def test_a_model_that_calls_a_tool_in_place_of_a_summary_is_asked_again_without_tools(stream: bool) -> None:
    call = {"id": "c9", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
    with scripted(["openai-chat"]) as played:
        played.replies = [
            chat_reply({"role": "assistant", "content": "I look first.", "tool_calls": [call]}, stream=True),
            chat_reply({"role": "assistant", "content": SUMMARY}, stream=True),
        ]
        asked = {"model": "openai-chat/m", "input": [*HISTORY, TRIGGER], "tools": [TOOL], "stream": stream}
        headers, body = played.post("/v1/responses", asked)
        assert b'"compaction"' in body
        assert "tools" in played.bodies[0]
        assert "tools" not in played.bodies[1]
        assert "I look first." not in json.dumps(played.bodies[1])
        assert "compaction.parts" in headers["x-bardo-degraded"]


class Narrow(Scripted):
    """A model of a window that nobody knows of: it refuses what is too long for it, and summarizes the rest."""

    most = 6_000

    def answer(self, call: Call) -> FakeReply:
        if len(call.body) <= self.most:
            self.replies.append(chat_reply({"role": "assistant", "content": SUMMARY}, stream=True))
            return super().answer(call)
        self.bodies.append({"refused": len(call.body)})
        error = {"message": "This model's maximum context length is exceeded.", "code": "context_length_exceeded"}
        body = json.dumps({"error": error}).encode()
        return FakeReply(status=400, headers={"content-type": "application/json"}, chunks=(body,))


def test_parts_become_smaller_until_a_model_of_unknown_window_takes_them() -> None:
    long = [{"role": "user", "content": f"Number {number}: " + "word " * 900} for number in range(8)]
    narrow = Narrow()
    with scripted(["openai-chat"], played=narrow) as played:
        headers, body = played.post("/v1/responses", {"model": "openai-chat/m", "input": [*long, TRIGGER]})
        assert json.loads(body)["output"][0]["type"] == "compaction"
        taken = [json.dumps(one) for one in played.bodies if "refused" not in one]
        assert len(taken) < len(played.bodies)
        assert all(f"Number {number}:" in "".join(taken) for number in range(8))
        assert "compaction.parts" in headers["x-bardo-degraded"]
        narrow.most = 2_000
        with pytest.raises(AssertionError, match="maximum context length"):
            played.post("/v1/responses", {"model": "openai-chat/m", "input": [*long, TRIGGER]})


@whole_and_streamed
def test_a_model_that_writes_nothing_is_an_error(stream: bool) -> None:
    with (
        house([Simulator("deepseek", script=script(text="", reasoning="Hm."))]) as running,
        client_of(running) as client,
    ):
        with pytest.raises(openai.APIStatusError, match="no summary") as caught:
            client.responses.create(model=model_of("deepseek"), input=[*HISTORY, TRIGGER], stream=stream)
        assert caught.value.status_code == 502


@whole_and_streamed
def test_a_provider_that_refuses_is_told_as_its_error(stream: bool) -> None:
    fault = Fault("status", status=429)
    upstream = Simulator("deepseek", script=script(), fault=fault)
    with house([upstream]) as running, client_of(running) as client, pytest.raises(openai.RateLimitError):
        client.responses.create(model=model_of("deepseek"), input=[*HISTORY, TRIGGER], stream=stream)


def test_a_trigger_within_the_input_and_one_for_a_chat_reply_are_refused() -> None:
    with compacting("anthropic") as running, client_of(running) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            client.responses.create(model=model_of("anthropic"), input=[TRIGGER, HISTORY[0]])
        assert caught.value.param == "input[0]"
        body = {"model": model_of("anthropic"), "input": [HISTORY[0], TRIGGER]}
        found = httpx.post(f"{running.address}/v1/chat/completions", json=body, timeout=PATIENCE)
        assert found.status_code == 400
        assert running.arrived("anthropic") == []


@pytest.mark.parametrize("status", [200, 500], ids=["ends well", "fails"])
def test_a_stream_says_that_it_is_alive_while_the_model_summarizes_and_fails_loudly(status: int) -> None:
    upstream = Pondering("deepseek", after=0, status=status)
    body = {"model": "deepseek/m", "input": [*HISTORY, TRIGGER], "stream": True}
    with (
        house([upstream], keep_alive_seconds=0.05) as running,
        Caller(running.address, "/v1/responses", body) as caller,
    ):
        caller.hear(b": keep-alive")
        upstream.go.set()
        caller.hear(b"event: response.completed" if status == 200 else b"event: response.failed")


@whole_and_streamed
def test_a_client_that_leaves_ends_the_summary(stream: bool) -> None:
    upstream = Watched("deepseek", silent_first=True)
    body = {"model": "deepseek/m", "input": [*HISTORY, TRIGGER], "stream": stream}
    with house([upstream]) as running:
        with Caller(running.address, "/v1/responses", body):
            assert upstream.asked.wait(PATIENCE)
        assert upstream.over.wait(PATIENCE)
        [row] = running.log.wait(lambda row: True)
        assert row.outcome == "cancelled"


@pytest.mark.parametrize("field", ["previous_response_id", "conversation"])
@pytest.mark.parametrize("path", ["", "/compact"])
def test_a_conversation_that_only_its_provider_knows_is_not_summarized_without_it(path: str, field: str) -> None:
    with compacting("deepseek") as running:
        body = {"model": model_of("deepseek"), "input": [TRIGGER], field: "of_a_provider"}
        found = httpx.post(f"{running.address}/v1/responses{path}", json=body, timeout=PATIENCE)
        assert (found.status_code, found.json()["error"]["param"]) == (400, field)
        assert running.arrived("deepseek") == []


@pytest.mark.parametrize(
    ("path", "given"), [("/compact", []), ("/compact", ""), ("/compact", [TRIGGER]), ("", [TRIGGER])]
)
def test_an_empty_conversation_is_not_compacted(path: str, given: Any) -> None:
    with compacting("deepseek") as running:
        body = {"model": model_of("deepseek"), "input": given}
        found = httpx.post(f"{running.address}/v1/responses{path}", json=body, timeout=PATIENCE)
        assert (found.status_code, found.json()["error"]["param"]) == (400, "input")
        assert running.arrived("deepseek") == []


@pytest.mark.parametrize("path", ["", "/compact"])
def test_a_model_that_nobody_serves_is_told_and_logged(path: str) -> None:
    with compacting("deepseek") as running:
        body = {"model": "nobody/m", "input": [*HISTORY, TRIGGER]}
        found = httpx.post(f"{running.address}/v1/responses{path}", json=body, timeout=PATIENCE)
        assert (found.status_code, found.json()["error"]["code"]) == (404, "unknown_model")
        [row] = running.log.wait(lambda row: True)
        assert row.outcome == "error"


def test_summaries_count_on_the_limits_of_their_key(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [Simulator("anthropic", script=script())]) as running:
        key = running.key(requests_per_minute=1)
        body = {"model": model_of("anthropic"), "input": [*HISTORY, TRIGGER]}
        headers = {"authorization": f"Bearer {key}"}
        answers = [
            httpx.post(f"{running.address}/v1/responses{path}", json=body, headers=headers, timeout=PATIENCE)
            for path in ("", "", "/compact")
        ]
        assert [one.status_code for one in answers] == [200, 429, 429]


def test_an_item_of_bardos_is_read_in_counts_and_batches(tmp_path: Path) -> None:
    with compacting("deepseek") as running, client_of(running) as client:
        item = ask(client, stream=False, model=model_of("deepseek"), input=[*HISTORY, TRIGGER]).output[0]
        sent = item.model_dump(exclude_none=True)
        count = client.responses.input_tokens.count
        without = count(model=model_of("deepseek"), input=[HISTORY[0]]).input_tokens
        assert count(model=model_of("deepseek"), input=[HISTORY[0], sent]).input_tokens > without + 10
        sealer = new_sealer()
        own = sealed_item(Summary(SUMMARY, "p/m"), partial(sealer.seal, purpose=PURPOSE, owner="t"), "cmp_bardo_1")
        batch = SimpleNamespace(endpoint="/v1/responses", headers=(), tenant="t")
        read = read_item(json.dumps({"model": "m", "input": [own]}).encode(), cast("Any", batch), sealer)
        assert isinstance(read, GenerateItem)
        assert SUMMARY in read.request.messages[0].text
        with pytest.raises(InvalidRequest):
            read_item(
                json.dumps({"model": "m", "input": [own]}).encode(),
                cast("Any", SimpleNamespace(endpoint="/v1/responses", headers=(), tenant="other")),
                sealer,
            )
        with pytest.raises(Unsupported):
            read_item(json.dumps({"model": "m", "input": [HISTORY[0], TRIGGER]}).encode(), cast("Any", batch), sealer)
