"""Bodies read into structs: what is unknown stands beside, what is wrong is named, and nobody writes what only bardo may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bardo import dialects
from bardo.dialects.anthropic_messages import wire
from bardo.dialects.anthropic_messages.request_in import decode_request
from bardo.dialects.cohere import wire as cohere
from bardo.dialects.gemini import wire as gemini
from bardo.dialects.gemini_interactions import wire as gemini_interactions
from bardo.dialects.ollama import wire as ollama
from bardo.dialects.openai_chat import wire as openai_chat
from bardo.dialects.openai_responses import wire as openai_responses
from bardo.dialects.shared.structs import OTHERS, Unknown, as_it_came, carried, carried_fields, read
from bardo.values.blocks import Carried, TextBlock, UnknownBlock
from bardo.values.errors import InvalidRequest
from bardo.values.wire import Arrival
from support.generated_wire import GeneratedValues
from support.offenders import offenders


def _message(*blocks: dict[str, Any]) -> wire.Message:
    return read({"role": "user", "content": [*blocks]}, wire.Message, "messages[0]")


def test_fields_without_a_name_stand_beside_the_struct() -> None:
    found = _message({"type": "text", "text": "a", "x": 1, "y": None, "cache_control": {"type": "ephemeral"}}).content
    assert isinstance(found, list)
    assert carried_fields(found[0]) == {"x": 1, "cache_control": {"type": "ephemeral"}}  # type: ignore[arg-type]


def test_a_block_of_an_unknown_type_is_kept_whole() -> None:
    block = {"type": "container_upload", "file_id": "f", "text": None}
    found = _message({"type": "text", "text": "a"}, block).content
    assert isinstance(found[1], Unknown)
    assert found[1].whole.value == block


def test_a_block_whose_part_has_an_unknown_type_is_kept_whole() -> None:
    block = {"type": "image", "source": {"type": "file", "file_id": "f"}}
    found = _message(block).content
    assert isinstance(found[0], Unknown)
    assert found[0].whole.value == block


def test_a_part_of_a_result_that_may_not_stand_there_is_kept_whole() -> None:
    call = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    result = _message({"type": "tool_result", "tool_use_id": "a", "content": [call]}).content[0]
    assert isinstance(result, wire.ToolResult)
    assert isinstance(result.content, list)
    assert isinstance(result.content[0], Unknown)


def test_what_fits_is_not_looked_through_for_an_odd_field_beside_it() -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "a", "citations": None}]}]
    found = read({"messages": messages, "unheard_of": 1}, wire.Request, "")
    assert found.others == {"unheard_of": 1}
    assert found.messages == [wire.Message(role="user", content=[wire.Text(text="a")])]


def test_an_odd_field_within_one_message_leaves_the_others_as_they_are() -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "user", "content": "b", "x": 1}]
    found = read({"messages": messages}, wire.Request, "").messages
    assert [one.others for one in found] == [None, {"x": 1}]


def test_a_number_of_any_kind_is_called_a_number() -> None:
    with pytest.raises(InvalidRequest, match=r"^top_k must be a number, not a string$"):
        read({"messages": [], "top_k": "3"}, wire.Request, "")


@pytest.mark.parametrize("whole", [{"text": "unseen"}, None, "text", {"value": {}}])
def test_no_client_writes_what_stands_beside(whole: Any) -> None:
    block = {"type": "text", "text": "seen", OTHERS: whole}
    body = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": [block]}]}
    (text,) = decode_request(msgspec.json.encode(body), Arrival()).messages[0].blocks
    assert isinstance(text, TextBlock)
    assert text.text == "seen"
    assert text.carried is None or text.carried.fields == {OTHERS: whole}


def test_no_client_writes_a_block_that_was_kept_whole() -> None:
    block = {"type": OTHERS, "whole": {"type": "text", "text": "unseen"}}
    body = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": [block]}]}
    (found,) = decode_request(msgspec.json.encode(body), Arrival()).messages[0].blocks
    assert isinstance(found, UnknownBlock)
    assert found.value == block


@pytest.mark.parametrize(
    ("value", "words", "param"),
    [
        (5, "messages[3] must be an object, not a number", "messages[3]"),
        (None, "messages[3] must be an object, not null", "messages[3]"),
        ({"content": ""}, "messages[3].role is required", "messages[3].role"),
        ({"role": None, "content": ""}, "messages[3].role is required", "messages[3].role"),
        ({"role": "user", "content": True}, "messages[3].content must be a string or an array, not a boolean", ""),
        ({"role": "user", "content": [[]]}, "messages[3].content[0] must be an object, not an array", ""),
        ({"role": "user", "content": [{}]}, "messages[3].content[0].type is required", ""),
        ({"role": "user", "content": [{"type": []}]}, "messages[3].content[0].type must be a string, not an array", ""),
        ({"role": "user", "content": [{"type": "text", "x": 1}]}, "messages[3].content[0].text is required", ""),
        (
            {"role": "user", "x": 1, "content": [{"type": "image", "source": {"type": "url", "url": 1.5}}]},
            "messages[3].content[0].source.url must be a string, not a number",
            "",
        ),
    ],
)
def test_what_is_wrong_is_named(value: Any, words: str, param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(value, wire.Message, "messages[3]")
    assert caught.value.message == words
    assert not param or caught.value.param == param


MESSAGES: dict[str, Any] = {
    "anthropic_messages": wire.Message,
    "anthropic_messages body": wire.Request,
    "openai_chat": openai_chat.Message,
    "openai_responses": openai_responses.Message,
    "cohere": cohere.Message,
    "ollama": ollama.Message,
    "gemini": gemini.Content,
    "a request of gemini": gemini.Request,
    "a request of gemini_interactions": gemini_interactions.Request,
}


@pytest.mark.parametrize("name", MESSAGES)
def test_what_the_structs_allow_is_read_and_nothing_else_breaks(name: str) -> None:
    for seed in range(150):
        oddity = (0.0, 0.02, 0.2)[seed % 3]
        value = GeneratedValues((name, seed), oddity).of(MESSAGES[name])
        try:
            read(value, MESSAGES[name], "messages[0]")
        except InvalidRequest:
            assert oddity, value


@pytest.mark.parametrize("name", MESSAGES)
def test_what_is_given_back_reads_as_what_came(name: str) -> None:
    for seed in range(50):
        value = GeneratedValues((name, seed)).of(MESSAGES[name])
        found = read({**value, "unheard_of": {"a": None}}, MESSAGES[name], "messages[0]")
        again = as_it_came(found)
        assert again["unheard_of"] == {"a": None}
        assert as_it_came(read(again, MESSAGES[name], "messages[0]")) == again


def test_of_a_field_in_both_spellings_the_one_that_is_not_null_is_read() -> None:
    config = {"topK": 3, "top_k": None, "max_output_tokens": None, "maxOutputTokens": 5}
    found = read(config, gemini.GenerationConfig, "generationConfig")
    assert (found.top_k, found.max_output_tokens) == (3, 5)


def test_what_one_item_of_a_history_has_beside_its_struct_leaves_the_others_as_they_are() -> None:
    contents = [{"role": "user", "parts": [{"text": "a"}]}, {"role": "user", "unheard_of": 1}]
    found = read({"contents": contents}, gemini.Request, "")
    assert isinstance(found.contents, list)
    assert [carried(content, "gemini") for content in found.contents] == [None, Carried("gemini", {"unheard_of": 1})]


def test_annotations_of_wire_structs_are_no_texts_that_the_first_request_evaluates() -> None:
    folder = Path(dialects.__path__[0])
    files = [*sorted(folder.glob("*/wire.py")), folder / "bedrock_invoke.py", folder / "watsonx_text.py"]
    assert files
    late = [file for file in files if "\nfrom __future__ import annotations\n" in file.read_text()]
    offenders(
        late,
        "leave `from __future__ import annotations` out of files of wire structs, as dialects/shared/structs.py says",
    )
