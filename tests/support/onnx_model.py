"""A model of texts in ONNX that is small enough to be written by hand: a table of vectors, one for each word, and its tokenizer.

The bytes are those of the protocol buffer `ModelProto` (onnx/onnx.proto, version 8 of the format, operators of version 13).
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import msgspec

WORDS = ("[UNK]", "write", "code", "python", "king", "history", "france")
VECTORS = (
    (0.01, 0.01, 0.01),
    (1.0, 0.1, 0.0),
    (1.0, 0.0, 0.1),
    (1.0, 0.0, 0.0),
    (0.0, 1.0, 0.1),
    (0.0, 1.0, 0.0),
    (0.1, 1.0, 0.0),
)
_FLOAT, _INT64 = 1, 7


def write_model(
    folder: Path, operator: str = "Gather", *, token: str = "input_ids", longest: int | None = None
) -> Path:
    """Write the folder of a model. `operator` makes the output: Gather a vector for each token, Shape nothing that is an embedding."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(_model(operator, token))
    cut = (
        None
        if longest is None
        else {"max_length": longest, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    )
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "truncation": cut,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {word: n for n, word in enumerate(WORDS)}, "unk_token": "[UNK]"},
    }
    (folder / "tokenizer.json").write_bytes(msgspec.json.encode(tokenizer))
    return folder


def _model(operator: str, token: str) -> bytes:
    inputs = {"Gather": ("table", token), "Identity": (token,), "Shape": (token,)}[operator]
    node = b"".join(_text(1, name) for name in inputs) + _text(2, "out") + _text(4, operator)
    rows = b"".join(struct.pack("<3f", *row) for row in VECTORS)
    table = _number(1, len(VECTORS)) + _number(1, 3) + _number(2, _FLOAT) + _text(8, "table") + _bytes(9, rows)
    shape = _bytes(1, _text(2, "batch")) + _bytes(1, _text(2, "tokens"))
    given = _text(1, token) + _bytes(2, _bytes(1, _number(1, _INT64) + _bytes(2, shape)))
    made = _text(1, "out") + _bytes(2, _bytes(1, _number(1, _FLOAT if operator == "Gather" else _INT64)))
    graph = _bytes(1, node) + _text(2, "words") + _bytes(5, table) + _bytes(11, given) + _bytes(12, made)
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _number(2, 13))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))
