"""Web pages that an answer cites reach the client in its own dialect's form, and point at the same words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.dialects import dialect
from bardo.replies.citations import citations_between
from bardo.replies.translation_stages import ForeignContent
from bardo.streams.stage import Chain
from bardo.values.events import BlockFields, ContentChunk, Degraded, Event, Finish, ReplyFields, ReplyStart
from bardo.values.fold import fold
from bardo.values.request import Request
from bardo.values.wire import Arrival

CHAT, RESPONSES, MESSAGES, GEMINI = "openai_chat", "openai_responses", "anthropic_messages", "gemini"
INTERACTIONS, OLLAMA = "gemini_interactions", "ollama"

# "Größe: " has 7 characters and 9 bytes; "zwölf" has 5 and 6.
TEXT, WORD = "Größe: zwölf.", "zwölf"
URL, TITLE = "https://a.example", "A"
IN_CHARACTERS = {"url": URL, "title": TITLE, "start_index": 7, "end_index": 12}
IN_BYTES = {**IN_CHARACTERS, "start_index": 9, "end_index": 15}
ENTRY: dict[str, dict[str, Any]] = {
    CHAT: {"type": "url_citation", "url_citation": IN_CHARACTERS},
    RESPONSES: {"type": "url_citation", **IN_CHARACTERS},
    INTERACTIONS: {"type": "url_citation", **IN_BYTES},
}
GROUNDING = {
    "groundingChunks": [{"web": {"uri": URL, "title": TITLE}}],
    "groundingSupports": [{"segment": {"startIndex": 9, "endIndex": 15, "text": WORD}, "groundingChunkIndices": [0]}],
}
LOCATION = {"type": "web_search_result_location", "url": URL, "title": TITLE, "cited_text": "", "encrypted_index": ""}
CITED: dict[str, Event] = {
    CHAT: ReplyFields(CHAT, {"message.annotations": [ENTRY[CHAT]]}, 0),
    RESPONSES: BlockFields(0, RESPONSES, {"annotations": [ENTRY[RESPONSES]]}),
    INTERACTIONS: BlockFields(0, INTERACTIONS, {"annotations": [ENTRY[INTERACTIONS]]}),
    GEMINI: ReplyFields(GEMINI, {"groundingMetadata": GROUNDING}, 0),
}


def translated(source: str, client: str, *events: Event) -> list[Event]:
    """Return what a client gets besides the events themselves, in the order in which it comes."""
    chain: Chain[Event] = Chain([*citations_between(source, client), ForeignContent(client)])
    given = [found for event in events for found in chain.feed(event)] + list(chain.finish())
    return [event for event in given if not any(event is one for one in events)]


def losses(events: list[Event]) -> list[str]:
    return [event.degradation.what for event in events if isinstance(event, Degraded)]


@pytest.mark.parametrize("client", [CHAT, RESPONSES, INTERACTIONS, GEMINI])
@pytest.mark.parametrize("source", [CHAT, RESPONSES, INTERACTIONS, GEMINI])
def test_a_citation_points_at_the_same_words_in_each_dialect(source: str, client: str) -> None:
    pieces = [ContentChunk(0, TEXT[:3]), ContentChunk(0, TEXT[3:])]
    found = translated(source, client, *pieces, CITED[source], Finish("stop"))
    assert found == ([] if source == client else [CITED[client]])


def test_anthropics_citations_point_at_the_block_that_holds_them() -> None:
    seen = {**LOCATION, "cited_text": "twelve", "encrypted_index": "x"}
    events: list[Event] = [
        ContentChunk(0, "Größe: "),
        BlockFields(1, MESSAGES, {"citations": [seen]}),
        ContentChunk(1, WORD),
    ]
    events += [ContentChunk(2, "."), Finish("stop")]
    found = translated(MESSAGES, CHAT, *events)
    assert losses(found) == ["citations.encrypted_index", "citations.cited_text"]
    assert [event for event in found if not isinstance(event, Degraded)] == [CITED[CHAT]]
    grounded = translated(MESSAGES, GEMINI, *events)
    assert [event for event in grounded if not isinstance(event, Degraded)] == [CITED[GEMINI]]
    (own,) = [event for event in translated(MESSAGES, RESPONSES, *events) if not isinstance(event, Degraded)]
    entry = {**ENTRY[RESPONSES], "start_index": 0, "end_index": 5}
    assert own == BlockFields(1, RESPONSES, {"annotations": [entry]})


@pytest.mark.parametrize("source", [CHAT, RESPONSES, INTERACTIONS, GEMINI])
def test_an_anthropic_client_gets_the_pages_at_the_block_and_is_told_that_places_are_lost(source: str) -> None:
    found = translated(source, MESSAGES, ContentChunk(0, TEXT), CITED[source], Finish("stop"))
    assert BlockFields(0, MESSAGES, {"citations": [LOCATION]}) in found
    assert [name.rpartition(".")[2] for name in losses(found) if not name.startswith("usage")] == ["places"]


def test_places_count_within_the_block_that_is_cited() -> None:
    events = [ContentChunk(0, "é!"), ContentChunk(1, TEXT)]
    there = BlockFields(1, RESPONSES, {"annotations": [ENTRY[RESPONSES]]})
    (chat,) = translated(RESPONSES, CHAT, *events, there, Finish("stop"))
    assert isinstance(chat, ReplyFields)
    entry = chat.fields["message.annotations"][0]["url_citation"]
    assert (entry["start_index"], entry["end_index"]) == (9, 14)
    (back,) = translated(
        INTERACTIONS, RESPONSES, *events, BlockFields(1, INTERACTIONS, {"annotations": [ENTRY[INTERACTIONS]]})
    )
    assert back == there
    (bytewise,) = translated(RESPONSES, INTERACTIONS, *events, there)
    assert bytewise == BlockFields(1, INTERACTIONS, {"annotations": [ENTRY[INTERACTIONS]]})


def test_words_that_stand_elsewhere_are_found_by_what_the_citation_repeats() -> None:
    support = {"segment": {"startIndex": 2, "endIndex": 8, "text": WORD}, "groundingChunkIndices": [0]}
    grounding = {**GROUNDING, "groundingSupports": [support]}
    event = ReplyFields(GEMINI, {"groundingMetadata": grounding}, 0)
    assert translated(GEMINI, CHAT, ContentChunk(0, TEXT), event, Finish("stop")) == [CITED[CHAT]]


def test_a_page_that_supports_nothing_stands_at_the_end_and_the_rest_of_grounding_is_reported() -> None:
    grounding = {"groundingChunks": GROUNDING["groundingChunks"], "webSearchQueries": ["how big"]}
    event = ReplyFields(GEMINI, {"groundingMetadata": grounding}, 0)
    found = translated(GEMINI, CHAT, ContentChunk(0, TEXT), event, Finish("stop"))
    assert losses(found) == ["groundingMetadata.webSearchQueries"]
    (chat,) = [one for one in found if isinstance(one, ReplyFields)]
    entry = chat.fields["message.annotations"][0]["url_citation"]
    assert (entry["start_index"], entry["end_index"]) == (len(TEXT), len(TEXT))


@pytest.mark.parametrize(
    "value",
    [None, 1, {}, {"groundingChunks": [1, {"web": 2}], "groundingSupports": [{"groundingChunkIndices": ["x"]}]}],
)
def test_a_field_of_another_form_is_reported_and_breaks_nothing(value: Any) -> None:
    found = translated(GEMINI, CHAT, ContentChunk(0, "Hi"), ReplyFields(GEMINI, {"groundingMetadata": value}, 0))
    assert [type(event) for event in found] == [Degraded] * len(found)
    odd = [None, 3, {"type": "url_citation"}, {"type": "file_citation", "file_id": "f"}]
    found = translated(RESPONSES, CHAT, ContentChunk(0, "Hi"), BlockFields(0, RESPONSES, {"annotations": odd}))
    assert losses(found) == ["annotations"]


def test_a_dialect_without_citations_has_them_reported() -> None:
    assert citations_between(RESPONSES, OLLAMA) == []
    assert losses(translated(RESPONSES, OLLAMA, ContentChunk(0, TEXT), CITED[RESPONSES])) == ["annotations"]


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("source", "client"), [(RESPONSES, CHAT), (GEMINI, MESSAGES), (CHAT, GEMINI), (GEMINI, RESPONSES)]
)
def test_a_client_reads_the_citations_of_another_dialect(source: str, client: str, streamed: bool) -> None:
    chain: Chain[Event] = Chain([*citations_between(source, client), ForeignContent(client)])
    given = (ReplyStart(id="r", model="m"), ContentChunk(0, TEXT), CITED[source], Finish("stop"))
    events = [one for event in given for one in chain.feed(event)] + list(chain.finish())
    request, language = Request(model="m", messages=(), dialect=client, stream=streamed), dialect(client)
    if streamed:
        encoder = language.open_encoder(request, Arrival())
        written = b"".join([piece for event in events for piece in encoder.feed(event)] + list(encoder.finish()))
    else:
        written = language.encode_response(fold(events), request)
    assert URL in written.decode()
    if not streamed and client == GEMINI:
        assert json.loads(written)["candidates"][0]["groundingMetadata"] == GROUNDING


def test_a_long_answer_with_many_citations_takes_linear_time() -> None:
    size = 20_000
    text = "é" * size
    support = [
        {"segment": {"startIndex": 2 * at, "endIndex": 2 * at + 2, "text": "é"}, "groundingChunkIndices": [0]}
        for at in range(size)
    ]
    event = ReplyFields(GEMINI, {"groundingMetadata": {**GROUNDING, "groundingSupports": support}}, 0)
    (chat,) = translated(GEMINI, CHAT, ContentChunk(0, text), event, Finish("stop"))
    assert isinstance(chat, ReplyFields)
    assert [one["url_citation"]["start_index"] for one in chat.fields["message.annotations"]] == list(range(size))


@pytest.mark.parametrize(("source", "client"), [(GEMINI, CHAT), (CHAT, GEMINI)])
def test_the_places_of_a_very_long_answer_are_lost_which_is_reported(source: str, client: str) -> None:
    long = [ContentChunk(0, "x" * 10_000) for _ in range(6)]
    found = translated(source, client, ContentChunk(0, TEXT), *long, CITED[source], Finish("stop"))
    assert any(name.endswith(".places") for name in losses(found))
    assert URL in str(found)
