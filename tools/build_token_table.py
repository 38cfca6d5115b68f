"""Build a table of vectors of word pieces from a model in ONNX: `python tools/build_token_table.py FOLDER DIMENSIONS TABLE [NARROW]`.

FOLDER has `model.onnx` and `tokenizer.json`, as `tools/build_onnx_model.py` writes them of the weights of all-MiniLM-L6-v2 (Apache-2.0).
numpy and onnxruntime must be there too; bardo itself needs neither. It takes half a minute. Two tables ship with bardo: of 64 dimensions
for learned routing, and of 384, which is all that the model has, for layers; the second is
stored by the first, which is NARROW then.
"""

from __future__ import annotations

import hashlib
import math
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from bardo.embedding.static_embedding import TokenTable

_BATCH = 512
_BEGIN, _END = 101, 102
# A piece weighs A / (A + p), where p is the share of its rank by Zipf's law (smooth inverse frequency, Arora et al. 2017).
_A = 1e-3


def token_vectors(folder: Path, count: int, np: Any) -> Any:
    """Return what the model makes of each piece alone, the mean over the piece and the two marks: pieces x 384."""
    session = import_module("onnxruntime").InferenceSession(str(folder / "model.onnx"))
    found = []
    for first in range(0, count, _BATCH):
        ids = np.arange(first, min(count, first + _BATCH))
        marked = np.stack([np.full_like(ids, _BEGIN), ids, np.full_like(ids, _END)], axis=1)
        given = {"input_ids": marked, "attention_mask": np.ones_like(marked), "token_type_ids": np.zeros_like(marked)}
        found.append(session.run(None, given)[0].mean(axis=1))
    return np.concatenate(found)


def table_of(vectors: Any, pieces: list[str], dimensions: int, np: Any, narrow: TokenTable | None = None) -> TokenTable:
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
    return TokenTable.of_rows(rows, fingerprint=fingerprint, dimensions=dimensions, pieces=words, narrow=narrow)


def main() -> None:
    """Read the folder and write the table."""
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    folder, dimensions, target = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    numbers: dict[str, int] = msgspec.json.decode((folder / "tokenizer.json").read_bytes())["model"]["vocab"]
    pieces = sorted(numbers, key=numbers.__getitem__)
    np: Any = import_module("numpy")
    narrow = msgspec.msgpack.decode(Path(sys.argv[4]).read_bytes(), type=TokenTable) if sys.argv[4:] else None
    table = table_of(token_vectors(folder, len(pieces), np), pieces, dimensions, np, narrow)
    target.write_bytes(msgspec.msgpack.encode(table))
    size = target.stat().st_size / 1e6
    print(f"{target}: {len(table.rows(narrow)) // table.dimensions} pieces, {size:.2f} MB, {table.fingerprint}")


if __name__ == "__main__":
    main()
