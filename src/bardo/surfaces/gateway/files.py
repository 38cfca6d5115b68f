"""OpenAI's files, as far as batches need them: uploaded in pieces, listed, read, and deleted by whom they belong to."""

from __future__ import annotations

import asyncio

import msgspec

from bardo.batches.records import FileRecord
from bardo.batches.service import BatchService, OpenBatches
from bardo.dialects.batches.openai_client import expiry_seconds, file_object, list_object
from bardo.server.reply import cycle_of
from bardo.surfaces.gateway.answer import Answer
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.http import ClientDisconnected, Receive, Scope, header, query_of
from bardo.surfaces.gateway.multipart import FileBegin, FilePiece, FormField, FormReader, boundary_of
from bardo.surfaces.gateway.responses import new_id
from bardo.surfaces.gateway.route_tables import Route
from bardo.surfaces.gateway.tenants import caller_of
from bardo.values.errors import InvalidRequest, NotStored, TooLarge, UnknownRoute, Unsupported, UnsupportedMediaType

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
    upload = _Upload(service, opened, caller_of(scope).tenant, context.runner.clock())
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
            most = self._settings.max_bytes_per_tenant
            hint = "delete files that are no longer needed, or raise max_bytes_per_tenant under [batches]"
            raise TooLarge(f"the files of this key would be over {most} bytes together", hint=hint)
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
        await asyncio.to_thread(self._files.finish, file)
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

    def _too_large(self) -> TooLarge:
        most = self._settings.max_file_bytes
        return TooLarge(f"the file is over {most} bytes", hint="cut it, or raise max_file_bytes under [batches]")


async def list_files(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer with a page of the caller's files. Raises InvalidRequest."""
    _, opened = await batches_of(context)
    tenant, now = caller_of(scope).tenant, context.runner.clock()
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
    """Answer with what is known of a file. Raises NotStored."""
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
    now = context.runner.clock()
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
