"""Responses that the gateway keeps, over providers that keep none: OpenAI's own library goes on from them, shows and deletes them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import openai
import pytest

from bardo.adapters.config.storage import ResponseSettings
from bardo.adapters.stores.response_store import ResponseStore, open_responses
from bardo.adapters.stores.state import Bounds, KeyedStore, MemoryStore, SqliteStore
from bardo.dialects.openai_responses.stored import StoredResponse
from bardo.simulators import Script, ToolCall, Turn
from support.any_model import Simulator
from support.gateway import House, Remembering, house, model_of
from support.keyed_gateway import keyed_gateway
from support.sdk import openai_client
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.test_sdk_tool_loops import sealed_in

PROVIDERS = ("anthropic", "gemini", "openai_responses", "openrouter", "deepseek", "mistral")
TOOL: dict[str, Any] = {
    "type": "function",
    "name": "weather",
    "strict": False,
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
SCRIPT = Script(
    (
        Turn(reasoning="I need the weather.", tool_calls=(ToolCall("weather", {"city": "Paris"}),)),
        Turn(reasoning="I know it.", text="It is sunny."),
        Turn(text="You are welcome."),
    )
)


@contextmanager
def keeping(*providers: str, store: KeyedStore | None = None, **options: Any) -> Iterator[House]:
    """Run a gateway that keeps responses, over these providers."""
    simulators = [Remembering(name, script=SCRIPT) for name in providers]
    responses = ResponseStore(store or MemoryStore(), **options)
    with closing(responses), house(simulators, responses=responses) as running:
        yield running


@contextmanager
def client_of(running: House, key: str = "of-the-client") -> Iterator[Any]:
    """Open OpenAI's client with a key. Its types know no dictionaries as items."""
    with openai_client(running.address).with_options(api_key=key) as client:
        yield client


def without(value: Any, names: set[str]) -> Any:
    """Return a JSON value without fields of these names: the library's own, in replies that it has streamed."""
    if isinstance(value, list):
        return [without(one, names) for one in value]
    if isinstance(value, dict):
        return {name: without(one, names) for name, one in value.items() if name not in names}
    return value


def ask(client: Any, *, stream: bool, **asked: Any) -> Any:
    if not stream:
        return client.responses.create(**asked)
    with client.responses.stream(**asked) as events:
        return events.get_final_response()


@pytest.mark.parametrize("provider", PROVIDERS)
@whole_and_streamed
def test_a_tool_loop_with_thinking_goes_on_from_the_id_of_the_reply_before(provider: str, stream: bool) -> None:
    with keeping(provider) as running, client_of(running) as client:
        asked: dict[str, Any] = {"model": model_of(provider), "tools": [TOOL], "reasoning": {"effort": "low"}}
        first = ask(client, stream=stream, input="The weather in Paris?", **asked)
        sealed = sealed_in(running.sent(provider))
        call = next(item for item in first.output if item.type == "function_call")
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
        second = ask(client, stream=stream, input=[result], previous_response_id=first.id, **asked)
        body = running.arrived(provider)[-1].raw
        assert "It is sunny." in second.output_text
        assert b"The weather in Paris?" in body
        assert b"sunny" in body
        assert b"previous_response_id" not in body
        assert set(sealed[-1:]) <= set(sealed_in(body)), "what signs the thinking before the call is sent back"
        assert second.previous_response_id == first.id
        third = ask(client, stream=stream, input="Thanks!", previous_response_id=second.id, **asked)
        assert third.output_text.endswith("You are welcome.")
        body = running.arrived(provider)[-1].raw
        assert body.index(b"The weather in Paris?") < body.index(b"It is sunny.") < body.index(b"Thanks!")


@whole_and_streamed
def test_a_response_is_shown_as_its_client_got_it_and_deleted(stream: bool) -> None:
    with keeping("anthropic") as running, client_of(running) as client:
        made = ask(client, stream=stream, model=model_of("anthropic"), input="Hello", tools=[TOOL])
        assert made.id.startswith("resp_")
        shown = client.responses.retrieve(made.id)
        parsed = {"parsed_arguments", "parsed"}
        output, again = (without(one.model_dump(mode="json")["output"], parsed) for one in (made, shown))
        assert again == output
        assert (shown.id, shown.status, shown.model) == (made.id, "completed", made.model)
        assert shown.model_dump()["store"] is True
        client.responses.delete(made.id)
        with pytest.raises(openai.NotFoundError, match="not found"):
            client.responses.retrieve(made.id)
        with pytest.raises(openai.NotFoundError):
            client.responses.delete(made.id)


@pytest.mark.parametrize("provider", PROVIDERS)
@whole_and_streamed
def test_a_conversation_that_began_empty_holds_what_is_said_in_it(provider: str, stream: bool) -> None:
    with keeping(provider) as running, client_of(running) as client:
        conversation = client.conversations.create().id
        asked: dict[str, Any] = {"model": model_of(provider), "conversation": conversation}
        first = ask(client, stream=stream, input="Hello", reasoning={"effort": "low"}, **asked)
        assert first.status == "completed"
        assert b"conv" not in running.arrived(provider)[-1].raw
        ask(client, stream=stream, input="Thanks!", **asked)
        body = running.arrived(provider)[-1].raw
        assert body.index(b"Hello") < body.index(b"Thanks!")
        for item in list(client.conversations.items.list(conversation)):
            client.conversations.items.delete(item.id, conversation_id=conversation)
        assert ask(client, stream=stream, input="Again", **asked).status == "completed"
        assert b"Thanks!" not in running.arrived(provider)[-1].raw


def test_the_items_that_a_response_was_made_from_are_listed_in_pages() -> None:
    with keeping("anthropic") as running, client_of(running) as client:
        first = client.responses.create(model=model_of("anthropic"), input="One", tools=[TOOL])
        call = next(item for item in first.output if item.type == "function_call")
        result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
        second = client.responses.create(
            model=model_of("anthropic"), input=[result], tools=[TOOL], previous_response_id=first.id
        )
        listed = list(client.responses.input_items.list(second.id, order="asc", limit=1))
        kinds = [item.type for item in listed]
        assert kinds == ["message", *(item.type for item in first.output), "function_call_output"]
        assert len({item.id for item in listed}) == len(listed)
        newest = client.responses.input_items.list(second.id, limit=1)
        assert [item.type for item in newest.data] == ["function_call_output"]
        with pytest.raises(openai.BadRequestError, match="limit"):
            client.responses.input_items.list(second.id, limit=1000)


def test_items_may_be_referred_to_by_their_ids() -> None:
    with keeping("anthropic") as running, client_of(running) as client:
        first = client.responses.create(model=model_of("anthropic"), input="The weather in Paris?", tools=[TOOL])
        call = next(item for item in first.output if item.type == "function_call")
        items: Any = [
            {"role": "user", "content": "The weather in Paris?"},
            *({"type": "item_reference", "id": item.id} for item in first.output),
            {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"},
        ]
        second = client.responses.create(model=model_of("anthropic"), input=items, tools=[TOOL])
        assert second.output_text == "It is sunny."
        assert b'"tool_use"' in running.arrived("anthropic")[-1].raw
        lost: Any = [{"type": "item_reference", "id": "msg_bardo_0_0"}]
        with pytest.raises(openai.BadRequestError, match="not found"):
            client.responses.create(model=model_of("anthropic"), input=lost)


def test_a_reference_to_what_the_history_has_already_is_not_sent_twice() -> None:
    with keeping("anthropic") as running, client_of(running) as client:
        first = client.responses.create(model=model_of("anthropic"), input="The weather in Paris?", tools=[TOOL])
        call = next(item for item in first.output if item.type == "function_call")
        items: Any = [
            {"type": "item_reference", "id": call.id},
            {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"},
        ]
        second = client.responses.create(
            model=model_of("anthropic"), input=items, tools=[TOOL], previous_response_id=first.id
        )
        assert running.arrived("anthropic")[-1].raw.count(b'"tool_use"') == 1
        kinds = [item.type for item in client.responses.input_items.list(second.id, order="asc").data]
        assert kinds == ["message", *(item.type for item in first.output), "function_call_output"]


def test_what_is_asked_of_bardo_holds_for_a_request_that_goes_on_from_another() -> None:
    with keeping("anthropic") as running, client_of(running) as client:
        asked: dict[str, Any] = {"model": model_of("anthropic"), "extra_body": {"bardo": {"include": ["receipt"]}}}
        first = client.responses.create(input="Hi", **asked)
        second = client.responses.create(input="Go on", previous_response_id=first.id, **asked)
        assert "receipt" in first.model_extra["bardo"]
        assert "receipt" in second.model_extra["bardo"]


def test_nobody_reads_or_goes_on_from_what_another_keeps() -> None:
    with keeping("anthropic") as running, client_of(running) as client, client_of(running, "another") as other:
        made = client.responses.create(model=model_of("anthropic"), input="Hello", tools=[TOOL])
        for act in (other.responses.retrieve, other.responses.delete, other.responses.input_items.list):
            with pytest.raises(openai.NotFoundError):
                act(made.id)
        with pytest.raises(openai.BadRequestError) as caught:
            other.responses.create(model=model_of("anthropic"), input="Hi", previous_response_id=made.id)
        assert caught.value.code == "previous_response_not_found"
        assert caught.value.param == "previous_response_id"
        assert client.responses.retrieve(made.id).id == made.id


def test_what_is_not_to_be_kept_is_not() -> None:
    with keeping("anthropic") as running, client_of(running) as client:
        first = client.responses.create(model=model_of("anthropic"), input="Hello", tools=[TOOL], store=False)
        assert first.model_dump()["store"] is False
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(first.id)


def test_a_request_that_goes_on_may_itself_be_kept_from_the_store() -> None:
    with keeping("anthropic") as running, client_of(running) as client:
        first = client.responses.create(model=model_of("anthropic"), input="Hello")
        second = client.responses.create(
            model=model_of("anthropic"), input="More", previous_response_id=first.id, store=False
        )
        assert b"Hello" in running.arrived("anthropic")[-1].raw
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(second.id)


def test_a_response_whose_beginning_is_gone_is_not_gone_on_from() -> None:
    with keeping("anthropic") as running, client_of(running) as client:
        first = client.responses.create(model=model_of("anthropic"), input="Hello")
        second = client.responses.create(model=model_of("anthropic"), input="More", previous_response_id=first.id)
        client.responses.delete(first.id)
        with pytest.raises(openai.BadRequestError) as caught:
            client.responses.create(model=model_of("anthropic"), input="More", previous_response_id=second.id)
        assert caught.value.code == "previous_response_not_found"
        assert client.responses.retrieve(second.id).id == second.id


def test_responses_are_kept_for_their_time_and_no_longer() -> None:
    now = [1000.0]
    store = MemoryStore(Bounds(seconds=60))
    with keeping("anthropic", store=store, clock=lambda: now[0]) as running, client_of(running) as client:
        made = client.responses.create(model=model_of("anthropic"), input="Hello")
        now[0] += 59
        assert client.responses.retrieve(made.id).id == made.id
        now[0] += 1
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(made.id)


@whole_and_streamed
def test_a_response_that_is_too_large_to_be_kept_says_so(stream: bool) -> None:
    store = MemoryStore(Bounds(tenant_bytes=100))
    with keeping("anthropic", store=store) as running, client_of(running) as client:
        made = ask(client, stream=stream, model=model_of("anthropic"), input="Hello", tools=[TOOL])
        assert made.model_dump()["store"] is False
        assert store.totals() == (0, 0)


def test_a_file_outlives_the_gateway(tmp_path: Path) -> None:
    with keeping("anthropic", store=SqliteStore(tmp_path / "r.db")) as running, client_of(running) as client:
        made = client.responses.create(model=model_of("anthropic"), input="Hello")
    with keeping("gemini", store=SqliteStore(tmp_path / "r.db")) as running, client_of(running) as client:
        assert client.responses.retrieve(made.id).id == made.id
        client.responses.create(model=model_of("gemini"), input="More", previous_response_id=made.id)
        assert b"Hello" in running.arrived("gemini")[-1].raw


@whole_and_streamed
def test_a_provider_that_keeps_responses_itself_is_told_to_keep_none(stream: bool) -> None:
    with keeping("openai_responses") as running, client_of(running) as client:
        asked: dict[str, Any] = {"model": model_of("openai_responses"), "include": ["message.output_text.logprobs"]}
        ask(client, stream=stream, input="Hello", **asked)
        body = running.last("openai_responses")
        assert body["store"] is False
        assert "reasoning.encrypted_content" in body["include"]


def test_a_conversation_gathers_what_is_said_in_it() -> None:
    with keeping("anthropic") as running, client_of(running) as client:
        made = client.conversations.create(
            metadata={"topic": "x"}, items=[{"type": "message", "role": "user", "content": "I am Ada."}]
        )
        first = client.responses.create(
            model=model_of("anthropic"), input="The weather in Paris?", tools=[TOOL], conversation=made.id
        )
        assert first.conversation is not None
        assert first.conversation.id == made.id
        call = next(item for item in first.output if item.type == "function_call")
        result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
        client.responses.create(
            model=model_of("anthropic"), input=[result], tools=[TOOL], conversation={"id": made.id}, store=False
        )
        body = running.arrived("anthropic")[-1].raw
        assert body.index(b"I am Ada.") < body.index(b"The weather in Paris?") < body.index(b"sunny")
        items = list(client.conversations.items.list(made.id, order="asc", limit=2))
        assert [item.type for item in items] == [
            "message",
            "message",
            *(item.type for item in first.output),
            "function_call_output",
            *("reasoning", "message"),
        ]


def test_a_conversation_is_shown_changed_and_deleted_with_its_items() -> None:
    with keeping("anthropic") as running, client_of(running) as client:
        made = client.conversations.create()
        assert client.conversations.update(made.id, metadata={"a": "b"}).metadata == {"a": "b"}
        assert client.conversations.retrieve(made.id).metadata == {"a": "b"}
        added = client.conversations.items.create(
            made.id, items=[{"type": "message", "role": "user", "content": "One"}]
        )
        item = added.data[0]
        assert item.id is not None
        assert client.conversations.items.retrieve(item.id, conversation_id=made.id).id == item.id
        client.conversations.items.delete(item.id, conversation_id=made.id)
        assert client.conversations.items.list(made.id).data == []
        assert client.conversations.delete(made.id).deleted
        with pytest.raises(openai.NotFoundError):
            client.conversations.retrieve(made.id)
        with pytest.raises(openai.NotFoundError):
            client.responses.create(model=model_of("anthropic"), input="Hi", conversation=made.id)


def test_what_only_its_provider_keeps_goes_on_as_it_came() -> None:
    with keeping("openai_responses", "anthropic") as running, client_of(running) as client:
        asked: dict[str, Any] = {"input": "Hi", "previous_response_id": "resp_0123"}
        with pytest.raises(openai.BadRequestError, match="resp_0123"):
            client.responses.create(model=model_of("openai_responses"), **asked)
        assert running.last("openai_responses")["previous_response_id"] == "resp_0123"
        with pytest.raises(openai.BadRequestError, match="previous_response_id"):
            client.responses.create(model=model_of("anthropic"), **asked)
        assert not running.arrived("anthropic")


def test_without_a_store_nothing_is_found_and_the_fix_is_named() -> None:
    with house([Remembering("anthropic", script=SCRIPT)]) as running, client_of(running) as client:
        made = client.responses.create(model=model_of("anthropic"), input="Hello")
        for act in (client.responses.retrieve, client.responses.delete, client.conversations.retrieve):
            with pytest.raises(openai.NotFoundError, match=r"\[responses\]"):
                act(made.id)
        with pytest.raises(openai.BadRequestError):
            client.responses.create(model=model_of("anthropic"), input="Hi", previous_response_id=made.id)


def test_a_previous_response_and_a_conversation_together_are_refused() -> None:
    with keeping("anthropic") as running, client_of(running) as client, pytest.raises(openai.BadRequestError):
        client.responses.create(
            model=model_of("anthropic"), input="Hi", previous_response_id="resp_1", conversation="conv_1"
        )


def test_what_bardo_keeps_is_not_gone_on_from_in_the_background() -> None:
    with keeping("openai_responses") as running, client_of(running) as client:
        made = client.responses.create(model=model_of("openai_responses"), input="Hello")
        with pytest.raises(openai.BadRequestError, match="leave out background") as caught:
            client.responses.create(
                model=model_of("openai_responses"), input="More", previous_response_id=made.id, background=True
            )
        assert caught.value.param == "previous_response_id"
        assert len(running.arrived("openai_responses")) == 1


def test_a_gateway_of_which_nothing_is_said_keeps_the_responses_of_each_key_in_memory(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [Remembering("anthropic", script=SCRIPT)]) as running:
        mine, other = (openai_client(running.address).with_options(api_key=running.key()) for _ in range(2))
        with mine, other:
            asked: dict[str, Any] = {"model": model_of("anthropic"), "tools": [TOOL]}
            first = mine.responses.create(input="The weather in Paris?", **asked)
            call = next(item for item in first.output if item.type == "function_call")
            result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
            for name in (first.id, "resp_bardo_" + "0" * 32):
                with pytest.raises(openai.BadRequestError, match="not found"):
                    other.responses.create(input=[result], previous_response_id=name, **asked)
                with pytest.raises(openai.NotFoundError):
                    other.responses.retrieve(name)
                with pytest.raises(openai.NotFoundError):
                    other.responses.delete(name)
            second = mine.responses.create(input=[result], previous_response_id=first.id, **asked)
            assert "It is sunny." in second.output_text
            assert mine.responses.retrieve(first.id).output[-1].id == call.id
            mine.responses.delete(first.id)
            with pytest.raises(openai.BadRequestError, match="no longer kept"):
                mine.responses.create(input="Again", previous_response_id=second.id, **asked)


@pytest.mark.parametrize("field", ["previous_response_id", "conversation"])
@pytest.mark.parametrize("made", ["bardo", "elsewhere"])
def test_where_nothing_is_kept_the_refusal_names_the_setting(field: str, made: str) -> None:
    """What bardo made is at no provider, not even at one that keeps responses; what it did not make may be."""
    name = f"{'resp' if field == 'previous_response_id' else 'conv'}_{'bardo_' if made == 'bardo' else ''}{'0' * 32}"
    provider = "openai_responses" if made == "bardo" else "mistral"
    with house([Simulator(provider)]) as running, client_of(running) as client:
        with pytest.raises(openai.APIStatusError) as caught:
            client.responses.create(model=model_of(provider), input="Hi", **{field: name})
        assert caught.value.status_code == (404 if (field, made) == ("conversation", "bardo") else 400)
        assert "[responses] in bardo.toml" in str(caught.value)
        assert caught.value.param == (None if (field, made) == ("conversation", "bardo") else field)
        assert running.arrived(provider) == []


def test_what_is_kept_by_default_is_bounded_for_all_and_for_one_tenant() -> None:
    settings = ResponseSettings()
    assert settings.store == "memory"
    assert settings.max_bytes_per_tenant < settings.max_bytes <= 256 * 1024 * 1024
    store = open_responses(msgspec.structs.replace(settings, max_bytes_per_tenant=4000, max_entries_per_tenant=6))
    assert store is not None

    async def run() -> list[bool]:
        with closing(store):
            for number in range(9):
                assert await store.put("noisy", stored_of(number))
            await store.put("quiet", stored_of(100))
            assert not await store.put("noisy", stored_of(200, "x" * 5000))
            asked = [("noisy", 0), ("noisy", 8), ("quiet", 100), ("noisy", 100)]
            return [bool(await store.responses(tenant, [f"resp_{number}"])) for tenant, number in asked]

    def stored_of(number: int, text: str = "Hi") -> StoredResponse:
        return StoredResponse(
            response={"id": f"resp_{number}", "output": []}, input=[{"id": f"m{number}", "text": text}]
        )

    assert asyncio.run(run()) == [False, True, True, False]
