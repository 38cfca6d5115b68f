"""A reasoning memory beside a log, for tests that fill it with calls of their own."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import msgspec

from bardo.adapters.config.settings import MemorySettings
from bardo.adapters.stores.log import LogRow, LogWriter
from bardo.adapters.stores.memory.episodes import EpisodeDraft, draft_of
from bardo.adapters.stores.memory.reasoning_memory import ReasoningMemory
from bardo.adapters.stores.memory.store import open_writer
from bardo.values.blocks import Opaque, ReasoningBlock, TextBlock
from bardo.values.fold import build_chain
from bardo.values.request import Message, Request
from bardo.values.response import Response
from bardo.values.usage import Usage
from support.patience import PATIENCE

NOW = 1_800_000_000.0
SIGNATURE = "c2lnbmF0dXJlLW9mLXRoZS10aGlua2luZw"


def draft(
    request_id: str,
    question: str = "",
    thinking: str = "",
    answer: str = "",
    *,
    session: str = "",
    opaque: bool = False,
    tokens: int | None = None,
    schema_ok: bool | None = None,
    **fields: Any,
) -> EpisodeDraft:
    """Return what is kept of a call in which this was said."""
    state = (Opaque("signature", SIGNATURE, "anthropic-claude-v1"),) if opaque else ()
    blocks = (ReasoningBlock(text=thinking, opaque=state), TextBlock(answer))
    row = LogRow(**{"request_id": request_id, "started_at": NOW, "provider": "lab", "model": "m", **fields})
    chain = build_chain(blocks, Usage(reasoning_tokens=tokens), provider="lab", model="m", billed_as_output=True)
    response = Response(blocks=blocks, reasoning=chain)
    asked = Request(model="m", messages=(Message("user", (TextBlock(question),)),))
    made = draft_of(row, asked, response, session=session, schema_ok=schema_ok)
    assert made is not None
    return made


class Kept:
    """A memory at a place, its writer and its reader."""

    def __init__(self, place: str, *, folder: str | None = None, now: float = NOW + 60, **settings: Any) -> None:
        self.place = place
        self.settings = MemorySettings(enabled=True, **settings)
        self.log = LogWriter(place, keep_content=True)
        self.writer = open_writer(place, self.settings, folder, clock=lambda: now)
        self.memory = ReasoningMemory(place, self.settings, folder, clock=lambda: now)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.memory.close()
        self.writer.close()
        self.log.close()

    def add(self, *drafts: EpisodeDraft) -> None:
        """Store episodes, and their calls with what was said."""
        for one in drafts:
            content = msgspec.structs.replace(one.row, request_content=one.question, reply_content=one.answer)
            self.log.write(content)
            self.writer.write(one)
        assert self.log.flush(PATIENCE)
        assert self.writer.flush(PATIENCE)

    def ids(self, query: str, **options: Any) -> list[str]:
        """Return the calls whose episodes a search finds, in order."""
        return [one.request_id for one in self.memory.search(query, **options)]
