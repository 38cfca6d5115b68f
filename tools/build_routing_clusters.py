"""Build the clusters that learned routing ships with: `python tools/build_routing_clusters.py TARGET FILE…`.

Each FILE has JSON lines with a `prompt` or a `text`; up to 1,500 lines of each are used, evenly spread. Only the texts are read: no outcome
of any model. It takes some minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import msgspec

from bardo.embedding.static_embedding import shipped_embedding
from bardo.routing.learned.clusters import Clusters, fit_clusters

_OF_EACH = 1_500
_SEED = 14


def texts_of(path: Path) -> list[str]:
    """Return up to 1,500 texts of a file."""
    lines = path.read_bytes().splitlines()
    rows = [msgspec.json.decode(line) for line in lines[:: max(1, len(lines) // _OF_EACH)][:_OF_EACH]]
    return [row["prompt"] if "prompt" in row else row["text"] for row in rows]


def rounded(clusters: Clusters) -> Clusters:
    """Return the clusters with four digits after the point."""
    centroids = tuple(tuple(round(value, 4) for value in centroid) for centroid in clusters.centroids)
    return msgspec.structs.replace(clusters, centroids=centroids)


def main() -> None:
    """Read the files and write the clusters."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    texts = [text for name in sys.argv[2:] for text in texts_of(Path(name))]
    clusters = rounded(fit_clusters(texts, shipped_embedding(), Random(_SEED)))
    Path(sys.argv[1]).write_bytes(msgspec.json.encode(clusters) + b"\n")
    print(f"{sys.argv[1]}: {len(clusters.centroids)} clusters of {len(texts)} texts")


if __name__ == "__main__":
    main()
