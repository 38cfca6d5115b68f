"""However the network cuts a recorded reply, it says the same."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.replies import ALL, read, reply_of
from recordings import RECORDINGS, Recording, each_recording
from support.sampling import COVERED

pytestmark = pytest.mark.each_python

SMALL = 8 * 1024
AT_RANDOM = (1, 7, 40)
STREAMED = [one for one in ALL if one.framing != "json"]


def cut(body: bytes, places: Iterable[int]) -> Iterator[bytes]:
    """Give the pieces between the places."""
    for begin, end in pairwise([0, *sorted(place for place in places if place <= len(body)), len(body)]):
        yield body[begin:end]


def ways(recording: Recording) -> Iterator[Sequence[int]]:
    """Give sets of places: those of the network where they are known, every byte of a small reply, and some at random."""
    length, chance = len(recording.body), random.Random(recording.file)
    if recording.chunks:
        yield list(accumulate(recording.chunks))
    if length <= SMALL:
        yield range(length)
    for count in AT_RANDOM:
        yield [chance.randrange(length + 1) for _ in range(count)]


@each_recording(ALL, together=12, by_day=0.2)
def test_no_cut_changes_what_is_said(recording: Recording) -> None:
    body, expected = recording.body, reply_of(recording).response
    for places in ways(recording):
        COVERED["cuts of a recording"] += 1
        assert read(recording, cut(body, places))[1] == expected


@pytest.mark.skipif(RECORDINGS is None, reason="no recordings on this machine")
def test_recorded_network_chunks_are_among_the_cuts() -> None:
    known = [recording for recording in ALL if recording.chunks]
    assert len(known) > 50
    assert all(sum(recording.chunks) == len(recording.body) for recording in known)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_cuts_anyone_can_think_of_change_nothing(data: st.DataObject) -> None:
    recording = data.draw(st.sampled_from(STREAMED), label="recording")
    body = recording.body
    places = data.draw(st.lists(st.integers(0, len(body)), max_size=30), label="places")
    assert read(recording, cut(body, places))[1] == reply_of(recording).response
