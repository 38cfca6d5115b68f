"""Replies that the laws are tested over: a few of our own making, and real ones where there is a folder of them.

Our own stand in `fixtures/replies`, written by hand in the shapes that providers send: one to four for each folder of the
recordings. The real ones lie beside the project, or at BARDO_RECORDINGS.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from bardo.surfaces.library.decoding import provider_row
from support.sampling import COVERED, changed_dialects, sample


def _find() -> Path | None:
    named = os.environ.get("BARDO_RECORDINGS")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "recordings"
    return folder if (folder / "index.jsonl").is_file() else None


RECORDINGS = _find()
OWN = Path(__file__).parent / "fixtures" / "replies"


@dataclass(frozen=True)
class Recording:
    """One reply in `root`. `chunks` are the lengths of its network chunks, where they are known; `meta` is its line of the index."""

    file: str
    framing: str
    stream: bool
    chunks: tuple[int, ...]
    meta: dict[str, Any]
    root: Path = OWN

    @property
    def body(self) -> bytes:
        """The bytes as recorded."""
        return (self.root / self.file).read_bytes()

    def __str__(self) -> str:
        return self.file


@cache
def _index() -> tuple[Recording, ...]:
    return tuple(one for root in (OWN, RECORDINGS) if root is not None for one in _in_folder(root))


def _in_folder(root: Path) -> Iterator[Recording]:
    lines = (root / "index.jsonl").read_text(encoding="utf-8").splitlines()
    return (_recording(json.loads(line), root) for line in lines if line.strip())


def _recording(meta: dict[str, Any], root: Path) -> Recording:
    return Recording(
        file=meta["file"],
        framing=meta["framing"],
        stream=bool(meta["stream"]),
        chunks=tuple(meta.get("chunks") or ()),
        meta=meta,
        root=root,
    )


def folders() -> tuple[str, ...]:
    """Return the names of the folders that hold replies, in order."""
    return tuple(sorted({one.file.partition("/")[0] for one in _index()}))


def rows(dialect_folder: str) -> list[Recording]:
    """Return the replies of one folder: our own, and the recorded ones where this machine has them."""
    return [one for one in _index() if one.file.startswith(f"{dialect_folder}/")]


def sampled(recordings: Iterable[Recording], share: float, *, law: str) -> list[Recording]:
    """Return that share of each folder by day, at least one, with our own and those of dialects that changed; all of them at night."""
    drawn: list[Recording] = []
    for _, folder in groupby(recordings, key=_folder):
        held = list(folder)
        drawn += sample(held, max(1, round(len(held) * share)), law=law, always=_always)
    return drawn


def _always(recording: Recording) -> bool:
    return recording.root is OWN or (
        bool(changed_dialects()) and provider_row(_folder(recording)).dialect in changed_dialects()
    )


def each_recording(
    recordings: Iterable[Recording], *, together: int = 24, by_day: float = 1.0
) -> Callable[[Callable[..., None]], Any]:
    """Run a test's `recording` over all of them, up to `together` of one folder in one item.

    An item of pytest costs more than most of these tests. A failure names its recording, and the others of its group run all the same.
    `by_day` is the share of each folder that runs by day, where the test takes long.
    """
    listed = list(recordings)

    def decorate(test: Callable[..., None]) -> Any:
        law = f"{test.__module__}.{test.__name__}"
        groups = list(_groups(listed if by_day == 1.0 else sampled(listed, by_day, law=law), together))
        ids = [f"{group[0].file.partition('/')[0]}-{group[0].file.partition('/')[2]}" for group in groups]

        @wraps(test)
        def run(*, recordings: Sequence[Recording], **others: Any) -> None:
            COVERED[f"recordings: {law}"] += len(recordings)
            failed = [problem for one in recordings if (problem := _problem(test, one, others)) is not None]
            if len(failed) == 1:
                raise failed[0]
            if failed:
                raise ExceptionGroup(f"{len(failed)} recordings", failed)

        taken = inspect.signature(test)
        group = inspect.Parameter("recordings", inspect.Parameter.KEYWORD_ONLY)
        kept = [one.replace(kind=group.kind) for name, one in taken.parameters.items() if name != "recording"]
        run.__signature__ = taken.replace(parameters=[group, *kept])  # type: ignore[attr-defined]
        return pytest.mark.parametrize("recordings", groups, ids=ids)(run)

    return decorate


def _folder(recording: Recording) -> str:
    return recording.file.partition("/")[0]


def _groups(recordings: Iterable[Recording], together: int) -> Iterator[tuple[Recording, ...]]:
    for _, folder in groupby(recordings, key=_folder):
        held = tuple(folder)
        yield from (held[begin : begin + together] for begin in range(0, len(held), together))


def _problem(test: Callable[..., None], recording: Recording, others: dict[str, Any]) -> Exception | None:
    try:
        test(recording=recording, **others)
    except pytest.skip.Exception:
        return None
    except Exception as problem:  # noqa: BLE001
        problem.add_note(f"recording: {recording.file}")
        return problem
    return None
