"""Messages requests to Requests."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.dialects.anthropic_messages import wire as wire_structs
from bardo.dialects.anthropic_messages.wire import SIGNED_BLOCKS
from bardo.dialects.shared.bounded_json import SLICED_BYTES
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
from bardo.values.errors import CallerError, InvalidRequest
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
from dialects.anthropic_messages.replies import ARRIVAL, DIALECT
from support.generated_wire import GeneratedValues

pytestmark = pytest.mark.each_python

NAME = "anthropic_messages"
GPT = Opaque("encrypted", "CIPHER", "openai-responses-v1")
GEMINI = Opaque("signature", "G", "google-gemini-v1")
CACHE = {"cache_control": {"type": "ephemeral"}}
DOCUMENT = {"type": "document", "source": {"type": "file", "file_id": "f"}}


def decode(**fields: Any) -> Request:
    body = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}], **fields}
    return DIALECT.decode_request(json.dumps(body).encode(), ARRIVAL)


def test_a_plain_request() -> None:
    request = decode(
        system="Be brief.", temperature=0.5, top_k=3, stop_sequences=["END"], stream=True, metadata={"user_id": "u"}
    )
    assert request.messages == (Message("system", (TextBlock("Be brief."),)), Message("user", (TextBlock("hi"),)))
    assert request.sampling == Sampling(temperature=0.5, top_k=3, stop=("END",))
    assert (request.max_output_tokens, request.stream, request.dialect) == (100, True, NAME)
    assert request.extra == {"metadata": {"user_id": "u"}}


@pytest.mark.parametrize(
    ("wire", "block"),
    [
        ({"type": "text", "text": "a", **CACHE}, TextBlock("a", carried=Carried(NAME, CACHE))),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}},
            ImageBlock(media_type="image/png", data="QQ=="),
        ),
        ({"type": "image", "source": {"type": "url", "url": "https://x/y"}}, ImageBlock(url="https://x/y")),
        (
            {"type": "image", "source": {"type": "file", "file_id": "f"}},
            UnknownBlock(NAME, {"type": "image", "source": {"type": "file", "file_id": "f"}}),
        ),
        (DOCUMENT, UnknownBlock(NAME, DOCUMENT)),
        (
            {"type": "thinking", "thinking": "t", "signature": "S"},
            ReasoningBlock(
                text="t", format="anthropic-claude-v1", opaque=(Opaque("signature", "S", "anthropic-claude-v1"),)
            ),
        ),
        (
            {"type": "thinking", "thinking": "", "signature": "S"},
            ReasoningBlock(format="anthropic-claude-v1", opaque=(Opaque("signature", "S", "anthropic-claude-v1"),)),
        ),
        ({"type": "thinking", "thinking": "t", "signature": ""}, ReasoningBlock(text="t", format="thinking")),
        ({"type": "thinking", "thinking": "t"}, ReasoningBlock(text="t", format="thinking")),
        (
            {"type": "thinking", "thinking": "t", "signature": seal([GPT])},
            ReasoningBlock(text="t", format="openai-responses-v1", opaque=(GPT,)),
        ),
        (
            {"type": "redacted_thinking", "data": "R"},
            ReasoningBlock(format="anthropic-claude-v1", opaque=(Opaque("redacted", "R", "anthropic-claude-v1"),)),
        ),
        (
            {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}, "caller": {"type": "direct"}},
            ToolCallBlock(id="t", name="f", arguments='{"a":1}', carried=Carried(NAME, {"caller": {"type": "direct"}})),
        ),
        (
            {"type": "tool_use", "id": "t", "name": "f", "input": {"INVALID_JSON": "{"}},
            ToolCallBlock(id="t", name="f", arguments="{"),
        ),
        (
            {"type": "tool_result", "tool_use_id": "t", "content": "42", "is_error": True, **CACHE},
            ToolResultBlock(call_id="t", content=(TextBlock("42"),), is_error=True, carried=Carried(NAME, CACHE)),
        ),
        (
            {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "42"}, DOCUMENT]},
            ToolResultBlock(call_id="t", content=(TextBlock("42"), UnknownBlock(NAME, DOCUMENT))),
        ),
        ({"type": "tool_result", "tool_use_id": "t"}, ToolResultBlock(call_id="t")),
    ],
    ids=lambda value: str(value.get("type")) if isinstance(value, dict) else "",
)
def test_blocks(wire: dict[str, Any], block: Block) -> None:
    assert decode(messages=[{"role": "assistant", "content": [wire]}]).messages[0].blocks == (block,)


def test_state_goes_back_to_the_call_and_the_text_it_belongs_to() -> None:
    content = [
        {"type": "text", "text": "x"},
        SIGNED_BLOCKS.carrier([GEMINI], ""),
        {"type": "tool_use", "id": "t", "name": "f", "input": {}},
        SIGNED_BLOCKS.carrier([GEMINI], "t"),
        SIGNED_BLOCKS.carrier([GPT], ""),
        SIGNED_BLOCKS.carrier([GPT], "a call the client left out"),
    ]
    assert decode(messages=[{"role": "assistant", "content": content}]).messages[0].blocks == (
        TextBlock("x", opaque=(GEMINI,)),
        ToolCallBlock(id="t", name="f", arguments="{}", opaque=(GEMINI,)),
        TextBlock("", opaque=(GPT,)),
        ReasoningBlock(format="openai-responses-v1", opaque=(GPT,)),
    )


def test_results_know_the_name_of_their_tool() -> None:
    request = decode(
        messages=[
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "42"}]},
        ]
    )
    assert request.messages[1].blocks == (ToolResultBlock(call_id="t", name="look", content=(TextBlock("42"),)),)


def test_the_last_call_of_an_id_names_the_results_before_it_too() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": "3"}
    calls: list[dict[str, Any]] = [{"type": "tool_use", "id": "t", "name": name, "input": {}} for name in ("f", "g")]
    turns = [("user", result), ("assistant", calls[0]), ("user", result), ("assistant", calls[1]), ("user", result)]
    found = decode(messages=[{"role": role, "content": [block]} for role, block in turns]).messages
    results = [block for message in found for block in message.blocks if isinstance(block, ToolResultBlock)]
    assert [one.name for one in results] == ["g", "g", "g"]


def test_nobody_looks_at_the_model_of_a_body_whose_path_names_it() -> None:
    body = {"model": 5, "max_tokens": 1, "messages": []}
    request = DIALECT.decode_request(json.dumps(body).encode(), Arrival(model="m"))
    assert (request.model, request.body) == ("m", body)


def test_a_long_body_is_read_as_a_short_one_is() -> None:
    tools = [{"name": "f", "input_schema": {}}, {"type": "bash_20250124", "name": "bash"}]
    turns = [
        {"role": "user", "content": [{"type": "text", "text": "a", "x": 1}]},
        {"role": "assistant", "content": "b"},
    ]
    short = decode(messages=turns, tools=tools, stop_sequences=["END"], y=2)
    padded = [*turns, {"role": "user", "content": "c" * SLICED_BYTES}]
    long = decode(messages=padded, tools=tools, stop_sequences=["END"], y=2)
    assert long.messages[:-1] == short.messages
    assert (long.tools, long.sampling, long.extra) == (short.tools, short.sampling, short.extra)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": [{"role": "user", "content": "c" * SLICED_BYTES}, 5]}, "messages[1]"),
        ({"messages": "c" * SLICED_BYTES}, "messages"),
        ({"tools": [{"name": "c" * SLICED_BYTES, "input_schema": {}}, []]}, "tools[1]"),
        ({"stop_sequences": ["c" * SLICED_BYTES, 5]}, "stop_sequences[1]"),
    ],
)
def test_what_is_wrong_in_a_long_body_is_named(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode(**fields)
    assert caught.value.param == param


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert decode(top_k=40.0).sampling.top_k == 40


@pytest.mark.parametrize("older", [5, {"type": "text"}, {"type": "json_schema", "schema": {"title": "older"}}])
def test_an_older_place_of_the_schema_counts_only_where_the_newer_says_nothing(older: Any) -> None:
    newer = {"type": "json_schema", "schema": {"title": "newer"}}
    request = decode(output_format=older, output_config={"format": newer})
    assert request.output_format is not None
    assert request.output_format.schema == {"title": "newer"}


def test_fields_of_a_body_that_nobody_knows_are_carried_as_they_came() -> None:
    extra = {"unheard_of": {"a": None}, "metadata": None, "service_tier": 5}
    assert decode(**extra).extra == extra


def test_null_says_nothing_where_a_field_may_be_left_out() -> None:
    names = ("system", "tools", "tool_choice", "thinking", "output_config", "output_format", "top_p", "stream")
    request, plain = decode(**dict.fromkeys(names)), decode()
    assert msgspec.structs.replace(request, body=None, body_bytes=b"") == msgspec.structs.replace(
        plain, body=None, body_bytes=b""
    )


@pytest.mark.parametrize("kind", [None, "", "custom"])
def test_a_tool_without_a_type_of_anthropics_own_is_a_function(kind: str | None) -> None:
    tool = {"type": kind, "name": "f", "input_schema": {"type": "object"}, "defer_loading": True}
    (found,) = decode(tools=[tool]).tools
    assert (found.hosted, found.schema) == (False, {"type": "object"})
    assert found.carried == Carried(NAME, {"defer_loading": True})


@pytest.mark.parametrize("oddity", [0.0, 0.02, 0.1])
def test_whatever_a_body_holds_is_read_or_refused(oddity: float) -> None:
    for seed in range(150):
        body = GeneratedValues(("messages body", seed), oddity).of(wire_structs.Request)
        found: Request | InvalidRequest
        try:
            found = DIALECT.decode_request(json.dumps(body).encode(), Arrival(model="m", counting=True))
        except InvalidRequest as problem:
            found = problem
        if isinstance(found, Request):
            assert found.extra.keys() >= body.keys() & {*wire_structs.Request.CARRIED}
        else:
            assert oddity or found.param
            assert found.param or not isinstance(body, dict)


def test_a_system_message_may_carry_an_effort() -> None:
    message = {"role": "system", "content": [], "output_config": {"effort": "low"}}
    assert decode(messages=[message]).messages == (
        Message("system", (), Carried(NAME, {"output_config": {"effort": "low"}})),
    )


def test_tools() -> None:
    hosted = {"type": "web_search_20260209", "name": "web_search", "max_uses": 3}
    request = decode(
        tools=[
            {"name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": True, **CACHE},
            {"type": "custom", "name": "g", "input_schema": {"type": "object"}},
            hosted,
        ],
        tool_choice={"type": "tool", "name": "f", "disable_parallel_tool_use": True},
    )
    assert request.tools == (
        Tool(name="f", description="d", schema={"type": "object"}, strict=True, carried=Carried(NAME, CACHE)),
        Tool(name="g", schema={"type": "object"}),
        Tool(name="web_search", hosted=True, carried=Carried(NAME, hosted)),
    )
    assert request.tool_choice == ToolChoice(mode="named", name="f", parallel=False)


@pytest.mark.parametrize(
    ("thinking", "effort", "policy"),
    [
        ({"type": "enabled", "budget_tokens": 5000}, None, {"mode": "budget", "budget": 5000}),
        ({"type": "adaptive", "display": "summarized"}, None, {"mode": "auto", "visible": True}),
        ({"type": "adaptive", "display": "omitted"}, "xhigh", {"mode": "effort", "effort": "xhigh", "visible": False}),
        ({"type": "disabled"}, None, {"mode": "off"}),
        ({"type": "between_tools"}, "low", {"mode": "effort", "effort": "low", "between_tools": True}),
        (None, "max", {"mode": "effort", "effort": "max", "enables_thinking": False}),
    ],
)
def test_thinking(thinking: dict[str, Any] | None, effort: str | None, policy: dict[str, Any]) -> None:
    fields = {"thinking": thinking} if thinking else {}
    told = {**fields, **({"output_config": {"effort": effort}} if effort else {})}
    assert decode(**fields, output_config={"effort": effort}).reasoning == ReasoningPolicy(**policy, raw_fields=told)


def test_words_for_thinking_that_no_other_dialect_has_are_carried() -> None:
    binding = {"prefix_mismatch_behavior": "drop_block"}
    request = decode(thinking={"type": "adaptive", "display": "updates", "block_binding": binding})
    rest = {"display": "updates", "block_binding": binding}
    assert request.reasoning == ReasoningPolicy(
        mode="auto",
        visible=True,
        carried=Carried(NAME, {"thinking": rest}),
        raw_fields={"thinking": {"type": "adaptive"}},
    )


def test_output_config_is_read_and_what_is_left_of_it_carried() -> None:
    shape = {"type": "json_schema", "schema": {"type": "object"}}
    request = decode(output_config={"format": shape, "task_budget": {"type": "tokens", "total": 20000}})
    assert request.output_format == OutputFormat(mode="json_schema", schema={"type": "object"}, strict=True)
    assert request.extra == {"output_config": {"task_budget": {"type": "tokens", "total": 20000}}}
    assert decode(output_format=shape).output_format == request.output_format


def test_bardos_own_object_is_not_part_of_the_body() -> None:
    request = decode(bardo={"include": ["receipt"], "reasoning": "omit"})
    assert request.options == BardoOptions(include=("receipt",), omit_reasoning=True, chose_display=True)
    assert request.body is not None
    assert "bardo" not in request.body
    assert request.extra == {}


def test_count_tokens_needs_no_limit() -> None:
    body = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
    assert DIALECT.decode_request(body, Arrival(counting=True)).max_output_tokens is None
    with pytest.raises(InvalidRequest, match="max_tokens is required"):
        DIALECT.decode_request(body, ARRIVAL)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": None}, "model"),
        ({"model": 7}, "model"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"messages": "hi"}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": 7}]}]}, "messages[0].content[0].text"),
        ({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, "messages[0].content[0].type"),
        (
            {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [3]}]}]},
            "messages[0].content[0].content[0]",
        ),
        (
            {
                "messages": [
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": "{}"}]}
                ]
            },
            "messages[0].content[0].input",
        ),
        ({"system": 7}, "system"),
        ({"tools": [{"name": "f"}]}, "tools[0].input_schema"),
        ({"tool_choice": {"type": "some"}}, "tool_choice.type"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"thinking": {"type": "hard"}}, "thinking.type"),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "adaptive", "display": "neon"}}, "thinking.display"),
        ({"output_config": {"effort": "huge"}}, "output_config.effort"),
        ({"output_config": {"format": {"type": "xml"}}}, "output_config.format.type"),
        ({"temperature": "hot"}, "temperature"),
        ({"stop_sequences": [1]}, "stop_sequences[0]"),
        ({"stream": "yes"}, "stream"),
        ({"bardo": {"include": ["everything"]}}, "bardo.include[0]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_named(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode(**fields)
    assert caught.value.param == param


@pytest.mark.parametrize("depth", [300, 900, 990, 5000])
def test_deep_nesting_is_the_callers_mistake_or_none(depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    call = f'{{"type":"tool_use","id":"t","name":"f","input":{deep}}}'
    body = f'{{"model":"m","max_tokens":1,"messages":[{{"role":"assistant","content":[{call}]}}]}}'.encode()
    answer = outcome(body)
    assert isinstance(answer, Request) or "nested too deeply" in answer.message


def outcome(body: bytes) -> Request | CallerError:
    """Return what decoding gives or raises; anything but a caller's error passes through."""
    try:
        return DIALECT.decode_request(body, ARRIVAL)
    except CallerError as refused:
        return refused


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(
        ["text", "image", "tool_use", "tool_result", "thinking", "redacted_thinking", "user", "enabled", "base64"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "role",
                    "content",
                    "text",
                    "source",
                    "input",
                    "id",
                    "name",
                    "data",
                    "thinking",
                    "tool_use_id",
                    "effort",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)
CONTROLS = (
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "temperature",
    "stop_sequences",
    "stream",
    "bardo",
    "x",
)
BODIES = st.fixed_dictionaries(
    {"model": st.just("m"), "max_tokens": st.just(5), "messages": st.lists(JSON, max_size=3) | JSON},
    optional=dict.fromkeys(CONTROLS, JSON),
)


@given(st.binary(max_size=60) | BODIES.map(lambda body: json.dumps(body).encode()))
def test_no_body_raises_anything_else(body: bytes) -> None:
    answer = outcome(body)
    assert isinstance(answer, Request) or answer.status == 400
