"""Pictures, documents and sound of a request, between the dialects that take them.

Every target takes plain base64 under the media type that the bytes say: clients write `image/jpg`, a type that the file's name suggested,
or none. Documents go as data URLs, file names, media types or plain text; sound under the short names that dialects have for formats.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import is_
from typing import Any

import msgspec

from bardo.dialects.shared.content_forms import CHAT_PICTURES, INTERACTIONS_PICTURES, RESPONSES_PICTURES, PictureForm
from bardo.dialects.shared.json_values import JsonObject, inner_fields
from bardo.dialects.shared.losses import Losses
from bardo.values.blocks import Block, Carried, DocumentBlock, ImageBlock, TextBlock, ToolResultBlock, UnknownBlock
from bardo.values.file_kinds import picture_kind
from bardo.values.request import Message, Request

_MEDIA = frozenset((ImageBlock, DocumentBlock))
_ALIASES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}
_TO_PLAIN = str.maketrans("-_", "+/")
_HEAD_LETTERS = 24
"""Letters of base64 that hold the beginning of a file by which its kind is known."""
_DATA, _BASE64 = "data:", ";base64,"


def plain_base64(data: str) -> str:
    """Return base64 in the letters + and /, with its end filled up; itself where it is so."""
    if "-" not in data and "_" not in data and len(data) % 4 == 0:
        return data
    plain = data.translate(_TO_PLAIN).rstrip("=")
    # Data that is no base64 is somebody else's mistake to tell.
    return plain + "=" * (-len(plain) % 4) if len(plain) % 4 != 1 else data


def picture_type(media_type: str, data: str) -> str:
    """Return the media type of a picture by how its data begins, where that is known."""
    try:
        kind = picture_kind(base64.b64decode(data[:_HEAD_LETTERS].translate(_TO_PLAIN)))
    except (binascii.Error, ValueError):
        kind = ""
    return kind or _ALIASES.get(media_type.lower(), media_type)


def has_known_media(request: Request, parts: frozenset[type[Block]]) -> bool:
    """Whether all pictures and documents of a request are as every target takes them. `parts` are as `facts_of` gives them."""
    return _MEDIA.isdisjoint(parts) or all(_known(message) is message for message in request.messages)


def with_known_media(request: Request, losses: Losses, parts: frozenset[type[Block]]) -> Request:
    """Return a request whose pictures and documents are as every target takes them: itself where they are."""
    if _MEDIA.isdisjoint(parts):
        return request
    messages = tuple([_known(message) for message in request.messages])
    if all(map(is_, messages, request.messages)):
        return request
    for before, after in zip(request.messages, messages, strict=True):
        if after is not before:
            _report(before.blocks, after.blocks, losses)
    return msgspec.structs.replace(request, messages=messages)


def _report(before: tuple[Block, ...], after: tuple[Block, ...], losses: Losses) -> None:
    for old, new in zip(before, after, strict=True):
        if isinstance(old, ToolResultBlock) and isinstance(new, ToolResultBlock):
            _report(old.content, new.content, losses)
        elif isinstance(old, ImageBlock) and isinstance(new, ImageBlock) and _type_of(old) != _type_of(new):
            why = "the bytes of the picture say so, and providers refuse another type"
            losses.lose("image.media_type", _type_of(old), why, sent=_type_of(new), key=_type_of(old))


def _type_of(block: ImageBlock) -> str:
    return block.media_type if block.data else block.url.removeprefix(_DATA).partition(_BASE64)[0]


def _known(message: Message) -> Message:
    """Return a message with known media: itself where it has no other."""
    if _MEDIA.isdisjoint(message.parts):
        return message
    blocks = tuple(map(_block, message.blocks))
    return message if all(map(is_, blocks, message.blocks)) else msgspec.structs.replace(message, blocks=blocks)


def _block(block: Block) -> Block:
    if isinstance(block, ToolResultBlock):
        content = tuple(
            [_media(part) if isinstance(part, ImageBlock | DocumentBlock) else part for part in block.content]
        )
        same = all(new is old for new, old in zip(content, block.content, strict=True))
        return block if same else msgspec.structs.replace(block, content=content)
    return _media(block) if isinstance(block, ImageBlock | DocumentBlock) else block


def _media(block: ImageBlock | DocumentBlock) -> ImageBlock | DocumentBlock:
    media_type, data, url = block.media_type, block.data, block.url
    if data:
        data = plain_base64(data)
        media_type = picture_type(media_type, data) if isinstance(block, ImageBlock) else media_type
    elif url.startswith(_DATA) and isinstance(block, ImageBlock):
        head, separator, held = url.partition(_BASE64)
        if separator:
            plain = plain_base64(held)
            url = f"{_DATA}{picture_type(head.removeprefix(_DATA), plain)}{_BASE64}{plain}"
    if (media_type, data, url) == (block.media_type, block.data, block.url):
        return block
    return msgspec.structs.replace(block, media_type=media_type, data=data, url=url)


_AUDIO = "audio/"
_HOLDERS = ("input_audio", "inlineData", "inline_data")
"""The fields of a part that hold the data of sound, where it does not hold them itself."""
_TYPES = {"mp3": "mpeg"}
_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav"}

Sound = tuple[str, str]
"""The media type, and the data."""


def _read_input_audio(value: JsonObject) -> tuple[object, object]:
    held = value.get("input_audio")
    name = held.get("format") if isinstance(held, dict) else None
    if value.get("type") != "input_audio" or not isinstance(held, dict) or not isinstance(name, str):
        return None, None
    return f"{_AUDIO}{_TYPES.get(name, name)}", held.get("data")


def _read_inline_data(value: JsonObject) -> tuple[object, object]:
    # google-genai writes some fields in snake case, and data in base64 for addresses.
    held = value.get("inlineData") or value.get("inline_data")
    if not isinstance(held, dict):
        return None, None
    data = held.get("data")
    return held.get("mimeType") or held.get("mime_type"), plain_base64(data) if isinstance(data, str) else data


def _read_content(value: JsonObject) -> tuple[object, object]:
    return (value.get("mime_type"), value.get("data")) if value.get("type") == "audio" else (None, None)


def _write_input_audio(media_type: str, data: str) -> JsonObject:
    name = media_type.removeprefix(_AUDIO).partition(";")[0]
    return {"type": "input_audio", "input_audio": {"data": data, "format": _FORMATS.get(name, name)}}


_READ: Mapping[str, Callable[[JsonObject], tuple[object, object]]] = {
    "openai_chat": _read_input_audio,
    "openai_responses": _read_input_audio,
    "gemini": _read_inline_data,
    "gemini_interactions": _read_content,
}
_WRITE: Mapping[str, Callable[[str, str], JsonObject]] = {
    "openai_chat": _write_input_audio,
    "gemini": lambda media_type, data: {"inlineData": {"mimeType": media_type, "data": data}},
    "gemini_interactions": lambda media_type, data: {"type": "audio", "mime_type": media_type, "data": data},
}


_KNOWN_OF_SOUND: dict[tuple[str, ...], set[str]] = {
    (): {"type", "mime_type", "data", *_HOLDERS},
    **{(name,): {"data", "format", "mimeType", "mime_type"} for name in _HOLDERS},
}
"""The fields of sound read in any dialect."""


def sound_block(media_type: str, data: str) -> UnknownBlock:
    """Return the block of a sound, base64 `data`, which every dialect that takes sound is given in its own form."""
    return UnknownBlock("openai_chat", _write_input_audio(media_type, data))


def sound_of(block: Block) -> Sound | None:
    """Return the media type and the data of a block that is sound in its dialect's form, or None."""
    if not isinstance(block, UnknownBlock) or not isinstance(block.value, dict) or block.dialect not in _READ:
        return None
    media_type, data = _READ[block.dialect](block.value)
    if not isinstance(media_type, str) or not media_type.startswith(_AUDIO) or not isinstance(data, str):
        return None
    return media_type, plain_base64(data)


def has_plain_sound(request: Request, parts: frozenset[type[Block]]) -> bool:
    """Whether all sound of a request is plain base64, as every server takes it. `parts` are as `facts_of` gives them."""
    return UnknownBlock not in parts or all(
        _plain(block) is block for message in request.messages for block in message.blocks
    )


def with_plain_sound(request: Request, parts: frozenset[type[Block]]) -> Request:
    """Return a request whose sound is plain base64: itself where it is."""
    if has_plain_sound(request, parts):
        return request
    messages = [
        msgspec.structs.replace(message, blocks=tuple(map(_plain, message.blocks))) for message in request.messages
    ]
    return msgspec.structs.replace(request, messages=tuple(messages))


def _plain(block: Block) -> Block:
    sound = sound_of(block)
    if sound is None or not isinstance(block, UnknownBlock):
        return block
    holder = next((name for name in _HOLDERS if name in block.value), "")
    held = block.value[holder] if holder else block.value
    if held["data"] == sound[1]:
        return block
    plain = {**held, "data": sound[1]}
    return msgspec.structs.replace(block, value={**block.value, holder: plain} if holder else plain)


def takes_sound(dialects: Collection[str | None]) -> bool:
    """Whether sound of another dialect can be written in one of these."""
    return not _WRITE.keys().isdisjoint(dialects)


def carry_sound(request: Request, dialect: str, parts: frozenset[type[Block]], losses: Losses) -> Request:
    """Return a request of another dialect with its sound in this one's form, where it has one. `parts` are as `facts_of` gives them."""
    write = _WRITE.get(dialect)
    if write is None or UnknownBlock not in parts:
        return request
    messages = tuple([_with_audio(message, dialect, write, losses) for message in request.messages])
    unchanged = all(map(is_, messages, request.messages))
    return request if unchanged else msgspec.structs.replace(request, messages=messages)


def _with_audio(message: Message, dialect: str, write: Callable[[str, str], JsonObject], losses: Losses) -> Message:
    sounds = {place: sound for place, block in enumerate(message.blocks) if (sound := sound_of(block)) is not None}
    if not sounds:
        return message
    for block in [message.blocks[place] for place in sounds]:
        for path, value in inner_fields(block.value, _KNOWN_OF_SOUND).items():  # type: ignore[union-attr]
            losses.lose(".".join(path), value, f"a field of {block.dialect}")  # type: ignore[union-attr]
    blocks = [
        UnknownBlock(dialect, write(*sounds[place])) if place in sounds else block
        for place, block in enumerate(message.blocks)
    ]
    return msgspec.structs.replace(message, blocks=tuple(blocks))


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
_DOCUMENT_TYPES = ("image/", "audio/", "video/")
_PDF_HEAD = "JVBERi0"
"""How "%PDF-" begins in base64."""


def split_data_url(url: str) -> tuple[str, str] | None:
    """Return media type and base64 data of a data URL, or None if the address is another."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return head.removeprefix("data:").removesuffix(";base64"), data


def is_document(media_type: str) -> bool:
    """Whether data of this media type is a document: neither a picture nor sound nor film."""
    return bool(media_type) and not media_type.lower().startswith(_DOCUMENT_TYPES)


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


def holds_document_as_picture(request: Request, parts: frozenset[type[Block]]) -> bool:
    """Whether a client's own body holds a document in the place of a picture, where a provider of the same dialect refuses it."""
    # Each was read as a document. Nearly no body has one.
    if DocumentBlock not in parts:
        return False
    waiting: list[object] = [request.body]
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


def _sent_as_picture(part: JsonObject) -> tuple[str, str]:
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
    """Return the document of a `file_data`: a data URL, an address or base64. None if it is no document."""
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
    return _ENDINGS.get(_plain_document(media_type), "bin")


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
    if not (_plain_document(media_type).startswith("text/") or _plain_document(media_type) in _TEXTS):
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
    """Return a request whose search results are text, for a dialect that has no block for them. `parts` are as `facts_of` gives them."""
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


def _plain_document(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


# Gemini's parts are pictures from the start.
_FORMS: Mapping[str, PictureForm] = {
    "openai_chat": CHAT_PICTURES,
    "openai_responses": RESPONSES_PICTURES,
    "gemini_interactions": INTERACTIONS_PICTURES,
}


_HOLDS_PICTURES = frozenset((ImageBlock, UnknownBlock))


def carry_pictures(request: Request, losses: Losses, parts: frozenset[type[Block]], *, from_model: bool) -> Request:
    """Return a request of another dialect whose earlier replies have their pictures where the target takes them.

    `parts` are as `facts_of` gives them; `from_model`: the target takes them in the model's own messages.
    """
    form = _FORMS.get(request.dialect)
    listed = form is not None and form.field and any(message.carried for message in request.messages)
    if not listed and _HOLDS_PICTURES.isdisjoint(parts):
        return request
    read = [_with_pictures(message, form) for message in request.messages]
    messages = read if from_model else _from_user(read, losses)
    unchanged = len(messages) == len(request.messages) and all(map(is_, messages, request.messages))
    return request if unchanged else msgspec.structs.replace(request, messages=tuple(messages))


def behind_results(messages: Sequence[JsonObject]) -> list[JsonObject]:
    """Return wire messages in which what the user is shown of results comes behind all results of its turn."""
    ordered: list[JsonObject] = []
    shown: list[JsonObject] = []
    for message in messages:
        role = message["role"]
        if role == "user" and ordered and ordered[-1]["role"] == "tool":
            shown.append(message)
        elif role == "tool":
            ordered.append(message)
        else:
            ordered += [*shown, message]
            shown = []
    return ordered + shown


def _with_pictures(message: Message, form: PictureForm | None) -> Message:
    """Return a message of the model with what its dialect writes for pictures as pictures."""
    if form is None or message.role != "assistant":
        return message
    if form.field:
        return _with_listed(message, form, form.field.rpartition(".")[2])
    if UnknownBlock not in message.kinds or not any(_pictures_of(block, form) for block in message.blocks):
        return message
    blocks = [part for block in message.blocks for part in _pictures_of(block, form) or (block,)]
    return msgspec.structs.replace(message, blocks=tuple(blocks))


def _pictures_of(block: Block, form: PictureForm) -> tuple[ImageBlock, ...]:
    return form.read(block.value) if isinstance(block, UnknownBlock) else ()


def _with_listed(message: Message, form: PictureForm, field: str) -> Message:
    carried = message.carried
    listed = carried.fields.get(field) if carried is not None else None
    if carried is None or not isinstance(listed, list):
        return message
    pictures = [picture for value in listed for picture in form.read(value)]
    others = [value for value in listed if not form.read(value)]
    if not pictures:
        return message
    fields = {name: value for name, value in carried.fields.items() if name != field} | (
        {field: others} if others else {}
    )
    carried_left = Carried(carried.dialect, fields) if fields else None
    return msgspec.structs.replace(message, blocks=(*message.blocks, *pictures), carried=carried_left)


def _from_user(messages: Sequence[Message], losses: Losses) -> list[Message]:
    """Return the messages with the model's pictures in the turn of the user that follows, or in one of its own."""
    moved: list[Message] = []
    waiting: list[ImageBlock] = []
    for message in messages:
        if message.role != "assistant":
            moved.append(_opened_by(message, waiting))
            waiting = []
            continue
        if ImageBlock not in message.kinds:
            moved.append(message)
            continue
        waiting += [block for block in message.blocks if isinstance(block, ImageBlock)]
        rest = tuple([block for block in message.blocks if not isinstance(block, ImageBlock)])
        losses.lose("image", "assistant", f"{losses.declaration.title} takes pictures only from the user", sent="user")
        if rest:
            moved.append(msgspec.structs.replace(message, blocks=rest))
    if waiting:
        moved.append(Message("user", tuple(waiting)))
    return moved


def _opened_by(message: Message, pictures: Sequence[ImageBlock]) -> Message:
    if not pictures:
        return message
    # Results of calls stand first in their message.
    place = next(
        (number for number, block in enumerate(message.blocks) if not isinstance(block, ToolResultBlock)),
        len(message.blocks),
    )
    return msgspec.structs.replace(message, blocks=(*message.blocks[:place], *pictures, *message.blocks[place:]))
