"""Recorded replies with inline tags are split by the format that knows no family."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bardo.reasoning import Splitter, find_format, lacks_opener, split
from recordings import folders, rows

REPLIES = [
    one.root / one.file
    for folder in folders()
    for one in rows(folder)
    if "inlinethink" in one.file and one.framing in ("json", "ndjson", "sse")
]
THINK = find_format("think")
TAG = re.compile("</?think(ing)?>")


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)


def pieces(path: Path) -> list[str]:
    """Return the content of a reply as it arrived."""
    body = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return [max((text for text in strings(json.loads(body)) if TAG.search(text)), key=len)]
    if path.suffix == ".ndjson":
        return [json.loads(line)["message"]["content"] for line in body.splitlines() if line]
    frames = [json.loads(line[5:]) for line in body.splitlines() if line.startswith("data: {")]
    return [choice["delta"].get("content") or "" for frame in frames for choice in frame["choices"]]


@pytest.mark.parametrize("path", REPLIES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_recorded_reply_is_split_where_its_tags_are(path: Path) -> None:
    arrived = pieces(path)
    text = "".join(arrived)
    orphan = lacks_opener(text, THINK)
    reasoning, answer = split(text, THINK, starts_inside=orphan)
    opener, closer = ("<thinking>", "</thinking>") if "<thinking>" in text else ("<think>", "</think>")
    ended = closer if closer in text else ""
    lead = text[: len(text) - len(text.lstrip())] if not orphan else ""
    assert f"{lead}{'' if orphan else opener}{reasoning}{ended}{answer[len(lead) :]}" == text
    assert not TAG.search(reasoning + answer)
    assert reasoning_and_answer(arrived, orphan) == reasoning_and_answer(list(text), orphan) == (reasoning, answer)


def reasoning_and_answer(arrived: list[str], inside: bool) -> tuple[str, str]:
    splitter = Splitter(THINK, starts_inside=inside)
    segments = [segment for piece in arrived for segment in splitter.feed(piece)] + list(splitter.finish())
    reasoning = "".join(segment.text for segment in segments if segment.reasoning)
    return reasoning, "".join(segment.text for segment in segments if not segment.reasoning)
