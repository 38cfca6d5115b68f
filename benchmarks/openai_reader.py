"""A yardstick for `decode`: openai's SDK reading the same stream from memory."""

from __future__ import annotations

from collections.abc import Callable


def openai_reader(body: bytes, note: Callable[[str], None]) -> Callable[[], object] | None:
    """Return what reads a Chat stream with openai's SDK, or None, noted, where that cannot be done."""
    try:
        import httpx2
        import openai
    except ImportError as problem:
        note(f"no yardstick for `decode`: {problem}")
        return None

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body)

    http_client = httpx2.Client(transport=httpx2.MockTransport(answer))
    client = openai.OpenAI(api_key="none", base_url="http://upstream.invalid/v1", http_client=http_client)

    def read() -> int:
        stream = client.chat.completions.create(model="bench", messages=[], stream=True)
        return sum(1 for _ in stream)

    return read
