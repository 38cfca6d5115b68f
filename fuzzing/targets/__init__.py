"""All targets by name, in the order in which they are run."""

from __future__ import annotations

from collections.abc import Mapping

from fuzzing.target import Target
from fuzzing.targets import answers, framings, http, pages, replies, requests, settings, texts

ALL: tuple[Target, ...] = (
    framings.TARGET,
    replies.WHOLE,
    replies.STREAMED,
    requests.TARGET,
    texts.REASONING,
    texts.CALLS,
    answers.REPAIR,
    answers.PARTIAL,
    settings.TARGET,
    http.TARGET,
    pages.TARGET,
)
TARGETS: Mapping[str, Target] = {one.name: one for one in ALL}
