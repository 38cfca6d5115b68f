"""Where the requests of a connection begin and end, more strictly than httptools' parser has it.

A program before bardo may see another request than bardo does where the bytes can be read in two ways (RFC 9112, section 11.2). What HTTP's
grammar does not have is therefore refused, also where a reader could guess what is meant.
"""

from __future__ import annotations

import re

from bardo.adapters.config.gateway import Headers, too_large_headers, too_many_headers
from bardo.values.errors import BardoError, InvalidRequest

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_VALUE = rb"[\t\x20-\x7e\x80-\xff]*"
REQUEST_LINE = re.compile(rb"(?:\r\n)?([A-Z][A-Z-]*) ([\x21-\x7e]+) HTTP/1\.([01])\r\n")
"""The first line of a head: its method, its target and the minor version. One empty line may stand before it (RFC 9112, section 2.2)."""
_OTHER_VERSION = re.compile(rb"(?:\r\n)?[A-Z][A-Z-]* [\x21-\x7e]+ HTTP/(?!1\.[01])[0-9]\.[0-9](?:\r|$)")
_CHUNK = re.compile(
    rb"([0-9A-Fa-f]{1,16})((?:;%b(?:=(?:%b|\"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*\"))?)*)\r\n"
    % (_TOKEN, _TOKEN)
)
_TRAILER = re.compile(rb"(%b):%b\r\n" % (_TOKEN, _VALUE))
# They would say where the request ends, which is known by then.
_NO_TRAILERS = (b"content-length", b"transfer-encoding")
_LONGEST_SIZE = 16
"""Digits of a chunk's size, zeros before it among them: more than any body has."""


class VersionNotServed(InvalidRequest):
    """Another version of HTTP than 1.0 and 1.1."""

    status = 505
    code = "invalid_request"


class CodingNotServed(InvalidRequest):
    """A transfer coding beside `chunked`."""

    status = 501
    code = "invalid_request"


def invalid_request() -> InvalidRequest:
    """Return the error for bytes that are no request."""
    return InvalidRequest("what arrived is not a valid HTTP request", hint="send HTTP/1.1")


def head_problem(head: bytes | bytearray, headers: Headers) -> BardoError:
    """Return the error for a head that was not taken, as far as it and its headers have arrived."""
    if not REQUEST_LINE.match(head) and _OTHER_VERSION.match(head):
        return VersionNotServed("this version of HTTP is not served here", hint="use HTTP/1.1")
    return coding_problem(headers, "1.1") or invalid_request()


def coding_problem(headers: Headers, version: str) -> BardoError | None:
    """Return the error for a body that comes otherwise than by its length or as chunks, or None if it does not."""
    values = [value.strip(b" \t").lower() for name, value in headers if name == b"transfer-encoding"]
    if not values:
        return None
    if version == "1.0":
        return InvalidRequest("HTTP/1.0 has no transfer codings", hint="send a Content-Length, or use HTTP/1.1")
    if values == [b"chunked"]:
        return None
    codings = [coding.strip(b" \t") for value in values for coding in value.split(b",")]
    if codings[-1] == b"chunked" and all(re.fullmatch(_TOKEN, c) for c in codings):
        return CodingNotServed(
            "no transfer coding but chunked is served here",
            hint="send Transfer-Encoding: chunked alone, and name what packs the body in Content-Encoding",
        )
    return InvalidRequest(
        "the Transfer-Encoding of the request is not valid", hint="send Transfer-Encoding: chunked, or a Content-Length"
    )


class ChunkedBody:
    """Reads a body that comes in chunks. `complete` once its last chunk and the trailers, which are dropped, have arrived.

    Extensions of chunks and trailers may have `max_bytes` together, and there may be `max_trailers`.
    """

    def __init__(self, max_bytes: int, max_trailers: int) -> None:
        self.complete = False
        self._max_bytes = max_bytes
        self._max_trailers = max_trailers
        # Bytes of the chunk at hand that have not come, two more for the end of its line; and a line that has not wholly come.
        self._left = 0
        self._line = bytearray()
        self._in_trailers = False
        self._surplus = 0
        self._trailers = 0

    def feed(self, data: bytes, start: int) -> tuple[bytes, int]:
        """Read `data` from `start` on, and return what it has of the body, and where it was read to. Raises CallerError."""
        pieces: list[bytes] = []
        size = len(data)
        if not self._left and not self._line and not self._in_trailers:
            start = self._read_whole_chunks(data, start, pieces)
        while start < size and not self.complete:
            left = self._left
            if left > 2:
                end = min(start + left - 2, size)
                pieces.append(data[start:end])
                self._left -= end - start
                start = end
            elif left:
                if data[start] != b"\r\n"[2 - left]:
                    raise InvalidRequest("a chunk of the body is longer or shorter than it says", hint="send HTTP/1.1")
                self._left -= 1
                start += 1
                if not self._left:
                    start = self._read_whole_chunks(data, start, pieces)
            else:
                start = self._read_line(data, start)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces), start

    def _read_whole_chunks(self, data: bytes, start: int, pieces: list[bytes]) -> int:
        """Read the chunks that have wholly arrived, but for the last, and return where they end: a body may have very many."""
        match = _CHUNK.match
        while chunk := match(data, start):
            digits, extensions = chunk.groups()
            begin = chunk.end()
            end = begin + int(digits, 16)
            if data[end : end + 2] != b"\r\n" or end == begin:
                break
            if extensions:
                self._count(len(extensions))
            pieces.append(data[begin:end])
            start = end + 2
        return start

    def _read_line(self, data: bytes, start: int) -> int:
        """Read a line that was not read at once, or as much of it as is here, and return where it was read to."""
        end = data.find(b"\n", start) + 1 or len(data)
        self._line += data[start:end]
        if self._surplus + len(self._line) > self._max_bytes + _LONGEST_SIZE:
            raise too_large_headers(self._max_bytes)
        if self._line.endswith(b"\n"):
            line, self._line = bytes(self._line), bytearray()
            if self._in_trailers:
                self._read_trailer(line)
            elif chunk := _CHUNK.fullmatch(line):
                self._begin_chunk(chunk)
            else:
                raise InvalidRequest("the size of a chunk is not valid", hint="send it in hexadecimal digits")
        return end

    def _begin_chunk(self, chunk: re.Match[bytes]) -> None:
        digits, extensions = chunk.groups()
        length = int(digits, 16)
        if extensions:
            self._count(len(extensions))
        if length:
            self._left = length + 2
        else:
            self._in_trailers = True

    def _read_trailer(self, line: bytes) -> None:
        if line == b"\r\n":
            self.complete = True
            return
        trailer = _TRAILER.fullmatch(line)
        if trailer is None or trailer.group(1).lower() in _NO_TRAILERS:
            raise InvalidRequest("a header behind the body is not valid", hint="send headers before the body")
        self._trailers += 1
        if self._trailers > self._max_trailers:
            raise too_many_headers(self._max_trailers)
        self._count(len(line))

    def _count(self, size: int) -> None:
        self._surplus += size
        if self._surplus > self._max_bytes:
            raise too_large_headers(self._max_bytes)
