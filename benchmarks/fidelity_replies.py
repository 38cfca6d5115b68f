"""Whether clients of four dialects get all that recorded replies of providers say, or are told what is missing.

Each recording is read by bardo as a reply of its provider and written for each client, whole and as a stream. Both ends are read here by
the names of the dialects' fields (`raw_dialects.py`, `raw_usage.py`): bardo's own reading of the provider's bytes is not what counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.planning.planner import plan
from bardo.planning.route import Provider, Target
from bardo.replies.citations import citations_between
from bardo.replies.reply_reader import row_reader
from bardo.replies.reply_stages import FillMissingFields
from bardo.replies.translation_stages import ForeignContent
from bardo.streams.stage import Stage
from bardo.surfaces.library.decoding import provider_row
from bardo.values.events import Event, ReplyStart
from bardo.values.fold import fold
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival
from benchmarks.fidelity_requests import CLIENTS
from benchmarks.raw_dialects import read_reply
from benchmarks.raw_replies import RawReply
from benchmarks.raw_usage import Raw, counts_in, payloads
from benchmarks.wire_facts import SHARED

RECORDINGS = SHARED / "recordings"
_TAGS = re.compile(r"</?(?:think|thinking|thought|reasoning)>|\[/?THINK\]|\s+")
_STAMP = ReplyStart(id="req_1", model="asked", created=7)
_NAMES = {
    "the text": ("content", "citation", "refusal", "text"),
    "the thinking": ("reasoning", "thinking"),
    "the calls": ("tool", "content"),
    "the state": ("opaque", "reasoning", "signature", "content"),
    "the end": ("finish",),
    "the usage": ("usage",),
}
"""By what is compared: words of which one stands in the name of each degradation that says it is missing."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded reply; `folder` is the name of its provider."""

    file: str
    framing: str

    @property
    def folder(self) -> str:
        return self.file.partition("/")[0]

    @property
    def body(self) -> bytes:
        """The bytes as recorded."""
        return (RECORDINGS / self.file).read_bytes()


@dataclass(frozen=True)
class ReplyCase:
    """A recorded reply for one client, whole or as a stream."""

    recording: Recording
    client: str
    stream: bool

    def __str__(self) -> str:
        return f"{self.recording.file} → {self.client}{', streamed' if self.stream else ''}"


@dataclass(frozen=True)
class Sent:
    """What a provider said, as it stands in its bytes, and as bardo read it."""

    raw: RawReply
    counts: Raw
    events: Sequence[Event]
    row: ProviderRow
    model: str


def recordings() -> list[Recording]:
    """Return the recorded replies; none where they are not beside the project."""
    index = RECORDINGS / "index.jsonl"
    lines = index.read_text(encoding="utf-8").splitlines() if index.is_file() else []
    rows = [json.loads(line) for line in lines if line.strip()]
    return [Recording(row["file"], row["framing"]) for row in rows]


def cases() -> Iterator[ReplyCase]:
    """Return every recorded reply for every client."""
    for recording in recordings():
        for client in CLIENTS:
            yield from (ReplyCase(recording, client, stream) for stream in (False, True))


@lru_cache(maxsize=1)
def sent(recording: Recording) -> Sent:
    """Return what a recording says."""
    row = provider_row(recording.folder)
    reader = row_reader(row, streamed=recording.framing != "json")
    events = [*reader.feed(recording.body), *reader.finish()]
    documents = list(payloads(recording))
    raw = read_reply(documents, row.dialect)
    return Sent(raw, counts_in(documents, row.dialect), events, row, reader.fold.response().model)


def missing(case: ReplyCase) -> list[tuple[str, str, bool]]:
    """Return what a client is not given: what it is, how it differs, and whether a degradation tells of it."""
    said = sent(case.recording)
    events = _for_client(said, case.client)
    response = fold(events)
    body = _written(events, response, case.client, stream=case.stream)
    documents = _documents(body, stream=case.stream)
    got = read_reply(documents, case.client)
    if said.raw.error:
        return [] if got.error else [("the error", "is lost", False)]
    names = [one.what for one in response.degraded]
    found = [*differences(said.raw, got), *_count_differences(said.counts, counts_in(documents, case.client))]
    if not case.stream:
        lost, told = _lost_states(said, body, case.client)
        names += told
        found += [("the state", f"{min(lost)[:40]} does not come back")] if lost else []
    return [(what, wrong, any(word in name for name in names for word in _NAMES[what])) for what, wrong in found]


def _for_client(said: Sent, client: str) -> list[Event]:
    """Return the events as the engine hands them to a client's encoder."""
    events: list[Event] = list(said.events)
    citations = citations_between(said.row.dialect, client, said.model)
    stages: list[Stage[Event, Event]] = [FillMissingFields(_STAMP), *citations, ForeignContent(client)]
    for stage in stages:
        events = [*(given for event in events for given in stage.feed(event)), *stage.finish()]
    return events


def _written(events: Sequence[Event], response: Response, client: str, *, stream: bool) -> bytes:
    request = Request(model="m", messages=(), dialect=client)
    if not stream and response.error is not None:
        return dialect(client).encode_error(response.error)
    if not stream:
        return dialect(client).encode_response(response, request)
    encoder = dialect(client).open_encoder(request, Arrival())
    return b"".join([piece for event in events for piece in encoder.feed(event)] + list(encoder.finish()))


def _documents(body: bytes, *, stream: bool) -> list[Any]:
    if not stream:
        return [json.loads(body)]
    lines = [line[5:].strip() for line in body.splitlines() if line.startswith(b"data:")]
    return [json.loads(line) for line in lines if line not in (b"", b"[DONE]")]


def differences(said: RawReply, got: RawReply) -> list[tuple[str, str]]:
    """Return what differs between what a provider said and what a client got, and how."""
    if _plain(said.text) != re.sub(r"\s+", "", said.text):
        # Thinking inside the text: where it ends is for the parsers' own cases to say.
        found = [("the text", _unlike(_plain(got.thinking + got.text), _plain(said.thinking + said.text)))]
    else:
        found = [
            ("the text", _unlike(_plain(got.text), _plain(said.text))),
            ("the thinking", _unlike(_plain(got.thinking), _plain(said.thinking))),
        ]
    found.append(("the calls", _unlike(_calls(got), _calls(said))))
    found.append(("the end", _unlike(got.end, said.end) if said.end else ""))
    return [(what, wrong) for what, wrong in found if wrong]


def _count_differences(said: Raw, got: Raw) -> Iterator[tuple[str, str]]:
    for name in ("input", "output", "reasoning", "cached"):
        was, now = getattr(said, name), getattr(got, name)
        if was != now and not (was is None and now == 0):
            yield "the usage", f"{name} is {now}, not {was}"


def _unlike(got: Any, said: Any) -> str:
    return "" if got == said else f"{str(got)[:120]!r}, not {str(said)[:120]!r}"


def _plain(text: str) -> str:
    """Return a text without space and without the tags of thinking."""
    return _TAGS.sub("", text)


def _calls(reply: RawReply) -> list[tuple[str, str]]:
    return [(call.name, _canonical(call.arguments)) for call in reply.calls]


def _canonical(arguments: Any) -> str:
    try:
        value = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        value = arguments
    if isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in ("INVALID_JSON", "_raw"):
        value = next(iter(value.values()))
    return json.dumps({} if value in (None, "") else value, sort_keys=True)


def turn_of(body: bytes, client: str) -> dict[str, Any]:
    """Return a request in which the client of a whole reply sends it back, with results of the calls."""
    reply = json.loads(body)
    asked = {"role": "user", "content": "Hello."}
    match client:
        case "openai_chat":
            message = reply["choices"][0]["message"]
            results = [
                {"role": "tool", "tool_call_id": call["id"], "content": "done"}
                for call in message.get("tool_calls") or ()
            ]
            return {"messages": [asked, message, *results]}
        case "openai_responses":
            calls = [item["call_id"] for item in reply["output"] if item["type"] == "function_call"]
            results = [{"type": "function_call_output", "call_id": one, "output": "done"} for one in calls]
            return {"input": [asked, *reply["output"], *results], "store": False}
        case "anthropic_messages":
            calls = [block["id"] for block in reply["content"] if block["type"] == "tool_use"]
            results = [{"type": "tool_result", "tool_use_id": one, "content": "done"} for one in calls]
            back = {"role": "assistant", "content": reply["content"]}
            answer = [{"role": "user", "content": results}] if results else []
            return {"messages": [asked, back, *answer], "max_tokens": 4096}
        case _:
            content = reply["candidates"][0].get("content") or {"role": "model", "parts": []}
            calls = [part["functionCall"] for part in content.get("parts") or () if "functionCall" in part]
            parts = [
                {
                    "functionResponse": {
                        **({"id": one["id"]} if "id" in one else {}),
                        "name": one["name"],
                        "response": {},
                    }
                }
                for one in calls
            ]
            answer = [{"role": "user", "parts": parts}] if parts else []
            return {"contents": [{"role": "user", "parts": [{"text": "Hello."}]}, content, *answer]}


def _lost_states(said: Sent, body: bytes, client: str) -> tuple[set[str], list[str]]:
    """Return the states that the provider does not get back of a client, and the names of what is reported of that."""
    wanted = {_alphabet(state) for state in said.raw.states}
    if not wanted:
        return set(), []
    model = said.model or "m"
    turn = {"model": model, **turn_of(body, client)}
    request = dialect(client).decode_request(json.dumps(turn).encode(), Arrival(model=model))
    provider = Provider(id=said.row.id, row=said.row, base_url="http://host/v1")
    attempt = plan(request, Target(provider=provider, model=model))
    back = _alphabet(json.dumps(json.loads(attempt.wire.body), ensure_ascii=False))
    return {state for state in wanted if state not in back}, [one.what for one in attempt.degraded]


def _alphabet(text: str) -> str:
    """Return a text with base64 in one of its alphabets, without padding."""
    return text.replace("-", "+").replace("_", "/").replace("=", "")
