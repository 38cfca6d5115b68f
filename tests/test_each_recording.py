"""Tests over recordings run in groups, and lose nothing by it."""

from __future__ import annotations

from typing import Any

import pytest

from recordings import Recording, each_recording


def recorded(*files: str) -> list[Recording]:
    return [Recording(file=file, framing="json", stream=False, chunks=(), meta={}) for file in files]


def groups_of(test: Any) -> list[tuple[str, list[str]]]:
    [mark] = test.pytestmark
    _, groups = mark.args
    return [(name, [one.file for one in group]) for name, group in zip(mark.kwargs["ids"], groups, strict=True)]


def test_groups_hold_every_recording_once_and_keep_to_a_folder() -> None:
    @each_recording(recorded("a/1", "a/2", "a/3", "b/1"), together=2)
    def check(recording: Recording) -> None:
        raise AssertionError

    assert groups_of(check) == [("a-1", ["a/1", "a/2"]), ("a-3", ["a/3"]), ("b-1", ["b/1"])]


def test_a_failure_names_its_recording_and_the_others_run_all_the_same() -> None:
    seen = []

    def check(recording: Recording) -> None:
        seen.append(recording.file)
        if recording.file == "a/2":
            pytest.skip("not for this one")
        assert recording.file != "a/1"

    with pytest.raises(AssertionError) as caught:
        each_recording(())(check)(recordings=recorded("a/1", "a/2", "a/3"))
    assert caught.value.__notes__ == ["recording: a/1"]
    assert seen == ["a/1", "a/2", "a/3"]


def test_several_failures_are_all_told() -> None:
    def check(recording: Recording) -> None:
        raise ValueError(recording.file)

    with pytest.raises(ExceptionGroup, match="2 recordings") as caught:
        each_recording(())(check)(recordings=recorded("a/1", "a/2"))
    assert [str(one) for one in caught.value.exceptions] == ["a/1", "a/2"]
