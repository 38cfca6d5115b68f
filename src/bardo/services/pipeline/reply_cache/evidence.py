"""The evidence on similar questions: counts of look-ups and of compared answers, in memory and in an SQLite file.

The file holds numbers and fingerprints of embeddings, and nothing of what was asked. Workers of one machine add to the same file.
"""

from __future__ import annotations

import errno
import sqlite3
import threading
from collections import Counter, OrderedDict
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec

from bardo.adapters.config.paths import what_is_no_file
from bardo.adapters.stores.database.set_aside import RenewableFile
from bardo.adapters.stores.database.sqlite_file import check_number
from bardo.context.cache.confidence import BANDS, Evidence, band_of
from bardo.context.cache.entries import Comparison

FILE = "cache_similarity.sqlite3"
_MOST_ENTRIES = 50_000
_BUSY_SECONDS = 2.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS counts (
    fingerprint TEXT NOT NULL, name TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (fingerprint, name)
) WITHOUT ROWID
"""
_ADD = (
    "INSERT INTO counts VALUES (?, ?, ?) ON CONFLICT (fingerprint, name) DO UPDATE SET count = count + excluded.count"
)
_LOOKS = ("nothing", "refused", "shadowed", "rechecked", "served")


class SimilarFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The results of the look-ups with one embedding, and of the compared answers.

    `lookups` are those that the exact cache had nothing for. `allowed` were let through by the guard: they are `shadowed`, `rechecked` or
    `served`. `undecided` comparisons count neither way.
    """

    fingerprint: str
    lookups: int
    refused_by_guard: int
    shadowed: int
    rechecked: int
    served: int
    same: int
    different: int
    undecided: int

    @property
    def allowed(self) -> int:
        """How many look-ups a kept reply could have answered."""
        return self.shadowed + self.rechecked + self.served

    @property
    def evidence(self) -> Evidence:
        """The comparisons that count."""
        return Evidence(self.same, self.different)


class SimilarEvidence:
    """Counts of one program. `store` writes the new counts to the file, and reads those of other workers. Several threads may use it."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._stored: Counter[tuple[str, str]] = Counter()
        self._new: Counter[tuple[str, str]] = Counter()
        self._own: OrderedDict[bytes, Evidence] = OrderedDict()

    def count(self, fingerprint: str, outcome: str) -> None:
        """Count a look-up."""
        with self._lock:
            self._new[fingerprint, outcome] += 1

    def compared(self, fingerprint: str, identity: bytes, cosine: float, outcome: Comparison) -> None:
        """Count a comparison of answers."""
        added = {"same": Evidence(same=1), "different": Evidence(different=1)}.get(outcome)
        with self._lock:
            self._new[fingerprint, f"{outcome} {band_of(cosine)}"] += 1
            if added is not None:
                self._own[identity] = self._own.pop(identity, Evidence()).plus(added)
                while len(self._own) > _MOST_ENTRIES:
                    self._own.popitem(last=False)

    def own(self, identity: bytes) -> Evidence:
        """Return the comparisons of one entry."""
        with self._lock:
            return self._own.get(identity, Evidence())

    def pool(self, fingerprint: str, cosine: float) -> Evidence:
        """Return the comparisons of all entries that were as similar, or less."""
        bands = [band for band in BANDS if band <= band_of(cosine)]
        with self._lock:
            same, different = (
                sum(self._all(fingerprint, f"{name} {band}") for band in bands) for name in ("same", "different")
            )
        return Evidence(same, different)

    def figures(self) -> list[SimilarFigures]:
        """Return what was counted with each embedding."""
        with self._lock:
            return figures_of(self._stored + self._new)

    def store(self) -> None:
        """Add the new counts to the file, and read all of it. A file that is damaged is set aside, and begun anew.

        Raises sqlite3.Error or OSError; the new counts are kept for the next time.
        """
        if self._path is not None:
            RenewableFile(self._path, name="what was learned of similar questions", area="cache").open(
                partial(self._exchange, self._path)
            )

    def _exchange(self, path: Path) -> None:
        with self._lock:
            new, self._new = self._new, Counter()
        try:
            if (what := what_is_no_file(path)) and what != "a folder":
                raise OSError(errno.EINVAL, f"{path.name} is {what}")
            path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS)) as connection, connection:
                path.chmod(0o600)
                check_number(connection, 0)
                connection.execute(_SCHEMA)
                connection.executemany(_ADD, [(*name, count) for name, count in new.items()])
                counts = _counts(connection)
        except BaseException:
            with self._lock:
                self._new += new
            raise
        with self._lock:
            self._stored = counts

    def _all(self, fingerprint: str, name: str) -> int:
        return self._stored[fingerprint, name] + self._new[fingerprint, name]


def read_figures(folder: Path) -> list[SimilarFigures]:
    """Return what the programs of a folder have counted; nothing where there is no file, or it cannot be read."""
    path = folder / FILE
    if not path.is_file():
        return []
    try:
        with closing(
            sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=_BUSY_SECONDS)
        ) as connection:
            return figures_of(_counts(connection))
    except sqlite3.Error:
        return []


def figures_of(counts: Counter[tuple[str, str]]) -> list[SimilarFigures]:
    """Return counts as figures, one for each embedding."""
    figures = []
    for fingerprint in sorted({fingerprint for fingerprint, _ in counts}):
        looks = {name: counts[fingerprint, name] for name in _LOOKS}
        compared = {
            name: sum(counts[fingerprint, f"{name} {band}"] for band in BANDS)
            for name in ("same", "different", "undecided")
        }
        figures.append(
            SimilarFigures(
                fingerprint=fingerprint,
                lookups=sum(looks.values()),
                refused_by_guard=looks["refused"],
                shadowed=looks["shadowed"],
                rechecked=looks["rechecked"],
                served=looks["served"],
                **compared,
            )
        )
    return figures


def _counts(connection: sqlite3.Connection) -> Counter[tuple[str, str]]:
    rows = connection.execute("SELECT fingerprint, name, count FROM counts").fetchall()
    return Counter({(fingerprint, name): count for fingerprint, name, count in rows})
