"""Every recorded reply is read by `bardo.decode` under the name of its folder."""

from __future__ import annotations

import pytest

import bardo
from bardo.values.errors import UpstreamRefused
from recordings import Recording, each_recording, folders, rows

pytestmark = pytest.mark.each_python

FOLDERS = folders()
ALL = [recording for folder in FOLDERS for recording in rows(folder)]
# Replies in another language than the one of their folder: Chat Completions among Responses, and Cohere's first version.
STRANGERS = {"cohere/command-r-stream-10de433a.ndjson"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_reply_of_a_folder_is_read(folder: str) -> None:
    for recording in rows(folder):
        if recording.file in STRANGERS:
            continue
        told = bardo.decode(recording.body, provider=folder, streamed=recording.stream)
        if told.error is not None:
            assert isinstance(told.error, UpstreamRefused), recording.file
            assert "-error-" in recording.file


@pytest.mark.parametrize("folder", FOLDERS)
def test_whether_it_was_streamed_can_be_seen(folder: str) -> None:
    for recording in rows(folder):
        told = bardo.decode(recording.body, provider=folder)
        assert told == bardo.decode(recording.body, provider=folder, streamed=recording.stream), recording.file


@each_recording([one for one in ALL if one.file in STRANGERS])
def test_a_reply_in_another_language_says_so(recording: Recording) -> None:
    assert (
        bardo.decode(recording.body, provider=recording.file.split("/")[0], streamed=recording.stream).error is not None
    )
