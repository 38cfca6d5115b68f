"""What the page on sizes says of a machine is what the model says with the figures of that page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.sizing import BUSY, Costs, Size, Work, sizing

PAGE = (Path(__file__).parents[1] / "docs" / "how-to" / "size-a-machine.md").read_text(encoding="utf-8")


def numbers(line: str) -> list[float]:
    return [float(found.replace(",", "")) for found in re.findall(r"\| ([\d,]+)", line)]


def costs() -> Costs:
    """Return the figures of the page's first table."""
    call, event, stream, connection, worker, pool = (
        numbers(next(line for line in PAGE.splitlines() if line.startswith(f"| {name}")))[-1]
        for name in ("a call", "an event", "an open stream", "an idle connection", "a worker,", "a worker whose")
    )
    return Costs(
        call_microseconds=call,
        event_microseconds=event,
        stream_kilobytes=stream,
        connection_kilobytes=connection,
        worker_megabytes=worker,
        worker_connections=pool,
    )


EXAMPLES = [numbers(line) for line in PAGE.splitlines() if re.match(r"\| [\d,]+ \|", line)]


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_the_examples_of_the_page_are_those_of_the_model(example: list[float]) -> None:
    calls, streams, events, idle, *size = example
    work = Work(calls=calls, streams=int(streams), events=events, idle_connections=int(idle))
    workers, megabytes, rows, connections = size
    found = Size(workers=int(workers), megabytes=megabytes, rows=rows, connections=connections)
    assert sizing(work, costs()) == found


def test_the_page_says_what_share_of_a_core_is_planned_with() -> None:
    assert len(EXAMPLES) >= 5
    assert f"{BUSY:.0%}".replace("%", " %") in PAGE
