"""Whose the things are that providers keep and name by an id: responses, conversations, files, containers, and others.

All clients of a gateway share its credential at a provider, which therefore answers each of them with what any of them made. So an id
belongs to the tenant whose reply it came in; for everybody else it does not exist. Without keys nothing of this is looked at.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import threading
import time
import unicodedata
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from bardo.adapters.config.paths import named_path
from bardo.adapters.config.settings import ProviderIdSettings, Settings, state_path
from bardo.adapters.config.storage import is_file_name, place_of
from bardo.adapters.long_work import run_by_size
from bardo.adapters.net.calls import Reply
from bardo.adapters.stores.database.set_aside import RenewableFile
from bardo.adapters.stores.state import Bounds, KeyedStore, open_store
from bardo.adapters.stores.state.calls import StateCalls
from bardo.catalog.kept_ids import (
    KeptIdField,
    KeptIdReply,
    fields_by_name,
    kept_address,
    kept_ids,
    kept_model,
    names_in_json,
    plain_name,
)
from bardo.catalog.matching import matches_any
from bardo.dialects.openai_responses.wire import is_made
from bardo.values.errors import InvalidRequest, Unavailable, UnknownProviderId
from bardo.values.operations import EmbedRequest
from bardo.values.request import Request

_SLICE_BYTES, _OVERLAP_BYTES = 256 * 1024, 256
_LONGEST_ID = 2_000
_HOST_END = re.compile(r"[/?#\\]")
_MOST_IDS = 1_000
_MOST_ESCAPES = 8
_LONGEST_LINE = 64 * 1024 * 1024
_OWN, _KNOWN = "own:", "known:"
_SURROGATE = re.compile("[\ud800-\udfff]")
_WEB = ("http://", "https://", "data:")
_INSTRUCTING = ("system", "developer")
_INSTRUCTIONS = ("system", "systeminstruction", "instructions")


class KeptId(NamedTuple):
    """An id in a request, the word for what it names, where it stands, and the error's code where the dialect has one."""

    text: str
    what: str
    param: str
    code: str = ""


class ProviderIds:
    """Finds and keeps whose an id is. `calls` asks the store, `settings` say what an id is that never passed, `clock` gives Unix time."""

    def __init__(
        self, calls: StateCalls, settings: ProviderIdSettings, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._calls = calls
        self._settings = settings
        self._clock = clock

    async def check(self, request: Request | EmbedRequest, tenant: str) -> None:
        """Raise UnknownProviderId for the first id in a request that is not the tenant's, and Unavailable where that cannot be told."""
        shared = self._settings.shared
        ids = [kept_id for kept_id in await _ids_of(request) if not matches_any(kept_id.text, shared)]
        if not ids:
            return
        if len(ids) > _MOST_IDS:
            raise InvalidRequest(f"the request names over {_MOST_IDS} things by their ids", hint="send it in parts")
        own = await self._found(_OWN + tenant, ids)
        missing = [kept_id for kept_id in ids if kept_id.text not in own]
        if self._settings.unknown == "allow":
            # What another tenant has is not unknown.
            missing = [kept_id for kept_id in missing if await self._found(_space_of(kept_id.text), [kept_id])]
        if missing:
            first = missing[0]
            shown = first.text[:200]
            raise UnknownProviderId(
                f"{first.what} with id '{shown}' not found.",
                hint="send what it holds, or make it with the same key; whoever runs bardo can share it: [provider_ids] in bardo.toml",
                param=first.param,
                upstream_code=first.code,
            )

    async def keep(self, tenant: str, ids: Sequence[str]) -> None:
        """Keep that ids are a tenant's. Where the store does not answer, this process knows it until it does."""
        now = self._clock()
        await self._calls.put(_OWN + tenant, ids, b"1", now=now)
        for kept_id in ids:
            await self._calls.put(_space_of(kept_id), [kept_id], b"1", now=now)

    def watched(self, reply: Reply, dialect: str, tenant: str, asked: Collection[str] = ()) -> Reply:
        """Return a provider's reply that keeps the ids in it before anybody reads them; the reply itself where there can be none.

        `asked` are the fields of the request.
        """
        row = kept_ids().of_reply(dialect, asked)
        return reply if row is None else _WatchedReply(reply, row, self, tenant)

    def close(self) -> None:
        """Close the store."""
        self._calls.close()

    async def _found(self, space: str, ids: Sequence[KeptId]) -> Mapping[str, bytes]:
        texts = [item.text for item in ids if len(item.text) <= _LONGEST_ID and not _SURROGATE.search(item.text)]
        own = await self._calls.find(space, texts, now=self._clock()) if texts else {}
        if own is None:
            hint = "try again soon; the gateway's log says why"
            raise Unavailable("whose the ids of the request are cannot be found out now", hint=hint)
        return own


def _space_of(text: str) -> str:
    """Return where it is kept that somebody has an id: in parts, so that one tenant with many does not push out all others."""
    return _KNOWN + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:2]


async def _ids_of(request: Request | EmbedRequest) -> list[KeptId]:
    """Return what a request names by ids that a provider knows. What the gateway itself keeps is not among them."""
    raw = request.body_bytes if isinstance(request, Request) else b""
    raw = raw or (msgspec.json.encode(request.body) if request.body else b"")
    ids = list(_items_of(request))
    if named := kept_model().search(request.model):
        ids.append(KeptId(named[1], kept_ids().model.what, "model"))
    if len(raw) <= _SLICE_BYTES:
        ids += _ids_in(raw)
    else:
        ids += await asyncio.to_thread(lambda: list(_ids_in(raw)))
    stored = request.kept_as if isinstance(request, Request) else None
    own = set() if stored is None else {stored.id, stored.previous, stored.conversation}
    return [kept_id for kept_id in dict.fromkeys(ids) if kept_id.text not in own]


def _ids_in(raw: bytes) -> Iterator[KeptId]:
    """Yield the ids in the fields of a body, also in those that stand twice, of which a provider may read another than bardo."""
    pattern = names_in_json()
    starts = range(0, len(raw), _SLICE_BYTES)
    if not any(pattern.search(raw, start, start + _SLICE_BYTES + _OVERLAP_BYTES) for start in starts):
        return
    try:
        body = json.loads(raw.decode("utf-8", "surrogatepass"), object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as problem:
        raise InvalidRequest(
            "the body is not plain JSON", hint="write each field once, nested less deeply"
        ) from problem
    rows = kept_ids()
    waiting: list[tuple[str, Any, bool]] = [("", body, False)]
    while waiting:
        path, value, instructs = waiting.pop()
        if isinstance(value, _Pairs):
            kinds = {item for name, item in value if plain_name(name) == "type" and isinstance(item, str)}
            # A body is no call, whatever stands in it.
            calls = path != "" and not rows.marks_of_calls.isdisjoint(kinds.union(name for name, _ in value))
            instructs = instructs or any(name == "role" and item in _INSTRUCTING for name, item in value)
            for name, inner in value:
                if name in rows.content or (calls and name in rows.content_of_calls and isinstance(inner, _Pairs)):
                    continue
                below = f"{path}.{name}" if path else name
                row = fields_by_name().get(plain_name(name))
                if row is not None and kinds.isdisjoint(row.common) and not (row.outermost and path):
                    yield from _ids_at_field(row, inner, below)
                waiting.append((below, inner, instructs or plain_name(name) in _INSTRUCTIONS))
            if any(plain_name(kind) == "itemreference" for kind in kinds):
                yield from (KeptId(item, "Item", f"{path}.id") for name, item in value if _is_id_field(name, item))
        elif isinstance(value, list):
            waiting += [(f"{path}[{place}]", inner, instructs) for place, inner in enumerate(value)]
        elif instructs and isinstance(value, str) and value.strip().lower().startswith(rows.instructions.begins):
            texts = (text.strip() for text in value.split(rows.instructions.separator))
            yield from (KeptId(text, rows.instructions.what, path) for text in texts if text)


class _Pairs(list[tuple[str, Any]]):
    """The fields of an object, in their order, each as often as it stands there."""


def _ids_at_field(row: KeptIdField, value: Any, path: str) -> Iterator[KeptId]:
    if isinstance(value, _Pairs):
        if row.has_id:
            yield from (
                KeptId(item, row.what, f"{path}.id", row.code) for name, item in value if _is_id_field(name, item)
            )
        for names in row.paths:
            yield from (KeptId(text, row.what, f"{path}.{names}") for text in _texts_at(value, names.split(".")))
        return
    for item in value if isinstance(value, list) else [value]:
        if row.paths and isinstance(item, _Pairs):
            yield from _ids_at_field(row, item, path)
        if not _is_id(item) or row.only_id or item.startswith(row.public):
            continue
        if row.address and not _names_kept(item, row):
            continue
        yield KeptId(item, row.what, path, row.code)


def _texts_at(value: Any, names: Sequence[str]) -> Iterator[str]:
    """Yield the texts at a path of fields, each as often as it stands there."""
    if not names:
        if _is_id(value):
            yield value
        return
    for name, inner in value if isinstance(value, _Pairs) else ():
        if plain_name(name) == plain_name(names[0]):
            yield from _texts_at(inner, names[1:])


def _is_id_field(name: str, value: Any) -> bool:
    # A server in Go reads the names of fields in any case.
    return plain_name(name) == "id" and _is_id(value)


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _names_kept(address: str, row: KeptIdField) -> bool:
    """Whether an address leads to something that a provider keeps, however it is written."""
    if address.startswith("data:"):
        return False
    plain = address[:_LONGEST_ID]
    for _ in range(_MOST_ESCAPES):
        plain, before = unquote(plain), plain
        if plain == before:
            break
    plain = re.sub(r"[\s\x00-\x1f\x7f]", "", unicodedata.normalize("NFKC", plain)).lower()
    if kept_address().match(plain) is not None or (row.address == "of_provider" and not plain.startswith(_WEB)):
        return True
    # Whose host it is cannot be seen where what stands before it is that long.
    cut = len(address) > _LONGEST_ID and plain.startswith(_WEB)
    return cut and _HOST_END.search(plain, plain.index(":") + 3) is None


def _items_of(request: Request | EmbedRequest) -> Iterator[KeptId]:
    """Yield the ids of items in a history that their provider completes from what it keeps."""
    rows = kept_ids().items
    items = (request.body or {}).get(rows.field) if request.dialect == rows.dialect else None
    for place, item in enumerate(items if isinstance(items, list) else ()):
        own: Any = item.get("id") if isinstance(item, dict) else None
        if not _is_id(own) or is_made(own):
            continue
        kind = item.get("type") or ("message" if "role" in item else "item_reference")
        if isinstance(kind, str) and (item.get(rows.whole.get(kind, "")) or kind.endswith(rows.whole_ends)):
            continue
        yield KeptId(own, rows.what, f"{rows.field}[{place}].id")


class _WatchedReply:
    """A provider's reply whose ids are kept for a tenant before what they stand in is read."""

    def __init__(self, reply: Reply, row: KeptIdReply, ids: ProviderIds, tenant: str) -> None:
        self._reply = reply
        self._row = row
        self._ids = ids
        self._tenant = tenant
        self._marks = tuple(mark.encode() for mark in row.marks)
        self._line: list[bytes] = []
        self._size = 0
        self._seen: set[str] = set()
        self.status, self.headers, self.resent = reply.status, reply.headers, reply.resent

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._reply.chunks():
            await self._keep_lines(self._whole_lines(chunk))
            yield chunk
        await self._keep_lines(b"".join(self._line))

    async def read(self, limit: int) -> bytes:
        body = await self._reply.read(limit)
        await self._keep(await run_by_size(len(body), lambda: list(_ids_of_body(body, self._row))))
        return body

    async def finish(self) -> None:
        await self._reply.finish()

    async def close(self) -> None:
        await self._reply.close()

    def _whole_lines(self, chunk: bytes) -> bytes:
        """Return the lines that end in a piece, and hold the rest until it ends; a line without end is given up."""
        end = chunk.rfind(b"\n") + 1
        if end:
            lines = b"".join([*self._line, chunk[:end]])
            self._line, self._size = [chunk[end:]], len(chunk) - end
            return lines
        self._size += len(chunk)
        self._line = [*self._line, chunk] if self._size <= _LONGEST_LINE else []
        return b""

    async def _keep_lines(self, lines: bytes) -> None:
        if lines and any(mark in lines for mark in self._marks):
            await self._keep(await run_by_size(len(lines), lambda: list(_ids_of_lines(lines, self._marks, self._row))))

    async def _keep(self, texts: Iterable[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self._seen]
        if new:
            self._seen.update(new)
            await self._ids.keep(self._tenant, new)


def _ids_of_lines(lines: bytes, marks: Sequence[bytes], row: KeptIdReply) -> Iterator[str]:
    """Yield the ids of the events in some lines of a stream. A whole reply in the place of a stream is a line, too."""
    for line in lines.splitlines():
        if any(mark in line for mark in marks):
            yield from _ids_of_body(line.removeprefix(b"data:"), row)


def _ids_of_body(body: bytes, row: KeptIdReply) -> Iterator[str]:
    # Most replies need not be read for ids that they do not have.
    if not any(
        all(f'"{name}"'.encode() in body for name in path.split(".") if name != "*")
        for path in (*row.whole, *row.events)
    ):
        return
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # It is no reply: whoever reads it says so.
    yield from _ids_at(value, row.whole)
    yield from _ids_at(value, row.events)


def _ids_at(value: Any, paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        values = [value]
        for name in path.split("."):
            if name == "*":
                values = [inner for inner_value in values if isinstance(inner_value, list) for inner in inner_value]
            else:
                values = [item[name] for item in values if isinstance(item, dict) and name in item]
        yield from (text for text in values if isinstance(text, str) and 0 < len(text) <= _LONGEST_ID)


class _OpenedLater:
    """A store that is opened when it is first asked: the ids of most gateways never come back."""

    waits = True

    def __init__(self, opening: Callable[[], KeyedStore]) -> None:
        self._opening = opening
        self._opened: KeyedStore | None = None
        self._lock = threading.Lock()

    @property
    def problems(self) -> tuple[type[Exception], ...]:
        return () if self._opened is None else self._opened.problems

    def put(
        self,
        tenant: str,
        keys: Sequence[str],
        value: bytes,
        *,
        now: float,
        reply: str = "",
        before: bytes | None = None,
    ) -> bool:
        return self._store().put(tenant, keys, value, now=now, reply=reply, before=before)

    def find(self, tenant: str, keys: Sequence[str], *, now: float) -> dict[str, bytes]:
        return self._store().find(tenant, keys, now=now)

    def remove(self, tenant: str, key: str) -> bool:
        return self._store().remove(tenant, key)

    def totals(self, tenant: str | None = None) -> tuple[int, int]:
        return self._store().totals(tenant)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def _store(self) -> KeyedStore:
        with self._lock:
            if self._opened is None:
                self._opened = self._opening()
            return self._opened


def open_provider_ids(settings: Settings, environment: Mapping[str, str] | None = None) -> ProviderIds:
    """Return what keeps the ids of a configuration. Raises ConfigError for a wrong address; a file is opened when it is first needed."""
    own = settings.provider_ids
    bounds = Bounds(
        entries=own.max_entries,
        bytes=own.max_entries * _LONGEST_ID,
        tenant_entries=own.max_entries_per_tenant,
        tenant_bytes=own.max_entries_per_tenant * _LONGEST_ID,
        seconds=own.ttl_seconds,
    )
    where = place_of(own, os.environ if environment is None else environment, "the ids of providers")
    if not where:
        state = state_path(settings, environment)
        where = str(state.with_name("provider_ids.db")) if isinstance(state, Path) else state

    # If unknown ids may be used, a new file would let everybody use the ids of others: its damage is left to the operator.
    renewable = None
    if is_file_name(where) and own.unknown == "refuse":
        renewable = RenewableFile(named_path(where), name="whose the ids of providers are", area="keys")

    def opening() -> KeyedStore:
        make = partial(open_store, where, bounds, space="provider_ids")
        store = make() if renewable is None else renewable.open(make)
        assert store is not None, where
        return store

    store = _OpenedLater(opening) if is_file_name(where) else opening()
    calls = StateCalls(
        store,
        name="provider ids",
        area="keys",
        seconds=own.timeout_seconds,
        holds_writes=True,
        reopen=opening,
        renewable=renewable,
    )
    return ProviderIds(calls, own)
