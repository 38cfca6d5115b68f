"""A field that nobody knows, in any object of a request, reaches a provider of the request's dialect, or its loss is reported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.planning.planner import plan
from bardo.planning.route import Provider, Target
from bardo.values.request import Request
from bardo.values.wire import Arrival
from support.full_requests import FULL_REQUESTS, FURTHER_REQUESTS
from support.sampling import sample

NAME, VALUE = "novel", "zq8"
TARGETS = {
    "openai_chat": ("openrouter", "anthropic/claude-sonnet-4.5"),
    "openai_responses": ("openai", "gpt-4o"),
    "anthropic_messages": ("anthropic", "claude-sonnet-4-5"),
    "gemini": ("gemini", "gemini-2.5-flash"),
    "gemini_interactions": ("gemini-interactions", "gemini-2.5-flash"),
    "ollama": ("ollama", "qwen3:4b"),
    "cohere": ("cohere", "command-a-03-2025"),
    "bedrock_converse": ("bedrock", "anthropic.claude-sonnet-4-5"),
    "bedrock_invoke": ("bedrock-invoke", "anthropic.claude-sonnet-4-5"),
    "watsonx_text": ("watsonx", "m"),
}
FREE = frozenset(
    {
        "bardo", "metadata", "labels", "requestMetadata", "logit_bias", "arguments", "args", "response", "json",
        "parameters", "parametersJsonSchema", "input_schema", "schema", "responseSchema", "responseJsonSchema",
    }
)  # fmt: skip
"""What is inside is the caller's own, a schema or arguments."""
FREE_IN = {("ollama", "format"), ("cohere", "json_schema"), ("anthropic_messages", "input")}
"""The same in one dialect: `input` is a list of items elsewhere."""
WORDS: dict[str, tuple[str, ...]] = {
    "image": ("image_url", "input_image", "inlineData", "fileData"),
    # A cache point goes with the block before it.
    "document": ("file", "input_file", "document", "cachePoint"),
    "reasoning": ("reasoning", "reasoning_details", "thinking", "redacted_thinking", "thought", "reasoningContent"),
    "tool_call": ("tool_calls", "function_call", "custom_tool_call", "tool_use", "functionCall", "toolUse"),
    "tool": ("tools",),
    "tool_choice": ("tools",),
    "tools": ("tools", "functions"),
    "cache_control": ("cachePoint",),
}
"""bardo's words, in which the loss of a whole object is told, by those of the dialects."""

ALWAYS = {
    "openai_chat": (
        "tool_choice", "tool_choice.function", "response_format", "response_format.json_schema", "stream_options",
        "messages.1.content.2", "messages.1.content.2.input_audio", "messages.1.content.3.file",
    ),
    "openai_responses": ("tool_choice", "text.format", "input.2.summary.0", "input.2.content.0"),
    "anthropic_messages": (
        "tool_choice", "output_config.format", "messages.1.content.0", "messages.1.content.1", "tools.0.cache_control",
    ),
    "gemini": ("systemInstruction", "contents.0.parts.1.inlineData", "contents.0.parts.2.fileData"),
    "gemini_interactions": ("input.1.summary.0", "generation_config.tool_choice.allowed_tools"),
    "cohere": ("response_format",),
    "bedrock_converse": (
        "toolConfig", "toolConfig.toolChoice", "toolConfig.toolChoice.tool", "outputConfig.textFormat",
        "outputConfig.textFormat.structure", "outputConfig.textFormat.structure.jsonSchema",
        "messages.0.content.3.cachePoint", "messages.1.content.0.reasoningContent", "messages.1.content.1",
    ),
}  # fmt: skip
"""The objects that are tried by day too: each needs a step of its own."""


def objects(value: Any, source: str, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every object whose fields are the dialect's."""
    if at and (at[-1] in FREE or (source, at[-1]) in FREE_IN):
        return
    if isinstance(value, dict):
        yield at
    for name, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from objects(inner, source, (*at, name))


def put(value: Any, at: tuple[Any, ...], held: Any = VALUE) -> Any:
    """Return a JSON value with the unknown field in the object at a place."""
    if not at:
        return {**value, NAME: held}
    copy = value.copy()
    copy[at[0]] = put(copy[at[0]], at[1:], held)
    return copy


def holders(full: Any, at: tuple[Any, ...]) -> set[str]:
    """Return what the objects around a place are called: by the fields that they stand in, and by their types."""
    names: set[str] = set()
    for name in at:
        full = full[name]
        names |= {str(name), str(full.get("type"))} if isinstance(full, dict) else {str(name)}
    # A part of Gemini or Converse has no type: it is what it holds.
    return names if "role" in full else names | full.keys()


def asked(source: str, full: dict[str, Any], at: tuple[Any, ...], held: Any = VALUE) -> Request:
    body = put({**full, "bardo": {"allow_loss": ["*"]}}, at, held)
    return dialect(source).decode_request(msgspec.json.encode(body), Arrival(model="m"))


def is_told(request: Request, spoken: str, around: set[str]) -> bool:
    """Whether the field is sent, or it or an object around it is reported."""
    preset, model = TARGETS[spoken]
    row = builtin().provider(preset)
    assert row is not None
    attempt = plan(request, Target(provider=Provider(id=preset, row=row, base_url="http://host/v1"), model=model))
    if NAME.encode() in attempt.wire.body:
        return True
    for one in attempt.degraded:
        if NAME in one.what or NAME in str(one.asked) or VALUE in str(one.asked):
            return True
        # A whole block that only its dialect knows, and thinking by whose it is.
        first, *inner = re.split("[. ]", one.what)
        if one.what == f"content.{request.dialect}":
            return around != set()
        if first == "content" or (one.what == "reasoning" and str(one.asked) not in ("low", "on", "off")):
            first = inner[0] if inner else first
        if first in around or not around.isdisjoint(WORDS.get(first, ())):
            return True
    return False


@pytest.mark.parametrize(("source", "full"), [*FULL_REQUESTS.items(), *FURTHER_REQUESTS])
def test_a_field_that_nobody_knows_arrives_or_is_reported(source: str, full: dict[str, Any]) -> None:
    untold: list[str] = []
    always = ALWAYS.get(source, ())
    places = sample(
        objects(full, source), 6, law=f"unknown fields of {source}", always=lambda at: ".".join(map(str, at)) in always
    )
    for at in places:
        request = asked(source, full, at)
        written_anew = msgspec.structs.replace(request, body=None, body_bytes=b"")
        around = holders(full, at)
        for case, one, spoken in (
            ("as it came", request, source),
            ("written anew", written_anew, source),
            *(("", request, spoken) for spoken in TARGETS if spoken != source),
        ):
            if not is_told(one, spoken, around if spoken != source else set()):
                untold.append(f"{'.'.join(map(str, at))} to {spoken} {case}")
    assert not untold


@pytest.mark.parametrize(("source", "full"), [*FULL_REQUESTS.items(), *FURTHER_REQUESTS])
@pytest.mark.parametrize(("name", "values"), [(NAME, (0, False, "", [], {})), ("others", (VALUE,))])
def test_a_field_that_nobody_knows_is_told_whatever_it_is_called_and_holds(
    source: str, full: dict[str, Any], name: str, values: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.NAME", name)
    untold: list[str] = []
    for at in objects(full, source):
        for held in values:
            request = asked(source, full, at, held)
            anew = msgspec.structs.replace(request, body=None, body_bytes=b"")
            if not (is_told(request, source, set()) and is_told(anew, source, set())):
                untold.append(f"{'.'.join(map(str, at))} {held!r}")
    assert not untold


@pytest.mark.parametrize("at", [("messages", 1, "content", 0), ("messages", 1, "content", 0, "thinking", 0)])
def test_a_field_beside_thinking_in_the_content_is_reported_where_the_thinking_goes(at: tuple[Any, ...]) -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": [thinking, {"type": "text", "text": "a"}]},
        {"role": "user", "content": "y"},
    ]
    request = asked("openai_chat", {"model": "m", "messages": messages}, at)
    row = builtin().provider("mistral")
    assert row is not None
    provider = Provider(id="mistral", row=row, base_url="http://host/v1")
    for one, lost in ((request, True), (asked("openai_chat", {"model": "m", "messages": messages}, ()), False)):
        anew = msgspec.structs.replace(one, body=None, body_bytes=b"")
        attempt = plan(anew, Target(provider=provider, model="magistral-medium-latest"))
        assert msgspec.json.decode(attempt.wire.body)["messages"][1]["content"][0] == thinking
        assert (
            any(
                NAME in (found.what, *(found.asked[0] if found.what == "thinking" else ()))
                for found in attempt.degraded
            )
            == lost
        )


CALL = {"id": "c", "type": "function", "function": {"name": f"f{VALUE}", "arguments": "{}"}}
FIELDS_OF_ROLES: dict[str, dict[str, Any]] = {
    "openai_chat": {
        "tool_calls": [CALL], "function_call": CALL["function"], "refusal": VALUE, "reasoning_content": VALUE, "reasoning": VALUE,
        "reasoning_details": [{"type": "reasoning.text", "text": VALUE}], "tool_call_id": VALUE,
        "thinking_blocks": [{"type": "thinking", "thinking": VALUE}], "extra_content": {"google": {"thought_signature": VALUE}},
    },
    "ollama": {"tool_calls": [{"function": {"name": f"f{VALUE}", "arguments": {}}}], "thinking": VALUE, "tool_call_id": VALUE},
    "cohere": {"tool_calls": [CALL], "tool_plan": VALUE, "tool_call_id": VALUE},
}  # fmt: skip
DATA_OF_PARTS = {
    "text": f"t{VALUE}",
    "inlineData": {"mimeType": "image/png", "data": f"{VALUE}A"},
    "fileData": {"fileUri": f"https://h/{VALUE}"},
    "functionCall": {"name": f"f{VALUE}"},
    "functionResponse": {"name": f"f{VALUE}", "response": {}},
}


def odd_requests(source: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield requests whose value stands where it is not read, each with what tells it."""
    said: dict[str, Any] = {"role": "user", "content": "x"}
    parts = [{"text": "x"}]
    for name, value in FIELDS_OF_ROLES.get(source, {}).items():
        for role in ("system", "user", "assistant", "tool"):
            if (role, name) != ("tool", "tool_call_id"):
                odd = {"role": role, "content": "x", **({"tool_call_id": "r"} if role == "tool" else {}), name: value}
                function = {"name": "g", "arguments": {} if source == "ollama" else "{}"}
                call = {"role": "assistant", "tool_calls": [{"id": "r", "type": "function", "function": function}]}
                yield f"{role}.{name}", {"messages": [said, *([call] if role == "tool" else ()), odd, said]}
    if source == "gemini":
        for first, second in combinations(DATA_OF_PARTS, 2):
            part = {first: DATA_OF_PARTS[first], second: DATA_OF_PARTS[second]}
            for role in ("user", "model"):
                yield f"{first} and {second}", {"contents": [{"parts": parts}, {"role": role, "parts": [part, *parts]}]}
        for odd in ({NAME: VALUE}, {"role": "model", "parts": [], NAME: VALUE}):
            yield "no parts", {"contents": [{"parts": parts}, odd, {"parts": parts}]}
        yield "nobody's state", {"contents": [{"parts": [{"text": "x", "thoughtSignature": VALUE}]}]}
    elif source == "openai_responses":
        for role in ("user", "assistant", "system"):
            yield f"empty {role}", {"input": [said, {"role": role, "content": [], NAME: VALUE}, said]}
    elif source == "anthropic_messages":
        result = {"type": "tool_result", "tool_use_id": VALUE, "content": "x"}
        yield (
            "the model's result",
            {"max_tokens": 9, "messages": [said, {"role": "assistant", "content": [result]}, said]},
        )


@pytest.mark.parametrize("source", [*FIELDS_OF_ROLES, "gemini", "openai_responses", "anthropic_messages"])
def test_what_stands_where_it_is_not_read_arrives_or_is_reported(source: str) -> None:
    untold: list[str] = []
    for what, body in odd_requests(source):
        given = msgspec.json.encode({"model": "m", **body, "bardo": {"allow_loss": ["*"]}})
        request = dialect(source).decode_request(given, Arrival(model="m"))
        written_anew = msgspec.structs.replace(request, body=None, body_bytes=b"")
        for case, spoken in ((written_anew, source), *((request, spoken) for spoken in TARGETS)):
            preset, model = TARGETS[spoken]
            row = builtin().provider(preset)
            assert row is not None
            attempt = plan(case, Target(provider=Provider(id=preset, row=row, base_url="http://host/v1"), model=model))
            if VALUE.encode() not in attempt.wire.body and not attempt.degraded:
                untold.append(f"{what} to {spoken}")
    assert not untold


@pytest.mark.parametrize("name", [NAME, "id"])
def test_fields_of_signed_thinking_go_back_to_litellm_with_it(name: str) -> None:
    signed = [
        {"type": "thinking", "thinking": "t", "signature": "c2ln", name: VALUE},
        {"type": "redacted_thinking", "data": "ZGF0", name: VALUE},
    ]
    row = builtin().provider("litellm")
    assert row is not None
    target = Target(provider=Provider(id="litellm", row=row, base_url="http://host/v1"), model="claude-sonnet-4-5")
    for blocks, goes in ((signed, True), ([{"type": "novel", name: VALUE}], False), ([VALUE], False)):
        said = {"role": "assistant", "content": "a", "thinking_blocks": blocks}
        messages = [{"role": "user", "content": "x"}, said, {"role": "user", "content": "y"}]
        body = {"model": "m", "messages": messages, "bardo": {"allow_loss": ["*"]}}
        request = dialect("openai_chat").decode_request(msgspec.json.encode(body), Arrival(model="m"))
        attempt = plan(msgspec.structs.replace(request, body=None, body_bytes=b""), target)
        assert (msgspec.json.decode(attempt.wire.body)["messages"][1].get("thinking_blocks") == blocks) == goes
        assert any(VALUE in str(one.asked) for one in attempt.degraded) != goes


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("source", ["gemini", "bedrock_converse"])
def test_whether_a_reply_is_streamed_is_no_further_field_where_the_path_says_the_same(
    source: str, streamed: bool
) -> None:
    prompts: dict[str, dict[str, Any]] = {
        "gemini": {"contents": [{"parts": [{"text": "a"}]}]},
        "bedrock_converse": {"messages": [{"role": "user", "content": [{"text": "a"}]}]},
    }
    body = msgspec.json.encode({**prompts[source], "stream": streamed})
    for path_says in (False, True):
        request = dialect(source).decode_request(body, Arrival(model="m", stream=path_says))
        for spoken, (preset, _) in TARGETS.items():
            row = builtin().provider(preset)
            assert row is not None
            attempt = plan(request, Target(provider=Provider(id=preset, row=row, base_url="http://h/v1"), model="m"))
            reported = "stream" in [one.what for one in attempt.degraded]
            if path_says is streamed:
                assert not reported, spoken
                assert spoken != source or b'"stream"' not in attempt.wire.body
            else:
                assert reported or b'"stream"' in attempt.wire.body, spoken


@pytest.mark.parametrize(
    ("source", "body"),
    [
        (
            "anthropic_messages",
            {"max_tokens": 99, "system": [{"type": "text", "text": "a"}, {"type": NAME, "x": VALUE}]},
        ),
        ("bedrock_converse", {"system": [{"text": "a"}, {NAME: {"x": VALUE}}]}),
    ],
)
def test_a_block_of_the_system_prompt_that_nobody_knows_reaches_its_own_dialect(
    source: str, body: dict[str, Any]
) -> None:
    text: Any = "a" if source == "anthropic_messages" else [{"text": "a"}]
    request = asked(source, {**body, "messages": [{"role": "user", "content": text}]}, ())
    for one in (request, msgspec.structs.replace(request, body=None, body_bytes=b"")):
        preset, model = TARGETS[source]
        row = builtin().provider(preset)
        assert row is not None
        attempt = plan(one, Target(provider=Provider(id=preset, row=row, base_url="http://h/v1"), model=model))
        assert msgspec.json.decode(attempt.wire.body)["system"] == body["system"]
        assert attempt.degraded == ()
    for spoken in TARGETS:
        assert spoken == source or is_told(request, spoken, set())
