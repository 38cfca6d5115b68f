"""Documents in the forms that dialects have for them: data URLs, file names, media types and plain text."""

from __future__ import annotations

import base64
import binascii
from operator import is_
from typing import Any

import msgspec

from bardo.dialects.known_media import picture_type
from bardo.dialects.losses import Losses
from bardo.values.blocks import Block, Carried, DocumentBlock, ImageBlock, TextBlock, ToolResultBlock
from bardo.values.histories import parts_of
from bardo.values.request import Message, Request

PDF = "application/pdf"
_OPENXML = "application/vnd.openxmlformats-officedocument"
MEDIA_TYPES = {
    "pdf": PDF,
    "txt": "text/plain",
    "md": "text/markdown",
    "html": "text/html",
    "csv": "text/csv",
    "json": "application/json",
    "xml": "application/xml",
    "doc": "application/msword",
    "docx": f"{_OPENXML}.wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": f"{_OPENXML}.spreadsheetml.sheet",
    "pptx": f"{_OPENXML}.presentationml.presentation",
}
"""The media types of documents by the ending of a file's name (IANA's registry)."""

_ENDINGS = {media_type: ending for ending, media_type in MEDIA_TYPES.items()}
_TEXTS = ("application/json", "application/xml")
_MEDIA = ("image/", "audio/", "video/")
_PDF_HEAD = "JVBERi0"
"""How "%PDF-" begins in base64."""


def split_data_url(url: str) -> tuple[str, str] | None:
    """Return media type and base64 data of a data URL, or None where the address is another."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return head.removeprefix("data:").removesuffix(";base64"), data


def is_document(media_type: str) -> bool:
    """Whether data of this media type is a document: neither a picture nor sound nor film."""
    return bool(media_type) and not media_type.lower().startswith(_MEDIA)


def picture_or_document(
    media_type: str, data: str, *, detail: str = "", carried: Carried | None = None
) -> ImageBlock | DocumentBlock:
    """Return what a client sent as a picture: some send documents so, and PDF under the media type of a picture."""
    if data.startswith(_PDF_HEAD):
        return DocumentBlock(media_type=PDF, data=data, carried=carried)
    # Some programs do not know the type of what they read, and name that of any bytes.
    if is_document(media_type) and not picture_type("", data):
        return DocumentBlock(media_type=media_type, data=data, carried=carried)
    return ImageBlock(media_type=media_type, data=data, detail=detail, carried=carried)


def holds_document_as_picture(request: Request) -> bool:
    """Whether a client's own body holds a document in the place of a picture, where a provider of the same dialect refuses it."""
    # Each was read as a document. Nearly no body has one.
    if DocumentBlock not in parts_of(request.messages):
        return False
    waiting: list[Any] = [request.body]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            media_type, data = _sent_as_picture(value)
            if data and isinstance(picture_or_document(media_type, data), DocumentBlock):
                return True
            waiting.extend(value.values())
    return False


def _sent_as_picture(part: dict[str, Any]) -> tuple[str, str]:
    """Return media type and data of what one part gives as a picture, in the form of any dialect; empty where it gives none."""
    held = part.get("image_url")
    url = held.get("url") if isinstance(held, dict) else held
    if isinstance(url, str):
        return split_data_url(url) or ("", "")
    inline = part.get("inlineData") or part.get("inline_data") or (part.get("type") == "image" and part.get("source"))
    if not isinstance(inline, dict):
        return "", ""
    media_type, data = inline.get("mimeType") or inline.get("mime_type") or inline.get("media_type"), inline.get("data")
    is_right = media_type == PDF and part.get("type") != "image"
    return (media_type, data) if isinstance(media_type, str) and isinstance(data, str) and not is_right else ("", "")


def read_file(content: str, name: str) -> DocumentBlock | None:
    """Return the document of a `file_data`: a data URL, an address or base64. None where it is no document."""
    inline = split_data_url(content)
    if inline is None and content.startswith(("https://", "http://")):
        return DocumentBlock(url=content, name=name)
    media_type, data = inline or (type_by_name(name), content)
    media_type = PDF if data.startswith(_PDF_HEAD) else media_type
    return DocumentBlock(media_type=media_type, data=data, name=name) if is_document(media_type) else None


def type_by_name(name: str) -> str:
    """Return the media type that the ending of a name or address says; PDF where it says none."""
    return MEDIA_TYPES.get(name.partition("?")[0].rpartition(".")[2].lower(), PDF)


def ending_of(media_type: str) -> str:
    """Return the ending of the names of such files, `bin` where it is not known."""
    return _ENDINGS.get(_plain(media_type), "bin")


def file_name(block: DocumentBlock) -> str:
    """Return the document's name, or one by its media type: OpenAI refuses data without a name."""
    return block.name or f"document.{ending_of(block.media_type or PDF)}"


def data_of(block: DocumentBlock) -> tuple[str, str]:
    """Return media type and base64 data, both empty where the document is an address."""
    if block.text:
        return block.media_type or "text/plain", base64.b64encode(block.text.encode()).decode()
    inline = split_data_url(block.url)
    if inline is not None:
        return inline
    return (block.media_type or PDF, block.data) if block.data else ("", "")


def text_of(block: DocumentBlock) -> str:
    """Return the text of a document that is text, else nothing."""
    if block.text:
        return block.text
    media_type, data = data_of(block)
    if not (_plain(media_type).startswith("text/") or _plain(media_type) in _TEXTS):
        return ""
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def as_text(block: DocumentBlock) -> str:
    """Return a document that is text with its name above, for models that take no such document; nothing for any other."""
    text = text_of(block)
    head = "\n".join(line for line in (block.name, block.source) if line)
    return f"{head}\n\n{text}" if head and text else text


def results_as_text(request: Request, losses: Losses, parts: frozenset[type[Block]]) -> Request:
    """Return a request whose search results are text, for a dialect that has no block for them. `parts` are as `parts_of` gives them."""
    if DocumentBlock not in parts:
        return request
    messages = tuple([_with_text(message, losses) for message in request.messages])
    return request if all(map(is_, messages, request.messages)) else msgspec.structs.replace(request, messages=messages)


def _with_text(message: Message, losses: Losses) -> Message:
    if DocumentBlock not in message.parts or not any(map(_holds_result, message.blocks)):
        return message
    return msgspec.structs.replace(message, blocks=tuple([_block_as_text(block, losses) for block in message.blocks]))


def _holds_result(block: Block) -> bool:
    if isinstance(block, ToolResultBlock):
        return any(map(_holds_result, block.content))
    return isinstance(block, DocumentBlock) and bool(block.source)


def _block_as_text(block: Any, losses: Losses) -> Any:
    if isinstance(block, ToolResultBlock):
        return msgspec.structs.replace(block, content=tuple([_block_as_text(part, losses) for part in block.content]))
    if not _holds_result(block):
        return block
    losses.lose("document.form", "search_result", f"{losses.declaration.title} has no search results", sent="text")
    return TextBlock(as_text(block), carried=block.carried)


def _plain(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()
