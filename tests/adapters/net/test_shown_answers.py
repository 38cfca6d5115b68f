"""What a client was shown of a typed answer is the answer or an error: every cut, every finish, every mode, streamed and whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest

import bardo
from bardo.adapters.config.settings import LogSettings, ProviderEntry, Settings
from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.replies.typed_stream import grown
from bardo.structured import UnusableAnswer
from bardo.values.errors import BardoError
from bardo.values.request import StructuredOptions

JSON = {"content-type": "application/json"}
STREAM = {"content-type": "text/event-stream"}
PAYMENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "who": {"type": "string"},
        "amount": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["who", "amount", "tags"],
    "additionalProperties": False,
}
OPTIONAL: dict[str, Any] = {**PAYMENT, "required": []}
FULL: dict[str, Any] = {"who": "bob", "tags": ["a", "}"], "amount": 1200}
TEXT = json.dumps(FULL)
# A model for each way to ask; the first enforces a schema.
MODES: dict[str, tuple[str, str | None]] = {
    "enforced": ("vllm", None),
    "a forced tool": ("minimax", "respond_answer"),
    "JSON mode": ("deepseek", None),
    "words": ("watsonx", None),
}


@pytest.fixture(autouse=True)
def a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K", "k")


each_mode = pytest.mark.parametrize("mode", MODES)
each_finish = pytest.mark.parametrize("finish", ["stop", "length"])


def whole(text: str, finish: str, tool: str | None = None, calls: Sequence[tuple[str, str]] = ()) -> FakeReply:
    calls = [(tool, text)] if tool else calls
    message: dict[str, Any] = {"role": "assistant", "content": None if tool else text}
    if calls:
        message["tool_calls"] = [
            {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": said}}
            for n, (name, said) in enumerate(calls)
        ]
    ended = "tool_calls" if calls and finish == "stop" else finish
    body = {"id": "c", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": ended}]}
    return FakeReply(headers=JSON, chunks=[json.dumps(body).encode()])


def streamed(text: str, finish: str, tool: str | None = None, size: int = 3) -> FakeReply:
    deltas: list[dict[str, Any]] = []
    if tool:
        function = {"name": tool, "arguments": ""}
        deltas.append({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]})
    for at in range(0, len(text), size):
        piece = text[at : at + size]
        deltas.append({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} if tool else {"content": piece})
    ended = "tool_calls" if tool and finish == "stop" else finish
    chunks = [{"index": 0, "delta": delta} for delta in deltas] + [{"index": 0, "delta": {}, "finish_reason": ended}]
    frames = [f"data: {json.dumps({'id': 'c', 'model': 'm', 'choices': [one]})}\n\n".encode() for one in chunks]
    return FakeReply(headers=STREAM, chunks=[*frames, b"data: [DONE]\n\n"])


class Asked:
    """What came of one question."""

    def __init__(self) -> None:
        self.value: Any = None
        self.error = ""
        self.partials: list[Any] = []
        self.text = ""
        self.calls = 0
        self.degraded: list[str] = []
        self.provenance: Any = None


def asking(replies: Sequence[FakeReply], mode: str, *, stream: bool, schema: Any = PAYMENT, **more: Any) -> Asked:
    """Ask once, and give all that a caller sees."""
    waiting, found = list(replies), Asked()

    def answer(call: Call) -> FakeReply:
        if call.method != "POST":
            return FakeReply(headers=JSON, chunks=[b'{"data": []}'])
        found.calls += 1
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    preset = MODES[mode][0]
    entry = ProviderEntry(id="lab", preset=preset, base_url="http://lab.test/v1", api_key_env="K", models=("m",))
    settings = Settings(providers=(entry,), log=LogSettings(enabled=False))
    options: dict[str, Any] = {"model": "lab/m", "response_type": schema, **more}

    async def run() -> None:
        transport = FakeTransport(answer)
        async with bardo.AsyncClient(settings, transport=transport) as client:
            if not stream:
                take(found, await client.respond("Who?", **options))
                return
            async with client.stream("Who?", **options) as reply:
                try:
                    found.partials = [one async for one in reply.partial_stream]
                finally:
                    found.text = (await reply.response()).text
                take(found, await reply.typed_response())

    try:
        asyncio.run(run())
    except UnusableAnswer as problem:
        found.error = problem.code
    except BardoError as problem:
        found.error = f"{type(problem).__name__}: {problem}"
    return found


def take(found: Asked, response: Any) -> None:
    found.value, found.provenance, found.text = response.parsed, response.provenance, response.text
    found.degraded = [one.what for one in response.degraded]


def grows(found: Asked) -> bool:
    shown = [*found.partials, found.value] if not found.error else found.partials
    return all(grown(one, later) for one, later in pairwise(shown))


@pytest.mark.sampled(2, of="mode")
@each_mode
@each_finish
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("schema", [PAYMENT, OPTIONAL], ids=["required", "optional"])
def test_every_cut_is_the_answer_or_an_error(mode: str, finish: str, stream: bool, schema: Any) -> None:
    make: Callable[..., FakeReply] = streamed if stream else whole
    for at in range(0, len(TEXT) + 1, 3 if schema is OPTIONAL else 2):
        reply = make(TEXT[:at], finish, MODES[mode][1])
        found = asking([reply], mode, stream=stream, schema=schema, structured=StructuredOptions(retries=0))
        assert grows(found), (at, found.partials, found.value)
        repaired = not found.error and found.provenance.repaired
        assert all(grown(one, FULL) for one in found.partials if not (repaired and one == found.value))
        if not found.error:
            complete = found.value == FULL
            nothing = not TEXT[:at] and MODES[mode][1] and finish == "stop" and schema is OPTIONAL
            assert complete or nothing or (finish == "stop" and found.provenance.repaired), (at, found.value)
        elif finish == "length":
            assert found.error == "truncated", (at, found.error)
        else:
            assert found.error in ("truncated", "no_json", "invalid"), (at, found.error)


def test_a_cut_number_is_no_answer_and_only_arguments_are_asked_for_once_more() -> None:
    for mode, (_, tool) in MODES.items():
        for stream in (False, True):
            make = streamed if stream else whole
            reply = make('{"who": "bob", "tags": [], "amount": 12', "length", tool)
            found = asking([reply], mode, stream=stream)
            assert (found.error, found.value, found.calls) == ("truncated", None, 2 if tool else 1), mode


def test_a_finished_text_that_lacks_its_last_bracket_is_repaired_and_flagged() -> None:
    for mode, (_, tool) in MODES.items():
        found = asking([whole(TEXT[:-1], "stop", tool)], mode, stream=False)
        assert (found.error, found.value, found.calls) == ("", FULL, 1), mode
        assert found.provenance.repaired


@each_mode
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_prose_is_no_answer_where_nothing_is_required(mode: str, stream: bool) -> None:
    make = streamed if stream else whole
    found = asking([make("I cannot say.", "stop")], mode, stream=stream, schema=OPTIONAL)
    assert (found.error, found.value, found.calls) == ("no_json", None, 2)
    assert found.partials == []


STREAMS: dict[str, tuple[str, str]] = {
    "a fence": (f"```json\n{TEXT}\n```", ""),
    "words before": (f"Here it is: {TEXT}", ""),
    "words behind": (f"{TEXT}\nI hope this helps.", ""),
    "a draft before": (f'A draft: {{"who": "al", "tags": [], "amount": 1}}. Better: {TEXT}', ""),
    "another value behind": (TEXT + '\n{"who": "al", "tags": [], "amount": 1}', ""),
    "a wrong type": (TEXT.replace("1200", '"many"'), "invalid"),
    "a member too many": (TEXT[:-1] + ', "x": 1}', "invalid"),
    "a number as text": (TEXT.replace("1200", '"1200"'), "invalid"),
    "a comma too many": (TEXT[:-1] + ",}", "invalid"),
    "single quotes": (TEXT.replace('"', "'"), "invalid"),
    "a wrapper": (f'{{"answer": {TEXT}}}', "invalid"),
    "a key twice": (TEXT[:-1] + ', "who": "al"}', "invalid"),
    "NaN": (TEXT.replace("1200", "NaN"), "invalid"),
}


@pytest.mark.parametrize(("text", "error"), STREAMS.values(), ids=STREAMS)
def test_a_stream_that_shows_its_answer_at_once_never_contradicts_itself(text: str, error: str) -> None:
    found = asking([streamed(text, "stop")], "enforced", stream=True)
    assert found.error == error
    assert grows(found), (found.partials, found.value)
    if not error:
        assert json.loads(found.text) == found.value
        assert found.partials[-1] == found.value
        assert ("answer.text" in found.degraded) is (text != TEXT)


@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.parametrize("text", [text for text, _ in STREAMS.values()], ids=STREAMS)
@pytest.mark.parametrize("mode", ["JSON mode", "words"])
def test_partial_answers_that_wait_are_the_answer_or_its_beginning(mode: str, text: str, retries: int) -> None:
    found = asking([streamed(text, "stop")], mode, stream=True, structured=StructuredOptions(retries=retries))
    assert grows(found), (found.partials, found.value)
    assert found.error or (found.partials[-1] == found.value and json.loads(found.text) == found.value)


def test_partial_answers_come_as_they_grow_where_nobody_is_asked_again() -> None:
    for retries, more in ((0, True), (1, False)):
        options = StructuredOptions(retries=retries)
        found = asking([streamed(TEXT, "stop")], "JSON mode", stream=True, structured=options)
        assert (len(found.partials) > 1) is more
        assert found.partials[-1] == FULL


UNKNOWN = (("lookup", '{"q": "bob"}'),)


@pytest.mark.parametrize("mode", ["enforced", "JSON mode", "a forced tool"])
def test_a_call_of_a_tool_that_was_not_offered_is_asked_again_and_then_an_error(mode: str) -> None:
    good = whole(TEXT, "stop", MODES[mode][1])
    found = asking([whole("", "stop", calls=UNKNOWN), good], mode, stream=False)
    assert (found.value, found.calls) == (FULL, 2)
    found = asking([whole("", "stop", calls=UNKNOWN)], mode, stream=False)
    assert (found.error in ("no_json", "invalid"), found.calls) == (True, 2)


def test_an_answer_beside_a_call_of_a_tool_that_was_not_offered_stands() -> None:
    found = asking([whole(TEXT, "stop", calls=UNKNOWN)], "enforced", stream=False)
    assert (found.value, found.calls, "tool_calls" in found.degraded) == (FULL, 1, True)


def test_the_answer_given_to_a_tool_by_another_name_is_the_answer_where_one_was_offered() -> None:
    found = asking([whole("", "stop", calls=[("respond", TEXT)])], "a forced tool", stream=False)
    assert (found.value, found.calls) == (FULL, 1)


@pytest.mark.parametrize("arguments", ["", " ", "{}", "null"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_empty_arguments_are_an_empty_object(arguments: str, stream: bool) -> None:
    make = streamed if stream else whole
    found = asking([make(arguments, "stop", "respond_answer")], "a forced tool", stream=stream, schema=OPTIONAL)
    assert (found.value, found.error, found.calls) == ({}, "", 1)


def test_a_second_try_in_prose_leaves_the_first_answer_with_its_defaults() -> None:
    schema = {**PAYMENT, "properties": {**PAYMENT["properties"], "amount": {"type": "integer", "default": 7}}}
    bad = TEXT.replace("1200", '"many"')
    for stream in (False, True):
        make = streamed if stream else whole
        found = asking([make(bad, "stop"), make("Sorry, I cannot.", "stop")], "JSON mode", stream=stream, schema=schema)
        assert (found.value, found.calls) == ({**FULL, "amount": 7}, 2)
        assert found.provenance.defaulted == ("/amount",)
    found = asking([whole(bad, "stop"), whole("Sorry, I cannot.", "stop")], "JSON mode", stream=False)
    assert (found.error, found.calls) == ("invalid", 2)


ODD: dict[str, tuple[str, Any]] = {
    "a surrogate alone": ('{"v": "\\ud800"}', {"v": "\ufffd"}),
    "a pair of surrogates": ('{"v": "\\ud83d\\ude00"}', {"v": "\U0001f600"}),
    "NaN": ('{"v": NaN}', {"v": None}),
    "infinity": ('{"v": 1e999}', {"v": None}),
    "a big integer": ('{"v": 123456789012345678901234567890}', {"v": 123456789012345678901234567890}),
    "a key twice": ('{"v": 1, "v": 2}', {"v": 2}),
    "deep": ('{"v": ' + "[" * 90 + "]" * 90 + "}", None),
    "too deep": ('{"v": ' + "[" * 100_000 + "]" * 100_000 + "}", "error"),
    "a null character": ('{"v": "a\\u0000b"}', {"v": "a\x00b"}),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("text", "value"), ODD.values(), ids=ODD)
def test_odd_values_are_an_answer_or_an_error_and_never_a_crash(text: str, value: Any, stream: bool) -> None:
    reply = streamed(text, "stop", size=5000) if stream else whole(text, "stop")
    found = asking([reply], "enforced", stream=stream, schema={"type": "object", "required": ["v"]})
    assert grows(found)
    if value == "error" or (stream and found.error):
        assert found.error in ("invalid", "no_json", "truncated", "too_complex"), found.error
    else:
        assert found.error == ""
        assert value is None or found.value == value
