"""The parts of a client's message as blocks."""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

from bardo.dialects.documents import is_document, picture_or_document
from bardo.dialects.gemini import wire
from bardo.dialects.gemini.constants import FORMAT, NAME, opaque_of
from bardo.dialects.gemini.reply_parts import arguments_text
from bardo.dialects.known_media import picture_type
from bardo.dialects.structs import as_it_came, carried_fields
from bardo.dialects.wire import is_object
from bardo.values.blocks import (
    Block,
    Carried,
    DocumentBlock,
    ImageBlock,
    Opaque,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)

# Whose sealed state goes with summaries; all others' goes with the full text.
_SUMMARISING = (FORMAT, "openai-responses-v1", "xai-responses-v1")


class PartsReader:
    """Reads the parts of one message, which may come in several contents.

    Thoughts that follow each other are one stretch of thinking; plain text that begins a further content continues the text before.
    """

    def __init__(self, book: CallBook, *, answer: bool = False) -> None:
        self._book = book
        self._answer = answer
        self._blocks: list[Block] = []
        self._thoughts: list[str] = []
        self._texts: list[str] = []

    def read(self, content: wire.Content) -> None:
        """Take the parts of one content."""
        parts = content.parts
        listed = parts if isinstance(parts, list) else [] if parts is None else [parts]
        for index, part in enumerate(listed):
            if index:
                self._end_text()
            self._part(wire.Part(text=part) if isinstance(part, str) else part)

    def copy(self, book: CallBook) -> PartsReader:
        """Return a reader that has read the same, and goes on by itself with a book of its own."""
        copied = PartsReader(book, answer=self._answer)
        copied._blocks, copied._thoughts, copied._texts = [*self._blocks], [*self._thoughts], [*self._texts]
        return copied

    def finish(self) -> tuple[Block, ...]:
        """Return the blocks."""
        self._end_text()
        self._end_thinking()
        return tuple(self._blocks)

    def _part(self, part: wire.Part) -> None:
        other_fields = carried_fields(part) or {}
        signature = part.thought_signature or ""
        opaque, sealed = opaque_of(signature) if signature else ((), False)
        if part.thought and part.text is not None:
            self._end_text()
            self._thoughts.append(part.text)
            if opaque or other_fields:
                self._end_thinking(opaque, other_fields)
            return
        self._end_thinking()
        other_fields |= {"thought": True} if part.thought else {}
        kept = other_fields | ({"thoughtSignature": signature} if signature else {})
        if part.function_call is not None:
            self._add(self._call(part.function_call, opaque, other_fields))
        elif part.function_response is not None:
            self._add(self._result(part.function_response, kept))
        elif part.text is not None:
            self._text(part.text, opaque, other_fields, sealed=sealed)
        else:
            self._add(media_block(part, kept) or UnknownBlock(NAME, as_it_came(part)))

    def _add(self, block: Block) -> None:
        self._end_text()
        self._blocks.append(block)

    def _text(self, text: str, opaque: tuple[Opaque, ...], other_fields: dict[str, Any], *, sealed: bool) -> None:
        if not opaque and not other_fields:
            # An empty text, which ends many of Gemini's streams, says nothing in an answer.
            self._texts += [text] if text or not self._answer else []
            return
        self._end_text()
        last = self._blocks[-1] if self._blocks else None
        if sealed and not text and isinstance(last, TextBlock) and not last.opaque:
            # This is how bardo's own streams bring state that came after the text it belongs to.
            self._blocks[-1] = msgspec.structs.replace(last, opaque=opaque)
            return
        self._blocks.append(TextBlock(text, opaque, Carried(NAME, other_fields) if other_fields else None))

    def _end_text(self) -> None:
        if self._texts:
            self._blocks.append(TextBlock("".join(self._texts)))
            self._texts.clear()

    def _end_thinking(self, opaque: tuple[Opaque, ...] = (), other_fields: dict[str, Any] | None = None) -> None:
        text = "".join(self._thoughts)
        self._thoughts.clear()
        if not text and not opaque and not other_fields:
            return
        format_name = opaque[0].format if opaque else FORMAT
        summary = (text,) if text and format_name in _SUMMARISING else ()
        self._blocks.append(
            ReasoningBlock(
                text="" if summary else text,
                summary=summary,
                format=format_name,
                opaque=opaque,
                carried=Carried(NAME, other_fields) if other_fields else None,
            )
        )

    def _call(self, call: wire.FunctionCall, opaque: tuple[Opaque, ...], other_fields: dict[str, Any]) -> ToolCallBlock:
        return ToolCallBlock(
            id=self._book.called(call.name, call.id),
            name=call.name,
            arguments=arguments_text(call.args or {}),
            opaque=opaque,
            carried=_nested(other_fields, "functionCall", carried_fields(call) or {}, call.id),
        )

    def _result(self, result: wire.FunctionResponse, other_fields: dict[str, Any]) -> ToolResultBlock:
        text, is_error = _result_text(result.response or {})
        media = [_medium(part) for part in result.parts or ()]
        call_id = self._book.answered(result.name, result.id)
        own_id = result.id if result.id == call_id else None
        return ToolResultBlock(
            call_id=call_id,
            name=result.name,
            content=(TextBlock(text), *media),
            is_error=is_error,
            carried=_nested(other_fields, "functionResponse", carried_fields(result) or {}, own_id),
        )


def media_block(part: wire.Part | wire.ResponsePart, other_fields: dict[str, Any]) -> ImageBlock | DocumentBlock | None:
    """Return the image or document a part holds, or None where it holds something else."""
    carried = Carried(NAME, other_fields) if other_fields else None
    blob, file = part.inline_data, part.file_data
    if blob is not None and blob.others is None:
        media_type = blob.mime_type or ""
        if picture_type("", blob.data) or media_type.startswith("image/") or is_document(media_type):
            return picture_or_document(media_type, blob.data, carried=carried)
    if file is not None and file.others is None:
        media_type = file.mime_type or ""
        if media_type.startswith("image/"):
            return ImageBlock(media_type=media_type, url=file.file_uri, carried=carried)
        if is_document(media_type) and not _is_uploaded(file.file_uri):
            return DocumentBlock(media_type=media_type, url=file.file_uri, carried=carried)
    return None


def _is_uploaded(address: str) -> bool:
    """Whether an address is of a file stored at Google, which only its owner can read."""
    return not address.startswith(("http://", "https://")) or address.startswith(
        "https://generativelanguage.googleapis.com/"
    )


def _medium(part: wire.ResponsePart) -> ImageBlock | DocumentBlock | UnknownBlock:
    return media_block(part, carried_fields(part) or {}) or UnknownBlock(NAME, as_it_came(part))


def _nested(other_fields: dict[str, Any], name: str, inside: dict[str, Any], own_id: str | None) -> Carried | None:
    # Google may give no id: bardo needs one, and must not send what Google did not say.
    held = inside | ({} if own_id else {"id": None})
    fields = other_fields | ({name: held} if held else {})
    return Carried(NAME, fields) if fields else None


def _result_text(response: dict[str, Any]) -> tuple[str, bool]:
    """Return a result as text: what stands alone under `output` or `error`, else the object itself."""
    is_error = set(response) == {"error"}
    alone = next(iter(response.values())) if set(response) in ({"output"}, {"error"}) else None
    if isinstance(alone, str) and not is_object(alone):
        return alone, is_error
    return msgspec.json.encode(response).decode(), is_error


class CallBook:
    """The calls of a conversation that nobody answered yet, in order."""

    def __init__(self) -> None:
        self._by_name: dict[str, deque[str]] = {}
        self._without_id: dict[str, deque[str]] = {}
        self._answered: set[str] = set()
        self._own_ids: set[str] = set()
        self._count = 0

    def copy(self) -> CallBook:
        """Return a book that says the same."""
        copied = CallBook()
        copied._by_name = {name: deque(waiting) for name, waiting in self._by_name.items()}
        copied._without_id = {name: deque(waiting) for name, waiting in self._without_id.items()}
        copied._answered, copied._own_ids, copied._count = {*self._answered}, {*self._own_ids}, self._count
        return copied

    def called(self, name: str, own_id: str | None) -> str:
        """Note a call and return its id, made up where it has none."""
        call_id = own_id or f"call_{self._count}"
        self._count += 1
        self._answered.discard(call_id)
        self._by_name.setdefault(name, deque()).append(call_id)
        if own_id:
            self._own_ids.add(own_id)
        else:
            self._without_id.setdefault(name, deque()).append(call_id)
        return call_id

    def answered(self, name: str, own_id: str | None) -> str:
        """Return the id of the call that a result answers: its own, or else that of the turn's next open call of that name.

        Gemini CLI makes up an id for a call that came without one, and sends it with the result only (0.61): no call has it.
        """
        if own_id not in self._own_ids:
            waiting = (self._without_id if own_id else self._by_name).get(name, deque())
            own_id = self._next_open(waiting) or own_id
        self._answered.add(own_id or "")
        return own_id or f"call_{name}"

    def _next_open(self, waiting: deque[str]) -> str:
        """Take the first call that nobody answered; empty where there is none."""
        while waiting:
            call_id = waiting.popleft()
            if call_id not in self._answered:
                return call_id
        return ""

    def new_turn(self) -> None:
        """The model speaks again: what was not answered by now stays so."""
        self._by_name.clear()
        self._without_id.clear()
