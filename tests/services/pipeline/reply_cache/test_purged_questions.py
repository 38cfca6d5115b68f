"""What is removed from the cache is removed from the index of similar questions too: it holds questions and answers word for word."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from bardo.adapters.stores.database.store_calls import StoreCalls
from bardo.context.cache.entries import CacheEntry, Selection
from bardo.context.cache.similar_lookup import FindSimilar, IndexedQuestion, encode_index, packed
from bardo.services.pipeline.effects import Effects
from bardo.services.pipeline.reply_cache.cache import Flights, RemoveReplies, ReplyCache
from bardo.services.pipeline.reply_cache.evidence import SimilarEvidence
from bardo.services.pipeline.reply_cache.opening import MemoryReplies
from bardo.services.pipeline.reply_cache.similarity import SimilarReplies, VectorIndex

SCOPE = b"scope"


def entry(identity: bytes, tag: str) -> CacheEntry:
    question = IndexedQuestion("f", SCOPE, packed((1.0, 0.0)), f"the question of {tag}", "the answer")
    return CacheEntry(
        tenant="t", identity=identity, value=b"x", expires=1e12, tags=(tag,), index=encode_index(question)
    )


def clock() -> float:
    return 1.0


def test_a_question_whose_reply_is_removed_is_forgotten(tmp_path: Path) -> None:
    store, effects = MemoryReplies(), Effects()
    calls: StoreCalls[Any] = StoreCalls(lambda: store, in_memory=True, watch=clock)
    cache = ReplyCache(calls, Flights(1.0, clock), seconds=1.0, clock=clock)
    index = VectorIndex()
    similar = SimilarReplies(
        calls, effects, index, SimilarEvidence(None), seconds=1.0, clock=clock, watch=clock, slow=False
    )
    cache.forgets.append(similar.forget_all)
    store.put(entry(b"one", "news"), now=1.0)
    store.put(entry(b"two", "sport"), now=1.0)
    asked = FindSimilar("t", SCOPE, "f", (1.0, 0.0), 0.5, 8)

    async def questions() -> list[str]:
        return sorted([one.question for one in await similar.find(asked)])

    async def check() -> None:
        assert await questions() == ["the question of news", "the question of sport"]
        assert await cache.remove(RemoveReplies(Selection(tag="news"))) == 1
        assert index.rows == 0
        assert await questions() == ["the question of sport"]

    asyncio.run(check())
