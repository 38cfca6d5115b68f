"""The model that a reply names: the one its client asked for, whichever provider answered, whole and streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.catalog.rows import DialectName, ProviderRow
from bardo.dialects import dialect
from bardo.replies.forwarding import ForwardedModel, Forwarding, with_client_model
from bardo.replies.reply_reader import ReplyHandling, row_reader
from bardo.values.response import Response
from support.gateway import House, model_of
from support.talk import ask
from surfaces.gateway.cells import whole_and_streamed

NAMED = ("openai_chat", "openai_responses", "anthropic_messages", "gemini", "gemini_interactions", "ollama")


def names_in(value: Any) -> set[str]:
    """Return the names of models in the objects of a reply."""
    if isinstance(value, list):
        return {name for one in value for name in names_in(one)}
    if not isinstance(value, dict):
        return set()
    own = {one for name, one in value.items() if name in ("model", "modelVersion") and isinstance(one, str)}
    return own | {name for key, one in value.items() if key != "bardo" for name in names_in(one)}


@whole_and_streamed
@pytest.mark.parametrize("provider", ["anthropic", "deepseek", "gemini", "openai_responses"])
@pytest.mark.parametrize("spoken", NAMED)
def test_a_reply_names_the_model_its_client_asked_for(town: House, spoken: str, provider: str, stream: bool) -> None:
    asked = model_of(provider)
    answer = ask(town.address, spoken, asked, stream=stream)
    assert answer.status == 200
    assert answer.headers["x-bardo-model"] == asked.removeprefix(f"{provider}/")
    lines = [json.loads(line) for line in answer.body.splitlines()] if spoken == "ollama" else []
    assert names_in(lines or (answer.payloads if stream else answer.json)) == {asked}


def test_only_the_field_of_the_reply_changes() -> None:
    body = b'{"content": [{"type": "tool_use", "input": {"model": "up"}}], "model": "up"}'
    named = with_client_model(body, dialect("anthropic_messages"), Response(model="up"), "mine")
    assert b'{"model": "up"}' in named
    assert b'"model":"mine"' in named


CALL = {"function": {"name": "pull", "arguments": {"model": "up", "modelVersion": "up"}}}
FRAMES: dict[DialectName, dict[str, Any]] = {
    "ollama": {"model": "up", "message": {"role": "assistant", "content": "", "tool_calls": [CALL]}, "done": False},
    "gemini": {
        "candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "f", "args": CALL}}]}}],
        "modelVersion": "up",
    },
}


STARTED: dict[str, Any] = {
    "type": "message_start",
    "message": {"type": "message", "id": "m", "role": "assistant", "model": "up"},
}
ASKED: dict[str, Any] = {"type": "tool_use", "id": "c", "name": "f", "input": {"model": "up", "deep": {"model": "up"}}}


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("kind", ["tool_use", "server_tool_use", "novel"])
@pytest.mark.parametrize("begun", [STARTED, {**STARTED, "message": {**STARTED["message"], "content": [ASKED]}}])
def test_the_input_that_a_block_begins_with_keeps_a_field_of_the_same_name(
    begun: dict[str, Any], kind: str, compact: bool, joined: bool
) -> None:
    one = {**ASKED, "type": kind, "input": {"model": "up"}}
    frames = [
        begun,
        *(
            {"type": "content_block_start", "index": n, "content_block": b}
            for n, b in enumerate((one, {**ASKED, "type": kind}))
        ),
    ]
    lines = [
        b"data: %b\n\n" % json.dumps(frame, separators=(",", ":") if compact else None).encode() for frame in frames
    ]
    row = ProviderRow(id="lab", name="Lab", dialect="anthropic_messages")
    forwarding = Forwarding(
        row_reader(row, streamed=True, handling=ReplyHandling(forward=True)),
        forward=True,
        withhold_usage=False,
        hold_end=False,
    )
    model = ForwardedModel(dialect("anthropic_messages"), "mine")
    reads = [b"".join(lines)] if joined else lines
    named = b"".join(model.in_frames(forwarding.update(read)) for read in reads)
    begun = {**begun, "message": {**begun["message"], "model": "mine"}}
    assert [json.loads(line[line.index(b"{") :]) for line in named.splitlines() if line] == [begun, *frames[1:]]


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("spoken", FRAMES)
def test_the_arguments_of_a_call_keep_a_field_of_the_same_name(spoken: DialectName, compact: bool) -> None:
    row, frame = ProviderRow(id="lab", name="Lab", dialect=spoken), FRAMES[spoken]
    written = json.dumps(frame, separators=(",", ":") if compact else None).encode()
    lines = {"ollama": b"%b\n", "gemini": b"data: %b\n\n"}[spoken] % written * 2
    forwarding = Forwarding(
        row_reader(row, streamed=True, handling=ReplyHandling(forward=True)),
        forward=True,
        withhold_usage=False,
        hold_end=False,
    )
    named = ForwardedModel(dialect(spoken), "mine").in_frames(forwarding.update(lines))
    field = dialect(spoken).model_field
    assert [json.loads(line[line.index(b"{") :]) for line in named.splitlines() if line] == [
        {**frame, field: "mine"}
    ] * 2
