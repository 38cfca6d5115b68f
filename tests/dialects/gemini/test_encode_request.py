"""Writing requests for Google: what it can say, and a report of what it cannot."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.catalog.request_shapes import shape_at
from bardo.dialects.gemini import DIALECT
from bardo.dialects.gemini.schemas import json_schema, untaken_word
from bardo.values.blocks import (
    Block,
    Carried,
    ImageBlock,
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.degradation import Degradation
from bardo.values.request import Control, Message, OutputFormat, ReasoningPolicy, Request, Sampling, Tool, ToolChoice
from bardo.values.wire import Arrival
from dialects.gemini.support import ROW
from dialects.told import as_told
from support.simulated_gateway import SimulatedGateway
from support.talk import path_for

USER = Message("user", (TextBlock("hello"),))
OWN = Opaque("signature", "c2ln", "google-gemini-v1")
CLAUDE = Opaque("signature", "claude-bytes", "anthropic-claude-v1")


def request(
    *messages: Message, model: str = "gemini-2.5-flash", dialect: str = "openai_chat", **fields: Any
) -> Request:
    return Request(model=model, messages=messages or (USER,), dialect=dialect, **fields)


def encode(wanted: Request) -> tuple[dict[str, Any], list[Degradation]]:
    wire = DIALECT.encode_request(wanted, ROW)
    return msgspec.json.decode(wire.body), list(wire.degraded)


def config_of(wanted: Request) -> dict[str, Any]:
    found: dict[str, Any] = encode(wanted)[0].get("generationConfig", {})
    return found


def names(degraded: list[Degradation]) -> list[str]:
    return [one.what for one in degraded]


@pytest.mark.parametrize(
    ("model", "stream", "path"),
    [
        ("gemini-3-pro", False, "models/gemini-3-pro:generateContent"),
        ("models/gemini-3-pro", True, "models/gemini-3-pro:streamGenerateContent?alt=sse"),
        ("tunedModels/mine", False, "tunedModels/mine:generateContent"),
        ("../../secret?x=#", False, "models/..%2F..%2Fsecret%3Fx%3D%23:generateContent"),
    ],
)
def test_model_and_streaming_stand_in_the_path(model: str, stream: bool, path: str) -> None:
    assert DIALECT.encode_request(request(model=model, stream=stream), ROW).path == path


CONTENTS: dict[str, tuple[list[Message], list[dict[str, Any]], list[str]]] = {
    "text and a picture": (
        [Message("user", (TextBlock("a"), ImageBlock(media_type="image/png", data="AAAA")))],
        [{"role": "user", "parts": [{"text": "a"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]}],
        [],
    ),
    "a picture by address, and one in its address": (
        [
            Message(
                "user", (ImageBlock(url="https://x.test/a", detail="low"), ImageBlock(url="data:image/png;base64,AAAA"))
            )
        ],
        [
            {
                "role": "user",
                "parts": [
                    {"fileData": {"fileUri": "https://x.test/a"}},
                    {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                ],
            }
        ],
        ["image.detail"],
    ),
    "calls and results find each other by name and order": (
        [
            Message(
                "assistant", (ToolCallBlock(id="a", name="f", arguments='{"x":1}'), ToolCallBlock(id="b", name="g"))
            ),
            Message("user", (ToolResultBlock(call_id="a", content=(TextBlock("sunny"),)),)),
            Message("user", (ToolResultBlock(call_id="b", content=(TextBlock('{"n":1}'),)),)),
            Message("user", (TextBlock("so?"),)),
        ],
        [
            {
                "role": "model",
                "parts": [
                    {"functionCall": {"name": "f", "args": {"x": 1}}},
                    {"functionCall": {"name": "g", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "f", "response": {"output": "sunny"}}},
                    {"functionResponse": {"name": "g", "response": {"n": 1}}},
                ],
            },
            {"role": "user", "parts": [{"text": "so?"}]},
        ],
        [],
    ),
    "a failed result": (
        [Message("user", (ToolResultBlock(call_id="a", name="f", content=(TextBlock("no"),), is_error=True),))],
        [{"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"error": "no"}}}]}],
        [],
    ),
    "a result of an unknown call": (
        [Message("user", (ToolResultBlock(call_id="a"),))],
        [{"role": "user", "parts": [{"functionResponse": {"name": "unknown", "response": {"output": ""}}}]}],
        ["tool_result.name"],
    ),
    "a picture in a result, for a model that knows none there": (
        [
            Message(
                "user",
                (ToolResultBlock(call_id="a", name="f", content=(ImageBlock(media_type="image/png", data="A"),)),),
            )
        ],
        [
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "f", "response": {"output": ""}}},
                    {"inlineData": {"mimeType": "image/png", "data": "A"}},
                ],
            }
        ],
        [],
    ),
    "arguments that are no object": (
        [Message("assistant", (ToolCallBlock(id="a", name="f", arguments="{"),))],
        [{"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"_raw": "{"}}}]}],
        ["tool_call.arguments"],
    ),
    "thoughts and signatures of others": (
        [
            Message(
                "assistant",
                (
                    ReasoningBlock(text="a", format="anthropic-claude-v1", opaque=(CLAUDE,)),
                    ReasoningBlock(text="b", format="anthropic-claude-v1", opaque=(CLAUDE,)),
                    ReasoningBlock(text="c", format="reasoning_content"),
                    TextBlock("x", (CLAUDE,)),
                    RefusalBlock("no"),
                ),
            )
        ],
        [{"role": "model", "parts": [{"text": "x"}, {"text": "no"}]}],
        ["reasoning", "reasoning", "text.opaque"],
    ),
    "thoughts and signatures of Gemini's own": (
        [
            Message(
                "assistant",
                (
                    ReasoningBlock(summary=("a",), format="google-gemini-v1"),
                    ToolCallBlock(id="a", name="f", opaque=(OWN,)),
                    TextBlock("", (OWN,)),
                ),
            )
        ],
        [
            {
                "role": "model",
                "parts": [
                    {"text": "a", "thought": True},
                    {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"},
                    {"text": "", "thoughtSignature": "c2ln"},
                ],
            }
        ],
        [],
    ),
    "blocks and fields of another dialect": (
        [
            Message(
                "user",
                (
                    TextBlock("a", carried=Carried("anthropic_messages", {"cache_control": {}})),
                    TextBlock("b", carried=Carried("anthropic_messages", {"cache_control": {}})),
                    UnknownBlock("anthropic_messages", {"type": "document"}),
                ),
            )
        ],
        [{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}],
        ["cache_control", "content.document"],
    ),
    "a turn of which nothing is left": (
        [USER, Message("assistant", (ReasoningBlock(text="a", format="reasoning_content"),)), USER],
        [{"role": "user", "parts": [{"text": "hello"}]}, {"role": "user", "parts": [{"text": "hello"}]}],
        ["reasoning"],
    ),
    "a late word of the system": (
        [USER, Message("system", (TextBlock("be brief"),))],
        [{"role": "user", "parts": [{"text": "hello"}]}, {"role": "user", "parts": [{"text": "be brief"}]}],
        ["messages.role"],
    ),
}


@pytest.mark.parametrize(("messages", "contents", "lost"), CONTENTS.values(), ids=CONTENTS)
def test_messages_become_contents(messages: list[Message], contents: list[dict[str, Any]], lost: list[str]) -> None:
    body, degraded = encode(request(*messages))
    assert body["contents"] == contents
    assert names(degraded) == lost


def test_the_first_system_messages_are_the_instruction() -> None:
    system = [Message("system", (TextBlock(word),)) for word in ("be", "brief")]
    body, degraded = encode(request(*system, USER))
    assert body["systemInstruction"] == {"parts": [{"text": "be"}, {"text": "brief"}]}
    assert (len(body["contents"]), degraded) == (1, [])


def call(name: str, *states: Opaque) -> Block:
    return ToolCallBlock(id=name, name=name, opaque=states)


def result(name: str) -> Message:
    return Message("user", (ToolResultBlock(call_id=name, content=(TextBlock("ok"),)),))


def test_gemini_3_is_told_of_calls_of_this_turn_that_no_one_signed() -> None:
    history = [
        Message("assistant", (call("old"),)),
        result("old"),
        USER,
        Message("assistant", (call("a"), call("b"))),
        result("a"),
        result("b"),
        Message("assistant", (call("c", OWN),)),
        result("c"),
    ]
    body, degraded = encode(request(*history, model="gemini-3-pro-preview"))
    parts = [part for content in body["contents"] for part in content["parts"] if "functionCall" in part]
    assert [part.get("thoughtSignature") for part in parts] == [None, "skip_thought_signature_validator", None, "c2ln"]
    assert names(degraded) == ["thoughtSignature"]
    assert degraded[0].sent == "skip_thought_signature_validator"


def test_gemini_25_needs_no_such_word() -> None:
    body, degraded = encode(request(USER, Message("assistant", (call("a"),)), result("a")))
    assert "thoughtSignature" not in body["contents"][1]["parts"][0]
    assert degraded == []


def test_gemini_3_takes_pictures_in_results() -> None:
    block = ToolResultBlock(call_id="a", name="f", content=(ImageBlock(media_type="image/png", data="A"),))
    body, _ = encode(request(Message("user", (block,)), model="gemini-3-flash-preview"))
    (part,) = body["contents"][0]["parts"]
    assert part["functionResponse"]["parts"] == [{"inlineData": {"mimeType": "image/png", "data": "A"}}]


def test_sampling_and_limits() -> None:
    sampling = Sampling(
        temperature=0.0, top_p=0.5, top_k=4, seed=1, stop=("x",), frequency_penalty=0.1, presence_penalty=0.2, min_p=0.3
    )
    wanted = request(sampling=sampling, max_output_tokens=9, choices=2)
    assert config_of(wanted) == {
        "temperature": 0.0,
        "topP": 0.5,
        "topK": 4,
        "seed": 1,
        "stopSequences": ["x"],
        "frequencyPenalty": 0.1,
        "presencePenalty": 0.2,
        "maxOutputTokens": 9,
        "candidateCount": 2,
    }
    assert names(encode(wanted)[1]) == ["min_p"]


def test_output_formats() -> None:
    schema = OutputFormat(mode="json_schema", schema={"type": "object"}, strict=True)
    expected = {"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}}
    assert config_of(request(output_format=schema)) == expected
    assert config_of(request(output_format=OutputFormat(mode="json_object"))) == {
        "responseMimeType": "application/json"
    }


def test_tools_and_their_choice() -> None:
    tools = (
        Tool(name="f", description="d", schema={"type": "object"}),
        Tool(name="web_search", hosted=True, carried=Carried("anthropic_messages", {"type": "web_search"})),
    )
    choice = ToolChoice(mode="named", name="f", parallel=False)
    body, degraded = encode(request(tools=tools, tool_choice=choice))
    declared = {"name": "f", "description": "d", "parametersJsonSchema": {"type": "object"}}
    assert body["tools"] == [{"functionDeclarations": [declared]}]
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}}
    assert sorted(names(degraded)) == ["parallel_tool_calls", "tool web_search"]


def test_a_choice_among_no_functions_is_not_sent() -> None:
    assert "toolConfig" not in encode(request(tool_choice=ToolChoice(mode="auto")))[0]


def test_fields_of_another_dialect_are_reported() -> None:
    body, degraded = encode(request(extra={"logit_bias": {"1": 2}}))
    assert "logit_bias" not in body
    assert [(one.what, one.asked) for one in degraded] == [("logit_bias", {"1": 2})]


def test_a_gemini_clients_own_words_come_back() -> None:
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": "a", "videoMetadata": {"fps": 1}}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"x": 1}}, "thoughtSignature": "c2ln"}]},
            {
                "role": "function",
                "parts": [{"functionResponse": {"name": "f", "response": {"result": 2}, "scheduling": "IDLE"}}],
            },
            {
                "role": "model",
                "parts": [{"functionCall": {"id": "own", "name": "f", "args": {}}}, {"executableCode": {}}],
            },
            {"role": "user", "parts": [{"functionResponse": {"id": "own", "name": "f", "response": {"output": "x"}}}]},
        ],
        "systemInstruction": {"parts": [{"text": "s"}]},
        "tools": [
            {"googleSearch": {}},
            {"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT"}, "behavior": "BLOCKING"}]},
        ],
        "toolConfig": {
            "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f", "g"]},
            "includeServerSideToolInvocations": True,
        },
        "generationConfig": {
            "responseModalities": ["TEXT"],
            "responseMimeType": "application/json",
            "responseSchema": {"type": "OBJECT"},
            "thinkingConfig": {"thinkingBudget": -1, "depth": 1},
        },
        "safetySettings": [{"category": "c", "threshold": "t"}],
        "labels": {"k": "v"},
    }
    wanted = DIALECT.decode_request(msgspec.json.encode(body), Arrival(model="gemini-2.5-flash"))
    assert encode(as_told(wanted)) == (body, [])


def test_a_changed_schema_is_not_undone() -> None:
    body = {
        "contents": [{"parts": [{"text": "a"}]}],
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT"}}]}],
        "generationConfig": {"responseMimeType": "application/json", "responseSchema": {"type": "OBJECT"}},
    }
    wanted = DIALECT.decode_request(msgspec.json.encode(body), Arrival(model="gemini-2.5-flash"))
    tool = msgspec.structs.replace(wanted.tools[0], schema={"type": "object", "properties": {}})
    shape = OutputFormat(mode="json_schema", schema={"type": "array"})
    sent, _ = encode(msgspec.structs.replace(wanted, tools=(tool,), output_format=shape))
    (declared,) = sent["tools"][0]["functionDeclarations"]
    assert declared == {"name": "f", "parametersJsonSchema": {"type": "object", "properties": {}}}
    assert sent["generationConfig"] == {"responseMimeType": "application/json", "responseJsonSchema": {"type": "array"}}


def test_the_control_is_laid_into_what_is_there() -> None:
    fields = {"generationConfig": {"thinkingConfig": {"thinkingBudget": 512}}}
    body, degraded = encode(request(max_output_tokens=9, control=Control(fields=fields)))
    assert body["generationConfig"] == {"maxOutputTokens": 9, "thinkingConfig": {"thinkingBudget": 512}}
    assert degraded == []


def test_of_thinking_only_the_control_is_said() -> None:
    asked = ReasoningPolicy(mode="effort", effort="high", visible=True)
    assert encode(request(reasoning=asked, control=Control())) == encode(request())


def test_words_of_another_dialects_thinking_are_reported() -> None:
    asked = ReasoningPolicy(mode="auto", carried=Carried("anthropic_messages", {"block_binding": "strict"}))
    body, degraded = encode(request(reasoning=asked))
    assert (names(degraded), "generationConfig" in body) == (["block_binding"], False)


def test_of_several_signatures_of_one_text_the_last_is_sent_and_the_others_are_reported() -> None:
    states = tuple(Opaque("signature", data, "google-gemini-v1") for data in ("YQ==", "Yg=="))
    body, degraded = encode(request(Message("assistant", (TextBlock("Hello.", states),))))
    assert body["contents"][0]["parts"] == [{"text": "Hello.", "thoughtSignature": "Yg=="}]
    assert [one.asked for one in degraded if one.what == "text.opaque"] == ["2 signatures"]


UNTAKEN: dict[str, tuple[Any, str]] = {
    "a word of JSON Schema": ({"type": "OBJECT", "additionalProperties": False}, "additionalProperties"),
    "a word deep inside": (
        {"type": "OBJECT", "properties": {"a": {"type": "ARRAY", "items": {"any_of": [{"const": "x"}]}}}},
        "const",
    ),
    "several types": ({"type": "OBJECT", "properties": {"type": {"type": ["STRING", "NULL"]}}}, "type"),
    "true in the place of a schema": ({"type": "OBJECT", "properties": {"a": True}}, "true"),
}


@pytest.mark.parametrize("case", UNTAKEN)
def test_a_schema_that_is_none_of_googles_goes_as_json_schema_also_in_a_clients_own_body(case: str) -> None:
    parameters, word = UNTAKEN[case]
    gateway = SimulatedGateway("gemini", "gemini-2.5-flash")
    tools = [{"function_declarations": [{"name": "f", "parameters": parameters}]}]
    body = {"contents": [{"role": "user", "parts": [{"text": "Find."}]}], "tools": tools}
    answer = gateway.post(path_for("gemini", gateway.model), body)
    assert answer.status == 200, answer.text
    assert not gateway.refusals
    [sent] = gateway.sent["tools"][0]["functionDeclarations"]
    assert sent == {"name": "f", "parametersJsonSchema": json_schema(parameters)}
    assert "tools.schema" in answer.headers["x-bardo-degraded"]
    assert untaken_word(parameters, shape_at(ROW, "m").schema_fields) == word


def test_a_schema_in_googles_own_words_goes_as_it_came() -> None:
    gateway = SimulatedGateway("gemini", "gemini-2.5-flash")
    own = {"type": "OBJECT", "properties": {"const": {"type": "STRING", "nullable": True, "max_length": "3"}}}
    body = {
        "contents": [{"role": "user", "parts": [{"text": "Find."}]}],
        "tools": [{"functionDeclarations": {"name": "f", "parameters": own}}],
    }
    answer = gateway.post(path_for("gemini", gateway.model), body)
    assert answer.status == 200, answer.text
    assert gateway.sent == body
    assert "x-bardo-degraded" not in answer.headers
