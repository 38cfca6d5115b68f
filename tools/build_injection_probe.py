"""Fit the probe that finds instructions in untrusted text: `python -m tools.build_injection_probe ROWS.jsonl`, in the project's folder.

Each line of ROWS has `text` and `kind`: `instruction-to-embed` is an instruction as it may be planted, `benign-email-context` an ordinary
text, as in a set made of BIPIA (Microsoft, MIT). The sentences of `injection_sentences.toml` are added. numpy must be there; bardo itself
does not need it. It takes seconds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
from benchmarks.injection_fit import fit, texts_of

from bardo.embedding.static_embedding import wide_embedding

OUT = Path(__file__).parent.parent / "src" / "bardo" / "context" / "injection" / "data" / "probe.json"


def main() -> None:
    """Read the rows, fit both tiers, and write the file."""
    rows = [json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
    texts = texts_of(rows)
    tiers = [fit(texts, one) for one in (wide_embedding(), None)]
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_bytes(msgspec.json.encode(tiers) + b"\n")


if __name__ == "__main__":
    main()
