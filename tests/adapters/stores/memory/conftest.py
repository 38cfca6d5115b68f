"""Memories of tests: beside a log in an SQLite file, and in a PostgreSQL where its programs are found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.episodes import Kept


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return an address where there is no log yet."""
    if request.param == "sqlite":
        return str(tmp_path / "log.db")
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def kept(place: str) -> Iterator[Kept]:
    """A memory beside a log, to be filled."""
    with Kept(place) as kept:
        yield kept
