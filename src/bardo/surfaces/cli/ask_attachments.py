"""Files that go with a question: pictures, PDF, sound and text, each known by its bytes."""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

from bardo.dialects.shared.media import sound_block
from bardo.surfaces.cli.options import STDIN
from bardo.values.blocks import Block, DocumentBlock, ImageBlock, TextBlock
from bardo.values.errors import InvalidRequest
from bardo.values.file_kinds import file_kind

_MEGABYTE = 1024 * 1024
_MOST_BYTES = 20 * _MEGABYTE
_MOST_TEXT = 2 * _MEGABYTE
_MOST_IN_ALL = 40 * _MEGABYTE
_KINDS = "PNG, JPEG, GIF, WebP, PDF, WAV, MP3, FLAC, Ogg or text in UTF-8"


def attached_blocks(names: Sequence[str]) -> tuple[Block, ...]:
    """Return the blocks of files, of stdin as `-`, or of http(s) addresses. Raises InvalidRequest for anything that cannot be sent."""
    if list(names).count(STDIN) > 1:
        raise InvalidRequest("stdin is attached twice", hint="give - once")
    blocks, size = [], 0
    for name in names:
        if name.startswith(("http://", "https://")):
            blocks.append(_address(name))
            continue
        data = _read_bytes(name)
        size += len(data)
        if size > _MOST_IN_ALL:
            raise InvalidRequest(
                f"the attachments have more than {_MOST_IN_ALL // _MEGABYTE} MB together",
                hint="attach fewer or smaller files",
            )
        blocks.append(_block(name, data))
    return tuple(blocks)


def _address(url: str) -> Block:
    """Return the block of an address, which the provider opens: a PDF by its ending, else a picture."""
    path = url.partition("?")[0]
    if path.lower().endswith(".pdf"):
        return DocumentBlock(media_type="application/pdf", url=url, name=path.rpartition("/")[2])
    return ImageBlock(url=url)


def _read_bytes(name: str) -> bytes:
    try:
        if name == STDIN:
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
    except OSError as problem:
        hint = "give a file, - for stdin, or an address that begins with https://"
        raise InvalidRequest(f"cannot read {name}: {problem.strerror or problem}", hint=hint) from problem
    if len(data) > _MOST_BYTES:
        raise InvalidRequest(f"{name} has more than {_MOST_BYTES // _MEGABYTE} MB", hint="attach a smaller file")
    if not data:
        raise InvalidRequest(f"{name} is empty", hint="attach a file that holds something")
    return data


def _block(name: str, data: bytes) -> Block:
    shown = "stdin" if name == STDIN else Path(name).name
    kind = file_kind(data)
    if not kind:
        return _text(name, shown, data)
    encoded = b64encode(data).decode()
    if kind.startswith("image/"):
        return ImageBlock(media_type=kind, data=encoded)
    if kind.startswith("audio/"):
        return sound_block(kind, encoded)
    return DocumentBlock(media_type=kind, data=encoded, name=shown)


def _text(name: str, shown: str, data: bytes) -> TextBlock:
    """Return the block of a text file, below its name: every model reads text, and not every provider takes documents."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise InvalidRequest(f"{name} is of no kind that can be sent", hint=f"attach {_KINDS}")
    if len(data) > _MOST_TEXT:
        raise InvalidRequest(f"{name} has more than {_MOST_TEXT // _MEGABYTE} MB of text", hint="attach a part of it")
    return TextBlock(f'<file name="{shown}">\n{text.rstrip()}\n</file>')
