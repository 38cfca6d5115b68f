"""What an item's client gets where its reply cannot be read."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from bardo.batches.records import BatchRecord, ItemRecord, JobRecord
from bardo.batches.results import ResultReader
from bardo.dialects.batches.base import JobReply

NOW = 1_795_435_200.0


def test_an_item_whose_provider_is_no_longer_configured_ends_with_an_error() -> None:
    services = SimpleNamespace(directory=SimpleNamespace(providers=()), clock=lambda: NOW, clean=lambda _: None)
    batch = BatchRecord(
        id="b",
        tenant="",
        dialect="openai_chat",
        endpoint="/v1/chat/completions",
        created_at=NOW,
        expires_at=NOW + 86_400,
    )
    job = JobRecord(id="j", batch_id="b", provider="gone", model="m", dialect="openai_chat", path="", form="")
    item = ItemRecord(batch_id="b", place=0, custom_id="1", body=b"{}")
    reader = ResultReader(cast("Any", services))
    reply = JobReply(key="i", outcome="replied", status=200, body=b"{}")
    ended = asyncio.run(reader.read(item, cast("Any", SimpleNamespace(request=None)), batch, job, reply))
    assert ended.state == "errored"
    assert ended.result is not None
    assert "gone is no longer configured" in msgspec.json.decode(ended.result)["body"]["error"]["message"]
