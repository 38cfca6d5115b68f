"""A signature behind the answer, which Gemini sends with an empty text, is a thought for clients of Interactions, as Google writes it."""

from __future__ import annotations

import json

from google.genai._gaos.types.interactions.interaction import Interaction

from bardo.dialects import dialect
from bardo.values.blocks import Opaque
from bardo.values.events import BlockFields, ContentChunk, Event, Finish, OpaqueState, ReplyStart
from bardo.values.fold import fold
from bardo.values.request import Request
from bardo.values.wire import Arrival

ASKED = Request(model="m", messages=(), dialect="gemini_interactions")
STATE = Opaque("signature", "c2ln", "google-gemini-v1")
SIGNED_END: list[Event] = [
    ReplyStart(id="r", model="m"),
    ContentChunk(0, "Yes."),
    ContentChunk(1, ""),
    OpaqueState(1, STATE),
    Finish("stop"),
]
SIGNED_TEXT: list[Event] = [
    ReplyStart(id="r", model="m"),
    ContentChunk(0, ""),
    ContentChunk(0, "Yes."),
    OpaqueState(0, STATE),
    Finish("stop"),
]


def whole(events: list[Event]) -> Interaction:
    body = dialect("gemini_interactions").encode_response(fold(events), ASKED)
    return Interaction.model_validate(json.loads(body))


def streamed(events: list[Event]) -> list[tuple[str, object]]:
    encoder = dialect("gemini_interactions").open_encoder(ASKED, Arrival())
    body = b"".join([piece for event in events for piece in encoder.feed(event)] + list(encoder.finish()))
    found = [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: {")]
    steps = [one for one in found if one["event_type"] in ("step.start", "step.delta")]
    return [(one["event_type"], one.get("step") or one.get("delta")) for one in steps]


def test_the_last_output_of_a_whole_reply_is_its_answer() -> None:
    reply = whole(SIGNED_END)
    assert reply.output_text == "Yes."
    assert [step.type for step in reply.steps or ()] == ["model_output", "thought"]
    assert reply.model_dump(exclude_none=True)["steps"][-1] == {"type": "thought", "signature": "c2ln"}


def test_a_stream_has_no_empty_output() -> None:
    assert streamed(SIGNED_END) == [
        ("step.start", {"type": "model_output"}),
        ("step.delta", {"type": "text", "text": "Yes."}),
        ("step.start", {"type": "thought"}),
        ("step.delta", {"type": "thought_signature", "signature": "c2ln"}),
    ]


def test_a_signature_of_a_cited_place_without_text_leaves_it_an_output() -> None:
    cited = BlockFields(0, "gemini_interactions", {"annotations": [{"url": "u"}]})
    events: list[Event] = [ReplyStart(id="r", model="m"), cited, OpaqueState(0, STATE), Finish("stop")]
    assert streamed(events) == [
        ("step.start", {"type": "model_output"}),
        ("step.delta", {"type": "text_annotation_delta", "annotations": [{"url": "u"}]}),
        ("step.delta", {"type": "text", "text": ""}),
        ("step.delta", {"type": "thought_signature", "signature": "c2ln"}),
    ]


def test_a_signed_text_stays_one_output() -> None:
    assert [kind for kind, _ in streamed(SIGNED_TEXT)] == ["step.start", "step.delta", "step.delta"]
    assert [step.type for step in whole(SIGNED_TEXT).steps or ()] == ["model_output"]
