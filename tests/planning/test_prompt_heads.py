"""Prompts that begin anew with every call are found, and no others."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from bardo.services.facts.cache_health import MOST_CHARACTERS, MOST_USERS, ChangingHead, PromptHeads
from bardo.values.blocks import TextBlock
from bardo.values.request import Message, Request

RULES = "".join(f"Rule {number} of the house says what to do. " for number in range(150))


def request(system: str, model: str = "m") -> Request:
    return Request(
        model=model,
        messages=(Message(role="system", blocks=(TextBlock(system),)), Message(role="user", blocks=(TextBlock("hi"),))),
    )


def told(heads: PromptHeads, *systems: str, user: str = "u") -> list[ChangingHead | None]:
    return [heads.note(user, request(system)) for system in systems]


def clocks(count: int) -> Iterator[str]:
    return (f"It is {number:02}:00:{number * 7:02}. {RULES}" for number in range(count))


def test_a_clock_at_the_beginning_is_found_with_the_fifth_call() -> None:
    assert told(PromptHeads(), *clocks(6)) == [None, None, None, None, ChangingHead(0), ChangingHead(0)]


def test_what_differs_further_on_is_found_in_its_place() -> None:
    half = RULES[:1000]
    found = told(PromptHeads(), *(f"{half}{number * 12345:06} {RULES}" for number in range(6)))[-1]
    assert found is not None
    assert 1000 - 128 <= found.position <= 1000


def test_a_change_that_moves_the_rest_is_one_change() -> None:
    assert told(PromptHeads(), *(f"Run {10**number}. {RULES}" for number in range(6)))[-1] == ChangingHead(0)


def test_a_prompt_that_stays_is_no_finding() -> None:
    assert told(PromptHeads(), *[RULES] * 20) == [None] * 20


def test_a_new_prompt_now_and_then_is_no_finding() -> None:
    systems = [text for version in clocks(10) for text in (version, version)]
    assert told(PromptHeads(), *systems) == [None] * 20


def test_other_prompts_between_do_not_hide_it() -> None:
    systems = [text for version in clocks(6) for text in (version, RULES[::-1])]
    assert told(PromptHeads(), *systems)[-2] == ChangingHead(0)


def test_many_prompts_of_one_user_are_no_finding() -> None:
    systems = [f"{word} " * 900 for word in ("one", "two", "three", "four", "five", "six", "seven", "eight")]
    assert told(PromptHeads(), *systems) == [None] * 8


def test_what_changes_behind_a_long_static_part_is_no_finding() -> None:
    assert told(PromptHeads(), *(f"{RULES} It is {number}." for number in range(8))) == [None] * 8


@pytest.mark.parametrize("systems", [[""] * 6, [f"Short {number}" for number in range(6)]])
def test_short_prompts_are_not_looked_at(systems: list[str]) -> None:
    assert told(PromptHeads(), *systems) == [None] * 6


def test_users_and_models_are_told_apart() -> None:
    heads = PromptHeads()
    for place, system in enumerate(clocks(8)):
        assert heads.note(f"user {place % 2}", request(system, f"model {place // 2 % 2}")) is None


def test_what_is_kept_is_bounded_and_holds_no_text() -> None:
    heads = PromptHeads()
    for number in range(MOST_USERS + 100):
        heads.note(f"user {number}", request(f"{number} {RULES * 5}"))
    assert len(heads._prompts) == MOST_USERS
    kept = [prompt for prompts in heads._prompts.values() for prompt in prompts]
    assert max(sys.getsizeof(one.pieces.ahead) + sys.getsizeof(one.pieces.back) for one in kept) < MOST_CHARACTERS
    assert not any("Rule" in str(getattr(one, name)) for one in kept for name in one.__slots__)
