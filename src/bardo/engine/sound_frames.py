"""Frames that are forwarded as they came: a strict reader must be able to read each of them.

bardo reads over lone surrogates, control characters in strings, NaN, and bytes that are no UTF-8. A client's library may not, so a frame
that holds them is written anew, and its client is told.
"""

from __future__ import annotations

import msgspec

from bardo.dialects.lenient import MENDED as MENDED
from bardo.dialects.lenient import decode_leniently
from bardo.streams.frames import Frame
from bardo.streams.sse import encode_sse

_decode = msgspec.json.Decoder().decode


def sound(frame: Frame) -> Frame:
    """Return the frame as any reader can read it: the frame itself, unless it had to be mended, or its bytes left out."""
    data, raw = frame.data, frame.raw
    if data is None:
        return frame if frame.complete and _is_text(raw) else Frame(None, complete=frame.complete)
    whole = raw is data
    if not _is_strict(data, raw):
        try:
            data = msgspec.json.encode(decode_leniently(data))
        except ValueError:
            return _as_it_is(frame)
        return Frame(data, frame.event, data if whole else encode_sse(data, frame.event), frame.complete)
    return frame


def _as_it_is(frame: Frame) -> Frame:
    """Return a frame that holds no JSON: `[DONE]`, or what its decoder refuses."""
    keep = frame.complete or (frame.data or b"").strip() == b"[DONE]"
    return frame if keep and _is_text(frame.raw) else Frame(frame.data, frame.event, b"", frame.complete)


def _is_strict(data: bytes, raw: bytes) -> bool:
    try:
        _decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return _is_text(raw)


def _is_text(raw: bytes) -> bool:
    if raw.isascii():
        return True
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
