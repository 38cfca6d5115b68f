"""A client's own body is sent on byte for byte but for the fields that must change, and written anew where its bytes are in doubt."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.dialects.shared.states import seal
from bardo.planning.attempt import Attempt
from bardo.planning.forwarded import takes_history, with_fields
from bardo.planning.planner import plan
from bardo.planning.route import Provider, Target
from bardo.values.blocks import Opaque
from bardo.values.wire import Arrival

_SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
_VALUES = st.recursive(
    _SCALARS | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
_NAMES = st.sampled_from(["model", "messages", "stream", "a", "b", "é", 'say "model', "model\\"]) | st.text(max_size=5)
_SPACES = st.text(" \t\r\n", max_size=3)


@st.composite
def _objects(draw: st.DrawFn) -> bytes:
    """Return a JSON object as text, with spaces, escapes, and names that may stand twice."""
    pairs = draw(st.lists(st.tuples(_NAMES, _VALUES), max_size=6))
    spaces = iter(draw(st.lists(_SPACES, min_size=30, max_size=30)))
    escaped = draw(st.booleans())
    fields = [
        f"{next(spaces)}{json.dumps(name, ensure_ascii=escaped)}{next(spaces)}:{next(spaces)}"
        f"{json.dumps(value, ensure_ascii=not escaped)}{next(spaces)}"
        for name, value in pairs
    ]
    return f"{next(spaces)}{{{','.join(fields) or next(spaces)}}}{next(spaces)}".encode("utf-8", "replace")


@given(_objects(), st.dictionaries(st.sampled_from(["model", "a", "stream_options"]), _VALUES, max_size=3))
def test_what_is_sent_is_what_writing_it_anew_would_send(raw: bytes, changes: dict[str, Any]) -> None:
    fields = msgspec.json.decode(raw)
    sent = with_fields(raw, fields, changes)
    if sent is not None:
        assert msgspec.json.decode(sent) == {**fields, **changes}
        assert len(json.loads(sent, object_pairs_hook=list)) == len({**fields, **changes})


@given(st.lists(_VALUES, max_size=4), _SPACES)
def test_no_other_byte_is_changed(values: list[Any], space: str) -> None:
    before = "".join(f'"f{place}":{space}{json.dumps(value)}{space},' for place, value in enumerate(values))
    raw = f'{{{before}"model"{space}: "old"{space}}}'.encode()
    assert with_fields(raw, msgspec.json.decode(raw), {"model": "new"}) == raw.replace(b'"old"', b'"new"')


@pytest.mark.parametrize(
    "raw",
    [
        b'{"model": "a", "model": "b"}',
        b'{"a": {"a": 1}, "b": 2, "a": {"b": 3}}',
        b'{"mod\\u0065l": "a"}',
        b'{"a":{"q":0,      "b":1},"b":{"x":1},"a":{"b":1}}',
        b'{"a":1,"b":{"a":1111111111111111111}}x'[:-1].replace(b"}}", b'},"b":[1]}'),
        b'{"m":{"z":"      ","b":1},"b":22,"m":[1,2,3,4,5,6,7,8,9]}',
        b"{}",
        b"",
    ],
)
def test_an_object_whose_names_are_in_doubt_is_not_changed_in_its_place(raw: bytes) -> None:
    assert with_fields(raw, msgspec.json.decode(raw or b"{}"), {"model": "new"}) is None


def test_an_object_from_which_a_field_was_taken_is_not_sent_as_it_was() -> None:
    assert with_fields(b'{"model":"a","bardo":{}}', {"model": "a"}, {}) is None


CLIENTS: dict[str, tuple[str, bytes]] = {
    "openai_chat": ("deepseek", b'{ "messages" : [{"role":"user","content":"a \\"model\\": \\u00e9"}] ,\n "model":"%s", "top_p":0.50}'),
    "anthropic_messages": ("anthropic", b'{"max_tokens":9,"model":"%s","messages":[{"role":"user","content":"\xc3\xa9"}] }\n'),
    "openai_responses": ("openai-responses", b'{"model": "%s", "input": "say", "metadata": {"model": "x"}}'),
    "gemini": ("gemini", b'{"contents":[{"parts":[{"text":"a"}]}],"generationConfig":{"topP":0.50}}'),
}  # fmt: skip


def forwarded(client: str, body: bytes, model: str = "m", *, stream: bool | None = None) -> Attempt:
    row = builtin().provider(CLIENTS[client][0])
    assert row is not None
    asked = dialect(client).decode_request(body, Arrival(model="p/m" if client == "gemini" else "", stream=stream))
    target = Target(provider=Provider(id="p", row=row, base_url="http://host/v1"), model=model)
    attempt = plan(asked, target)
    assert attempt.forward
    return attempt


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_of_each_dialect_has_its_own_bytes_sent(client: str) -> None:
    body = CLIENTS[client][1]
    asked, sent = (body % b"p/m", body % b"m") if b"%s" in body else (body, body)
    attempt = forwarded(client, asked)
    assert attempt.wire.body == sent
    assert attempt.degraded == ()


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("bardo", [b"", b',"bardo":{"allow_loss":["x"]}'])
def test_what_is_asked_of_bardo_is_not_sent_on(client: str, bardo: bytes) -> None:
    body = CLIENTS[client][1].rstrip().replace(b"%s", b"p/m")[:-1] + bardo + b"}"
    fields = msgspec.json.decode(body)
    own = {"model": "m"} if "model" in fields else {}
    fields.pop("bardo", None)
    assert msgspec.json.decode(forwarded(client, body).wire.body) == {**fields, **own}


@pytest.mark.parametrize(
    "given_options", [b"", b',"stream_options":null', b',"stream_options": {"include_usage":false}']
)
def test_usage_is_asked_for_beside_the_clients_own_fields(given_options: bytes) -> None:
    body = b'{"messages":[{"role":"user","content":"a"}],"model":"p/m","stream":true%s}' % given_options
    sent = forwarded("openai_chat", body).wire.body
    assert sent.startswith(b'{"messages":[{"role":"user","content":"a"}],"model":"m","stream":true,"stream_options":')
    assert msgspec.json.decode(sent)["stream_options"] == {"include_usage": True}


def test_of_a_model_that_is_named_twice_the_one_that_was_read_is_sent() -> None:
    body = b'{"model":"other","messages":[{"role":"user","content":"a"}],"model":"p/m"}'
    assert json.loads(forwarded("openai_chat", body).wire.body, object_pairs_hook=list) == [
        ("model", "m"),
        ("messages", [[("role", "user"), ("content", "a")]]),
    ]


TURNS: dict[str, bytes] = {
    "openai_chat": (
        b'"messages":[{"role":"system","content":"s"},{"role":"user","content":"a  \\u00e9"},'
        b'{"role":"assistant", "content":"b" },{"role":"user","content":"c"}]'
    ),
    "anthropic_messages": (
        b'"messages":[{"role":"user","content":"a  \\u00e9"},'
        b'{"role":"assistant", "content":[{"type":"text","text":"b"}] },{"role":"user","content":"c"}]'
    ),
    "openai_responses": (
        b'"input":[{"type":"message","role":"user","content":"a  \\u00e9"},'
        b'{"type":"message","role":"assistant", "content":[{"type":"output_text","text":"b"}] },'
        b'{"type":"message","role":"user","content":"c"}]'
    ),
    "gemini": (
        b'"contents":[{"role":"user","parts":[{"text":"a  \\u00e9"}]},'
        b'{"role":"model", "parts":[{"text":"b"}] },{"role":"user","parts":[{"text":"c"}]}]'
    ),
}
# What the model is told of thinking is not what its client says: the endpoint, the model, the fields, and those that are sent.
OTHERWISE: dict[str, tuple[str, str, bytes, dict[str, Any]]] = {
    "openai_chat": (
        "deepseek",
        "deepseek-v4-pro",
        b'"reasoning_effort":"minimal","temperature":0.5',
        {"reasoning_effort": "low", "thinking": {"type": "enabled"}},
    ),
    "anthropic_messages": (
        "anthropic",
        "claude-sonnet-4-5",
        b'"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":9000},'
        b'"system":[{"type":"text","text":"be","cache_control":{"type":"ephemeral"}}]',
        {
            "max_tokens": 2000,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "system": [{"type": "text", "text": "be", "cache_control": {"type": "ephemeral"}}],
        },
    ),
    "openai_responses": (
        "openai",
        "gpt-5.1",
        b'"instructions":"be","reasoning":{"effort":"max"}',
        {
            "instructions": "be",
            "reasoning": {"effort": "high"},
            "store": False,
            "include": ["reasoning.encrypted_content"],
        },
    ),
    "gemini": (
        "gemini",
        "gemini-2.5-pro",
        b'"systemInstruction":{"parts":[{"text":"be"}]},"generationConfig":{"thinkingConfig":{"thinkingBudget":999999}}',
        {
            "systemInstruction": {"parts": [{"text": "be"}]},
            "generationConfig": {"thinkingConfig": {"thinkingBudget": 32768}},
        },
    ),
}


def asked_otherwise(client: str, turns: bytes, more: bytes = b"") -> Attempt:
    name, model, fields, _ = OTHERWISE[client]
    row = builtin().provider(name)
    assert row is not None
    own = b"" if client == "gemini" else b'"model":"p/m",'
    body = b"{%b%b,%b%b}" % (own, fields, turns, more)
    asked = dialect(client).decode_request(body, Arrival(model=model if client == "gemini" else "", stream=None))
    return plan(asked, Target(provider=Provider(id="p", row=row, base_url="http://host/v1"), model=model))


@pytest.mark.parametrize("client", OTHERWISE)
def test_a_history_has_its_own_bytes_where_fields_beside_it_are_written_anew(client: str) -> None:
    attempt = asked_otherwise(client, TURNS[client])
    name, model, _, sent = OTHERWISE[client]
    assert TURNS[client] in attempt.wire.body
    own = {} if client == "gemini" else {"model": model}
    turns = msgspec.json.decode(b"{%b}" % TURNS[client])
    assert msgspec.json.decode(attempt.wire.body) == {**own, **sent, **turns}
    assert attempt.written is not None
    row = builtin().provider(name)
    assert row is not None
    anew = dialect(client).encode_request(attempt.written, row)
    assert msgspec.json.decode(anew.body) == msgspec.json.decode(attempt.wire.body)
    assert anew.degraded == attempt.wire.degraded
    assert anew.path == attempt.wire.path


MARK = b',"cache_control":{"type":"ephemeral"}'


@pytest.mark.parametrize(
    ("client", "turns", "is_own"),
    [
        ("anthropic_messages", [b'[{"type":"text","text":"a"%b}]' % MARK] * 3, True),
        ("anthropic_messages", [b'[{"type":"text","text":"a"%b}]' % MARK] * 5, False),
        ("anthropic_messages", [b'[{"type":"text","text":""}]', b'"b"', b'"c"'], False),
        ("openai_chat", [b'"a"', b'"b"', b'"c"'], True),
        ("openai_chat", [b'"a"', b'[{"type":"text","text":"b"%b}]' % MARK, b'"c"'], True),
    ],
    ids=["few markers", "too many markers", "a blank text", "texts", "a field that this dialect has no word for"],
)
def test_a_history_that_the_provider_does_not_take_as_it_is_is_written_anew(
    client: str, turns: list[bytes], is_own: bool
) -> None:
    roles = [b"user", b"assistant"] * 3
    written = [b'{"role":"%b",  "content":%b}' % pair for pair in zip(roles, turns, strict=False)]
    attempt = asked_otherwise(client, b'"messages":[%b]' % b",".join(written))
    assert (b'"role":"user",  "content"' in attempt.wire.body) is is_own
    row = builtin().provider(OTHERWISE[client][0])
    assert row is not None
    assert attempt.written is not None
    anew = dialect(client).encode_request(attempt.written, row)
    assert msgspec.json.decode(anew.body) == msgspec.json.decode(attempt.wire.body)
    assert anew.degraded == attempt.wire.degraded


@pytest.mark.parametrize(
    ("thinking", "is_own"),
    [
        (b'"reasoning_content":"t"', True),
        (b'"reasoning":"t"', False),
        (b'"thinking_blocks":[{"type":"thinking","thinking":"t","signature":"s"}]', False),
        (b'"reasoning_details":[{"type":"reasoning.text","text":"t"}]', False),
    ],
    ids=["its own field", "another", "LiteLLM's", "OpenRouter's"],
)
def test_earlier_thinking_stands_in_the_field_of_its_provider(thinking: bytes, is_own: bool) -> None:
    turns = (
        b'{"role":"user",  "content":"a"},{"role":"assistant","content":"b",%b},{"role":"user","content":"c"}'
        % thinking
    )
    attempt = asked_otherwise("openai_chat", b'"messages":[%b]' % turns)
    assert (turns in attempt.wire.body) is is_own
    answer = msgspec.json.decode(attempt.wire.body)["messages"][1]
    assert answer == {"role": "assistant", "content": "b", "reasoning_content": "t"}


def test_a_conversation_that_does_not_begin_with_a_prompt_is_written_anew() -> None:
    turns = b'"messages":[{"role":"assistant",  "content":"b"},{"role":"user",  "content":"c"}]'
    attempt = asked_otherwise("openai_chat", turns)
    assert b'"role":"user",  ' not in attempt.wire.body
    assert [one["role"] for one in msgspec.json.decode(attempt.wire.body)["messages"]] == ["assistant", "user"]


@pytest.mark.parametrize("text", [b'"be"', b'[{"type":"text","text":"be"}]'], ids=["a text", "blocks"])
@pytest.mark.parametrize("system", [b"", b'"system":"first",'], ids=["alone", "behind the system prompt"])
def test_what_the_system_says_in_the_history_is_not_sent_twice(system: bytes, text: bytes) -> None:
    turns = b'{"role":"system","content":%b},{"role":"user",  "content":"a"},{"role":"user","content":"b"}' % text
    row = builtin().provider("anthropic")
    assert row is not None
    body = b'{"model":"p/m","max_tokens":2000,%b"thinking":{"type":"enabled","budget_tokens":9000},"messages":[%b]}'
    asked = dialect("anthropic_messages").decode_request(body % (system, turns), Arrival())
    attempt = plan(
        asked, Target(provider=Provider(id="p", row=row, base_url="http://host/v1"), model="claude-sonnet-4-5")
    )
    assert attempt.written is not None
    assert attempt.wire.body == dialect("anthropic_messages").encode_request(attempt.written, row).body
    assert attempt.wire.body.count(b'"be"') == 1


def test_a_marked_history_has_its_own_bytes_where_the_model_takes_breakpoints() -> None:
    row = builtin().provider("openai-responses") or builtin().provider("openai")
    turns = b'"input":[{"type":"message","role":"user",  "content":[{"type":"input_text","text":"a"%b}]}]' % MARK
    asked = dialect("openai_responses").decode_request(
        b'{"model":"p/m","reasoning":{"effort":"minimal"},%b}' % turns, Arrival()
    )
    assert row is not None
    at = Provider(id="p", row=row, base_url="http://host/v1")
    target = Target(
        provider=next(one for one in at.endpoints if one.row.dialect == "openai_responses"), model="gpt-5.6"
    )
    assert turns in plan(asked, target).wire.body


@pytest.mark.parametrize("says_more", [False, True], ids=["as the client says it", "with other fields"])
@pytest.mark.parametrize(
    ("client", "provider", "model", "fields", "turns"),
    [
        (
            "anthropic_messages",
            "bedrock-mantle-anthropic",
            "claude-sonnet-4-5",
            b'"max_tokens":2000,"system":"x-anthropic-billing-header: cc_version=2.1.0; cch=12345;\\nbe"',
            b'"messages":[{"role":"user",  "content":"a"}]',
        ),
        (
            "anthropic_messages",
            "vertex-anthropic",
            "claude-sonnet-4-5",
            b'"max_tokens":2000',
            b'"messages":[{"role":"user",  "content":"a"}]',
        ),
        (
            "openai_chat",
            "openai-chat",
            "gpt-4o",
            b'"temperature":0.5',
            b'"messages":[{"role":"user",  "content":"a"},{"role":"assistant","content":"b","tool_calls":['
            b'{"id":"c","type":"function","function":{"name":"my.tool","arguments":"{}"}}]},'
            b'{"role":"tool","tool_call_id":"c","content":"d"}]',
        ),
        (
            "openai_chat",
            "deepseek",
            "deepseek-v4-pro",
            b'"temperature":0.5',
            b'"messages":[{"role":"user",  "content":"a"},{"role":"assistant","content":"b","annotations":[]}]',
        ),
        (
            "anthropic_messages",
            "anthropic",
            "claude-sonnet-4-5",
            b'"max_tokens":2000',
            b'"messages":[{"role":"user",  "content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"t",'
            b'"signature":"%b"},{"type":"text","text":"b"}]},{"role":"user","content":"c"}]'
            % seal((Opaque("signature", "S" * 30, "google-gemini-v1"),)).encode(),
        ),
    ],
    ids=["attribution", "a path of its own", "a name that is not taken", "a field that is not taken", "sealed state"],
)
def test_what_a_provider_does_not_take_as_it_came_is_written_anew(
    client: str,
    provider: str,
    model: str,
    fields: bytes,
    turns: bytes,
    says_more: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = builtin().provider(provider)
    verdicts: list[bool] = []
    assert row is not None

    def takes(*asked: Any) -> bool:
        verdicts.append(takes_history(*asked))
        return verdicts[-1]

    monkeypatch.setattr("bardo.planning.planner.takes_history", takes)
    monkeypatch.setattr("bardo.planning.forwarded.takes_history", takes)
    more = b""
    if says_more:
        more = (
            b',"reasoning_effort":"minimal"'
            if client == "openai_chat"
            else b',"thinking":{"type":"enabled","budget_tokens":9000}'
        )
    asked = dialect(client).decode_request(b'{"model":"p/m",%b,%b%b}' % (fields, turns, more), Arrival())
    attempt = plan(asked, Target(provider=Provider(id="p", row=row, base_url="http://host/v1"), model=model))
    assert attempt.written is not None
    anew = dialect(client).encode_request(attempt.written, row)
    assert (attempt.wire.path, attempt.wire.body) == (anew.path, anew.body)
    # With other names in it, a history that is beside other fields has been written anew already.
    assert verdicts == [False] or (says_more and not verdicts)


def test_a_history_is_sent_whose_first_content_has_no_parts() -> None:
    turns = b'"contents":[{"role":"user","parts":[]},{"role":"model","parts":[{"text":"b"}]}]'
    sent = msgspec.json.decode(asked_otherwise("gemini", turns).wire.body)
    assert sent["contents"] == [{"role": "model", "parts": [{"text": "b"}]}]


SIGNED = b'{"type":"thinking","thinking":"t","signature":"%b"},' % (b"S" * 40)
UNSIGNED = b'{"type":"thinking","thinking":"t","signature":""},'
USE = b'{"type":"tool_use","id":"t","name":"look","input":{}}'
RESULT = b'{"role":"user",  "content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]}'


@pytest.mark.parametrize(
    ("turns", "thinks", "is_own"),
    [
        ([b'{"role":"assistant","content":[%b%b]}' % (SIGNED, USE), RESULT], True, True),
        ([b'{"role":"assistant","content":[%b]}' % USE, RESULT], False, False),
        ([b'{"role":"assistant","content":[%b]}' % USE, RESULT, b'{"role":"user","content":"b"}'], False, False),
        ([b'{"role":"assistant","content":[%b%b]}' % (UNSIGNED, USE), RESULT], False, False),
        (
            [
                b'{"role":"assistant","content":"b"}',
                b'{"role":"assistant","content":[%b%b]}' % (SIGNED, USE),
                RESULT,
            ],
            False,
            False,
        ),
        (
            [
                b'{"role":"assistant","content":[%b]}' % USE,
                RESULT,
                b'{"role":"assistant","content":"b"}',
                b'{"role":"user","content":"c"}',
            ],
            True,
            True,
        ),
        (
            [
                b'{"role":"assistant","content":[%b{"type":"text","text":"b"}]}' % SIGNED,
                b'{"role":"assistant","content":[%b]}' % USE,
                RESULT,
            ],
            True,
            True,
        ),
        (
            [b'{"role":"assistant","content":[%b]}' % USE, RESULT, b'{"role":"system","content":"s"}'],
            False,
            False,
        ),
        (
            [b'{"role":"assistant","content":[%b]}' % USE, RESULT, b'{"role":"user","content":"b","name":"n"}'],
            False,
            False,
        ),
    ],
    ids=[
        "with its thinking",
        "without",
        "without, and more is said",
        "unsigned",
        "behind another message of the model",
        "an earlier turn",
        "behind thinking in another message of the model",
        "without, and the system speaks",
        "without, and a turn with a field of its own follows",
    ],
)
def test_a_budget_is_off_where_calls_without_thinking_are_answered(
    turns: list[bytes], thinks: bool, is_own: bool
) -> None:
    begun = [b'{"role":"user",  "content":"a"}', *turns]
    attempt = asked_otherwise("anthropic_messages", b'"messages":[%b]' % b",".join(begun))
    assert (b'"role":"user",  "content"' in attempt.wire.body) is is_own
    sent = msgspec.json.decode(attempt.wire.body)["thinking"]
    assert sent == ({"type": "enabled", "budget_tokens": 1024} if thinks else {"type": "disabled"})
    assert any(one.what == "reasoning" and one.sent == "off" for one in attempt.degraded) is not thinks


def test_of_a_field_that_is_named_twice_the_one_that_was_read_is_sent_beside_a_history_as_it_came() -> None:
    attempt = asked_otherwise("openai_chat", b'"messages":[],' + TURNS["openai_chat"], b',"stop":["x"],"stop":["y"]')
    names = [name for name, _ in json.loads(attempt.wire.body, object_pairs_hook=list)]
    assert sorted(names) == ["messages", "model", "reasoning_effort", "stop", "thinking"]
    sent = msgspec.json.decode(attempt.wire.body)
    assert (len(sent["messages"]), sent["stop"]) == (4, ["y"])
