"""The effects of the cache for similar questions, and their results: nothing here decides.

A question stands in its store as bytes, by which it is found where a similar one is asked.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from bardo.context.cache.confidence import Evidence
from bardo.context.layer import Effect

_FORM = b"\x01"


class IndexedQuestion(msgspec.Struct, frozen=True, array_like=True):
    """The scope and the fingerprint of the embedding, the vector of the question as float32, the question, and the answer to compare."""

    fingerprint: str
    scope: bytes
    vector: bytes
    question: str
    answer: str


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(IndexedQuestion)


def encode_index(question: IndexedQuestion) -> bytes:
    """Return a question as stores keep it."""
    return _FORM + _encoder.encode(question)


def decode_index(index: bytes) -> IndexedQuestion | None:
    """Return the question of an entry, or None if another version of bardo wrote it in a form that this one cannot read."""
    if index[:1] != _FORM:
        return None
    try:
        return _decoder.decode(memoryview(index)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def packed(vector: tuple[float, ...]) -> bytes:
    """Return a vector as entries keep it: float32, the lowest byte first."""
    values = array("f", vector)
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def unpacked(vector: bytes) -> array[float]:
    """Return the components of a vector that an entry keeps."""
    values = array("f")
    values.frombytes(vector[: len(vector) // 4 * 4])
    if sys.byteorder == "big":
        values.byteswap()
    return values


LONGEST_ANSWER = 2_000
"""How many characters of an answer are kept to be compared."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """An entry with a similar question. `own` are the comparisons of this entry, `pool` those of all entries this similar."""

    identity: bytes
    cosine: float
    question: str
    answer: str
    own: Evidence
    pool: Evidence


class FindSimilar(Effect, frozen=True):
    """Look for entries of one scope, the most similar first: a tuple of Candidate."""

    tenant: str
    scope: bytes
    fingerprint: str
    vector: tuple[float, ...]
    least_cosine: float
    most: int


class ForgetSimilar(Effect, frozen=True):
    """Forget an entry of the index: its reply is no longer kept."""

    scope: bytes
    identity: bytes


class CompareAnswers(Effect, frozen=True):
    """Compare a kept answer with the one that the model gave to a similar question, and remember how it went."""

    identity: bytes
    fingerprint: str
    cosine: float
    kept: str
    fresh: str


class CountSimilar(Effect, frozen=True):
    """Count a look-up: `nothing` was found, the guard `refused` what was, or a reply was `served`, `rechecked` or only `shadowed`."""

    fingerprint: str
    outcome: Literal["nothing", "refused", "shadowed", "rechecked", "served"]


class SimilarLookup(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a search for similar questions: the entry to serve, or to compare with, and how this call's reply is found later."""

    serve: Candidate | None = None
    against: Candidate | None = None
    fingerprint: str = ""
    scope: bytes = b""
    vector: tuple[float, ...] = ()
    question: str = ""
    saw: dict[str, Any] = {}

    def index(self, answer: str) -> bytes:
        """Return what the call's own reply is found by."""
        vector, answer = packed(self.vector), answer[:LONGEST_ANSWER]
        return encode_index(IndexedQuestion(self.fingerprint, self.scope, vector, self.question, answer))


def after_reply(look: SimilarLookup, answer: str) -> Iterable[Effect]:
    """Yield the effects for the model's own answer to a question that a stored reply could have answered."""
    if look.against is not None:
        answer_kept, reply = look.against.answer, look.against
        yield CompareAnswers(reply.identity, look.fingerprint, reply.cosine, answer_kept, answer[:LONGEST_ANSWER])
