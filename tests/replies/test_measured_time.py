"""How long a reply took is told to clients whose dialect has a field for it."""

from __future__ import annotations

import msgspec
import pytest

from bardo.dialects import dialect
from bardo.replies.written_tokens import MeasuredTime, time_stages
from bardo.values.events import ContentChunk, Event, Finish, ReplyStart, UsageUpdate
from bardo.values.fold import fold
from bardo.values.request import Request
from bardo.values.usage import Usage
from bardo.values.wire import Arrival

REPLY: tuple[Event, ...] = (
    ReplyStart(id="r", model="m", created=1),
    ContentChunk(0, "Soup."),
    UsageUpdate(Usage(input_tokens=3, output_tokens=2)),
    Finish("stop", "stop"),
)


def timed(client: str, *moments: float) -> list[Event]:
    """Return a reply whose beginning and end come at these seconds."""
    clock = iter(moments)
    stage = MeasuredTime(client, lambda: next(clock))
    return [one for event in REPLY for one in stage.feed(event)]


def test_ollamas_durations_are_those_of_the_reply_whole_and_in_the_last_line() -> None:
    events = timed("ollama", 0.5, 2.0)
    request = Request(model="m", messages=(), dialect="ollama")
    encoder = dialect("ollama").open_encoder(request, Arrival())
    lines = b"".join([*(line for event in events for line in encoder.feed(event)), *encoder.finish()]).splitlines()
    for body in (dialect("ollama").encode_response(fold(events), request), lines[-1]):
        said = msgspec.json.decode(body)
        assert said["total_duration"] == 2_000_000_000
        assert said["prompt_eval_duration"] == 500_000_000
        assert said["eval_duration"] == 1_500_000_000
        assert said["load_duration"] == 1
    assert "total_duration" not in msgspec.json.decode(lines[0])


@pytest.mark.parametrize("moments", [(0.0, 0.0), (2.0, 2.0), (3.0, 2.0)])
def test_no_duration_of_ollamas_is_nothing(moments: tuple[float, float]) -> None:
    response = fold(timed("ollama", *moments))
    said = msgspec.json.decode(
        dialect("ollama").encode_response(response, Request(model="m", messages=(), dialect="ollama"))
    )
    durations = [value for name, value in said.items() if name.endswith("_duration")]
    assert len(durations) == 4
    assert min(durations) > 0


def test_converses_latency_is_that_of_the_reply() -> None:
    response = fold(timed("bedrock_converse", 0.5, 2.0))
    request = Request(model="m", messages=(), dialect="bedrock_converse")
    said = msgspec.json.decode(dialect("bedrock_converse").encode_response(response, request))
    assert said["metrics"] == {"latencyMs": 2000}


def test_only_a_reply_of_another_dialect_is_measured() -> None:
    assert len(time_stages("ollama", "openai_chat", lambda: 0.0)) == 1
    for client, source in (("ollama", "ollama"), ("openai_chat", "ollama"), ("", "ollama")):
        assert time_stages(client, source, lambda: 0.0) == []
