"""The files that pages load: style and script. Their addresses hold a digest of what they are, so that browsers keep them for good."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).with_name("static")
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_DIGITS = 16


class StaticFile(NamedTuple):
    """A file, its content type, and the digest of its content."""

    content: bytes
    content_type: str
    digest: str


class StaticFiles:
    """The files, read once."""

    def __init__(self) -> None:
        self._files = {path.name: _read(path) for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}

    def find(self, digest: str, name: str) -> tuple[StaticFile, bool] | None:
        """Return a file, and whether the address names this very content, so that it never changes; None where there is no such file."""
        found = self._files.get(name)
        return None if found is None else (found, found.digest == digest)

    def address(self, name: str) -> str:
        """Return where pages find a file."""
        return f"/panel/static/{self._files[name].digest}/{name}"


def _read(path: Path) -> StaticFile:
    content = path.read_bytes()
    return StaticFile(content, _TYPES[path.suffix], hashlib.sha256(content).hexdigest()[:_DIGITS])
