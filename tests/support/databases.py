"""Databases of tests, by a file or an address."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine

from bardo.adapters.stores.database.engines import address_of, open_for_writing


def open_database(place: str | Path) -> Engine:
    """Return an engine for writing to a state database, which is made where there is none."""
    return open_for_writing(address_of(place))
