"""Which ids of tool calls are taken for globally unique, and how arguments are compared."""

from __future__ import annotations

import json
import random
import string
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.reasoning.replay.call_identity import canonical, is_globally_unique, may_be_unique

UNIQUE = [
    "call_bTn6IHHXk5dddgjHFA8CdHka",
    "toolu_01HLewATBS5iGpaNRc9kYGvg",
    "toolu_bdrk_01Ngtosq8eCQHW1UGyB3vF8n",
    "tooluse_Z4oIdWzp6MUkuN99WX3jLk",
    "call_00_xjY8Z2BvSlzgEmmw0DtH0464",
    "call_f8884ee2898d441a8108b806",
    "chatcmpl-tool-8841ebdbc1974669a96e3801a0338190",
    "call-fe01490d-7786-41e5-b728-d2e7945d040d-0",
    # Mistral's have nine characters, the fewest that hold enough.
    "D681PevKs",
]
COUNTED = [
    "",
    "0",
    "call_0",
    "call_12",
    "call_weather",
    "functions.get_weather:0",
    "functions.search2web3:12",
    "call_abc123",
    "call_000000000001",
    "call_1718000000000",
    "call_-8062812703858712886",
    "20241122T123347Z",
    "step1call2tool3turn4",
    "00000000-0000-0000-0000-000000000001",
    "call_40835584",
    "get_weather_for_city_2024_11_22_0",
]


@pytest.mark.parametrize("call_id", UNIQUE)
def test_an_id_drawn_at_random_is_globally_unique(call_id: str) -> None:
    assert is_globally_unique(call_id, "get_weather")


@pytest.mark.parametrize("call_id", COUNTED)
def test_a_number_a_time_or_a_name_is_not_globally_unique(call_id: str) -> None:
    assert not is_globally_unique(call_id, "get_weather")


def test_the_name_of_the_tool_makes_no_id_unique() -> None:
    name = "q7Xz3LpT9wRk2MnV5sBd"
    assert is_globally_unique(name)
    assert not is_globally_unique(f"functions.{name}:0", name)


@pytest.mark.parametrize(
    ("letters", "length"),
    [(string.ascii_letters + string.digits, 24), ("0123456789abcdef", 24), ("0123456789abcdef", 32)],
    ids=["base62", "24 of hex", "32 of hex"],
)
def test_nearly_every_random_id_counts_as_such(letters: str, length: int) -> None:
    source = random.Random(1)
    ids = ["call_" + "".join(source.choices(letters, k=length)) for _ in range(500)]
    assert sum(map(is_globally_unique, ids)) > 475
    assert all(is_globally_unique(str(uuid.UUID(int=source.getrandbits(128), version=4))) for _ in range(100))


@given(st.text(string.ascii_letters + string.digits + "-_:.", max_size=60) | st.sampled_from([*UNIQUE, *COUNTED]))
def test_every_id_that_is_globally_unique_may_be_so(call_id: str) -> None:
    assert may_be_unique(call_id, "get_weather") or not is_globally_unique(call_id, "get_weather")


def test_a_plain_counter_may_not_be_unique() -> None:
    assert [may_be_unique(call_id) for call_id in ("", "0", "call_12", "call_weather")] == [False] * 4
    assert not may_be_unique("functions.get_weather:0", "get_weather")


@given(st.integers(0, 10**9), st.sampled_from(["call_{}", "functions.f:{}", "{}", "tool-{}", "call_{:09}", "{:020}"]))
def test_no_counter_counts_as_unique(number: int, form: str) -> None:
    assert not is_globally_unique(form.format(number))


SAME = {
    "whole numbers": ('{"n":1}', '{"n":1.0}', '{"n":1e0}', '{"n":10e-1}'),
    "zeros": ('{"n":0}', '{"n":-0.0}', '{"n":0e9}'),
    "fractions": ('{"n":0.5}', '{"n":5e-1}', '{"n":0.50}'),
    "large numbers": ('{"n":1e30}', '{"n":1000000000000000000000000000000}'),
    "numbers beyond a double": ('{"n":1e400}', '{"n":10e399}'),
    "keys": ('{"a":1,"b":2}', '{ "b": 2,\n"a": 1 }'),
    "escapes": ('{"a":"é"}', '{"a":"\\u00e9"}'),
    "no arguments": ("", "{}", "null", " {} "),
}
DIFFERENT = {
    "number and string": ('{"n":1}', '{"n":"1"}'),
    "numbers": ('{"n":1}', '{"n":2}'),
    "large numbers": ('{"n":9007199254740993}', '{"n":9007199254740992}'),
    "numbers beyond a double": ('{"n":1e400}', '{"n":1e401}'),
    "a number beyond a double and null": ('{"n":1e400}', '{"n":null}'),
    "true and one": ('{"n":true}', '{"n":1}'),
    "order of a list": ("[1,2]", "[2,1]"),
}


@pytest.mark.parametrize("spellings", SAME.values(), ids=list(SAME))
def test_arguments_that_say_the_same_are_equal(spellings: tuple[str, ...]) -> None:
    assert len(set(map(canonical, spellings))) == 1


@pytest.mark.parametrize("spellings", DIFFERENT.values(), ids=list(DIFFERENT))
def test_arguments_that_say_something_else_are_not_equal(spellings: tuple[str, ...]) -> None:
    assert len(set(map(canonical, spellings))) == len(spellings)


def test_very_long_arguments_are_equal_where_they_differ_in_white_space_alone() -> None:
    value = {f"name{place}": place for place in range(30_000)}
    compact, spread = json.dumps(value, separators=(",", ":")), json.dumps(value, indent=1)
    assert canonical(compact) == canonical(spread)
    assert canonical(compact) != canonical(compact.replace("29999}", "29998}"))


@pytest.mark.parametrize("text", ['{"a":', "plain words", '{"n":NaN}', "[" * 100_000], ids=repr)
def test_text_that_is_no_json_is_compared_as_it_is(text: str) -> None:
    assert canonical(text) == text


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4))
def test_arguments_written_anew_are_equal(value: dict[str, Any]) -> None:
    spellings: list[Callable[[Any], str]] = [
        json.dumps,
        lambda one: json.dumps(one, indent=2, sort_keys=True, ensure_ascii=False),
    ]
    first, second = (spell(value) for spell in spellings)
    assert canonical(first) == canonical(second)
