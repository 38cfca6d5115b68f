"""A call without layers does the same work as in a gateway that has none: not one function more is called."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.adapters.net.keys import Keyring
from bardo.adapters.stores.log import LogRow
from bardo.call.open import open_call
from bardo.dialects import dialect
from bardo.services.facts.directory import ProviderDirectory
from bardo.services.pipeline.pipeline import Pipeline
from bardo.values.wire import Arrival
from bardo.wiring import make_services
from support.failover import NO_PAUSES

SETTINGS = """
[[providers]]
id = "lab"
preset = "deepseek"
dialect = "openai_chat"
models = ["m"]
"""
WHOLE = {
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}],
}
CHUNK = {"model": "m", "choices": [{"index": 0, "delta": {"content": "4"}, "finish_reason": "stop"}]}
STREAM = b"data: " + msgspec.json.encode(CHUNK) + b"\n\ndata: [DONE]\n\n"


class Rows(list[LogRow]):
    """The rows of a log."""

    def write(self, row: LogRow) -> None:
        self.append(row)


def calls_of_functions(folder: Path, language: str, *, stream: bool, pipeline: bool) -> Counter[str]:
    """Return how often each function of bardo is called for one request."""
    settings, keyring = parse_settings(SETTINGS), Keyring({"DEEPSEEK_API_KEY": "k"})
    body = STREAM if stream else msgspec.json.encode(WHOLE)
    kind = "text/event-stream" if stream else "application/json"
    transport = FakeTransport(lambda call: FakeReply(headers={"content-type": kind}, chunks=[body]))
    directory = ProviderDirectory.of(settings, transport, keyring, clock=lambda: 1.0)
    services = make_services(
        directory,
        transport,
        keyring,
        log=Rows(),
        clock=lambda: 1.0,
        watch=lambda: 1.0,
        failover=NO_PAUSES,
        pipeline=(lambda host: Pipeline.of(settings, host, folder, {})) if pipeline else None,
    )
    asked = {"model": "m", "messages": [{"role": "user", "content": "2+2?"}], "stream": stream, "max_tokens": 9}
    counts: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and "bardo" in Path(frame.f_code.co_filename).parts:
            counts[frame.f_code.co_qualname] += 1

    async def work() -> None:
        for measured in (False, False, True):
            request = dialect(language).decode_request(msgspec.json.encode(asked), Arrival())
            sys.setprofile(count if measured else None)
            try:
                live = await open_call(services, request)
                async for _ in live.updates():
                    pass
                await live.close()
            finally:
                sys.setprofile(None)

    asyncio.run(work())
    return counts


@pytest.mark.parametrize("language", ["openai_chat", "anthropic_messages"], ids=["forwarded", "translated"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_where_no_profile_is_named_nothing_looks_for_one(tmp_path: Path, language: str, stream: bool) -> None:
    without = calls_of_functions(tmp_path, language, stream=stream, pipeline=False)
    having = calls_of_functions(tmp_path, language, stream=stream, pipeline=True)
    assert sum(without.values()) > 100, "the request was counted"
    assert having == without
