"""Restoring what a client dropped: by what was said, by calls, in order, and for the right reader only."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.adapters.stores.state import MemoryStore
from bardo.catalog.load import builtin
from bardo.catalog.replay import Reader, builtin_replay
from bardo.reasoning.replay import (
    Recalled,
    RestoredRequest,
    decode_kept,
    encode_kept,
    keys_in,
    remember,
    restore,
    turns_of,
)
from bardo.values.blocks import (
    Block,
    Carried,
    Opaque,
    Origin,
    ReasoningBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.errors import BrokenStream
from bardo.values.request import Message, ReasoningPolicy, Request
from bardo.values.response import Response

CLAUDE = "anthropic-claude-v1"
UNIQUE = "toolu_01Xq7Kd92LmPvR4sT8wYzB3n"
QUESTION = Message("user", (TextBlock("What is the weather?"),))
RESULT = Message("user", (ToolResultBlock(call_id="c1", content=(TextBlock("sunny"),)),))


def reader(preset: str = "anthropic", model: str = "claude-opus-4-5") -> Reader:
    row = builtin().provider(preset)
    assert row is not None
    return builtin_replay().reader(preset, row, model)


def thought(text: str, signature: str = "", form: str = CLAUDE) -> ReasoningBlock:
    opaque = (Opaque("signature", signature, form),) if signature else ()
    return ReasoningBlock(text=text, format=form, opaque=opaque)


def call(identity: str = "c1", city: str = "Paris", signature: str = "") -> ToolCallBlock:
    opaque = (Opaque("signature", signature, "google-gemini-v1"),) if signature else ()
    return ToolCallBlock(id=identity, name="weather", arguments=f'{{"city":"{city}"}}', opaque=opaque)


def numbered(block: ToolCallBlock) -> ToolCallBlock:
    """Return a call as a Gemini client sends it: without an id, so that its decoder made one up."""
    return msgspec.structs.replace(block, carried=Carried("gemini", {"functionCall": {"id": None}}))


def asked(*messages: Message) -> Request:
    return Request(model="m", messages=messages)


def recalled(*replies: tuple[Request, tuple[ReplyBlock, ...], Reader]) -> Recalled:
    """Return what a store would find after these replies."""
    store = MemoryStore()
    keys: list[str] = []
    for request, blocks, maker in replies:
        for memory in remember(Response(blocks=blocks), request, request, maker):
            store.put("", memory.keys, encode_kept(memory.kept), now=0)
            keys += memory.keys
    raw = store.find("", keys, now=0)
    kept = {value: decode_kept(value) for value in set(raw.values())}
    return Recalled(found={key: one for key, value in raw.items() if (one := kept[value]) is not None})


def back(
    blocks: tuple[ReplyBlock, ...], client: tuple[Block, ...], *, maker: Reader, to: Reader | None = None
) -> RestoredRequest:
    """Return the request with `client`'s version of a reply of `blocks`, restored."""
    known = recalled((asked(QUESTION), blocks, maker))
    request = asked(QUESTION, Message("assistant", client), RESULT)
    assert set(keys_in(turns_of(request))) & set(known.found), "it is found by what the client kept"
    return restore(request, to or maker, known)


def test_thinking_before_a_call_comes_back_as_it_was() -> None:
    blocks = (thought("Hm.", "sig"), call())
    found = back(blocks, (call(),), maker=reader())
    assert found.request.messages[1].blocks == blocks
    assert found.degraded == ()
    assert found.altered


def test_thinking_between_texts_and_calls_stands_where_it_stood() -> None:
    blocks = (
        thought("A", "1"),
        TextBlock("Let me "),
        thought("B", "2"),
        TextBlock("see."),
        call("c1"),
        thought("C", "3"),
        call("c2"),
    )
    found = back(blocks, (TextBlock("Let me see."), call("c1"), call("c2")), maker=reader())
    assert found.request.messages[1].blocks == blocks


SEARCH = UnknownBlock("anthropic_messages", {"type": "server_tool_use", "id": "srv_1", "name": "web_search"})
FOUND = UnknownBlock("anthropic_messages", {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []})
SEARCHED = (thought("A", "1"), SEARCH, FOUND, thought("B", "2"), call(UNIQUE))


def test_blocks_of_a_providers_own_tools_come_back_between_the_thinking() -> None:
    found = back(SEARCHED, (call(UNIQUE),), maker=reader())
    assert found.request.messages[1].blocks == SEARCHED


def test_blocks_of_a_providers_own_tools_keep_their_place_where_the_client_has_them() -> None:
    assert back(SEARCHED, (SEARCH, FOUND, call(UNIQUE)), maker=reader()).request.messages[1].blocks == SEARCHED
    whole = back(SEARCHED, SEARCHED, maker=reader())
    assert not whole.altered


def test_blocks_that_a_client_of_the_dialect_left_out_stay_out() -> None:
    known = recalled((asked(QUESTION), SEARCHED, reader()))
    request = msgspec.structs.replace(
        asked(QUESTION, Message("assistant", (thought("A", "1"), call(UNIQUE))), RESULT), dialect="anthropic_messages"
    )
    assert restore(request, reader(), known).request.messages[1].blocks == (
        thought("A", "1"),
        thought("B", "2"),
        call(UNIQUE),
    )


def test_thinking_that_a_client_moved_is_put_back_where_it_was() -> None:
    blocks = (thought("A", "1"), call("c1"), thought("B", "2"), call("c2"))
    found = back(blocks, (blocks[0], blocks[2], blocks[1], blocks[3]), maker=reader())
    assert found.request.messages[1].blocks == blocks


def test_a_clients_own_redacted_thinking_is_never_overwritten() -> None:
    own = ReasoningBlock(format=CLAUDE, opaque=(Opaque("redacted", "the client's own", CLAUDE),))
    found = back((thought("Hm.", "sig"), call(UNIQUE)), (own, call(UNIQUE)), maker=reader())
    assert found.request.messages[1].blocks == (own, call(UNIQUE))
    assert not found.altered


@pytest.mark.parametrize("preset", ["deepseek", "moonshot", "openrouter"])
def test_a_clients_own_words_of_thinking_are_never_overwritten(preset: str) -> None:
    own = ReasoningBlock(text="Mine.", format="reasoning_content")
    blocks = (thought("Hm.", form="reasoning_content"), call(UNIQUE))
    found = back(blocks, (own, call(UNIQUE)), maker=reader(preset, "m"))
    assert found.request.messages[1].blocks == (own, call(UNIQUE))


@pytest.mark.parametrize(("preset", "model"), [("anthropic", "claude-sonnet-4-6"), ("openai", "gpt-5")])
def test_a_tool_loop_that_goes_on_without_its_thinking_says_so_once(preset: str, model: str) -> None:
    turn = (Message("assistant", (call(UNIQUE),)), RESULT)
    thinking = ReasoningPolicy(mode="effort", effort="low")
    request = msgspec.structs.replace(asked(QUESTION, *turn, *turn), reasoning=thinking)
    assert [told.what for told in restore(request, reader(preset, model)).degraded] == ["reasoning"]
    later = msgspec.structs.replace(request, messages=(*request.messages, QUESTION))
    assert restore(later, reader(preset, model)).degraded == ()
    off = msgspec.structs.replace(request, reasoning=ReasoningPolicy(mode="off"))
    assert restore(off, reader(preset, model)).degraded == ()


@pytest.mark.parametrize(
    ("preset", "model", "kept"),
    [
        ("anthropic", "claude-opus-4-5", False),
        ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", False),
        ("openrouter", "anthropic/claude-sonnet-4.5", False),
        ("bedrock", "us.deepseek.r1-v1:0", True),
        ("openrouter", "deepseek/deepseek-v4", True),
        ("deepseek", "deepseek-v4-pro", True),
        ("vllm", "qwen3", True),
    ],
)
def test_unsigned_thinking_goes_only_where_it_is_taken(preset: str, model: str, kept: bool) -> None:
    own = ReasoningBlock(text="Hm.", format="thinking")
    request = asked(QUESTION, Message("assistant", (own, call(UNIQUE))), RESULT)
    found = restore(request, reader(preset, model))
    assert found.request.messages[1].blocks == ((own, call(UNIQUE)) if kept else (call(UNIQUE),))
    assert [told.what for told in found.degraded] == ([] if kept else ["reasoning"])
    assert found.altered is not kept


def test_signatures_of_calls_and_of_empty_texts_come_back() -> None:
    signed = TextBlock("", (Opaque("signature", "t", "google-gemini-v1"),))
    blocks = (call("c1", signature="g"), call("c2"), signed)
    maker = reader("gemini", "gemini-3-pro")
    found = back(blocks, (call("c1"), call("c2")), maker=maker)
    assert found.request.messages[1].blocks == blocks


def test_calls_of_a_client_whose_dialect_has_no_ids_are_matched_by_their_order() -> None:
    blocks = (call("x1", signature="g"), call("x2", "Rome"))
    client = (numbered(call("call_0")), numbered(call("call_1", "Rome")))
    found = back(blocks, client, maker=reader("gemini", "gemini-3-pro"))
    first, second = found.request.messages[1].blocks
    assert isinstance(first, ToolCallBlock)
    assert (first.id, first.opaque[0].data) == ("call_0", "g")
    assert isinstance(second, ToolCallBlock)
    assert second.opaque == ()


def test_a_text_the_client_changed_keeps_its_words_and_loses_its_state() -> None:
    signed = TextBlock("It is sunny.", (Opaque("signature", "t", "google-gemini-v1"),))
    changed = TextBlock("It rains.")
    reply = (call(UNIQUE, signature="g"), signed)
    found = back(reply, (changed, call(UNIQUE)), maker=reader("gemini", "gemini-3-pro"))
    assert changed in found.request.messages[1].blocks


def test_a_question_that_was_shortened_does_not_hide_the_call() -> None:
    known = recalled((asked(QUESTION), (thought("Hm.", "sig"), call(UNIQUE)), reader()))
    short = Message("user", (TextBlock("Weather?"),))
    found = restore(asked(short, Message("assistant", (call(UNIQUE),)), RESULT), reader(), known)
    assert found.request.messages[1].blocks[0] == thought("Hm.", "sig")


def test_the_same_ids_in_two_conversations_are_told_apart() -> None:
    other = Message("user", (TextBlock("And elsewhere?"),))
    maker = reader("moonshot", "kimi-k3")
    form = "reasoning_content"
    known = recalled(
        (asked(QUESTION), (thought("of one", form=form), call("weather:0")), maker),
        (asked(other), (thought("of two", form=form), call("weather:0")), maker),
    )
    for question, text in ((QUESTION, "of one"), (other, "of two")):
        found = restore(asked(question, Message("assistant", (call("weather:0"),)), RESULT), maker, known)
        assert found.request.messages[1].blocks[0] == thought(text, form=form)


def test_one_reply_is_given_back_once() -> None:
    known = recalled((asked(QUESTION), (thought("Hm.", "sig"), call()), reader()))
    twice = asked(QUESTION, Message("assistant", (call(),)), RESULT, Message("assistant", (call(),)), RESULT)
    found = restore(twice, reader(), known)
    assert [len(message.blocks) for message in found.request.messages if message.role == "assistant"] == [2, 1]


def test_what_a_client_kept_stays_as_it_is() -> None:
    blocks = (thought("Hm.", "sig"), call())
    found = back(blocks, blocks, maker=reader())
    assert not found.altered


def test_text_without_its_signature_gives_way_to_the_signed_one() -> None:
    blocks = (thought("Hm.", "sig"), call())
    found = back(blocks, (ReasoningBlock(text="Hm.", format="reasoning_content"), call()), maker=reader())
    assert found.request.messages[1].blocks == blocks


def test_state_of_one_model_is_not_restored_for_another_that_cannot_read_it() -> None:
    encrypted = ReasoningBlock(format="openai-responses-v1", opaque=(Opaque("encrypted", "e", "openai-responses-v1"),))
    found = back((encrypted, call()), (call(),), maker=reader("openai", "gpt-5"), to=reader("openai", "gpt-6-sol"))
    assert found.request.messages[1].blocks == (call(),)
    assert [one.what for one in found.degraded] == ["reasoning"]
    assert "openai/gpt-5" in found.degraded[0].asked


@pytest.mark.parametrize("stamped", [True, False], ids=["stamped", "looked up"])
def test_state_a_client_brings_is_known_by_its_stamp_or_its_bytes(stamped: bool) -> None:
    maker = reader("xai-responses", "grok-4.5")
    own = Opaque("encrypted", "e", "openai-responses-v1")
    known = recalled((asked(QUESTION), (ReasoningBlock(opaque=(own,)), call()), maker))
    brought = msgspec.structs.replace(own, origin=maker.origin()) if stamped else own
    request = asked(QUESTION, Message("assistant", (ReasoningBlock(opaque=(brought,)), call())), RESULT)
    found = restore(request, reader("openai", "gpt-5"), Recalled() if stamped else known)
    assert found.request.messages[1].blocks == (call(),)
    assert found.degraded


def test_an_item_loses_its_id_with_the_reasoning_it_needs() -> None:
    own = Opaque("encrypted", "e", "openai-responses-v1", reader("openai", "gpt-5").origin())
    named = msgspec.structs.replace(call(), carried=Carried("openai_responses", {"id": "fc_1", "status": "completed"}))
    request = asked(QUESTION, Message("assistant", (ReasoningBlock(opaque=(own,)), named)), RESULT)
    kept = restore(request, reader("openai", "gpt-6-sol")).request.messages[1].blocks
    assert [block.carried for block in kept if isinstance(block, ToolCallBlock)] == [
        Carried("openai_responses", {"status": "completed"})
    ]


def test_an_item_loses_its_id_with_thinking_that_nobody_signed() -> None:
    named = msgspec.structs.replace(call(), carried=Carried("openai_responses", {"id": "fc_1", "status": "completed"}))
    request = asked(QUESTION, Message("assistant", (ReasoningBlock(text="Hm."), named)), RESULT)
    assert restore(request, reader()).request.messages[1].blocks == (
        msgspec.structs.replace(named, carried=Carried("openai_responses", {"status": "completed"})),
    )


def test_readable_thinking_of_another_goes_along_where_text_is_taken() -> None:
    stamped = Opaque("signature", "sig", CLAUDE, reader().origin())
    request = asked(
        QUESTION, Message("assistant", (ReasoningBlock(text="Hm.", format=CLAUDE, opaque=(stamped,)), call())), RESULT
    )
    found = restore(request, reader("deepseek", "deepseek-v4-pro"))
    assert found.request.messages[1].blocks == (ReasoningBlock(text="Hm.", format="reasoning_content"), call())
    assert found.degraded[0].sent == "text"


def test_a_host_that_insists_gets_words_that_say_there_is_nothing() -> None:
    found = restore(asked(QUESTION, Message("assistant", (call(),)), RESULT), reader("moonshot", "kimi-k3"))
    filled = found.request.messages[1].blocks[0]
    assert isinstance(filled, ReasoningBlock)
    assert "not available" in filled.text
    assert found.degraded[0].sent == filled.text


@pytest.mark.parametrize(
    ("before", "filled"),
    [
        ((Message("assistant", (thought("Hm."), call())), RESULT), True),
        ((Message("assistant", (thought("Hm."), call(), *RESULT.blocks)),), True),
        ((Message("assistant", (thought("Hm."), TextBlock("Well."))), QUESTION), False),
    ],
    ids=["behind a result", "behind a result in the model's turn", "behind a question"],
)
def test_the_answer_behind_a_tool_is_filled_in_where_a_host_insists(before: tuple[Message, ...], filled: bool) -> None:
    answer = Message("assistant", (TextBlock("Sunny."),))
    found = restore(asked(QUESTION, *before, answer, QUESTION), reader("moonshot", "kimi-k3"))
    blocks = found.request.messages[-2].blocks
    assert [type(block) for block in blocks] == ([ReasoningBlock] if filled else []) + [TextBlock]
    assert found.request.messages[:-2] == (QUESTION, *before)


@pytest.mark.parametrize(
    ("preset", "model", "told"),
    [("gemini", "gemini-3-pro", True), ("openai", "gpt-5", False), ("groq", "qwen3", False)],
    ids=["its state is missed", "its text is enough", "nothing is missed"],
)
def test_what_is_missed_of_a_tool_loop_is_what_its_reader_is_given_back(preset: str, model: str, told: bool) -> None:
    for blocks in ((ReasoningBlock(text="Hm.", format="x"), call(UNIQUE)), (call(UNIQUE),)):
        request = asked(QUESTION, Message("assistant", blocks), RESULT)
        request = msgspec.structs.replace(request, reasoning=ReasoningPolicy(mode="effort", effort="low"))
        missed = [one.asked for one in restore(request, reader(preset, model)).degraded]
        misses_all = preset != "groq" and len(blocks) == 1
        assert ("the reasoning behind a tool call" in missed) == (told or misses_all)


HOST = reader("openrouter", "anthropic/claude-sonnet-4.5")
SIGNED = ReasoningBlock(text="Hm.", format=CLAUDE, opaque=(Opaque("signature", "EqMs", CLAUDE, HOST.origin()),))
DONE = (Message("assistant", (TextBlock("Done."),)), QUESTION)


@pytest.mark.parametrize(
    ("turns", "off"),
    [
        ([(SIGNED, call("c1"))], False),
        ([(call("c1"),)], True),
        ([(SIGNED, call("c1")), (call("c2"),)], False),
        ([(call("c1"),), (SIGNED, call("c2"))], False),
        ([(call("c1"),), (call("c2"),)], True),
        ([(call("c1"),), (), (SIGNED, call("c2"))], False),
        ([(SIGNED, call("c1")), (), (call("c2"),)], True),
    ],
    ids=[
        "thinks",
        "does not think",
        "thinks at the beginning of the loop",
        "thinks later in the loop",
        "thinks nowhere in the loop",
        "an earlier loop lacks it",
        "an earlier loop alone has it",
    ],
)
def test_thinking_is_off_where_no_turn_of_the_loop_has_any(turns: list[tuple[Block, ...]], off: bool) -> None:
    messages = [QUESTION]
    for blocks in turns:
        results = tuple(ToolResultBlock(call_id=one.id) for one in blocks if isinstance(one, ToolCallBlock))
        messages += [Message("assistant", blocks), Message("user", results)] if blocks else DONE
    policy = ReasoningPolicy(mode="effort", effort="low")
    request = msgspec.structs.replace(asked(*messages), reasoning=policy)
    sent = restore(request, HOST).request
    assert sent.reasoning == (ReasoningPolicy(mode="off") if off else policy)


def test_a_conversation_without_a_reply_costs_and_changes_nothing() -> None:
    request = asked(QUESTION)
    assert keys_in(turns_of(request)) == []
    assert restore(request, reader()).request is request


@pytest.mark.parametrize(
    "blocks",
    [
        (TextBlock("Sunny."),),
        (thought("Plain.", form="reasoning_content"), TextBlock("Sunny.")),
    ],
    ids=["text", "plain thinking without tools"],
)
def test_most_replies_leave_nothing_to_keep(blocks: tuple[ReplyBlock, ...]) -> None:
    assert remember(Response(blocks=blocks), asked(QUESTION), asked(QUESTION), reader("deepseek", "m")) == []


@pytest.mark.parametrize("call_id", ["call_8f2KzPq9Lm3XvT1b7RdW", "call_0"])
def test_that_a_call_had_no_thinking_is_kept(call_id: str) -> None:
    request, maker = asked(QUESTION), reader("deepseek", "m")
    (made,) = remember(Response(blocks=(call(call_id),)), request, request, maker)
    assert not made.kept.parts


def test_the_answer_of_a_tool_loop_keeps_its_plain_thinking() -> None:
    request = asked(QUESTION, Message("assistant", (call(),)), RESULT)
    blocks = (thought("Plain.", form="reasoning_content"), TextBlock("Sunny."))
    assert len(remember(Response(blocks=blocks), request, request, reader("deepseek", "m"))) == 1


def test_a_broken_reply_is_not_kept() -> None:
    broken = Response(blocks=(thought("Hm.", "sig"), call()), error=BrokenStream("gone"))
    assert remember(broken, asked(QUESTION), asked(QUESTION), reader()) == []


def test_what_is_kept_holds_no_answer() -> None:
    blocks = (thought("Hm.", "sig"), TextBlock("the secret answer"), call())
    (memory,) = remember(Response(blocks=blocks), asked(QUESTION), asked(QUESTION), reader())
    assert b"secret answer" not in encode_kept(memory.kept)
    assert memory.kept.origin == Origin(
        provider="anthropic", platform="claude-api", model="claude-opus-4-5", dialect="anthropic_messages"
    )


def test_what_another_version_wrote_is_nothing() -> None:
    assert decode_kept(b"\x81\xa1x\x01") is None
    assert decode_kept(b"") is None


BLOCKS = st.lists(
    st.one_of(
        st.builds(thought, st.text(max_size=8), st.text("ab", min_size=1, max_size=4)),
        st.builds(TextBlock, st.text(min_size=1, max_size=8)),
    ),
    max_size=6,
)


@given(BLOCKS, st.integers(1, 3))
def test_a_client_that_joins_its_texts_gets_every_reply_back_whole(before: list[ReplyBlock], calls: int) -> None:
    blocks = (*before, thought("last", "z"), *(call(f"c{number}") for number in range(calls)))
    text = "".join(block.text for block in blocks if isinstance(block, TextBlock))
    client = (*((TextBlock(text),) if text else ()), *(block for block in blocks if isinstance(block, ToolCallBlock)))
    assert back(blocks, client, maker=reader()).request.messages[1].blocks == blocks


def test_signed_thinking_goes_before_the_clients_own_words_and_that_is_said() -> None:
    said = (thought("Mine.", "sig"), call(UNIQUE))
    found = back(said, (thought("Other words."), call(UNIQUE)), maker=reader())
    assert found.request.messages[1].blocks[0] == thought("Mine.", "sig")
    assert [one.asked for one in found.degraded] == ["the client's own words"]
    same = back(said, (thought("Mine."), call(UNIQUE)), maker=reader())
    assert same.request.messages[1].blocks[0] == thought("Mine.", "sig")
    assert not same.degraded


def test_a_plan_that_a_client_of_cohere_writes_gives_way_to_plain_thinking() -> None:
    said = (thought("Mine.", form="reasoning_content"), call(UNIQUE))
    plan = ReasoningBlock(text="I will call the tool.", format="cohere-tool-plan")
    found = back(said, (plan, call(UNIQUE)), maker=reader("deepseek", "m"))
    assert found.request.messages[1].blocks[0] == thought("Mine.", form="reasoning_content")
    assert found.degraded


def test_what_is_kept_of_an_older_version_has_no_account_and_is_read() -> None:
    origin = {"provider": "work", "platform": "openai", "model": "m", "dialect": "openai_responses"}
    kept = decode_kept(msgspec.msgpack.encode([origin, [["c", "call_1"]], None, {}]))
    assert kept is not None
    assert kept.origin == Origin(**origin)
    assert len(kept.parts) == 1
