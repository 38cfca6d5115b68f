"""Reading what Gemini clients send: both spellings, every kind of part, and errors that name the field."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.dialects.gemini import DIALECT
from bardo.dialects.shared.states import seal
from bardo.values.blocks import (
    Block,
    Carried,
    ImageBlock,
    Opaque,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.errors import InvalidRequest
from bardo.values.request import (
    BardoOptions,
    Message,
    OutputFormat,
    ReasoningPolicy,
    Request,
    Sampling,
    Tool,
    ToolChoice,
)
from bardo.values.wire import Arrival
from dialects.gemini.support import ROW

pytestmark = pytest.mark.each_python

HELLO = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
CLAUDE = Opaque("signature", "claude-bytes", "anthropic-claude-v1")
CIPHER = Opaque("encrypted", "cipher", "openai-responses-v1")
OWN = (Opaque("signature", "c2ln", "google-gemini-v1"),)


def decode(body: dict[str, Any], arrival: Arrival | None = None) -> Request:
    return DIALECT.decode_request(msgspec.json.encode(body), arrival or Arrival(model="gemini-2.5-flash"))


def config(**fields: Any) -> Request:
    return decode({**HELLO, "generationConfig": fields})


def turn(*parts: dict[str, Any], role: str = "model") -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


PARTS: dict[str, tuple[list[dict[str, Any]], tuple[Block, ...]]] = {
    "text": ([{"text": "a"}, {"text": "b"}], (TextBlock("a"), TextBlock("b"))),
    "a signed text": ([{"text": "", "thoughtSignature": "c2ln"}], (TextBlock("", OWN),)),
    "thoughts": (
        [{"text": "a", "thought": True}, {"text": "b", "thought": True}, {"text": "c", "thought": False}],
        (ReasoningBlock(summary=("ab",), format="google-gemini-v1"), TextBlock("c")),
    ),
    "sealed full thinking, streamed": (
        [{"text": "a", "thought": True}, {"text": "", "thought": True, "thoughtSignature": seal([CLAUDE])}],
        (ReasoningBlock(text="a", format="anthropic-claude-v1", opaque=(CLAUDE,)),),
    ),
    "a sealed summary, whole": (
        [{"text": "a", "thought": True, "thought_signature": seal([CIPHER])}, {"text": "b", "thought": True}],
        (
            ReasoningBlock(summary=("a",), format="openai-responses-v1", opaque=(CIPHER,)),
            ReasoningBlock(summary=("b",), format="google-gemini-v1"),
        ),
    ),
    "sealed state without words": (
        [{"text": "", "thought": True, "thoughtSignature": seal([CIPHER])}],
        (ReasoningBlock(format="openai-responses-v1", opaque=(CIPHER,)),),
    ),
    "a seal that an SDK wrote in the other alphabet": (
        [{"text": "", "thought": True, "thoughtSignature": seal([CIPHER]).replace("+", "-").replace("/", "_")}],
        (ReasoningBlock(format="openai-responses-v1", opaque=(CIPHER,)),),
    ),
    "a seal after its text": (
        [{"text": "a"}, {"text": "", "thoughtSignature": seal([CIPHER])}],
        (TextBlock("a", (CIPHER,)),),
    ),
    "an image": (
        [{"inline_data": {"mime_type": "image/png", "data": "AAAA"}}],
        (ImageBlock(media_type="image/png", data="AAAA"),),
    ),
    "an image by address": (
        [{"fileData": {"mimeType": "image/png", "fileUri": "https://x.test/a.png"}}],
        (ImageBlock(media_type="image/png", url="https://x.test/a.png"),),
    ),
    "another file": (
        [{"fileData": {"mimeType": "application/pdf", "fileUri": "files/a"}}],
        (UnknownBlock("gemini", {"fileData": {"mimeType": "application/pdf", "fileUri": "files/a"}}),),
    ),
    "a server's tool": (
        [{"toolCall": {"toolType": "GOOGLE_SEARCH_WEB"}, "thoughtSignature": "c2ln"}],
        (UnknownBlock("gemini", {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB"}, "thoughtSignature": "c2ln"}),),
    ),
    "a signed call": (
        [{"functionCall": {"id": "own", "name": "f", "args": {"x": [1]}}, "thoughtSignature": "c2ln"}],
        (ToolCallBlock(id="own", name="f", arguments='{"x":[1]}', opaque=OWN),),
    ),
    "a call signed with nothing, behind sealed thinking": (
        [
            {"text": "a", "thought": True, "thoughtSignature": seal([CLAUDE])},
            {"functionCall": {"id": "own", "name": "f", "args": {}}, "thoughtSignature": seal(())},
        ],
        (
            ReasoningBlock(text="a", format="anthropic-claude-v1", opaque=(CLAUDE,)),
            ToolCallBlock(id="own", name="f", arguments="{}"),
        ),
    ),
    "a call that was malformed": (
        [{"function_call": {"id": "own", "name": "f", "args": {"_raw": "{"}}}],
        (ToolCallBlock(id="own", name="f", arguments="{"),),
    ),
}


@pytest.mark.parametrize(("parts", "blocks"), PARTS.values(), ids=PARTS)
def test_parts_become_blocks(parts: list[dict[str, Any]], blocks: tuple[Block, ...]) -> None:
    (message,) = decode({"contents": [turn(*parts)]}).messages
    assert message == Message("assistant", blocks)


def test_a_streamed_answer_that_comes_back_in_pieces_is_one_message() -> None:
    pieces: list[dict[str, Any]] = [
        {"text": "let ", "thought": True},
        {"text": "me see", "thought": True},
        {"text": "", "thought": True, "thoughtSignature": seal([CLAUDE])},
        {"text": "Loo"},
        {"text": "king"},
        {"functionCall": {"id": "a", "name": "f"}},
        {"text": ""},
    ]
    contents = [
        turn({"text": "hi"}, role="user"),
        *(turn(piece) for piece in pieces),
        turn({"text": "ok"}, role="user"),
    ]
    _, answer, _ = decode({"contents": contents}).messages
    assert answer.blocks == (
        ReasoningBlock(text="let me see", format="anthropic-claude-v1", opaque=(CLAUDE,)),
        TextBlock("Looking"),
        ToolCallBlock(id="a", name="f", arguments="{}"),
    )


RESULTS = {
    "output": ({"output": "sunny"}, "sunny", False),
    "output of nothing": ({"output": ""}, "", False),
    "output that is no text": ({"output": 3}, '{"output":3}', False),
    "error": ({"error": "no network"}, "no network", True),
    "an object": ({"degrees": 20}, '{"degrees":20}', False),
    "result": ({"result": "sunny"}, '{"result":"sunny"}', False),
    "output that is itself JSON": ({"output": '{"a":1}'}, '{"output":"{\\"a\\":1}"}', False),
}


@pytest.mark.parametrize(("response", "text", "is_error"), RESULTS.values(), ids=RESULTS)
def test_a_function_response_becomes_a_tool_result(response: dict[str, Any], text: str, is_error: bool) -> None:
    result = {"functionResponse": {"id": "own", "name": "f", "response": response}}
    (message,) = decode({"contents": [turn(result, role="function")]}).messages
    assert message.blocks == (ToolResultBlock(call_id="own", name="f", content=(TextBlock(text),), is_error=is_error),)
    assert (message.role, message.carried) == ("user", Carried("gemini", {"role": "function"}))


def test_an_image_in_a_function_response() -> None:
    parts = [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, {"fileData": {"fileUri": "files/a"}}]
    result = {"functionResponse": {"id": "own", "name": "f", "response": {}, "parts": parts}}
    (message,) = decode({"contents": [turn(result, role="user")]}).messages
    (block,) = message.blocks
    assert isinstance(block, ToolResultBlock)
    assert block.content[1:] == (ImageBlock(media_type="image/png", data="AAAA"), UnknownBlock("gemini", parts[1]))


def test_results_without_ids_answer_the_calls_of_their_turn_in_order() -> None:
    call, result = {"functionCall": {"name": "f"}}, {"functionResponse": {"name": "f", "response": {}}}
    other = {"functionCall": {"name": "g"}}
    contents = [
        turn(call),
        turn({"text": "wait"}, role="user"),
        turn(call, other, call),
        turn(result, result, result, role="user"),
    ]
    messages = decode({"contents": contents}).messages
    calls = [block.id for message in messages for block in message.blocks if isinstance(block, ToolCallBlock)]
    answers = [block.call_id for message in messages for block in message.blocks if isinstance(block, ToolResultBlock)]
    assert calls == ["call_0", "call_1", "call_2", "call_3"]
    assert answers == ["call_1", "call_3", "call_f"]


def test_a_result_with_an_id_of_the_clients_own_answers_the_call_that_came_without_one() -> None:
    def result(own_id: str) -> dict[str, Any]:
        return {"functionResponse": {"id": own_id, "name": "f", "response": {"output": "x"}}}

    calls = [{"functionCall": {"name": "f", "args": {}}}, {"functionCall": {"name": "f", "args": {}, "id": "own"}}]
    contents = [turn(*calls), turn(result("f-17"), result("own"), result("f-18"), role="user")]
    request = decode({"contents": contents})
    answers = [block.call_id for block in request.messages[1].blocks if isinstance(block, ToolResultBlock)]
    assert answers == ["call_0", "own", "f-18"]
    sent = msgspec.json.decode(DIALECT.encode_request(request, ROW).body)["contents"]
    assert sent[0] == contents[0]
    given = [part["functionResponse"].get("id") for part in sent[1]["parts"] if "functionResponse" in part]
    assert given == [None, "own"]
    # Google takes as many results as there were calls: the third is told in words.
    assert "f-18" not in str(sent)
    assert "Result of an earlier call" in str(sent[1:])


def test_an_answered_call_is_not_answered_again_by_name() -> None:
    first, second = ({"functionCall": {"id": name, "name": "f"}} for name in "ab")
    by_id = {"functionResponse": {"id": "a", "name": "f", "response": {}}}
    by_name = {"functionResponse": {"name": "f", "response": {}}}
    messages = decode({"contents": [turn(first, second), turn(by_id, by_name, role="user")]}).messages
    assert [block.call_id for block in messages[1].blocks if isinstance(block, ToolResultBlock)] == ["a", "b"]


@pytest.mark.parametrize(
    "system",
    [
        "be brief",
        {"parts": [{"text": "be brief"}], "role": "system"},
        {"parts": {"text": "be brief"}},
        [{"text": "be brief"}],
        ["be brief"],
    ],
)
@pytest.mark.parametrize("name", ["systemInstruction", "system_instruction"])
def test_a_system_instruction_is_the_first_message(name: str, system: Any) -> None:
    messages = decode({**HELLO, name: system}).messages
    assert messages == (Message("system", (TextBlock("be brief"),)), Message("user", (TextBlock("hello"),)))


def test_both_spellings_say_the_same() -> None:
    camel = config(topP=0.5, topK=40.0, maxOutputTokens=9, stopSequences=["x"], thinkingConfig={"thinkingBudget": 5})
    snake = config(
        top_p=0.5, top_k=40, max_output_tokens=9, stop_sequences=["x"], thinking_config={"thinking_budget": 5}
    )
    assert msgspec.structs.replace(camel, body=None, body_bytes=b"") == msgspec.structs.replace(
        snake, body=None, body_bytes=b""
    )
    assert camel.sampling == Sampling(top_p=0.5, top_k=40, stop=("x",))
    assert camel.max_output_tokens == 9


THINKING: dict[str, tuple[dict[str, Any], ReasoningPolicy | None]] = {
    "nothing": ({}, None),
    "off": ({"thinkingBudget": 0}, ReasoningPolicy(mode="off")),
    "a budget": (
        {"thinkingBudget": 512, "includeThoughts": True},
        ReasoningPolicy(mode="budget", budget=512, visible=True),
    ),
    "dynamic": ({"thinkingBudget": -1}, ReasoningPolicy(mode="auto")),
    "a level": ({"thinkingLevel": "HIGH"}, ReasoningPolicy(mode="effort", effort="high")),
    "only visible": ({"includeThoughts": True}, ReasoningPolicy(mode="auto", visible=True, enables_thinking=False)),
    "a field of next year": (
        {"depth": 1},
        ReasoningPolicy(mode="auto", enables_thinking=False, carried=Carried("gemini", {"depth": 1})),
    ),
}


@pytest.mark.parametrize(("said", "policy"), THINKING.values(), ids=THINKING)
def test_thinking_config_becomes_a_policy(said: dict[str, Any], policy: ReasoningPolicy | None) -> None:
    read = config(thinkingConfig=said).reasoning
    if read is not None:
        words = {name: value for name, value in said.items() if name != "depth"}
        assert read.raw_fields == ({"generationConfig": {"thinkingConfig": words}} if words else {})
        read = msgspec.structs.replace(read, raw_fields={})
    assert read == policy


def test_thoughts_not_included_are_omitted() -> None:
    assert config(thinkingConfig={"includeThoughts": False}).options == BardoOptions(omit_reasoning=True)


FORMATS: dict[str, tuple[dict[str, Any], OutputFormat | None]] = {
    "any object": ({"responseMimeType": "application/json"}, OutputFormat(mode="json_object")),
    "google's schema": (
        {
            "responseMimeType": "application/json",
            "responseSchema": {
                "type": "OBJECT",
                "properties": {"type": {"type": "STRING", "nullable": True, "enum": ["A"]}},
                "min_properties": "1",
                "anyOf": [{"type": "ARRAY", "items": {"type": "INTEGER"}}],
            },
        },
        OutputFormat(
            mode="json_schema",
            schema={
                "type": "object",
                "properties": {"type": {"type": ["string", "null"], "enum": ["A", None]}},
                "minProperties": 1,
                "anyOf": [{"type": "array", "items": {"type": "integer"}}],
            },
        ),
    ),
    "JSON Schema": (
        {"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}},
        OutputFormat(mode="json_schema", schema={"type": "object"}),
    ),
    "text": ({"responseMimeType": "text/plain"}, None),
}


@pytest.mark.parametrize(("said", "wanted"), FORMATS.values(), ids=FORMATS)
def test_response_fields_become_an_output_format(said: dict[str, Any], wanted: OutputFormat | None) -> None:
    request = config(**said)
    assert request.output_format == wanted
    assert request.extra == ({} if wanted else {"generationConfig": said})


def test_tools_and_their_choice() -> None:
    declared = {"name": "f", "description": "d", "parameters": {"type": "OBJECT"}, "behavior": "BLOCKING"}
    body = {
        **HELLO,
        "tools": [
            {"functionDeclarations": [declared]},
            {"codeExecution": None, "google_search": {}},
            {"urlContext": None},
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
    }
    request = decode(body)
    carried = Carried("gemini", {"parameters": {"type": "OBJECT"}, "behavior": "BLOCKING"})
    assert request.tools == (
        Tool(name="f", description="d", schema={"type": "object"}, carried=carried),
        Tool(name="googleSearch", hosted=True, carried=Carried("gemini", {"googleSearch": {}})),
    )
    assert (request.tool_choice, request.extra) == (ToolChoice(mode="named", name="f"), {})


@pytest.mark.parametrize(
    ("said", "choice", "rest"),
    [
        ({"mode": "AUTO"}, ToolChoice(mode="auto"), {}),
        ({"mode": "none"}, ToolChoice(mode="none"), {}),
        ({"mode": "ANY"}, ToolChoice(mode="required"), {}),
        ({"mode": "VALIDATED"}, ToolChoice(mode="auto"), {"mode": "VALIDATED"}),
        (
            {"mode": "ANY", "allowedFunctionNames": ["f", "g"]},
            ToolChoice(mode="required"),
            {"allowedFunctionNames": ["f", "g"]},
        ),
    ],
)
def test_function_calling_modes(said: dict[str, Any], choice: ToolChoice, rest: dict[str, Any]) -> None:
    request = decode({**HELLO, "toolConfig": {"functionCallingConfig": said}})
    assert request.tool_choice == choice
    assert request.extra == ({"toolConfig": {"functionCallingConfig": rest}} if rest else {})


def test_what_bardo_has_no_word_for_is_carried_on() -> None:
    others = {"safetySettings": [{"category": "c"}], "cachedContent": "cachedContents/a", "labels": {"k": "v"}}
    request = decode({**HELLO, **others, "generationConfig": {"responseModalities": ["TEXT"]}})
    assert request.extra == {**others, "generationConfig": {"responseModalities": ["TEXT"]}}


def test_bardos_own_options() -> None:
    body = {**HELLO, "bardo": {"include": ["receipt"], "reasoning": "omit"}}
    request = decode(body)
    assert request.options == BardoOptions(include=("receipt",), omit_reasoning=True, chose_display=True)
    assert (request.body, request.extra) == (HELLO, {})


@pytest.mark.parametrize("name", ["gemini-3-pro", "models/gemini-3-pro"])
def test_model_and_streaming_stand_in_the_url(name: str) -> None:
    request = decode(HELLO, Arrival(model=name, stream=True))
    assert (request.model, request.stream, request.dialect) == ("gemini-3-pro", True, "gemini")


WRONG: dict[str, tuple[Any, str]] = {
    "no contents": ({}, "contents"),
    "contents": ({"contents": "hello"}, "contents"),
    "content": ({"contents": [1]}, "contents[0]"),
    "role": ({"contents": [{"role": "system", "parts": []}]}, "contents[0].role"),
    "parts": ({"contents": [{"parts": 1}]}, "contents[0].parts"),
    "part": ({"contents": [{"parts": [{"text": "a"}, 1]}]}, "contents[0].parts[1]"),
    "text": ({"contents": [turn({"text": 1})]}, "contents[0].parts[0].text"),
    "signature": ({"contents": [turn({"text": "", "thoughtSignature": 1})]}, "contents[0].parts[0].thoughtSignature"),
    "call": ({"contents": [turn({"functionCall": {"args": {}}})]}, "contents[0].parts[0].functionCall.name"),
    "args": (
        {"contents": [turn({"functionCall": {"name": "f", "args": 1}})]},
        "contents[0].parts[0].functionCall.args",
    ),
    "result": (
        {"contents": [turn({"functionResponse": {"name": "f", "response": "x"}})]},
        "contents[0].parts[0].functionResponse.response",
    ),
    "data": ({"contents": [turn({"inlineData": {"mimeType": "image/png"}})]}, "contents[0].parts[0].inlineData.data"),
    "temperature": ({**HELLO, "generationConfig": {"temperature": True}}, "generationConfig.temperature"),
    "topK": ({**HELLO, "generationConfig": {"topK": 1.5}}, "generationConfig.topK"),
    "stop": ({**HELLO, "generationConfig": {"stopSequences": ["a", 1]}}, "generationConfig.stopSequences[1]"),
    "candidates": ({**HELLO, "generationConfig": {"candidateCount": 0}}, "generationConfig.candidateCount"),
    "level": (
        {**HELLO, "generationConfig": {"thinkingConfig": {"thinkingLevel": "x"}}},
        "generationConfig.thinkingConfig.thinkingLevel",
    ),
    "budget and level": (
        {**HELLO, "generationConfig": {"thinkingConfig": {"thinkingLevel": "low", "thinkingBudget": 1}}},
        "generationConfig.thinkingConfig.thinkingBudget",
    ),
    "tools": ({**HELLO, "tools": [{"functionDeclarations": [{}]}]}, "tools[0].functionDeclarations[0].name"),
    "mode": (
        {**HELLO, "toolConfig": {"functionCallingConfig": {"mode": "x"}}},
        "toolConfig.functionCallingConfig.mode",
    ),
    "bardo": ({**HELLO, "bardo": {"include": ["all"]}}, "bardo.include[0]"),
}


@pytest.mark.parametrize(("body", "param"), WRONG.values(), ids=WRONG)
def test_an_error_names_the_field(body: Any, param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode(body)
    assert caught.value.param == param


def test_a_request_without_a_model_is_told_where_it_goes() -> None:
    with pytest.raises(InvalidRequest, match="URL names no model"):
        decode(HELLO, Arrival())
