"""OpenAI's files, as far as batches need them: uploaded in pieces, listed, read, and deleted by whom they belong to.

An upload is a form (multipart/form-data, RFC 7578) that is read as it arrives: no more of the file is held than one piece.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from bardo.batches.records import FileRecord
from bardo.batches.service import BatchService
from bardo.dialects.batches.clients import expiry_seconds, file_object, list_object
from bardo.server.reply import cycle_of
from bardo.surfaces.gateway.answer import Answer
from bardo.surfaces.gateway.callers import caller_of
from bardo.surfaces.gateway.context import GatewayContext, new_id
from bardo.surfaces.gateway.http import ClientDisconnected, Receive, Scope, header, query_of
from bardo.surfaces.gateway.routes import Route
from bardo.values.errors import InvalidRequest, NotStored, TooLarge, UnknownRoute, Unsupported, UnsupportedMediaType

if TYPE_CHECKING:
    from bardo.batches.keeper import OpenBatches

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
        """Yield what a piece of the body brings. Raises InvalidRequest for what is not a form."""
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


_PIECE_BYTES = 256 * 1024
_PURPOSE = "batch"
_MOST_LISTED = 10_000
_LONGEST_NAME = 255


async def batches_of(context: GatewayContext) -> tuple[BatchService, OpenBatches]:
    """Return the batches of a gateway. Raises UnknownRoute where it takes none."""
    service = context.batches
    if service is None or not service.settings.enabled:
        raise UnknownRoute("bardo takes no batches and no files here", hint="write enabled = true under [batches]")
    return service, await service.open()


async def upload_file(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Store an uploaded file. Raises InvalidRequest, Unsupported for a purpose other than batches, and TooLarge."""
    service, opened = await batches_of(context)
    if header(scope, b"content-encoding"):
        raise UnsupportedMediaType("files are read as they are", hint="send the form without content-encoding")
    reader = FormReader(boundary_of(header(scope, b"content-type")))
    upload = _Upload(service, opened, caller_of(scope).tenant, context.services.clock())
    await upload.check_announced(header(scope, b"content-length"))
    try:
        await _read_form(reader, upload, receive)
        file = await upload.finish()
    except BaseException:
        await asyncio.shield(upload.forget())
        raise
    await answer.json(file_object(msgspec.structs.asdict(file)))


async def _read_form(reader: FormReader, upload: _Upload, receive: Receive) -> None:
    cycle = cycle_of(receive)
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        for part in reader.feed(message.get("body", b"")):
            match part:
                case FormField():
                    upload.fields[part.name] = part.value
                case FileBegin():
                    await upload.begin(part)
                case FilePiece():
                    await upload.add(part.data)
        if cycle is not None:
            cycle.release_body()
        if not message.get("more_body"):
            reader.finish()
            return


class _Upload:
    """One file while it arrives: pieces go to the database, and nobody sees the file before its end."""

    def __init__(self, service: BatchService, opened: OpenBatches, tenant: str, now: float) -> None:
        self.fields: dict[str, str] = {}
        self._settings = service.settings
        self._files = opened.files
        self._tenant = tenant
        self._now = now
        self._file: FileRecord | None = None
        self._held = bytearray()
        self._place = self._size = 0
        self._room = 0

    async def check_announced(self, length: str) -> None:
        """Raise TooLarge for a file that announces more than may be kept, before anything of it is read."""
        used = await asyncio.to_thread(self._files.size_of, self._tenant)
        self._room = self._settings.max_bytes_per_tenant - used
        if length.isdigit() and int(length) > self._settings.max_file_bytes + 64 * 1024:
            raise self._too_large()

    async def begin(self, part: FileBegin) -> None:
        """Begin the file of the form. Raises InvalidRequest for a second one."""
        if part.name != "file" or self._file is not None:
            raise InvalidRequest("the form takes one file, called file", param=part.name or "file")
        name = part.filename.replace("\\", "/").rpartition("/")[2][-_LONGEST_NAME:] or "file.jsonl"
        self._file = FileRecord(
            id=new_id("file").replace("_", "-"),
            tenant=self._tenant,
            state="uploading",
            purpose=_PURPOSE,
            name=name,
            size=0,
            created_at=self._now,
        )
        await asyncio.to_thread(self._files.begin, self._file)

    async def add(self, data: bytes) -> None:
        """Store a piece of the file. Raises TooLarge."""
        self._held += data
        self._size += len(data)
        if self._size > self._settings.max_file_bytes:
            raise self._too_large()
        if self._size > self._room:
            raise self._no_room()
        while len(self._held) >= _PIECE_BYTES:
            await self._store(bytes(self._held[:_PIECE_BYTES]))
            del self._held[:_PIECE_BYTES]

    async def finish(self) -> FileRecord:
        """Show the file to its owner, and return it. Raises InvalidRequest and Unsupported for what the form lacks."""
        if self._file is None:
            raise InvalidRequest("'file' is a required property", param="file")
        purpose = self.fields.get("purpose", "")
        if not purpose:
            raise InvalidRequest("'purpose' is a required property", param="purpose")
        if purpose != _PURPOSE:
            message = f"bardo keeps files for batches only, and this one is for {purpose[:100]!r}"
            raise Unsupported(message, hint="upload it with the purpose batch", param="purpose")
        if not self._size:
            raise InvalidRequest("the file is empty", param="file")
        seconds = expiry_seconds(self._expiry(), "expires_after") or self._settings.retention_seconds
        await self._store(bytes(self._held))
        file = msgspec.structs.replace(
            self._file,
            state="ready",
            size=self._size,
            expires_at=self._now + min(seconds, self._settings.retention_seconds),
        )
        # Other files of the key may have come to their end meanwhile.
        if not await asyncio.to_thread(partial(self._files.finish, file, most=self._settings.max_bytes_per_tenant)):
            raise self._no_room()
        return file

    async def forget(self) -> None:
        """Remove what was taken of a file that did not come to its end."""
        if self._file is not None:
            await asyncio.to_thread(self._files.remove, self._tenant, self._file.id)

    def _expiry(self) -> dict[str, str] | None:
        names = ("anchor", "seconds")
        given = {
            name: self.fields[f"expires_after[{name}]"] for name in names if f"expires_after[{name}]" in self.fields
        }
        return given or None

    async def _store(self, data: bytes) -> None:
        assert self._file is not None
        await asyncio.to_thread(self._files.add, self._file.id, self._place, data)
        self._place += 1

    def _no_room(self) -> TooLarge:
        most = self._settings.max_bytes_per_tenant
        hint = "delete files that are no longer needed, or raise max_bytes_per_tenant under [batches]"
        return TooLarge(f"the files of this key would be over {most} bytes together", hint=hint)

    def _too_large(self) -> TooLarge:
        most = self._settings.max_file_bytes
        return TooLarge(f"the file is over {most} bytes", hint="cut it, or raise max_file_bytes under [batches]")


async def list_files(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer with a page of the caller's files. Raises InvalidRequest."""
    _, opened = await batches_of(context)
    tenant, now = caller_of(scope).tenant, context.services.clock()
    asked = query_of(scope)
    limit, order = limit_of(asked, usual=_MOST_LISTED, most=_MOST_LISTED), asked.get("order", "desc")
    if order not in ("asc", "desc"):
        raise InvalidRequest("order must be asc or desc", param="order")
    after = None
    if asked.get("after"):
        after = await asyncio.to_thread(opened.files.find, tenant, asked["after"], now)
        if after is None:
            raise _no_such_file(asked["after"])

    def read() -> list[FileRecord]:
        purpose = asked.get("purpose", "")
        newest = order == "desc"
        return opened.files.listed(tenant, now, purpose=purpose, limit=limit, after=after, newest_first=newest)

    found = await asyncio.to_thread(read)
    objects = [file_object(msgspec.structs.asdict(one)) for one in found[:limit]]
    await answer.json(list_object(objects, more=len(found) > limit))


async def show_file(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer with the facts about a file. Raises NotStored."""
    _, file = await _file_of(context, route, scope)
    await answer.json(file_object(msgspec.structs.asdict(file)))


async def delete_file(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Forget a file. Raises NotStored."""
    opened, file = await _file_of(context, route, scope)
    await asyncio.to_thread(opened.files.remove, file.tenant, file.id)
    await answer.json({"id": file.id, "object": "file", "deleted": True})


async def read_file(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Send a file, a piece at a time. Raises NotStored."""
    opened, file = await _file_of(context, route, scope)
    await answer.start([("content-length", str(file.size))], "application/octet-stream")
    place = 0
    while (piece := await asyncio.to_thread(opened.files.piece, file.id, place)) is not None:
        await answer.piece(piece)
        place += 1
    await answer.end(b"")


async def _file_of(context: GatewayContext, route: Route, scope: Scope) -> tuple[OpenBatches, FileRecord]:
    _, opened = await batches_of(context)
    now = context.services.clock()
    file = await asyncio.to_thread(opened.files.find, caller_of(scope).tenant, route.name, now)
    if file is None:
        raise _no_such_file(route.name)
    return opened, file


def limit_of(asked: dict[str, str], *, usual: int, most: int) -> int:
    """Return how many entries of a list are asked for. Raises InvalidRequest."""
    limit = asked.get("limit", str(usual))
    if not limit.isascii() or not limit.isdigit() or not 1 <= int(limit[:7]) <= most:
        raise InvalidRequest(f"limit must be a number from 1 to {most}", param="limit")
    return int(limit)


def _no_such_file(name: str) -> NotStored:
    return NotStored(f"No such File object: {name[:100]}", hint="it was deleted, has expired, or is another key's")
