"""`client.memory`: search the thinking of past calls, show one call's, forget it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from bardo.values.episodes import Episode, EpisodeMatch, Erased, MemoryStats, SearchBy
from bardo.values.errors import ClientMisuse, NotStored

if TYPE_CHECKING:
    from bardo.adapters.stores.memory.reasoning_memory import EpisodeSelection, ReasoningMemory

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, Any]], Any]
When = float | datetime


class AsyncMemory:
    """The reasoning memory of a client: of all tenants, as whoever has the log may see them, unless a tenant is named.

    Times are Unix times or datetimes. Its methods raise ClientMisuse where the memory is off, and LogUnusable where it cannot be read.
    """

    def __init__(self, memory: ReasoningMemory | None) -> None:
        self._memory = memory

    async def search(
        self,
        text: str,
        *,
        limit: int = 10,
        by: SearchBy = "both",
        tenant: str | None = None,
        key: str | None = None,
        session: str | None = None,
        subsystem: str | None = None,
        model: str | None = None,
        since: When | None = None,
        before: When | None = None,
    ) -> list[EpisodeMatch]:
        """Return the episodes that fit, the best first: by the words of their texts, and by what they mean.

        Words, `"phrases"` and `begin*` are looked for. `by` takes `words` or `meaning` alone. `key` is the id of a client's key.
        """
        chosen = _selection(
            tenant=tenant,
            key=key,
            session=session,
            subsystem=subsystem,
            model=model,
            since=_time(since),
            before=_time(before),
        )
        return await asyncio.to_thread(self._opened().search, text, chosen, limit=limit, by=by)

    async def show(self, episode: str, *, tenant: str | None = None) -> Episode:
        """Return an episode by its id, its call's id or a beginning that only it has. Raises NotStored where there is none."""
        found = await asyncio.to_thread(self._opened().show, episode, tenant=tenant)
        if found is None:
            raise no_episode(episode)
        return found

    async def forget(
        self,
        episode: str | None = None,
        *,
        tenant: str | None = None,
        key: str | None = None,
        session: str | None = None,
        before: When | None = None,
        everything: bool = False,
    ) -> Erased:
        """Remove episodes for good, and the content of their calls from the log. `everything` is needed where nothing else is said.

        The file of an SQLite database is written anew, which takes as long as copying it.
        """
        chosen = _selection(id=episode, tenant=tenant, key=key, session=session, before=_time(before))
        if everything is (chosen != _selection()):
            hint = "give an id, tenant, key, session or before, which may be combined; or everything=True"
            raise ClientMisuse("it must be said which episodes are forgotten", hint=hint)
        return await asyncio.to_thread(self._opened().forget, chosen)

    async def stats(self, *, tenant: str | None = None) -> MemoryStats:
        """Return what the memory holds."""
        return await asyncio.to_thread(self._opened().stats, tenant=tenant)

    def _opened(self) -> ReasoningMemory:
        if self._memory is None:
            hint = "turn it on: MemorySettings(enabled=True), and LogSettings(content=True)"
            raise ClientMisuse("this client keeps no reasoning memory", hint=hint)
        return self._memory


class Memory:
    """The reasoning memory of a client without asyncio; see AsyncMemory."""

    def __init__(self, inner: AsyncMemory, run: Run) -> None:
        self._inner = inner
        self._run = run

    def search(
        self,
        text: str,
        *,
        limit: int = 10,
        by: SearchBy = "both",
        tenant: str | None = None,
        key: str | None = None,
        session: str | None = None,
        subsystem: str | None = None,
        model: str | None = None,
        since: When | None = None,
        before: When | None = None,
    ) -> list[EpisodeMatch]:
        """Return the episodes that fit, the best first, as AsyncMemory does."""
        found: list[EpisodeMatch] = self._run(
            self._inner.search(
                text,
                limit=limit,
                by=by,
                tenant=tenant,
                key=key,
                session=session,
                subsystem=subsystem,
                model=model,
                since=since,
                before=before,
            )
        )
        return found

    def show(self, episode: str, *, tenant: str | None = None) -> Episode:
        """Return an episode, as AsyncMemory does. Raises NotStored where there is none."""
        found: Episode = self._run(self._inner.show(episode, tenant=tenant))
        return found

    def forget(
        self,
        episode: str | None = None,
        *,
        tenant: str | None = None,
        key: str | None = None,
        session: str | None = None,
        before: When | None = None,
        everything: bool = False,
    ) -> Erased:
        """Remove episodes for good, as AsyncMemory does."""
        work = self._inner.forget(
            episode, tenant=tenant, key=key, session=session, before=before, everything=everything
        )
        erased: Erased = self._run(work)
        return erased

    def stats(self, *, tenant: str | None = None) -> MemoryStats:
        """Return what the memory holds."""
        found: MemoryStats = self._run(self._inner.stats(tenant=tenant))
        return found


def no_episode(name: str) -> NotStored:
    """Return the error for an id that no episode has."""
    return NotStored(f"no episode has the id {name[:200]!r}", hint="a search lists the ids of what it finds")


def _selection(**fields: Any) -> EpisodeSelection:
    from bardo.adapters.stores.memory.reasoning_memory import EpisodeSelection

    return EpisodeSelection(**fields)


def _time(when: When | None) -> float | None:
    return when.timestamp() if isinstance(when, datetime) else when
