"""What the official SDKs say and bardo does not: the list of accepted differences may shrink, and grows only with a reason and a date."""

from __future__ import annotations

import datetime

import check_facts
import pytest
from check_facts import Accepted, Difference

from support.offenders import offenders

LEAST_RESOLVED = {"openai": 108, "anthropic": 22, "google": 29}
"""Of how many model ids of each SDK a row is about, of the versions of 2026-11-22. Raise them; never lower them."""


def test_every_difference_to_an_installed_sdk_is_accepted_by_name() -> None:
    offenders(
        check_facts.left(check_facts.differences(), check_facts.accepted()),
        "difference to an SDK: mend the catalog or the dialect, or accept it in tools/accepted_differences.toml with a date and a reason",
    )


def test_what_is_accepted_is_still_a_difference() -> None:
    offenders(
        check_facts.outdated(check_facts.differences(), check_facts.accepted()),
        "entry of tools/accepted_differences.toml that is no difference any more: remove it",
    )


def test_every_accepted_difference_has_a_date_and_a_reason() -> None:
    for row in check_facts.accepted():
        assert datetime.date.fromisoformat(row.date) <= datetime.date.today()
        assert row.why
        assert row.words


@pytest.mark.parametrize("sdk", LEAST_RESOLVED)
def test_rows_are_about_the_models_that_an_sdk_names(sdk: str) -> None:
    if sdk not in check_facts.resolved():
        pytest.skip("this SDK is not installed, or names no models")
    known, total = check_facts.resolved()[sdk]
    assert known >= min(LEAST_RESOLVED[sdk], total)


def test_what_nobody_accepted_is_left() -> None:
    one, other = Difference("openai", "event", "response.new"), Difference("openai", "event", "response.audio.delta")
    row = Accepted("openai", "event", ("response.audio.*", "response.gone"), "2026-11-22", "x")
    assert check_facts.left([one, other, one], [row]) == [one]
    assert check_facts.outdated([one, other], [row]) == [(row, "response.gone")]


def test_an_sdk_that_is_not_installed_is_not_asked() -> None:
    assert check_facts.words_at(check_facts.Place("x", "model", "no_such_sdk.types", "Model")) is None


def test_a_struct_is_known_by_the_literal_of_its_type_in_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = check_facts.Struct("anthropic_messages", "Text", "anthropic.types", ("ToolUseBlockParam",))
    monkeypatch.setattr(check_facts, "STRUCTS", (wrong,))
    found = {one.word for one in check_facts.differences() if one.kind == "tag"}
    assert found == {"Text.text", "Text.tool_use"}


def test_a_struct_that_no_type_is_compared_with_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tuple(one for one in check_facts.STRUCTS if (one.sdk, one.struct) != ("ollama", "Message"))
    monkeypatch.setattr(check_facts, "STRUCTS", kept)
    found = check_facts.left(check_facts.differences(), check_facts.accepted())
    assert found == [Difference("ollama", "struct not compared", "Message")]
