"""Documents between the dialects: a PDF, a text and an address, from each client's form to each provider's."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.surfaces.library.decoding import provider_row
from bardo.values.blocks import DocumentBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message, Request
from bardo.values.wire import Arrival, WireRequest

DATA = base64.b64encode(b"%PDF-1.4 a small page").decode()
URL = f"data:application/pdf;base64,{DATA}"
PDF = DocumentBlock(media_type="application/pdf", data=DATA, name="a.pdf")
NAMELESS = msgspec.structs.replace(PDF, name="")
TEXT = DocumentBlock(media_type="text/plain", text="Rain at noon.", name="Weather")

CHAT_FILE = {"type": "file", "file": {"filename": "a.pdf", "file_data": URL}}
RESPONSES_FILE = {"type": "input_file", "filename": "a.pdf", "file_data": URL}
CLAUDE_SOURCE = {"type": "base64", "media_type": "application/pdf", "data": DATA}
CLAUDE_FILE = {"type": "document", "source": CLAUDE_SOURCE, "title": "a.pdf"}
GEMINI_FILE = {"inlineData": {"mimeType": "application/pdf", "data": DATA}}
INTERACTIONS_FILE = {"type": "document", "mime_type": "application/pdf", "data": DATA}
CONVERSE_FILE = {"document": {"format": "pdf", "name": "a", "source": {"bytes": DATA}}}

PARTS: dict[str, dict[str, Any]] = {
    "openai_chat": CHAT_FILE,
    "openai_responses": RESPONSES_FILE,
    "anthropic_messages": CLAUDE_FILE,
    "gemini": GEMINI_FILE,
    "gemini_interactions": INTERACTIONS_FILE,
    "bedrock_converse": CONVERSE_FILE,
}


def body_of(name: str, part: dict[str, Any]) -> bytes:
    """Return a request of a client of this dialect with a text and this part."""
    text = {"type": "text", "text": "Read this."}
    match name:
        case "openai_responses":
            content: list[dict[str, Any]] = [{"type": "input_text", "text": "Read this."}, part]
            body: dict[str, Any] = {"input": [{"type": "message", "role": "user", "content": content}]}
        case "gemini":
            body = {"contents": [{"role": "user", "parts": [{"text": "Read this."}, part]}]}
        case "gemini_interactions":
            body = {"input": [{"type": "user_input", "content": [text, part]}]}
        case "bedrock_converse":
            body = {"messages": [{"role": "user", "content": [{"text": "Read this."}, part]}]}
        case _:
            body = {"max_tokens": 9, "messages": [{"role": "user", "content": [text, part]}]}
    return msgspec.json.encode({"model": "m", **body})


def decoded(name: str, part: dict[str, Any]) -> Request:
    return dialect(name).decode_request(body_of(name, part), Arrival(model="m"))


def written(name: str, *blocks: Any, asked: Request | None = None) -> WireRequest:
    request = asked or Request(model="m", messages=(Message("user", blocks),), dialect="elsewhere", max_output_tokens=9)
    return dialect(name).encode_request(
        request, msgspec.convert({"id": name, "name": name, "dialect": name}, ProviderRow)
    )


def holds(value: Any, part: dict[str, Any]) -> bool:
    """Whether this part stands anywhere in the body."""
    if value == part:
        return True
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(holds(one, part) for one in inner)


def document_of(request: Request) -> Any:
    return request.messages[-1].blocks[-1]


@pytest.mark.parametrize("name", PARTS)
def test_a_pdf_is_read_as_a_document(name: str) -> None:
    found = document_of(decoded(name, PARTS[name]))
    assert (found.media_type, found.data, found.carried) == ("application/pdf", DATA, None)
    assert found.name == {"bedrock_converse": "a"}.get(name, "" if "gemini" in name else "a.pdf")


@pytest.mark.parametrize("source", PARTS)
@pytest.mark.parametrize("target", PARTS)
def test_a_pdf_travels_between_any_two_dialects(source: str, target: str) -> None:
    wire = written(target, asked=decoded(source, PARTS[source]))
    body = wire.body.decode()
    assert DATA in body
    assert not {one.what for one in wire.degraded} & {"document", "content.document", "content.file"}
    if source == target:
        assert holds(msgspec.json.decode(wire.body), PARTS[target])


@pytest.mark.parametrize("target", ["cohere", "ollama", "watsonx_text"])
def test_a_dialect_without_documents_reports_them(target: str) -> None:
    wire = written(target, TextBlock("Read this."), PDF)
    assert "document" in {one.what for one in wire.degraded}
    assert DATA not in wire.body.decode()


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("openai_chat", {"type": "image_url", "image_url": {"url": URL}}),
        ("openai_responses", {"type": "input_image", "image_url": URL}),
    ],
)
def test_a_pdf_in_the_place_of_a_picture_is_a_document(name: str, part: dict[str, Any]) -> None:
    assert document_of(decoded(name, part)) == NAMELESS
    assert holds(msgspec.json.decode(written(name, TextBlock("Hi."), NAMELESS).body), PARTS[name] | _named(name))


def _named(name: str) -> dict[str, Any]:
    file = {"filename": "document.pdf", "file_data": URL}
    return {"type": "file", "file": file} if name == "openai_chat" else {"type": "input_file", **file}


@pytest.mark.parametrize(
    ("target", "part"),
    [
        ("openai_chat", {"type": "text", "text": "Weather\n\nRain at noon."}),
        ("openai_responses", {"type": "input_text", "text": "Weather\n\nRain at noon."}),
        ("gemini_interactions", {"type": "text", "text": "Weather\n\nRain at noon."}),
        (
            "anthropic_messages",
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "Rain at noon."},
                "title": "Weather",
            },
        ),
        ("gemini", {"inlineData": {"mimeType": "text/plain", "data": "UmFpbiBhdCBub29uLg=="}}),
        (
            "bedrock_converse",
            {"document": {"format": "txt", "name": "Weather", "source": {"bytes": "UmFpbiBhdCBub29uLg=="}}},
        ),
    ],
)
def test_a_document_that_is_text_reaches_every_model(target: str, part: dict[str, Any]) -> None:
    for block in (TEXT, msgspec.structs.replace(TEXT, text="", data="UmFpbiBhdCBub29uLg==")):
        wire = written(target, TextBlock("Read this."), block)
        assert holds(msgspec.json.decode(wire.body), part)
        assert ("document.form" in {one.what for one in wire.degraded}) is (part.get("type", "").endswith("text"))


def test_an_address_goes_where_addresses_are_taken() -> None:
    there = DocumentBlock(url="https://example.com/a.pdf")
    taken: dict[str, dict[str, Any]] = {
        "openai_responses": {"type": "input_file", "file_url": there.url},
        "anthropic_messages": {"type": "document", "source": {"type": "url", "url": there.url}},
        "gemini": {"fileData": {"mimeType": "application/pdf", "fileUri": there.url}},
        "gemini_interactions": {"type": "document", "mime_type": "application/pdf", "uri": there.url},
    }
    for target, part in taken.items():
        assert holds(msgspec.json.decode(written(target, TextBlock("Hi."), there).body), part)
    for target in ("openai_chat", "bedrock_converse"):
        assert "document" in {one.what for one in written(target, TextBlock("Hi."), there).degraded}


@pytest.mark.parametrize("target", PARTS)
def test_a_document_in_the_result_of_a_tool_arrives(target: str) -> None:
    messages = (
        Message("user", (TextBlock("Hi."),)),
        Message("assistant", (ToolCallBlock(id="c1", name="read", arguments="{}"),)),
        Message("user", (ToolResultBlock(call_id="c1", name="read", content=(TextBlock("Here."), PDF)),)),
    )
    wire = written(target, asked=Request(model="m", messages=messages, max_output_tokens=9))
    assert DATA in wire.body.decode()
    assert ("tool_result.document" in {one.what for one in wire.degraded}) is (target == "openai_chat")


def test_a_document_in_an_image_block_of_anthropic_is_a_document() -> None:
    source = {"type": "base64", "media_type": "application/pdf", "data": DATA}
    messages = [{"role": "user", "content": [{"type": "image", "source": source}]}]
    body = {"model": "m", "max_tokens": 9, "messages": messages}
    request = dialect("anthropic_messages").decode_request(msgspec.json.encode(body), Arrival())
    assert request.messages[0].blocks == (DocumentBlock(media_type="application/pdf", data=DATA),)


def test_no_empty_message_is_left_of_a_document_that_is_lost() -> None:
    there = DocumentBlock(url="https://example.com/a.pdf")
    messages = (
        Message("user", (TextBlock("Hi."),)),
        Message("assistant", (ToolCallBlock(id="c1", name="read", arguments="{}"),)),
        Message("user", (ToolResultBlock(call_id="c1", name="read", content=(there,)),)),
    )
    wire = written("openai_chat", asked=Request(model="m", messages=messages, max_output_tokens=9))
    assert "document" in {one.what for one in wire.degraded}
    assert [one["role"] for one in msgspec.json.decode(wire.body)["messages"]] == ["user", "assistant", "tool"]


def test_a_format_that_a_model_does_not_take_is_reported() -> None:
    table = DocumentBlock(media_type="application/vnd.ms-excel", data="AAAA", name="t.xls")
    wire = written("anthropic_messages", TextBlock("Hi."), table)
    assert ("document", "application/vnd.ms-excel") in {(one.what, one.asked) for one in wire.degraded}
    odd = DocumentBlock(media_type="application/zip", data="AAAA")
    assert "document" in {one.what for one in written("bedrock_converse", TextBlock("Hi."), odd).degraded}


def test_converse_gets_each_name_once_and_text_beside_a_document() -> None:
    wire = written("bedrock_converse", PDF, PDF)
    content = msgspec.json.decode(wire.body)["messages"][0]["content"]
    assert [block["document"]["name"] for block in content[:2]] == ["a-pdf", "a-pdf 2"]
    assert content[2] == {"text": "Document."}
    assert {"document.name", "document.text"} <= {one.what for one in wire.degraded}


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("openai_chat", {"type": "file", "file": {"file_id": "file_1"}}),
        ("openai_responses", {"type": "input_file", "file_id": "file_1"}),
        ("anthropic_messages", {"type": "document", "source": {"type": "file", "file_id": "file_1"}}),
        ("gemini", {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://bucket/a.pdf"}}),
    ],
)
def test_an_uploaded_file_is_known_to_its_provider_only(name: str, part: dict[str, Any]) -> None:
    request = decoded(name, part)
    assert document_of(request).value == part
    assert holds(msgspec.json.decode(written(name, asked=request).body), part)


def test_fields_beside_a_document_stay_in_their_dialect() -> None:
    part = CLAUDE_FILE | {"citations": {"enabled": True}, "context": "From the archive."}
    request = decoded("anthropic_messages", part)
    assert holds(msgspec.json.decode(written("anthropic_messages", asked=request).body), part)
    assert {"citations", "context"} <= {one.what for one in written("gemini", asked=request).degraded}


@pytest.mark.parametrize(
    ("said", "data", "sent"),
    [
        ("image/png", b"\xff\xd8\xff\xe0 jpeg", "jpeg"),
        ("image/jpeg", b"RIFF\x24\x00\x00\x00WEBPVP8 ", "webp"),
        ("image/jpg", b"\xff\xd8\xff\xe0 jpeg", "jpeg"),
        ("image/jpg", b"nobody knows", "jpeg"),
        ("image/png", b"\x89PNG\r\n\x1a\n png", "png"),
        ("image/png", b"nobody knows", "png"),
    ],
)
@pytest.mark.parametrize("target", ["anthropic", "bedrock"])
def test_a_picture_goes_under_its_own_type(target: str, said: str, data: bytes, sent: str) -> None:
    url = f"data:{said};base64,{base64.b64encode(data).decode()}"
    parts = [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": url}}]
    body = json.dumps({"model": "anthropic.claude-sonnet-4-5", "messages": [{"role": "user", "content": parts}]})
    request = dialect("openai_chat").decode_request(body.encode(), Arrival(model=""))
    row = provider_row(target)
    wire = dialect(row.dialect).encode_request(request, row)
    picture = json.loads(wire.body)["messages"][0]["content"][1]
    form = picture["source"]["media_type"] if target == "anthropic" else f"image/{picture['image']['format']}"
    assert form == f"image/{sent}"
    assert ("image.media_type" in [one.what for one in wire.degraded]) == (said != f"image/{sent}")
