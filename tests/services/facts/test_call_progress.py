"""How far a reply has come, as those who listen are told."""

from __future__ import annotations

from bardo.services.facts.event_feed import ProgressReporter
from bardo.values.events import ContentChunk, ThinkChunk, ToolCallStart, UsageUpdate
from bardo.values.usage import TokenEstimate, Usage, estimate_tokens


def test_a_change_of_phase_is_told_at_once_and_tokens_at_most_twice_a_second() -> None:
    teller = ProgressReporter("dreams")
    first = teller.after([ThinkChunk(0, "a" * 40)], 0.0)
    assert first is not None
    assert (first.phase, first.reasoning_tokens, first.subsystem) == ("thinking", 10, "dreams")
    assert teller.after([ThinkChunk(0, "a" * 40)], 0.4) is None
    later = teller.after([ThinkChunk(0, "a" * 40)], 0.5)
    assert later is not None
    assert later.reasoning_tokens == 30
    answer = teller.after([ContentChunk(1, "b" * 8)], 0.6)
    assert answer is not None
    assert (answer.phase, answer.answer_tokens) == ("answering", 2)
    tools = teller.after([ToolCallStart(2, "id", "f")], 0.61)
    assert tools is not None
    assert tools.phase == "tools"


def test_what_changes_nothing_is_not_told() -> None:
    teller = ProgressReporter("")
    assert teller.after([UsageUpdate(Usage())], 0.0) is None
    assert teller.after([ContentChunk(0, "words")], 1.0) is not None
    assert teller.after([], 9.0) is None


def test_an_estimate_of_pieces_is_that_of_the_whole() -> None:
    text = "words and größere Wörter, 漢字 too"
    estimate = TokenEstimate()
    for letter in text:
        estimate.add(letter)
    assert estimate.tokens == estimate_tokens(text)
    assert TokenEstimate().tokens == 0
