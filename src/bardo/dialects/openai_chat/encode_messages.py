"""Blocks to chat messages: what a provider gets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from bardo.catalog.rows import Quirks, ReplayForm
from bardo.dialects.documents import as_text, data_of, file_name
from bardo.dialects.history_pictures import behind_results
from bardo.dialects.history_repair import BETWEEN
from bardo.dialects.losses import Losses
from bardo.dialects.openai_chat.constants import GEMINI, NAME
from bardo.dialects.openai_chat.details import replay_details
from bardo.dialects.openai_chat.extra import encode_states, merge_extra
from bardo.dialects.openai_chat.system_messages import parts_of_content, with_one_system
from bardo.dialects.openai_chat.thinking_blocks import FORMAT, replay_blocks
from bardo.dialects.written_histories import fold_without_loss
from bardo.values.blocks import (
    Block,
    DocumentBlock,
    ImageBlock,
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
    argument_text,
    fields_for,
)
from bardo.values.histories import Messages, parts_of
from bardo.values.request import Message

Parts = str | list[dict[str, Any]]
_FIELDS: dict[str, ReplayForm] = {
    "reasoning_content": "reasoning_content",
    "reasoning": "reasoning",
    "content_list": "content_list",
    "thinking_blocks": "thinking_blocks",
}
"""Where a Chat client has thinking, by its format; any other stands in `reasoning_details`."""
# What is found of a conversation once.
_WRITTEN = "openai_chat.written"
_MEDIA = frozenset((ImageBlock, DocumentBlock))


class MessageWriter:
    """Writes the messages of one request. `own`: it came from a Chat client. `generic`: only the dialect of the server is known.
    `speaks_between`: the model speaks between results and the user.

    Such a server gets the thinking that a Chat client gives it in the field in which the client has it, and its own in the field in which
    it wrote it.
    """

    def __init__(
        self, quirks: Quirks, losses: Losses, *, own: bool, generic: bool = False, speaks_between: bool = False
    ) -> None:
        self._own = own
        self._speaks_between = speaks_between
        self._generic = generic
        self._quirks = quirks
        self._losses = losses

    def write_all(self, messages: Messages) -> list[dict[str, Any]]:
        """Return the wire messages of a conversation. Those of messages that came before are shared: they must not be changed."""
        form = (self._quirks, self._own, self._generic, self._losses.dialect, self._losses.markers)
        begin: list[dict[str, Any]] = []
        written = fold_without_loss(messages, _WRITTEN, form, self._losses, begin, self._extended)
        parts = parts_of(messages)
        holds_media = ToolResultBlock in parts and not _MEDIA.isdisjoint(parts)
        return self._with_media_behind(written) if holds_media and not self._quirks.media_in_results else written

    def _with_media_behind(self, written: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return messages in which the pictures of results come behind all results of their turn.

        Where the user may not speak right behind a result, the model does so between them.
        """
        ordered = behind_results(written)
        if not self._speaks_between:
            return ordered
        spoken: list[dict[str, Any]] = []
        for message in ordered:
            if message["role"] == "user" and spoken and spoken[-1]["role"] == "tool":
                why = "its templates refuse the user right behind a tool"
                self._losses.lose("messages.role", "user", why, sent=f"behind the model's {BETWEEN}", key="behind")
                spoken.append({"role": "assistant", "content": BETWEEN})
            spoken.append(message)
        return spoken

    def _extended(self, written: list[dict[str, Any]], messages: Messages, place: int) -> list[dict[str, Any]]:
        new = [one for message in messages[place:] for one in self.write(message)]
        return with_one_system(written, new, self._losses) if self._quirks.one_system else [*written, *new]

    def write(self, message: Message) -> list[dict[str, Any]]:
        """Return the wire messages of one message: tool results are messages of their own."""
        if message.role == "assistant":
            output = self._assistant(message)
            return [] if _says_nothing(message, output) else [output]
        results = [block for block in message.blocks if isinstance(block, ToolResultBlock)]
        others = [block for block in message.blocks if not isinstance(block, ToolResultBlock)]
        others = [*self._media(results), *others]
        answers = [self._result(result) for result in results]
        if results and not others:
            return answers
        content = self._prompt(message) if message.role == "system" else self._content(others)
        if results and not content:
            # What stood beside the results was lost, and servers refuse an empty message.
            return answers
        said = {"role": message.role, "content": content, **fields_for(NAME, message.carried)}
        return answers if _says_nothing(message, said) else [*answers, said]

    def _prompt(self, message: Message) -> Parts:
        """Return a system prompt as one text: many servers join parts without a space, or take none. A Chat client's parts stay."""
        texts = [block for block in message.blocks if isinstance(block, TextBlock)]
        plain = not self._own and not any(self._losses.has_own_fields(block.carried) for block in texts)
        return message.paragraphs if plain and len(texts) == len(message.blocks) else self._content(message.blocks)

    def _drop_state(self, style: str, sent: str | None = None) -> None:
        why = "this provider takes no earlier reasoning of that form"
        self._losses.lose("reasoning", style or "text", why, sent=sent, key=f"{style} {sent}")

    def _result(self, result: ToolResultBlock) -> dict[str, Any]:
        kept = self._quirks.media_in_results
        content = self._content(
            [block for block in result.content if kept or not isinstance(block, ImageBlock | DocumentBlock)]
        )
        marks = self._losses.own_fields(result.carried) if content and not self._own else {}
        if marks:
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            content = [*parts[:-1], {**parts[-1], **marks}]
        if not result.call_id and result.name:
            return {"role": "function", "name": result.name, "content": content}
        return {"role": "tool", "tool_call_id": result.call_id, "content": content, **fields_for(NAME, result.carried)}

    def _media(self, results: Sequence[ToolResultBlock]) -> list[ImageBlock | DocumentBlock]:
        """Return pictures and documents among the results, which go into the user's message after them."""
        if self._quirks.media_in_results:
            return []
        parts = [block for result in results for block in result.content]
        media = [block for block in parts if isinstance(block, ImageBlock | DocumentBlock)]
        for block in media:
            kind = "image" if isinstance(block, ImageBlock) else "document"
            why = "the result of a tool is text in Chat Completions"
            self._losses.lose(f"tool_result.{kind}", "in the result", why, sent="in a user message after it")
        return media

    def _document(self, block: DocumentBlock) -> dict[str, Any] | None:
        fields = fields_for(NAME, block.carried)
        text = "" if self._own else as_text(block)
        if text:
            why = "Chat Completions takes PDF as a file; a document that is text goes as text"
            self._losses.lose("document.form", "document", why, sent="text")
            return {"type": "text", "text": text, **fields}
        media_type, data = data_of(block)
        if not data and not self._own:
            self._losses.lose("document", block.url, "Chat Completions takes documents as data, not by their address")
            return None
        content = f"data:{media_type};base64,{data}" if data else block.url
        return {"type": "file", "file": {"filename": file_name(block), "file_data": content}, **fields}

    def _content(self, blocks: Sequence[Block]) -> Parts:
        parts = [part for block in blocks if (part := self._part(block)) is not None]
        if not parts:
            return ""
        only = parts[0] if len(parts) == 1 else {}
        return str(only["text"]) if only.keys() == {"type", "text"} else parts

    def _part(self, block: Block) -> dict[str, Any] | None:
        match block:
            case TextBlock():
                return {"type": "text", "text": block.text, **self._losses.own_fields(block.carried)}
            case ImageBlock():
                return _image(block)
            case DocumentBlock():
                return self._document(block)
            case RefusalBlock(text=text):
                return {"type": "refusal", "refusal": text}
            case UnknownBlock(dialect=dialect, value=value) if dialect == NAME:
                return value if isinstance(value, dict) and "tool_call" not in value else None
            case UnknownBlock():
                return None
            case _:
                self._losses.lose(f"content.{type(block).__name__}", None, "it has no place in this message")
        return None

    def _assistant(self, message: Message) -> dict[str, Any]:
        texts = [block for block in message.blocks if isinstance(block, TextBlock)]
        content = self._answer(
            [
                block
                for block in message.blocks
                if isinstance(block, TextBlock | ImageBlock | DocumentBlock | UnknownBlock)
            ]
        )
        calls = [call for block in message.blocks for call in self._calls(block)]
        carried = dict(fields_for(NAME, message.carried))
        output: dict[str, Any] = {"role": "assistant", "content": content or (None if calls else "")}
        refusals = [block.text for block in message.blocks if isinstance(block, RefusalBlock)]
        if refusals:
            output |= {"content": content or None, "refusal": "".join(refusals)}
        for name, call in calls:
            output |= {name: call} if name == "function_call" else {name: [*output.get(name, ()), call]}
        extra = encode_states(self._accepted_states(state for block in texts for state in block.opaque))
        if extra:
            carried["extra_content"] = merge_extra(extra, carried.get("extra_content") or {})
        thoughts = [block for block in message.blocks if isinstance(block, ReasoningBlock)]
        self._give_back(thoughts, output)
        return output | carried

    def _answer(self, blocks: Sequence[Block]) -> Parts:
        """Return the content; several blocks of text were one answer, cut only by what stood between them."""
        if all(isinstance(block, TextBlock) and not self._losses.has_own_fields(block.carried) for block in blocks):
            return "".join(block.text for block in blocks if isinstance(block, TextBlock))
        return self._content(blocks)

    def _calls(self, block: Block) -> list[tuple[str, Any]]:
        """Return a call as (the field it stands in, its value)."""
        if isinstance(block, UnknownBlock) and block.dialect == NAME and isinstance(block.value, dict):
            return [("tool_calls", block.value["tool_call"])] if "tool_call" in block.value else []
        if not isinstance(block, ToolCallBlock):
            return []
        own = fields_for(NAME, block.carried)
        if own.get("function_call"):
            return [("function_call", {"name": block.name, "arguments": argument_text(block.arguments)})]
        arguments = block.arguments if own.get("type") == "custom" else argument_text(block.arguments)
        states = tuple(self._accepted_states(block.opaque))
        return [("tool_calls", encode_call(msgspec.structs.replace(block, arguments=arguments, opaque=states)))]

    def _accepted_states(self, states: Iterable[Opaque]) -> list[Opaque]:
        """Return the states of texts and calls this provider takes back; report the others."""
        kept: list[Opaque] = []
        for state in states:
            if state.format == GEMINI and state.kind == "signature" and self._quirks.thought_signatures:
                kept.append(state)
            else:
                self._drop_state(state.format)
        return kept

    def _give_back(self, thoughts: Sequence[ReasoningBlock], output: dict[str, Any]) -> None:
        for block in thoughts:
            self._losses.lose_fields(block.carried)
        form: ReplayForm = self._quirks.replay
        if form == "none" and self._generic and thoughts:
            form = _FIELDS.get(thoughts[0].format, "reasoning_details" if self._own else "none")
        replay: Replay = given_back(thoughts, form, output["content"])
        output |= replay.fields
        for style in replay.lost_formats:
            self._drop_state(style, sent=form if replay.fields else None)


def _image(block: ImageBlock) -> dict[str, Any]:
    url = block.url or f"data:{block.media_type};base64,{block.data}"
    image = {"url": url, "detail": block.detail} if block.detail else {"url": url}
    return {"type": "image_url", "image_url": image, **fields_for(NAME, block.carried)}


def encode_call(call: ToolCallBlock) -> dict[str, Any]:
    """Return one entry of `tool_calls`, with all that is carried of it."""
    carried = dict(fields_for(NAME, call.carried))
    extra = encode_states(call.opaque) if call.opaque else {}
    if extra:
        carried["extra_content"] = merge_extra(extra, carried.get("extra_content") or {})
    return call_object(call.id, call.name, call.arguments, carried)


def call_object(call_id: str, name: str, arguments: str, carried: dict[str, Any]) -> dict[str, Any]:
    """Return one entry of `tool_calls` with its further fields: a function, or a custom tool where they say so."""
    more = carried.get("function", {})
    others = {key: value for key, value in carried.items() if key != "function"}
    if others.get("type") == "custom":
        return {"id": call_id, "type": "custom", "custom": {"name": name, "input": arguments, **more}, **others}
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments, **more}, **others}


class Replay(msgspec.Struct, frozen=True):
    """Fields of the assistant's message, and the formats of what they leave out."""

    fields: dict[str, Any] = {}
    lost_formats: tuple[str, ...] = ()


def given_back(thoughts: Sequence[ReasoningBlock], form: ReplayForm, content: Any) -> Replay:
    """Return what gives `thoughts` back beside or inside `content`.

    Text goes wherever there is a place for text; opaque state only where it is kept with its format.
    """
    text = "\n\n".join(readable for block in thoughts if (readable := block.readable))
    if form == "reasoning_details" and thoughts:
        pieces = [piece for index, block in enumerate(thoughts) for piece in replay_details(block, index)]
        return Replay({"reasoning_details": pieces} if pieces else {})
    if form == FORMAT:
        blocks = replay_blocks(thoughts)
        unsigned = tuple(block.format for block in thoughts if block.opaque and not replay_blocks([block]))
        named = {"reasoning_content": text} if text else {}
        return Replay({**named, **({FORMAT: blocks} if blocks else {})}, unsigned)
    if form == "none" or not text:
        return Replay({}, tuple(block.format for block in thoughts))
    own = ("content_list",) if form == "content_list" else ()
    lost_formats = tuple(state.format for block in thoughts for state in block.opaque if state.format not in own)
    return Replay(_text_given_back(thoughts, text, form, content), lost_formats)


def _text_given_back(thoughts: Sequence[ReasoningBlock], text: str, form: ReplayForm, content: Any) -> dict[str, Any]:
    match form:
        case "content_list":
            return {"content": [_thinking_part(thoughts, text), *parts_of_content(content)]}
        case "think_tags" if isinstance(content, list):
            return {"content": [{"type": "text", "text": f"<think>{text}</think>"}, *content]}
        case "think_tags":
            return {"content": f"<think>{text}</think>{content or ''}"}
        case _:
            return {form: text}


def _thinking_part(thoughts: Sequence[ReasoningBlock], text: str) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
    states = [state.data for block in thoughts for state in block.opaque if state.format == "content_list"]
    return {**part, "signature": states[-1]} if states else part


def _says_nothing(message: Message, output: dict[str, Any]) -> bool:
    """Whether nothing is left of a message that held only what this dialect cannot say."""
    unknown = bool(message.blocks) and all(isinstance(block, UnknownBlock) for block in message.blocks)
    return unknown and not output["content"] and len(output) == 2
