"""Every recorded Gemini reply: what is read writes back, and no word is lost or doubled."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.gemini import DIALECT
from bardo.dialects.shared.losses import Losses
from bardo.dialects.shared.media import with_known_media
from bardo.values.blocks import UnknownBlock
from bardo.values.errors import UpstreamRefused
from bardo.values.fold import fold
from bardo.values.request import facts_of
from bardo.values.response import Response
from bardo.values.wire import Arrival
from dialects.gemini.support import REQUEST, ROW, events_of, streamed
from dialects.told import as_told
from recordings import Recording, each_recording, rows

ALL = rows("gemini")
GOOD = [one for one in ALL if one.meta["http_status"] == 200]
ASKED = [one for one in GOOD if (one.meta.get("request_body") or {}).get("contents")]


def decoded(recording: Recording) -> Response:
    return fold(events_of([recording.body], sse=recording.framing == "sse"))


def payloads(recording: Recording) -> list[Any]:
    body = recording.body
    if recording.framing == "sse":
        lines = body.replace(b"\r\n", b"\n").split(b"\n")
        return [msgspec.json.decode(line[5:]) for line in lines if line.startswith(b"data:")]
    whole = msgspec.json.decode(body)
    return whole if isinstance(whole, list) else [whole]


def wire_parts(recording: Recording) -> list[dict[str, Any]]:
    return [
        part
        for payload in payloads(recording)
        for candidate in payload["candidates"]
        for part in candidate.get("content", {}).get("parts", ())
    ]


@each_recording(GOOD)
def test_a_recorded_reply_ends_well(recording: Recording) -> None:
    response = decoded(recording)
    assert response.error is None
    assert response.degraded == ()
    assert response.finish.reason in ("stop", "length", "tool_calls")
    assert response.model
    assert response.blocks


@each_recording(GOOD)
def test_every_word_stands_once(recording: Recording) -> None:
    response, found = decoded(recording), wire_parts(recording)
    thoughts = "".join(part["text"] for part in found if part.get("thought"))
    answer = "".join(part["text"] for part in found if "text" in part and not part.get("thought"))
    assert "".join("".join(block.summary) for block in response.reasoning_blocks) == thoughts
    assert response.text == answer
    calls = [part["functionCall"] for part in found if "functionCall" in part]
    assert [(call.name, call.arguments) for call in response.tool_calls] == [(c["name"], c["args"]) for c in calls]
    others = [part for part in found if not part.keys() & {"text", "functionCall"}]
    assert [block.value for block in response.blocks if isinstance(block, UnknownBlock)] == others
    signatures = [part["thoughtSignature"] for part in found if "thoughtSignature" in part and part not in others]
    states = [state.data for block in response.blocks for state in getattr(block, "opaque", ())]
    assert states == signatures


@each_recording(GOOD)
def test_usage_adds_up_to_the_replys_own_total(recording: Recording) -> None:
    usage, last = decoded(recording).usage, payloads(recording)[-1]["usageMetadata"]
    assert usage.raw == last
    assert usage.total_tokens == last["totalTokenCount"]
    assert usage.reasoning_tokens == last.get("thoughtsTokenCount")
    assert usage.cached_input_tokens == last.get("cachedContentTokenCount")


@each_recording(GOOD)
def test_what_is_read_writes_back(recording: Recording) -> None:
    events = events_of([recording.body], sse=recording.framing == "sse")
    response = fold(events)
    assert fold(events_of([DIALECT.encode_response(response, REQUEST)], sse=False)) == response
    assert fold(events_of([streamed(events)], sse=True)) == response
    assert fold(events_of([streamed(events, "json_array")], sse=False)) == response


@each_recording([one for one in ALL if one not in GOOD])
def test_a_recorded_error_is_the_providers_own(recording: Recording) -> None:
    said = payloads(recording)[0]["error"]
    inside = decoded(recording).error
    outside = DIALECT.decode_error(said["code"], recording.body, {}, "google")
    for error in (inside, outside):
        assert isinstance(error, UpstreamRefused)
        assert (error.status, error.message, error.upstream_type) == (said["code"], said["message"], said["status"])


@each_recording(ASKED)
def test_a_recorded_request_writes_back(recording: Recording) -> None:
    body = msgspec.json.encode(recording.meta["request_body"])
    arrival = Arrival(model=recording.meta["model"], stream=recording.stream)
    request = DIALECT.decode_request(body, arrival)
    wire = DIALECT.encode_request(as_told(request), ROW)
    assert wire.degraded == ()
    again = DIALECT.decode_request(wire.body, arrival)
    # google-genai writes base64 for addresses.
    asked = with_known_media(request, Losses(DIALECT.declaration), facts_of(request.messages).parts)
    assert msgspec.structs.replace(again, body=None, body_bytes=b"") == msgspec.structs.replace(
        asked, body=None, body_bytes=b""
    )
