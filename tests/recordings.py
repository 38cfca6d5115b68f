"""Real replies, read from the folder of recordings that lies beside the project (or at BARDO_RECORDINGS)."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


def _find() -> Path | None:
    named = os.environ.get("BARDO_RECORDINGS")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "recordings"
    return folder if (folder / "index.jsonl").is_file() else None


RECORDINGS = _find()


@dataclass(frozen=True)
class Recording:
    """One recorded reply. `chunks` are the lengths of its network chunks, where they are known; `meta` is its line of the index."""

    file: str
    framing: str
    stream: bool
    chunks: tuple[int, ...]
    meta: dict[str, Any]

    @property
    def body(self) -> bytes:
        """The bytes as recorded."""
        assert RECORDINGS is not None
        return (RECORDINGS / self.file).read_bytes()

    def __str__(self) -> str:
        return self.file


@cache
def _index() -> tuple[Recording, ...]:
    if RECORDINGS is None:
        return ()
    lines = (RECORDINGS / "index.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(_recording(json.loads(line)) for line in lines if line.strip())


def _recording(meta: dict[str, Any]) -> Recording:
    return Recording(
        file=meta["file"],
        framing=meta["framing"],
        stream=bool(meta["stream"]),
        chunks=tuple(meta.get("chunks") or ()),
        meta=meta,
    )


def rows(dialect_folder: str) -> list[Recording]:
    """Return the recordings of one folder; none where there are no recordings on this machine."""
    return [one for one in _index() if one.file.startswith(f"{dialect_folder}/")]
