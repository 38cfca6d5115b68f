"""Hints for the prompt cache: where markers stand, which keys prompts have, and that nothing else of a body changes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.catalog.load import builtin
from bardo.catalog.prompt_caching import least_cached
from bardo.dialects import dialect
from bardo.planning.knowledge import CachingPolicy, Knowledge
from bardo.planning.planner import plan
from bardo.planning.prompt_caching import CacheHints, with_cache_hints
from bardo.planning.route import Provider, Target
from bardo.values.degradation import Degradation
from bardo.values.request import Request
from bardo.values.wire import Arrival, WireRequest

CLAUDE, OPENAI = ("anthropic", "claude-sonnet-4-5"), ("openai-chat", "gpt-5.4")
LONG = "Rules of the house. " * 300
MARKER = {"type": "ephemeral"}
POLICY = CachingPolicy(tenant="team")
NOTHING = Request(model="m", messages=())


def target(row: str, model: str) -> Target:
    found = next(one for one in builtin().providers if one.id == row)
    return Target(provider=Provider(id=row, row=found, base_url=found.base_url), model=model)


def hinted(
    body: dict[str, Any], at: tuple[str, str] = CLAUDE, policy: CachingPolicy = POLICY
) -> tuple[Any, CacheHints | None]:
    wire = WireRequest(path="x", body=json.dumps(body).encode())
    wire, hints = with_cache_hints(wire, NOTHING, target(*at), policy)
    return json.loads(wire.body), hints


def key_of(body: dict[str, Any], at: tuple[str, str] = OPENAI, policy: CachingPolicy = POLICY) -> str:
    """Return the key that a body is sent with."""
    place, raw = target(*at), json.dumps({"model": at[1], **body}).encode()
    request = dialect(place.provider.row.dialect).decode_request(raw, Arrival())
    wire, hints = with_cache_hints(WireRequest(path="x", body=raw), request, place, policy)
    assert hints is not None
    assert hints.key == json.loads(wire.body)["prompt_cache_key"]
    return hints.key


def marked_places(value: Any, path: str = "") -> Iterator[str]:
    """Yield where markers stand."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in ("cache_control", "cachePoint"):
                yield path
            else:
                yield from marked_places(inner, f"{path}.{name}" if path else name)
    if isinstance(value, list):
        for number, inner in enumerate(value):
            yield from marked_places(inner, f"{path}[{number}]")


def without_markers(value: Any) -> Any:
    """Return a body without markers, each list of one plain text as that text: both mean the same."""
    if isinstance(value, dict):
        return {name: without_markers(inner) for name, inner in value.items() if name != "cache_control"}
    if isinstance(value, list):
        kept = [without_markers(one) for one in value if not (isinstance(one, dict) and "cachePoint" in one)]
        alone = len(kept) == 1 and isinstance(kept[0], dict) and set(kept[0]) == {"type", "text"}
        return kept[0]["text"] if alone else kept
    return value


TOOL = {"name": "look", "description": LONG, "input_schema": {"type": "object"}}
TURNS = [
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "two"}]},
    {"role": "user", "content": [{"type": "text", "text": "three"}]},
]  # fmt: skip
CONVERSE = {
    "system": [{"text": LONG}],
    "toolConfig": {"tools": [{"toolSpec": {"description": LONG}}]},
    "messages": [{"role": "user", "content": [{"text": "one"}]}],
}
PLACES: list[tuple[str, tuple[str, str], dict[str, Any], list[str]]] = [
    ("a text", CLAUDE, {"system": LONG, "messages": TURNS[:1]}, ["system[0]"]),
    ("too short", CLAUDE, {"system": "Be kind.", "messages": TURNS[:1]}, []),
    ("blocks", CLAUDE, {"system": [{"type": "text", "text": LONG}, {"type": "text", "text": "x"}], "messages": TURNS[:1]}, ["system[1]"]),
    (
        "an empty last block",
        CLAUDE,
        {"system": [{"type": "text", "text": LONG}, {"type": "text", "text": ""}], "messages": TURNS[:1]},
        ["system[0]"],
    ),
    ("tools alone", CLAUDE, {"tools": [TOOL, TOOL], "messages": TURNS[:1]}, ["tools[1]"]),
    ("a tool that is loaded later", CLAUDE, {"tools": [TOOL, {**TOOL, "defer_loading": True}], "messages": TURNS[:1]}, ["tools[0]"]),
    (
        "a conversation",
        CLAUDE,
        {"tools": [TOOL], "system": LONG, "messages": TURNS},
        ["messages[0].content[0]", "messages[2].content[0]", "system[0]", "tools[0]"],
    ),
    (
        "an answer that the client began",
        CLAUDE,
        {"system": LONG, "messages": [*TURNS, {"role": "assistant", "content": "fo"}]},
        ["messages[2].content[0]", "system[0]"],
    ),
    (
        "the client's own marker",
        CLAUDE,
        {"system": [{"type": "text", "text": LONG, "cache_control": MARKER}], "messages": TURNS},
        ["system[0]"],
    ),
    ("the client's own marker of the whole", CLAUDE, {"cache_control": MARKER, "system": LONG, "messages": TURNS}, [""]),
    ("below the minimum of the model", ("anthropic", "claude-opus-4-6"), {"system": LONG, "messages": TURNS[:1]}, []),
    ("above that of a later one", ("anthropic", "claude-opus-5"), {"system": LONG[:2400], "messages": TURNS[:1]}, ["system[0]"]),
    (
        "a provider of Chat Completions",
        ("openrouter", "anthropic/claude-sonnet-4.5"),
        {"messages": [{"role": "system", "content": LONG}, {"role": "user", "content": "one"}]},
        ["messages[0].content[0]"],
    ),
    ("another model there", ("openrouter", "openai/gpt-5.4"), {"messages": [{"role": "system", "content": LONG}]}, []),
    (
        "Converse",
        ("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
        CONVERSE,
        ["system[1]", "toolConfig.tools[1]"],
    ),
    (
        "Nova takes none behind tools",
        ("bedrock", "amazon.nova-pro-v1:0"),
        CONVERSE,
        ["system[1]"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("at", "body", "places"), [case[1:] for case in PLACES], ids=[case[0] for case in PLACES])
def test_markers_stand_where_the_static_part_ends(at: tuple[str, str], body: dict[str, Any], places: list[str]) -> None:
    sent, hints = hinted(body, at)
    assert sorted(marked_places(sent)) == places
    if list(marked_places(body)):
        assert sent == body
        assert hints is None
    else:
        assert without_markers(sent) == without_markers(body)
        assert (hints is not None and len(hints.markers) == len(places)) or not places


TEXTS = st.text(max_size=40)
BLOCKS = st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS})
CONTENT = st.one_of(TEXTS, st.lists(BLOCKS, max_size=3))
BODIES = st.fixed_dictionaries(
    {
        "model": st.just("m"),
        "messages": st.lists(
            st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": CONTENT}), max_size=7
        ),
    },
    optional={
        "system": st.one_of(st.just(LONG), CONTENT),
        "tools": st.lists(st.just(TOOL), max_size=3),
        "metadata": st.dictionaries(TEXTS, TEXTS, max_size=2),
    },
)


@given(BODIES, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_whatever_the_body_only_markers_are_added_and_at_most_four(
    body: dict[str, Any], indent: Any, ascii_only: bool
) -> None:
    raw = json.dumps(body, indent=indent, ensure_ascii=ascii_only).encode()
    wire, hints = with_cache_hints(WireRequest(path="x", body=raw), NOTHING, target(*CLAUDE), POLICY)
    places = list(marked_places(json.loads(wire.body)))
    assert len(places) <= 4
    assert (hints is None) == (wire.body == raw)
    # What is left without the bytes of the markers is what the client wrote: with spaces, unlike what bardo puts around a text.
    bare = wire.body.replace(b',"cache_control":{"type":"ephemeral"}', b"")
    assert re.sub(rb'\[\{"type":"text","text":("(?:[^"\\]|\\.)*")\}\]', rb"\1", bare) == raw


def test_all_other_bytes_are_the_clients() -> None:
    raw = (
        b'{ "model":"m",\n "system": [ {"type":"text",  "text":"'
        + LONG.encode()
        + b'"} ] ,"messages":[ {"role":"user","content":"\\u00e9"} ],"x":1.50 }'
    )
    wire, _ = with_cache_hints(WireRequest(path="x", body=raw), NOTHING, target(*CLAUDE), POLICY)
    assert wire.body.replace(b',"cache_control":{"type":"ephemeral"}', b"") == raw


def test_a_key_is_the_same_for_prompts_that_begin_alike() -> None:
    def key(system: str, question: str, tenant: str = "team", model: str = "gpt-5.4") -> str:
        turns = [{"role": "system", "content": system}, {"role": "user", "content": question}]
        return key_of({"messages": turns}, ("openai-chat", model), CachingPolicy(tenant=tenant))

    assert key("a", "one") == key("a", "two")
    different = {key("a", "one"), key("b", "one"), key("a", "one", tenant="other"), key("a", "one", model="gpt-5.5")}
    assert len(different) == 4
    assert all(len(one) <= 64 for one in different)


def test_a_prompt_without_a_head_is_told_apart_by_its_first_turn() -> None:
    def key(*turns: str) -> str:
        return key_of({"messages": [{"role": "user", "content": text} for text in turns]})

    assert key("one") == key("one", "two")
    assert key("one") != key("two")
    pictures = [{"type": "image_url", "image_url": {"url": f"https://x/{name}"}} for name in ("a.png", "b.png")]
    assert len({key_of({"messages": [{"role": "user", "content": [one]}]}) for one in pictures}) == 2


def test_every_tool_tells_prompts_apart() -> None:
    function = LOOK["function"]
    tools: list[list[dict[str, Any]]] = [
        [],
        [LOOK],
        [LOOK, {**LOOK, "function": {**function, "name": "see"}}],
        [{**LOOK, "function": {**function, "description": "Sees."}}],
        [{**LOOK, "function": {**function, "parameters": {"type": "object", "properties": {}}}}],
    ]
    keys = [key_of({"messages": [{"role": "user", "content": "one"}], "tools": given}) for given in tools]
    assert len({*keys}) == len(keys)
    searches = [{"type": "web_search", "search_context_size": size} for size in ("low", "high")]
    at = ("openai", "gpt-5.4")
    assert len({key_of({"input": "one", "tools": [search]}, at) for search in searches}) == 2


LOOK: dict[str, Any] = {
    "type": "function",
    "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}},
}
HEADS: list[tuple[str, dict[str, Any]]] = [
    ("openai_chat", {"messages": [{"role": "system", "content": "Be brief."}]}),
    ("openai_chat", {"messages": [{"role": "developer", "content": "Be brief."}]}),
    ("openai_chat", {"messages": [{"role": "system", "content": [{"type": "text", "text": "Be brief."}]}]}),
    ("openai_chat", {"messages": [{"role": "system", "content": "Be brief."}], "tools": [LOOK]}),
    ("openai_chat", {"messages": []}),
    ("openai_responses", {"instructions": "Be brief.", "input": []}),
    ("openai_responses", {"input": [{"role": "developer", "content": "Be brief."}]}),
    ("openai_responses", {"input": [], "tools": [{"type": "function", **LOOK["function"]}]}),
    ("openai_responses", {"input": []}),
]


@pytest.mark.parametrize(("name", "head"), HEADS, ids=lambda value: str(value)[:60])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_body_that_is_sent_on_has_the_key_of_one_that_is_written(
    name: str, head: dict[str, Any], indent: Any
) -> None:
    turn = {
        "type": "message",
        "role": "user",
        "content": [{"text": "one", "type": f"{'input_' * ('input' in head)}text"}],
    }
    field = "input" if "input" in head else "messages"
    body = {"model": "gpt-5.4", **head, field: [*head[field], turn]}
    request = dialect(name).decode_request(json.dumps(body, indent=indent).encode(), Arrival())
    place = target("openai" if name == "openai_responses" else "openai-chat", "gpt-5.4")
    knowledge = Knowledge(tenant="team", caching=POLICY)
    sent, written = (plan(request, place, knowledge=knowledge, may_forward=may) for may in (True, False))
    assert (sent.written is None, written.written is None) == (True, False)
    keys = {json.loads(one.wire.body)["prompt_cache_key"] for one in (sent, written)}
    assert len(keys) == 1


def test_the_clients_own_key_stays() -> None:
    body = {"messages": [{"role": "user", "content": "one"}], "prompt_cache_key": "mine"}
    assert hinted(body, OPENAI) == (body, None)


def test_instructions_of_responses_are_a_head() -> None:
    keys = {key_of({"instructions": text, "input": "hi"}, ("openai", "gpt-5.4")) for text in "aab"}
    assert len(keys) == 2


def test_no_markers_where_they_are_turned_off() -> None:
    body = {"system": LONG, "messages": TURNS}
    assert hinted(body, policy=CachingPolicy(markers=False)) == (body, None)


@pytest.mark.parametrize("provider", ["groq", "deepseek", "gemini"])
def test_a_provider_that_caches_by_itself_is_told_nothing(provider: str) -> None:
    body = {"messages": [{"role": "system", "content": LONG}]}
    assert hinted(body, (provider, "m")) == (body, None)


HOSTILE: list[Any] = [7, None, "x", [], {}, [1], [None], [[]], [{}], [{"role": 3}], [{"content": 7}]]


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
@pytest.mark.parametrize("field", ["system", "tools", "messages", "toolConfig", "input", "instructions"])
@pytest.mark.parametrize(
    "at", [CLAUDE, OPENAI, ("bedrock", "anthropic.claude-3"), ("openrouter", "anthropic/claude-sonnet-4.5")], ids=str
)
def test_a_body_of_any_shape_is_left_or_marked(at: tuple[str, str], field: str, value: Any) -> None:
    body = {"system": [{"text": LONG, "type": "text"}], "messages": TURNS, field: value}
    sent, _ = hinted(body, at)
    sent.pop("prompt_cache_key", None)
    assert without_markers(sent) == without_markers(body)


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("claude-opus-5-20260601", 512),
        ("claude-opus-4-8", 1024),
        ("claude-opus-4-7", 2048),
        ("anthropic/claude-opus-4.6", 4096),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", 4096),
        ("claude-sonnet-4-6", 1024),
        ("whatever", 1024),
    ],
)
def test_from_how_many_tokens_on_a_prefix_is_cached(model: str, tokens: int) -> None:
    assert least_cached(model) == tokens


MARKED = {"system": [{"type": "text", "text": LONG, "cache_control": {**MARKER, "ttl": "1h"}}], "messages": TURNS}
AUTOMATIC = {"cache_control": MARKER, "system": LONG, "messages": TURNS}


def placed(body: dict[str, Any], place: tuple[str, str], **knowledge: Any) -> tuple[dict[str, Any], list[Degradation]]:
    """Return what a provider is sent of a request of Anthropic's dialect, and what is told of its markers."""
    row = builtin().provider(place[0])
    assert row is not None
    raw = json.dumps({"model": place[1], "max_tokens": 100, **body}).encode()
    request = dialect("anthropic_messages").decode_request(raw, Arrival())
    target = Target(provider=Provider(id=place[0], row=row, base_url="http://x"), model=place[1])
    attempt = plan(request, target, knowledge=Knowledge(tenant="team", **knowledge))
    return json.loads(attempt.wire.body), [one for one in attempt.degraded if one.what == "cache_control"]


@pytest.mark.parametrize("place", [("openai", "gpt-5.4"), ("openai-chat", "gpt-5.4"), ("moonshot", "kimi-k3")])
@pytest.mark.parametrize("body", [MARKED, AUTOMATIC], ids=["blocks", "automatic"])
def test_markers_become_a_key_where_a_provider_caches_by_one(place: tuple[str, str], body: dict[str, Any]) -> None:
    sent, [told] = placed(body, place)
    key = sent["prompt_cache_key"]
    assert key.startswith("bardo-")
    hour = place[0] != "moonshot" and body is MARKED
    assert sent.get("prompt_cache_retention") == ("24h" if hour else None)
    assert told.sent == {"key": key, **({"kept": "24h"} if hour else {})}
    assert "cache_control" not in json.dumps(sent)
    plain, _ = placed({"system": LONG, "messages": TURNS}, place)
    assert "prompt_cache_key" not in plain, "who marks nothing gets nothing"


def test_a_private_call_is_kept_no_longer_than_it_asks() -> None:
    sent, _ = placed({**MARKED, "bardo": {"private": True}}, ("openai", "gpt-5.4"))
    assert "prompt_cache_key" in sent
    assert "prompt_cache_retention" not in sent


@pytest.mark.parametrize("body", [MARKED, AUTOMATIC], ids=["blocks", "automatic"])
def test_markers_stand_where_nova_takes_them(body: dict[str, Any]) -> None:
    tools = {"tools": [{"name": "look", "input_schema": {"type": "object"}, "cache_control": MARKER}]}
    sent, [told] = placed({**body, **tools}, ("bedrock", "amazon.nova-pro-v1:0"))
    assert sent["system"][-1] == {"cachePoint": {"type": "default"}}
    assert "cachePoint" not in json.dumps(sent["toolConfig"])
    assert told.sent["markers"][0] == "system"


def parts_marked(messages: list[dict[str, Any]]) -> list[tuple[int, str]]:
    """Return which messages hold a marker of Chat's, and the role of each."""
    return [(at, one["role"]) for at, one in enumerate(messages) if "cache_control" in json.dumps(one["content"])]


@pytest.mark.parametrize("provider", ["openrouter", "qwen", "litellm"])
def test_markers_stand_where_the_client_set_them_in_chat_and_the_mark_of_the_whole_at_its_end(provider: str) -> None:
    at = (provider, "anthropic/claude-sonnet-4.5")
    sent, told = placed(AUTOMATIC, at)
    assert parts_marked(sent["messages"]) == [(len(TURNS), "user")]
    assert told == []
    result = {"type": "tool_result", "tool_use_id": "c", "content": "Rain."}
    call = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    turns: list[Any] = [*TURNS, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    sent, told = placed({**MARKED, "cache_control": MARKER, "messages": turns}, at)
    assert parts_marked(sent["messages"]) == [(0, "system"), (len(turns), "tool")]
    assert sent["messages"][0]["content"][-1]["cache_control"] == {**MARKER, "ttl": "1h"}
    assert told == []


def breakpoints(sent: dict[str, Any]) -> list[tuple[str, int]]:
    """Return which messages or items hold breakpoints, in their order, and how many."""
    found = [(one.get("role") or one["type"], json.dumps(one).count(BREAKPOINT)) for one in in_order(sent)]
    return [one for one in found if one[1]]


def in_order(sent: dict[str, Any]) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = sent.get("messages") or sent["input"]
    return turns


BREAKPOINT = '"prompt_cache_breakpoint": {"mode": "explicit"}'
NEWEST = pytest.mark.parametrize("place", [("openai-chat", "gpt-5.6"), ("openai", "gpt-5.6"), ("azure", "gpt-6")])


@NEWEST
def test_models_that_need_breakpoints_get_them_where_the_client_set_its_marks(place: tuple[str, str]) -> None:
    result = {"type": "tool_result", "tool_use_id": "c", "content": "Rain.", "cache_control": MARKER}
    call = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    turns: list[Any] = [*TURNS, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    sent, told = placed({**MARKED, "messages": turns}, place)
    of_tool = "tool" if "messages" in sent else "function_call_output"
    assert breakpoints(sent) == [("system", 1), (of_tool, 1)]
    assert "instructions" not in sent
    assert "cache_control" not in json.dumps(sent)
    assert sent["prompt_cache_key"].startswith("bardo-")
    assert [(one.asked, one.sent) for one in told] == [("1h", "30m")]
    assert "prompt_cache_retention" not in sent


@NEWEST
def test_the_mark_of_the_whole_is_a_breakpoint_at_its_end(place: tuple[str, str]) -> None:
    sent, told = placed(AUTOMATIC, place)
    assert breakpoints(sent) == [("user", 1)]
    assert BREAKPOINT in json.dumps(in_order(sent)[-1])
    assert sent["prompt_cache_key"].startswith("bardo-")
    assert told == []


@NEWEST
def test_of_more_marks_than_breakpoints_the_last_are_kept_and_one_of_the_system(place: tuple[str, str]) -> None:
    block = {"type": "text", "text": LONG, "cache_control": MARKER}
    body = {"system": [block, block], "messages": [{"role": "user", "content": [block, block, block]}]}
    sent, [told] = placed(body, place)
    assert breakpoints(sent) == [("system", 1), ("user", 2)]
    assert BREAKPOINT in json.dumps(in_order(sent)[0]["content"][-1])
    assert "at most 3" in told.why


@NEWEST
def test_marks_of_tools_and_of_what_the_model_said_have_no_breakpoint(place: tuple[str, str]) -> None:
    tool = {"name": "look", "input_schema": {"type": "object"}, "cache_control": MARKER}
    said = {"role": "assistant", "content": [{"type": "text", "text": "Yes.", "cache_control": MARKER}]}
    turns = [TURNS[0], said, {"role": "user", "content": [{"type": "text", "text": "So?", "cache_control": MARKER}]}]
    sent, [told] = placed({"system": LONG, "tools": [tool], "messages": turns}, place)
    assert breakpoints(sent) == [("user", 1)]
    assert BREAKPOINT not in json.dumps(sent["tools"])
    assert told.sent is None
    assert told.why.endswith("takes none at such a place")


def test_a_mark_of_the_tools_alone_becomes_a_breakpoint_behind_the_system_prompt() -> None:
    tool = {"name": "look", "input_schema": {"type": "object"}, "cache_control": MARKER}
    sent, [told] = placed({"system": LONG, "tools": [tool], "messages": TURNS}, ("openai-chat", "gpt-5.6"))
    assert breakpoints(sent) == [("system", 1)]
    assert told.sent.keys() == {"markers", "key"}


@pytest.mark.parametrize("model", ["gpt-5.4", "gpt-5.6"])
def test_breakpoints_of_chat_clients_reach_responses(model: str) -> None:
    part = {"type": "text", "text": LONG, "prompt_cache_breakpoint": {"mode": "explicit"}}
    raw = json.dumps({"model": model, "messages": [{"role": "user", "content": [part]}]}).encode()
    row = builtin().provider("openai")
    assert row is not None
    target = Target(provider=Provider(id="openai", row=row, base_url="http://x"), model=model)
    attempt = plan(dialect("openai_chat").decode_request(raw, Arrival()), target)
    taken = model == "gpt-5.6"
    assert (BREAKPOINT in json.dumps(json.loads(attempt.wire.body))) is taken
    assert [one.what for one in attempt.degraded] == ([] if taken else ["prompt_cache_breakpoint"])
    assert b"prompt_cache_key" not in attempt.wire.body, "who sets breakpoints asks for no key"


def test_what_no_provider_can_be_told_is_said_to_be_lost() -> None:
    sent, [told] = placed(MARKED, ("deepseek", "deepseek-v4"))
    assert "cache" not in json.dumps({**sent, "messages": ""})
    assert told.sent is None
    sent, [told] = placed(MARKED, ("openai", "gpt-5.4"), caching=CachingPolicy(tenant="team", markers=False))
    assert told.sent is None, "the operator wants no markers"
