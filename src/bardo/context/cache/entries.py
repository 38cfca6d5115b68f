"""Entries of the reply cache: what makes two calls equal, the stored form of an answer, and the confidence of a match."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Literal, Protocol

import msgspec

from bardo.context.cache.similar_lookup import LONGEST_ANSWER
from bardo.context.layer import KeptReply
from bardo.values.request import BardoOptions, Request

_FORM = b"\x01"
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(KeptReply)


class CacheEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One reply with what it is found and removed by. `expires` is Unix time.

    `model` is the name that the client asked for, and `answered_by` the provider and model that answered, as `provider/model`: an entry
    is removed by either. `index` is what similar requests are found by, empty where it is found by its `identity` alone.
    """

    tenant: str
    identity: bytes
    value: bytes
    expires: float
    model: str = ""
    answered_by: str = ""
    tags: tuple[str, ...] = ()
    index: bytes = b""

    @property
    def size(self) -> int:
        """How many bytes it counts as."""
        return len(self.value) + len(self.index) + len(self.identity) + len(self.tenant) + sum(map(len, self.tags))


class IndexedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An indexed entry, as a store returns it. `number` grows with each entry that is put into the store."""

    number: int
    tenant: str
    identity: bytes
    index: bytes
    expires: float


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries are meant: those that fit all that is given; all of them where nothing is.

    `model` fits the name that was asked for and the one that answered, with or without its provider.
    """

    tenant: str | None = None
    model: str | None = None
    tag: str | None = None


class CacheBounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much a store holds, of all tenants and of each."""

    entries: int = 50_000
    bytes: int = 256 * 1024 * 1024
    tenant_entries: int = 10_000
    tenant_bytes: int = 64 * 1024 * 1024


class ReplyStore(Protocol):
    """Keeps entries within its bounds: where there are too many, the oldest go first. Safe to use from several threads.

    Its callers catch `problems`, the exceptions that it raises if the store cannot be reached or used.
    """

    waits: bool
    """Whether a call may wait for a disk or a network, so that it belongs off the event loop."""
    problems: tuple[type[Exception], ...]

    def find(self, tenant: str, identity: bytes, *, now: float) -> bytes | None:
        """Return the value of an entry that has not expired."""
        ...

    def put(self, entry: CacheEntry, *, now: float) -> bool:
        """Keep an entry in the place of an earlier one, and return whether it is kept: one larger than a tenant's share is not."""
        ...

    def indexed(self, after: int, most: int, *, now: float) -> Sequence[IndexedEntry]:
        """Return entries that have an index, a number over `after`, and have not expired, in the order of their numbers."""
        ...

    def purge(self, selection: Selection) -> int:
        """Remove entries, and return how many there were."""
        ...

    def totals(self, tenant: str | None = None) -> tuple[int, int]:
        """Return how many entries and bytes are kept, of one tenant or of all. Expired ones may count until they are removed."""
        ...

    def close(self) -> None:
        """Let go of what the store holds open."""
        ...


def encode_kept(reply: KeptReply) -> bytes:
    """Return a reply as stores keep it."""
    return _FORM + _encoder.encode(reply)


def decode_kept(value: bytes) -> KeptReply | None:
    """Return the reply that a value holds, or None if another version of bardo wrote it in a form that this one cannot read."""
    if value[:1] != _FORM:
        return None
    try:
        return _decoder.decode(memoryview(value)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def names_of(entry: CacheEntry) -> tuple[str, ...]:
    """Return the names of models by which an entry is removed."""
    bare = entry.answered_by.partition("/")[2]
    return tuple(dict.fromkeys(name for name in (entry.model, entry.answered_by, bare) if name))


Comparison = Literal["same", "different", "undecided"]

_SHORT = 200
_SAME_COSINE, _DIFFERENT_COSINE = 0.90, 0.55
_WORD = re.compile(r"\w+(?:[.,:]\d+)*")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_OPPOSED = (
    ("yes", "no"), ("true", "false"), ("ja", "nein"), ("oui", "non"), ("sí", "no"), ("correct", "incorrect"),
)  # fmt: skip


def compare_answers(cached: str, fresh: str, cosine: float | None) -> Comparison:
    """Return whether two answers mean the same.

    `cosine` is the similarity of their vectors, or None if there is none. What cannot be told is undecided: long answers are worded
    anew each time, and such a comparison says nothing of the cache.
    """
    left, right = _folded_words(cached), _folded_words(fresh)
    if left == right:
        return "same"
    if not left or not right or _opposed(left[0], right[0]):
        return "different"
    mine, others = _numbers(cached), _numbers(fresh)
    short = max(len(cached), len(fresh)) <= _SHORT
    if short and mine != others:
        return "different"
    if short and set(left) == set(right):
        # The same words in another order may say the opposite.
        return "undecided"
    if cosine is None:
        return "undecided"
    if cosine < _DIFFERENT_COSINE:
        return "different"
    shared = len(mine & others) / len(mine | others) if mine | others else 1.0
    if cosine >= _SAME_COSINE and shared >= 0.5 and ("not" in left) == ("not" in right):
        return "same"
    return "undecided"


def _folded_words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text[:LONGEST_ANSWER])]


def _numbers(text: str) -> frozenset[str]:
    return frozenset(_NUMBER.findall(text[:LONGEST_ANSWER]))


def _opposed(one: str, other: str) -> bool:
    return any({one, other} == set(pair) for pair in _OPPOSED)


_SIZE = 32
_DEFAULT = BardoOptions()
_in_any_order = msgspec.msgpack.Encoder(order="deterministic", enc_hook=repr)
_in_order = msgspec.msgpack.Encoder(enc_hook=repr)


def identity_of(request: Request, *scope: Any) -> bytes:
    """Return the identity of a request, in 32 bytes. `scope` is what else must be equal: the tenant first.

    Two dialects that ask for the same have the same identity, unless fields go through that only one of them has.
    Raises ValueError for a request that holds what cannot be compared: a number of more than 64 bits, or half a character.
    """
    try:
        digest = blake2b(_in_any_order.encode((scope, *_fields_of(request))), digest_size=_SIZE)
        if request.tools or request.output_format is not None:
            digest.update(_in_order.encode((request.tools, request.output_format)))
    except OverflowError as problem:
        raise ValueError("the request holds a number that is too large to be compared") from problem
    return digest.digest()


def _fields_of(request: Request) -> tuple[Any, ...]:
    own = request.extra or request.headers or request.inner_fields
    return (
        request.model,
        request.messages,
        request.tool_choice,
        request.max_output_tokens,
        request.sampling,
        request.reasoning,
        request.control,
        request.choices,
        request.operation,
        request.dialect if own else "",
        request.extra,
        request.headers,
        _options_of(request.options),
        *sorted(request.inner_fields.items()),
    )


def _options_of(options: BardoOptions) -> BardoOptions | None:
    """Return the options without those that say nothing of the answer, or None if none is left."""
    if options == _DEFAULT:
        return None
    asked = msgspec.structs.replace(
        options,
        include=(),
        verify=None,
        allow_stale=None,
        deadline_seconds=None,
        chose_display=_DEFAULT.chose_display,
        cache=None,
        session=_DEFAULT.session,
        agent=_DEFAULT.agent,
        repository=_DEFAULT.repository,
        search_limits=(),
    )
    return None if asked == _DEFAULT else asked
