"""The last good lists of models on disk: one JSON file for each source, written whole or not at all.

A file is written beside its name, flushed to the disk and renamed, so that a reader, another process or a loss of power sees the old list
or the new one. A file that cannot be read counts as none, with a warning: it never fails a start.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
import tempfile
from pathlib import Path

import msgspec

from bardo.adapters.config.paths import what_is_no_file
from bardo.planning.route import Provider
from bardo.services.facts.listings.read import MOST_BYTES
from bardo.services.facts.listings.rows import FORMAT, Listing, ListingSource

_log = logging.getLogger("bardo.catalog")
# The stored form of a list is shorter than the list, but for names of fields.
_MOST_KEPT_BYTES = 4 * MOST_BYTES
_DIGEST_LETTERS = 12
WRONG_CLOCK_SECONDS = 86_400.0
"""A list that is newer than now by more than this was dated by a wrong clock."""


def file_name(source: ListingSource, provider: Provider) -> str:
    """Return the name of the file for a provider: another address than the usual one, which may hold a secret, is in it as a digest."""
    if provider.base_url.rstrip("/") == provider.row.base_url.rstrip("/"):
        return f"{source.name}.json"
    digest = hashlib.sha256(provider.base_url.encode()).hexdigest()[:_DIGEST_LETTERS]
    return f"{source.name}-{digest}.json"


class ListingStore:
    """The folder with the lists. It need not be there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def stamp(self, name: str) -> tuple[int, int] | None:
        """Return what changes when a file is written anew, or None if there is none."""
        try:
            status = (self.folder / name).stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino

    def load(self, name: str) -> Listing | None:
        """Return the list in a file; None, with a warning, for a file that holds none."""
        path = self.folder / name
        if what := what_is_no_file(path):
            _warn(path, f"it is {what}")
            return None
        try:
            with path.open("rb") as file:
                content = file.read(_MOST_KEPT_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as problem:
            _warn(path, problem.strerror or type(problem).__name__)
            return None
        if len(content) > _MOST_KEPT_BYTES:
            _warn(path, "it is longer than any list")
            return None
        try:
            listing = msgspec.json.decode(content, type=Listing)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            _warn(path, f"{problem}"[:200])
            return None
        if listing.format != FORMAT:
            _warn(path, "another version of bardo wrote it")
            return None
        return listing

    def save(self, name: str, listing: Listing) -> bool:
        """Write a list, and return whether it is safe: in the file, or behind a newer one there. A disk that refuses is warned of.

        A newer one that a wrong clock dated is replaced.
        """
        path = self.folder / name
        held = self.load(name)
        if held is not None and listing.at < held.at < listing.at + WRONG_CLOCK_SECONDS:
            return True
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            _write(path, msgspec.json.encode(listing))
        except OSError as problem:
            _log.warning(
                "the list of models cannot be written to %s: %s", path, problem.strerror, extra={"file": str(path)}
            )
            return False
        return True


def _warn(path: Path, why: str) -> None:
    """Warn of a file that is left alone."""
    _log.warning("the list of models in %s is not used: %s", path, why, extra={"file": str(path), "why": why})


def _write(path: Path, content: bytes) -> None:
    if what := what_is_no_file(path):
        raise OSError(errno.EINVAL, f"it is {what}")
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".new")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Have the new name of a file survive a loss of power, on systems where a folder can be opened for that."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
