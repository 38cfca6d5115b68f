"""Write a GGUF file (version 3) with float32 tensors: what llama.cpp loads, with nothing but the standard library.

Source: the specification in the ggml repository, docs/gguf.md, 2026-11-20.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path

Matrix = Sequence[Sequence[float]]
Value = str | bool | int | float | Sequence[str] | Sequence[int]

_ALIGNMENT = 32
_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9


def write_gguf(path: Path, fields: Mapping[str, Value], tensors: Mapping[str, Matrix | Sequence[float]]) -> None:
    """Write a model file. A whole number is a uint32; a list holds strings or int32."""
    described, data = bytearray(), bytearray()
    for name, tensor in tensors.items():
        shape, floats = _flattened(tensor)
        described += _string(name) + struct.pack("<I", len(shape))
        # ggml counts dimensions from the innermost, and 0 is its name for float32.
        described += b"".join(struct.pack("<Q", size) for size in reversed(shape)) + struct.pack("<IQ", 0, len(data))
        data += _padded(floats.tobytes())
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(fields))
    head += b"".join(_string(name) + _typed(value) for name, value in fields.items())
    path.write_bytes(_padded(head + bytes(described)) + bytes(data))


def _flattened(tensor: Matrix | Sequence[float]) -> tuple[tuple[int, ...], array[float]]:
    first = tensor[0]
    if isinstance(first, int | float):
        return (len(tensor),), array("f", tensor)  # type: ignore[arg-type]
    return (len(tensor), len(first)), array("f", [number for row in tensor for number in row])  # type: ignore[union-attr]


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _typed(value: Value) -> bytes:
    match value:
        case bool():
            return struct.pack("<I?", _BOOL, value)
        case int():
            return struct.pack("<II", _UINT32, value)
        case float():
            return struct.pack("<If", _FLOAT32, value)
        case str():
            return struct.pack("<I", _STRING) + _string(value)
    strings = bool(value) and isinstance(value[0], str)
    items = b"".join(_string(str(item)) if strings else struct.pack("<i", int(item)) for item in value)
    return struct.pack("<IIQ", _ARRAY, _STRING if strings else _INT32, len(value)) + items
