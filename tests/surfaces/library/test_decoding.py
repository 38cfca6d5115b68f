"""`bardo.parse` and `bardo.decode`: replies that are already there."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

import bardo
import recordings
from bardo.catalog.load import builtin
from bardo.values.errors import BrokenStream, InvalidRequest, UpstreamRefused

pytestmark = pytest.mark.each_python


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("<think>Hm.</think>Four.", "Hm.", "Four."),
        ("<think>\nHm.\n</think>\n\nFour.", "\nHm.\n", "\n\nFour."),
        ("Four.", None, "Four."),
        ("", None, ""),
        ("Hm.</think>Four.", "Hm.", "Four."),
        ("<think>Hm, and then it stopped", "Hm, and then it stopped", ""),
        ("Write <think>x</think> so.", None, "Write <think>x</think> so."),
        ("<thi", None, "<thi"),
    ],
)
def test_thinking_is_separated_from_a_models_text(text: str, reasoning: str | None, answer: str) -> None:
    response = bardo.parse(text)
    assert (response.reasoning.content, response.text) == (reasoning, answer)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("Qwen/Qwen3-32B", "<think>Hm.</think>Four."),
        ("deepseek-r1", "Hm.</think>Four."),
        ("magistral-small", "[THINK]Hm.[/THINK]Four."),
    ],
)
def test_the_model_tells_the_format(model: str, text: str) -> None:
    response = bardo.parse(text, model=model)
    assert (response.reasoning.content, response.text, response.model) == ("Hm.", "Four.", model)
    assert response.reasoning.visibility == bardo.ReasoningVisibility.VISIBLE
    assert response.reasoning.tokens_approx


def test_a_format_may_be_named() -> None:
    assert bardo.parse("[THINK]Hm.[/THINK]Four.", format="mistral").reasoning.content == "Hm."
    assert bardo.parse("<think>Hm.</think>Four.", format="passthrough").reasoning.content is None
    with pytest.raises(InvalidRequest, match="no reasoning format is named"):
        bardo.parse("x", format="zzz")


WHOLE = b'{"id":"c","model":"m","choices":[{"message":{"reasoning_content":"Hm.","content":"Four."},"finish_reason":"stop"}]}'
STREAM = (
    b'data: {"id":"c","model":"m","choices":[{"delta":{"reasoning_content":"Hm."}}]}\n\n'
    b'data: {"id":"c","choices":[{"delta":{"content":"Four."},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)


def crumbs(body: bytes) -> Iterable[bytes]:
    return (body[place : place + 1] for place in range(len(body)))


@pytest.mark.parametrize("body", [WHOLE, STREAM], ids=["whole", "streamed"])
@pytest.mark.parametrize("opening", [b"", b"\r\n\n"], ids=["", "empty lines"])
def test_a_body_tells_whether_it_is_a_stream(body: bytes, opening: bytes) -> None:
    for given in (
        opening + body,
        bytearray(opening + body),
        [opening, body],
        crumbs(opening + body),
        iter([opening + body]),
    ):
        response = bardo.decode(given, "deepseek")
        assert (response.reasoning.content, response.text, response.error) == ("Hm.", "Four.", None)


def test_a_stream_may_begin_with_a_byte_order_mark() -> None:
    assert bardo.decode(crumbs(b"\xef\xbb\xbf" + STREAM), "deepseek").text == "Four."


def test_the_caller_may_say_what_it_is() -> None:
    assert bardo.decode(STREAM, provider="groq", streamed=True).text == "Four."
    assert bardo.decode(WHOLE, provider="groq", streamed=False, model="asked").provider == "groq"
    # A body that cannot be a stream is read as what it is: an error comes whole where a stream was asked for.
    assert bardo.decode(WHOLE, provider="groq", streamed=True).text == "Four."


def test_a_stream_may_be_one_array() -> None:
    chunk = {"candidates": [{"content": {"parts": [{"text": "Four."}]}, "finishReason": "STOP"}]}
    body = msgspec.json.encode([chunk])
    assert bardo.decode(body, "gemini").text == "Four."
    assert bardo.decode(crumbs(body), "gemini", streamed=True).text == "Four."


def test_an_error_is_a_response_with_what_had_arrived() -> None:
    refused = bardo.decode(b'{"error": {"message": "No.", "code": 429}}', "deepseek")
    assert isinstance(refused.error, UpstreamRefused)
    broken = bardo.decode(STREAM[: STREAM.index(b"\n\n") + 2], "deepseek")
    assert isinstance(broken.error, BrokenStream)
    assert broken.reasoning.content == "Hm."
    assert bardo.decode(b"", "deepseek").error is not None
    assert bardo.decode(b"<html>", "deepseek").error is not None


def test_an_unknown_provider_is_answered_with_near_ones() -> None:
    with pytest.raises(InvalidRequest, match=r"did you mean.* deepseek") as caught:
        bardo.decode(b"{}", "depseek")
    assert caught.value.param == "provider"
    with pytest.raises(InvalidRequest, match=r"known: .*anthropic"):
        bardo.decode(b"{}", "")


_KNOWN = [
    recording for row in builtin().providers for name in (row.id, *row.aliases) for recording in recordings.rows(name)
]


def test_every_recording_of_a_known_provider_reads_alike_at_once_and_in_pieces() -> None:
    for recording in _KNOWN:
        folder = recording.file.partition("/")[0]
        body = recording.body
        middle = len(body) // 2
        whole = bardo.decode(body, folder)
        assert bardo.decode([body[:middle], body[middle:]], folder) == whole, recording.file
        assert whole.blocks or whole.error or whole.finish.raw or whole.usage.raw, recording.file
