"""What an entry of the cache is found by where a similar question is asked, as bytes in its store."""

from __future__ import annotations

import sys
from array import array

import msgspec

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
    """Return the question of an entry; None where another version of bardo wrote it in a form that this one cannot read."""
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
