"""Ways in which a file of SQLite, or of another kind, comes to harm."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

_PAGE = 4096


def _zero(path: Path, begin: int, end: int | None = None) -> None:
    data = bytearray(path.read_bytes())
    data[begin:end] = bytes(len(data[begin:end]))
    path.write_bytes(data)


def _truncate(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 3])


def _replace_by_foreign_tables(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as rows:
        for name in ("entries", "keys", "messages", "counts", "reply_cache_entries"):
            rows.execute(f"CREATE TABLE {name} (x)")
        rows.commit()


def _replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _replace_by_lost_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("a-disk-that-is-gone.db"))


def _write_newer_form(path: Path) -> None:
    with closing(sqlite3.connect(path)) as rows:
        names = rows.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'bardo_revisions'"
        ).fetchall()
        for (name,) in names:
            rows.execute(f"UPDATE {name} SET version_num = substr(version_num, 1, instr(version_num, '_')) || '9999'")
        if not names:
            rows.execute("PRAGMA user_version = 999")
        rows.commit()


def write_newer_number(path: Path) -> None:
    """Give a file of SQLite, which is made where there is none, the number of a bardo to come."""
    with closing(sqlite3.connect(path)) as rows:
        rows.execute("PRAGMA user_version = 999")
        rows.commit()


def replace_by_pipe(path: Path) -> None:
    """Put a named pipe in the place of a file."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def replace_by_socket(path: Path) -> None:
    """Put a socket that nobody listens at in the place of a file."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def write_prose(path: Path) -> None:
    """Write what is no database into a file."""
    path.write_text("this is no database, it is prose " * 300)


def zero_first_page(path: Path) -> None:
    """Fill the head of a file with zeros."""
    _zero(path, 0, _PAGE)


LEDGER_DAMAGES: Mapping[str, Callable[[Path], None]] = {
    "lost link": _replace_by_lost_link,
    "newer form": _write_newer_form,
}
"""Harm to what nobody can make anew, which a memory aid has no need to tell from others."""
DAMAGES: Mapping[str, Callable[[Path], None]] = {
    "zeroed head": zero_first_page,
    "zeroed pages": lambda path: _zero(path, _PAGE),
    "truncated": _truncate,
    "text": write_prose,
    "foreign tables": _replace_by_foreign_tables,
    "folder": _replace_by_folder,
}
"""What can be seen when the file is next used."""
NO_FILES: Mapping[str, Callable[[Path], None]] = {
    "a named pipe": replace_by_pipe,
    "a socket": replace_by_socket,
}
"""What stands in the place of a file and is nobody's damage: it is never renamed or written over."""
