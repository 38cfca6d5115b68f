"""What is the same request for the cache, and what is another one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from bardo.context.cache.entries import identity_of
from bardo.values.agent import AgentStep, Tick
from bardo.values.blocks import TextBlock
from bardo.values.degradation import Degradation
from bardo.values.profile import InferenceProfile
from bardo.values.request import (
    BardoOptions,
    CacheOptions,
    Control,
    Intent,
    KeptAs,
    Message,
    OutputFormat,
    ReasoningPolicy,
    Request,
    Sampling,
    SearchLimit,
    StructuredOptions,
    Tool,
    ToolChoice,
)

PLAIN = Request(model="m", messages=(Message("user", (TextBlock("Hello"),)),), dialect="openai_chat")

# A value of each field that is not its default; a new field of a request has to be added to one of the two.
MATTERS: dict[str, Any] = {
    "model": "other",
    "messages": (Message("user", (TextBlock("hello"),)),),
    "tools": (Tool(name="f", schema={}),),
    "tool_choice": ToolChoice(),
    "max_output_tokens": 9,
    "sampling": Sampling(seed=7),
    "reasoning": ReasoningPolicy(mode="off"),
    "control": Control(thinks=True),
    "output_format": OutputFormat(mode="json_object"),
    "choices": 2,
    "operation": "complete",
    "extra": {"user": "u"},
    "inner_fields": {("tool_choice", "novel"): 1},
    "headers": {"anthropic-beta": "x"},
    "options": BardoOptions(omit_reasoning=True),
}
DOES_NOT_MATTER: dict[str, Any] = {
    "stream": True,
    "stream_usage": False,
    "kept_as": KeptAs(id="r"),
    "dialect": "anthropic_messages",
    "client_headers": {"user-agent": "x"},
    "body": {"model": "m"},
    "body_bytes": b"{}",
    "degraded": (Degradation("x"),),
    "attribution": "x-anthropic-billing-header: cc_version=2.1.330;",
}
OPTIONS_MATTER: dict[str, Any] = {
    "omit_reasoning": True,
    "omit_unasked": True,
    "reasoning_tags": True,
    "on_impossible": "fail",
    "reasoning": ReasoningPolicy(mode="off"),
    "structured": StructuredOptions(retries=1),
    "allow_loss": ("*",),
    "intent": Intent(quality="high"),
    "intent_fields": ("quality",),
    "profile": InferenceProfile(top_k=3),
    "profile_locked": True,
    "vitality": 0.5,
    "alias_fields": {"service_tier": "flex"},
    "alias_model": "m",
    "tick": Tick(type="risk"),
    "agent_step": AgentStep(workload="risk"),
    "private": True,
    "hosted_only": True,
    "pipeline": "fast",
    "pipeline_by_operator": True,
    "layers": (("cache", True),),
}
OPTIONS_DO_NOT: dict[str, Any] = {
    "include": ("receipt",),
    "chose_display": True,
    "deadline_seconds": 3.0,
    "search_limits": (SearchLimit(setting="s", key="k", usd=1.0),),
    "allow_stale": 3.0,
    "verify": "m2",
    "cache": CacheOptions(tags=("x",)),
    "session": "mine",
    "agent": "mine",
    "repository": "mine",
}


def changed(request: Request, name: str, value: Any) -> Request:
    return replace(request, **{name: value})


@pytest.mark.parametrize("name", MATTERS)
def test_what_may_change_the_answer_is_part_of_the_identity(name: str) -> None:
    assert identity_of(changed(PLAIN, name, MATTERS[name]), "t") != identity_of(PLAIN, "t")


@pytest.mark.parametrize("name", DOES_NOT_MATTER)
def test_how_a_reply_is_sent_is_no_part_of_it(name: str) -> None:
    assert identity_of(changed(PLAIN, name, DOES_NOT_MATTER[name]), "t") == identity_of(PLAIN, "t")


def test_options_of_bardo_count_where_they_change_the_answer() -> None:
    plain = identity_of(PLAIN, "t")
    for name, value in OPTIONS_MATTER.items():
        if name in BardoOptions.__struct_fields__:
            options = BardoOptions(**{name: value})
            assert identity_of(replace(PLAIN, options=options), "t") != plain, name
    for name, value in OPTIONS_DO_NOT.items():
        options = BardoOptions(**{name: value})
        assert identity_of(replace(PLAIN, options=options), "t") == plain, name


def test_each_field_is_known_to_this_test() -> None:
    assert {one.name for one in fields(Request)} == MATTERS.keys() | DOES_NOT_MATTER.keys()
    assert {one.name for one in fields(BardoOptions)} <= OPTIONS_MATTER.keys() | OPTIONS_DO_NOT.keys()


def test_tenants_models_and_profiles_are_told_apart() -> None:
    scopes = [("t", "", ()), ("u", "", ()), ("t", "fast", ()), ("t", "", ("m",)), ("t", "", ("m", "n"))]
    assert len({identity_of(PLAIN, *scope) for scope in scopes}) == len(scopes)


def test_the_order_of_fields_inside_objects_does_not_count() -> None:
    inner = {("tool_choice", "novel"): {"a": 1}, ("output_config", "format", "novel"): None, ("thinking", "x"): [1]}
    turned = dict(reversed(inner.items()))
    assert identity_of(replace(PLAIN, inner_fields=inner), "t") == identity_of(replace(PLAIN, inner_fields=turned), "t")


@pytest.mark.parametrize("own", ["extra", "inner_fields", "headers"])
def test_dialects_count_where_fields_of_one_go_through(own: str) -> None:
    one = replace(PLAIN, **{own: MATTERS[own]})
    assert identity_of(one, "t") != identity_of(replace(one, dialect="anthropic_messages"), "t")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_count(extra: dict[str, Any], chance: Any) -> None:
    assert identity_of(replace(PLAIN, extra=extra), "t") == identity_of(replace(PLAIN, extra=mixed(extra, chance)), "t")


def mixed(value: Any, chance: Any) -> Any:
    """Return a value with the keys of its objects in another order."""
    if isinstance(value, list):
        return [mixed(one, chance) for one in value]
    if not isinstance(value, dict):
        return value
    keys = list(value)
    chance.shuffle(keys)
    return {key: mixed(value[key], chance) for key in keys}


def test_the_order_of_fields_in_a_schema_counts_because_models_write_in_it() -> None:
    def with_fields(*names: str) -> Request:
        schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
        return replace(PLAIN, output_format=OutputFormat(mode="json_schema", schema=schema))

    assert identity_of(with_fields("why", "answer"), "t") != identity_of(with_fields("answer", "why"), "t")


@given(st.text(), st.text())
def test_texts_that_differ_are_told_apart(one: str, other: str) -> None:
    def saying(text: str) -> bytes:
        return identity_of(replace(PLAIN, messages=(Message("user", (TextBlock(text),)),)), "t")

    assert (saying(one) == saying(other)) is (one == other)


def test_blocks_and_messages_are_not_run_together() -> None:
    two = replace(PLAIN, messages=(Message("user", (TextBlock("He"), TextBlock("llo"))),))
    apart = replace(PLAIN, messages=(Message("user", (TextBlock("He"),)), Message("user", (TextBlock("llo"),))))
    assert len({identity_of(one, "t") for one in (PLAIN, two, apart)}) == 3


@pytest.mark.parametrize("value", [10**30, "\ud800"], ids=["number", "half a character"])
def test_what_cannot_be_compared_is_said(value: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any of its kind.
        identity_of(replace(PLAIN, extra={"x": value}), "t")
