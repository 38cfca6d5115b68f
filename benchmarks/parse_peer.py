"""Runs in a peer's own environment: reads cases from stdin, one a line, and answers each with what the peer makes of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from benchmarks.parse_cases import Case, Marks, Reader, Texts, is_right, percent_of_cuts, seconds


class Transformers:
    """Hugging Face's ResponseParser, with a template that says what the format's marks are."""

    def __init__(self) -> None:
        self._parser = import_module("transformers.utils.chat_parsing.response_parser").ResponseParser

    def open(self, marks: Marks, format: str) -> tuple[Callable[[str], object], Callable[[], object]]:  # noqa: A002
        around = {"open": marks.lead, "close": marks.tail} if marks.lead else {}
        fields = {"thinking": {"open": marks.start, "close": marks.end}, "content": around}
        parser = self._parser({"start_anchor": "\0", "fields": fields}, prefix="")
        return parser.feed, parser.finalize

    def join(self, results: Sequence[Any]) -> Texts:
        listed = [result[1] if isinstance(result, tuple) else result for result in results]
        chunks = [event for events in listed for event in events if event["type"] == "region_chunk"]
        kinds = ("thinking", "content")
        reasoning, answer = ("".join(event["text"] for event in chunks if event["field"] == kind) for kind in kinds)
        return reasoning, answer


class Melody:
    """Cohere's own filter, which knows the formats of Cohere's models."""

    def __init__(self) -> None:
        self._filter = import_module("cohere_melody").PyFilter

    def open(self, marks: Marks, format: str) -> tuple[Callable[[str], object], Callable[[], object]]:  # noqa: A002
        opened = self._filter.cmd4()
        return opened.write_decoded, opened.flush_partials

    def join(self, results: Sequence[Any]) -> Texts:
        return (
            "".join(result.reasoning or "" for result in results),
            "".join(result.content or "" for result in results),
        )


PEERS: dict[str, Callable[[], Reader]] = {"transformers": Transformers, "cohere_melody": Melody}


def answer(reader: Reader, line: str) -> str:
    """Do what a line asks for: `{"case": …, "what": "seconds" | "right" | "cuts"}`."""
    asked = json.loads(line)
    case = Case(**asked["case"])
    work: dict[str, Callable[[Reader, Case], object]] = {"seconds": seconds, "right": is_right, "cuts": percent_of_cuts}
    return json.dumps(work[asked["what"]](reader, case))


def main() -> None:
    """Answer until the input ends."""
    reader = PEERS[sys.argv[1]]()
    print("ready", flush=True)
    for line in sys.stdin:
        print(answer(reader, line), flush=True)


if __name__ == "__main__":
    main()
