"""What a reply used that broke off is told at any place where it may break, and an estimate never says more than was reported."""

from __future__ import annotations

import random

from bardo.replies.reply_reader import ReplyReader, row_reader
from bardo.surfaces.library.decoding import provider_row
from bardo.values.errors import BrokenStream
from bardo.values.usage import Usage
from conformance.replies import ALL, reply_of
from recordings import Recording, each_recording

STREAMED = [one for one in ALL if one.framing != "json"]


@each_recording(ALL)
def test_thinking_is_never_estimated_at_more_than_the_output_that_was_reported(recording: Recording) -> None:
    response = reply_of(recording).response
    output = response.usage.output_tokens
    for one in (response, *response.alternatives):
        assert output is None or not one.reasoning.tokens_approx or one.reasoning.reasoning_tokens <= output


@each_recording(STREAMED, by_day=0.2)
def test_a_stream_that_breaks_anywhere_counts_what_passed_and_never_less_than_its_provider_did(
    recording: Recording,
) -> None:
    body, chance, before = recording.body, random.Random(recording.file), 0
    for place in sorted(chance.randrange(len(body)) for _ in range(4)):
        left, broken = cut_at(recording, place), cut_at(recording, place, breaks=True)
        assert left == broken, "a client that leaves pays as for a stream that breaks"
        if left is None:
            continue
        output = left.output_tokens or 0
        assert output >= (reported(recording, place).output_tokens or 0)
        assert (left.reasoning_tokens or 0) <= output
        assert output >= before or not left.approx
        before = output


def reader_at(recording: Recording, place: int) -> ReplyReader:
    folder = recording.file.partition("/")[0]
    reader = row_reader(provider_row(folder), streamed=True, model="m")
    reader.feed(recording.body[:place])
    return reader


def cut_at(recording: Recording, place: int, *, breaks: bool = False) -> Usage | None:
    reader = reader_at(recording, place)
    if breaks:
        reader.fail(BrokenStream("cut"))
    return reader.unfinished_usage()


def reported(recording: Recording, place: int) -> Usage:
    return reader_at(recording, place).usage
