"""What a client's dialect has no word for is told."""

from __future__ import annotations

import pytest

from bardo.engine.receipt import ForeignContent
from bardo.engine.unsayable import unsayable_counts, unsayable_finish
from bardo.values.events import Degraded, Event, Finish, ThinkChunk, ThinkStart, UsageUpdate
from bardo.values.usage import Usage

CHAT, RESPONSES, MESSAGES, GEMINI = "openai_chat", "openai_responses", "anthropic_messages", "gemini"

FINISHES = [
    (CHAT, Finish("stop", "end_turn"), None),
    (CHAT, Finish("pause", "pause_turn"), "stop"),
    (CHAT, Finish("unknown", ""), "stop"),
    (RESPONSES, Finish("pause", "pause_turn"), "stop"),
    (RESPONSES, Finish("unknown", "queued"), None),
    (MESSAGES, Finish("pause", "pause_turn"), None),
    (MESSAGES, Finish("unknown", "queued"), "stop"),
    (GEMINI, Finish("pause", "pause_turn"), "unknown"),
    (GEMINI, Finish("unknown", ""), None),
    (GEMINI, Finish("error", "MALFORMED_FUNCTION_CALL"), None),
]


@pytest.mark.parametrize(("client", "finish", "told"), FINISHES, ids=str)
def test_a_finish_without_a_word_is_a_degradation(client: str, finish: Finish, told: str | None) -> None:
    assert [one.sent for one in unsayable_finish(client, finish)] == ([told] if told else [])


COUNTS = [
    (CHAT, Usage(), True, []),
    (CHAT, Usage(input_tokens=3), False, ["usage.output_tokens"]),
    (CHAT, Usage(input_tokens=3, output_tokens=4), True, []),
    (RESPONSES, Usage(), True, []),
    (RESPONSES, Usage(input_tokens=3, output_tokens=4), True, ["usage.reasoning_tokens"]),
    (RESPONSES, Usage(input_tokens=3, output_tokens=4), False, []),
    (MESSAGES, Usage(), True, ["usage.input_tokens", "usage.output_tokens"]),
    (MESSAGES, Usage(input_tokens=3, output_tokens=4), True, []),
    (GEMINI, Usage(), True, []),
    (GEMINI, Usage(input_tokens=3, output_tokens=4), True, []),
]


@pytest.mark.parametrize(("client", "usage", "thought", "names"), COUNTS)
def test_a_count_that_nobody_reported_and_the_client_reads_as_0_is_a_degradation(
    client: str, usage: Usage, thought: bool, names: list[str]
) -> None:
    assert [one.what for one in unsayable_counts(client, usage, thought=thought)] == names


def test_the_notes_are_part_of_the_reply() -> None:
    events: list[Event] = [ThinkStart(0), ThinkChunk(0, "Hm"), UsageUpdate(Usage(output_tokens=4)), Finish("pause")]
    stage = ForeignContent(RESPONSES)
    given = [found for event in events for found in stage.feed(event)] + list(stage.finish())
    assert [one.degradation.what for one in given if type(one) is Degraded] == [
        "finish_reason",
        "usage.input_tokens",
        "usage.reasoning_tokens",
    ]
