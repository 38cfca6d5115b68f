"""Read a form with a file (multipart/form-data, RFC 7578) as it arrives: no more of the file is held than one piece."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from bardo.values.errors import InvalidRequest, UnsupportedMediaType

_BOUNDARY = re.compile(r'boundary=(?:"([^"\r\n]{1,70})"|([^\s;,"]{1,70}))', re.IGNORECASE)
_NAME = re.compile(r'(?:^|[;\s])name="([^"\r\n]*)"', re.IGNORECASE)
_FILENAME = re.compile(r'(?:^|[;\s])filename="([^"\r\n]*)"', re.IGNORECASE)
_MOST_HEAD, _MOST_VALUE, _MOST_PARTS = 16 * 1024, 64 * 1024, 32


class FormField(msgspec.Struct, frozen=True):
    """A field of the form that is no file."""

    name: str
    value: str


class FileBegin(msgspec.Struct, frozen=True):
    """A file begins: pieces of it follow."""

    name: str
    filename: str


class FilePiece(msgspec.Struct, frozen=True):
    """A piece of the file that began last."""

    data: bytes


FormPart = FormField | FileBegin | FilePiece


def boundary_of(content_type: str) -> bytes:
    """Return the boundary that a content type names. Raises UnsupportedMediaType where it is of no form, or names none."""
    kind = content_type.partition(";")[0].strip().lower()
    found = _BOUNDARY.search(content_type)
    if kind != "multipart/form-data" or found is None:
        hint = "send a form: content-type: multipart/form-data; boundary=…"
        raise UnsupportedMediaType(f"the content type is {content_type[:200]!r}", hint=hint)
    return (found[1] or found[2]).encode("latin-1")


class FormReader:
    """Takes the bytes of a form and gives its parts. `finish` raises InvalidRequest where the form has no end."""

    def __init__(self, boundary: bytes) -> None:
        # The first boundary has no line before it.
        self._delimiter = b"\r\n--" + boundary
        self._buffer = bytearray(b"\r\n")
        self._state = "preamble"
        self._part = FileBegin("", "")
        self._value = bytearray()
        self._parts = 0

    def feed(self, data: bytes) -> Iterator[FormPart]:
        """Yield what a piece of the body brings. Raises InvalidRequest for what is no form."""
        self._buffer += data
        while self._state != "end":
            if self._state == "head":
                if not self._read_head():
                    return
                if self._state == "file":
                    yield self._part
                continue
            place = self._buffer.find(self._delimiter)
            if place < 0:
                yield from self._content(max(0, len(self._buffer) - len(self._delimiter)))
                return
            after = place + len(self._delimiter)
            if len(self._buffer) < after + 2:
                yield from self._content(place)
                return
            yield from self._content(place)
            yield from self._end_part()

    def finish(self) -> None:
        """Raise InvalidRequest where the form broke off."""
        if self._state != "end":
            raise InvalidRequest("the form has no end", hint="send the closing boundary")

    def _content(self, size: int) -> Iterator[FormPart]:
        """Consume `size` bytes of the current part."""
        content = bytes(self._buffer[:size])
        del self._buffer[:size]
        if self._state == "file" and content:
            yield FilePiece(content)
        elif self._state == "field":
            self._value += content
            if len(self._value) > _MOST_VALUE:
                raise InvalidRequest(f"the field {self._part.name!r} is too long", param=self._part.name)

    def _end_part(self) -> Iterator[FormPart]:
        """Pass over the boundary that ends a part."""
        if self._state == "field":
            try:
                yield FormField(self._part.name, self._value.decode())
            except UnicodeDecodeError:
                raise InvalidRequest(f"the field {self._part.name!r} is no UTF-8", param=self._part.name) from None
        size = len(self._delimiter)
        last = bytes(self._buffer[size : size + 2])
        del self._buffer[: size + 2]
        if last not in (b"--", b"\r\n"):
            raise InvalidRequest("a boundary of the form is followed by something else")
        self._state = "end" if last == b"--" else "head"

    def _read_head(self) -> bool:
        """Read the headers of a part; False where they have not all come."""
        end = self._buffer.find(b"\r\n\r\n")
        if end > _MOST_HEAD or (end < 0 and len(self._buffer) > _MOST_HEAD):
            raise InvalidRequest("the headers of a part of the form are too long")
        if end < 0:
            return False
        head = str(self._buffer[:end], "utf-8", "replace")
        del self._buffer[: end + 4]
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise InvalidRequest(f"the form has more than {_MOST_PARTS} parts")
        lines = [line for line in head.split("\r\n") if line.lower().startswith("content-disposition:")]
        disposition = lines[0].partition(":")[2] if lines else ""
        name, filename = _NAME.search(disposition), _FILENAME.search(disposition)
        if name is None:
            raise InvalidRequest("a part of the form has no name")
        self._part, self._value = FileBegin(name[1], filename[1] if filename else ""), bytearray()
        self._state = "file" if filename is not None else "field"
        return True
