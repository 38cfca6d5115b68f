"""A Request to a Chat Completions body for one provider.

Blocks to chat messages: what a provider gets.

System messages for servers that take one of them, at the beginning: the rows with `one_system`.

The chat templates of Qwen3.5 and later raise "System message must be at the beginning." for any other (vllm-project/vllm#41114, 2026-11).
Codex sends `instructions` and items of the role `developer`, Claude Code system messages between the turns.

Calls without a signature, of models that refuse them: Google's word for a call that has none stands in its place.

OpenRouter hands it on to Gemini 3 as one encrypted detail for each message that calls tools, under the id of its first call
(RooCodeInc/Roo-Code#10640, 2026-01). It is sent for the calls of the current turn alone, which are those that Google checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice, repeat, takewhile
from operator import itemgetter
from typing import Any

import msgspec

from bardo.catalog.fragments import merge_fields
from bardo.catalog.matching import matches_any
from bardo.catalog.request_shapes import shape_at
from bardo.catalog.rows import ProviderRow, Quirks, ReplayForm
from bardo.dialects.openai_chat.thinking import FORMAT, replay_blocks, replay_details
from bardo.dialects.openai_chat.wire import DEVELOPER, GEMINI, NAME, encode_states, merge_extra
from bardo.dialects.shared.control_fields import OPENAI_SAMPLING, encode_sampling, with_own_words
from bardo.dialects.shared.declaration import Declaration, limitations
from bardo.dialects.shared.history_repair import BETWEEN
from bardo.dialects.shared.json_values import NO_SIGNATURE
from bardo.dialects.shared.losses import Losses, fold_without_loss
from bardo.dialects.shared.media import as_text, behind_results, data_of, file_name
from bardo.dialects.shared.repeated_tools import written_tools
from bardo.dialects.shared.tools import is_asked_otherwise
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
from bardo.values.request import Message, OutputFormat, Request, Tool, ToolChoice

Wire = dict[str, Any]
SYSTEM = "system"
_ROLE = itemgetter("role")


def has_later_system(messages: Any) -> bool:
    """Whether a body's messages, each of them an object, have one of the system behind the first."""
    if not isinstance(messages, list):
        return False
    roles = [*islice(map(dict.get, messages, repeat("role")), 1, None)]
    return SYSTEM in roles or DEVELOPER in roles


def with_one_system(written: Sequence[Wire], new: Sequence[Wire], losses: Losses) -> list[Wire]:
    """Return the messages `written` before, which this function returned, and `new` ones: none that it is given is changed.

    System messages at the beginning become one, and later ones messages of the user, which is reported.
    """
    begin, rest = written, new
    if not written or _is_system(written[-1]):
        # What was written before is one system message, or nothing.
        systems = [*written, *takewhile(_is_system, new)]
        begin, rest = _joined(systems, losses), new[len(systems) - len(written) :]
    return [*begin, *(_as_user(rest, losses) if SYSTEM in map(_ROLE, rest) else rest)]


def _is_system(message: Wire) -> bool:
    return bool(message["role"] == SYSTEM)


def _as_user(messages: Iterable[Wire], losses: Losses) -> Iterable[Wire]:
    for message in messages:
        if not _is_system(message):
            yield message
        elif message["content"]:
            why = "chat templates of this server's models refuse a system message that is not at the beginning"
            losses.lose("messages.role", SYSTEM, why, sent="user")
            yield {**message, "role": "user"}


def _joined(systems: Sequence[Wire], losses: Losses) -> Sequence[Wire]:
    if len(systems) < 2:
        return systems
    fields: Wire = {}
    for message in systems:
        for name, value in message.items():
            if name != "content" and fields.setdefault(name, value) != value:
                why = "the system messages at the beginning are sent as one"
                losses.lose(f"messages.{name}", value, why, sent=fields[name], key="joined")
    return [{**fields, "content": reduce(_with_paragraph, map(itemgetter("content"), systems))}]


def _with_paragraph(before: Any, after: Any) -> Any:
    """Return two contents as one, with a blank line between: templates put nothing between the parts of a content."""
    if not before or not after:
        return before or after
    if isinstance(before, str) and isinstance(after, str):
        return f"{before}\n\n{after}"
    first, *others = parts_of_content(after)
    if first.get("type") == "text":
        return [*parts_of_content(before), {**first, "text": f"\n\n{first['text']}"}, *others]
    return [*parts_of_content(before), first, *others]


def parts_of_content(content: Any) -> list[Wire]:
    """Return a message's content as a list of parts; none of an empty one."""
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


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
_MEDIA_PARTS = frozenset((ImageBlock, DocumentBlock))


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
        holds_media = ToolResultBlock in parts and not _MEDIA_PARTS.isdisjoint(parts)
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


def has_unsigned_calls(model: str, messages: Any, quirks: Quirks) -> bool:
    """Whether messages as a client wrote them hold calls without the signature that the model asks for."""
    checked = bool(quirks.signed_calls) and matches_any(model.lower(), quirks.signed_calls)
    return checked and isinstance(messages, list) and any(True for _ in _unsigned(messages))


def waive_signatures(
    model: str, messages: list[dict[str, Any]], quirks: Quirks, losses: Losses
) -> list[dict[str, Any]]:
    """Return the messages with the word in those that lack a signature, where the model asks for one, and report it."""
    if not quirks.signed_calls or not matches_any(model.lower(), quirks.signed_calls):
        return messages
    unsigned = [id(message) for message in _unsigned(messages)]
    if unsigned:
        why = "this model asks for a signature and the conversation has none: Google's word for that was sent"
        losses.lose_each("thought_signature", None, why, sent=NO_SIGNATURE)
    return [_waived(message) if id(message) in unsigned else message for message in messages]


def _waived(message: dict[str, Any]) -> dict[str, Any]:
    first = message["tool_calls"][0].get("id")
    detail = {"type": "reasoning.encrypted", "data": NO_SIGNATURE, "format": GEMINI, "id": first, "index": 0}
    return {**message, "reasoning_details": [*(message.get("reasoning_details") or ()), detail]}


def _unsigned(messages: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield the messages behind the user's last one that call tools and have no state."""
    for message in reversed(messages):
        if not isinstance(message, dict) or message.get("role") == "user":
            return
        if message.get("role") == "assistant" and message.get("tool_calls") and not _is_signed(message):
            yield message


def _is_signed(message: dict[str, Any]) -> bool:
    details = message.get("reasoning_details")
    pieces = details if isinstance(details, list) else []
    return any(isinstance(piece, dict) and (piece.get("data") or piece.get("signature")) for piece in pieces)


_LIMITS = ("max_tokens", "max_completion_tokens")
DECLARATION = Declaration(
    dialect=NAME,
    title="Chat Completions",
    # A request of the library has no dialect; its fields are those of Chat.
    also_speaks=frozenset({""}),
    expresses=frozenset(
        (
            "choices",
            "tools.strict",
            "tool_choice.parallel",
            "output_format.strict",
            "output_format.description",
            "image.detail",
            "document",
            "document.source",
            "document.name",
            "sampling.top_k",
            "sampling.min_p",
            "sampling.repetition_penalty",
            "sampling.frequency_penalty",
            "sampling.presence_penalty",
            "sampling.seed",
        )
    ),
    lacks={
        **limitations("Chat Completions does not tell a failed tool from another", "tool_result.is_error"),
    },
)


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> dict[str, Any]:
    """Return the body for one provider."""
    quirks = row.quirks
    if not quirks.developer_role and _names_developer(request):
        losses.lose("messages.role.developer", DEVELOPER, "this provider calls that role system", sent="system")
    between = "no_user_after_tool" in shape_at(row, request.model).rules
    writer = MessageWriter(quirks, losses, own=request.dialect == NAME, generic=row.generic, speaks_between=between)
    messages = writer.write_all(request.messages)
    messages = waive_signatures(request.model, messages, quirks, losses)
    body: dict[str, Any] = {"model": request.model, "messages": messages}
    tools = written_tools(request, losses, _tools)
    if tools:
        body["tools"] = tools
        body |= _tool_choice(request.tool_choice)
    if request.max_output_tokens is not None:
        body[quirks.output_limit_field] = request.max_output_tokens
    body |= encode_sampling(request.sampling, OPENAI_SAMPLING)
    if request.choices > 1:
        body["n"] = request.choices
    if request.output_format is not None:
        body["response_format"] = _output_format(request.output_format)
    body |= losses.own_extra(request)
    body = merge_fields(body, encode_control(request, losses))
    return body | _stream(request, quirks, body.pop("stream_options", None))


def differs(request: Request, row: ProviderRow) -> bool:
    """Whether a body of this dialect holds what the provider does not take.

    That is the name of its output limit, a role or its place, an unsigned call, a picture in the result of a tool, or earlier thinking
    where there is no field for it.
    """
    body = request.body
    if not body:
        return False
    for limit in _LIMITS:
        if limit in body and limit != row.quirks.output_limit_field:
            return True
    if request.extra and is_asked_otherwise(request, row):
        return True
    if row.quirks.signed_calls and has_unsigned_calls(request.model, body.get("messages"), row.quirks):
        return True
    # What any server takes is not known: a client that gives thinking back in a field knows its own.
    if row.quirks.replay == "none" and not row.generic and _gives_thinking_back(request):
        return True
    if not row.quirks.media_in_results and _shows_media_in_results(request):
        return True
    if row.quirks.one_system and has_later_system(body.get("messages")):
        return True
    return not row.quirks.developer_role and _names_developer(request)


_MEDIA = frozenset((ImageBlock, DocumentBlock))


def _shows_media_in_results(request: Request) -> bool:
    if _MEDIA.isdisjoint(parts_of(request.messages)):
        return False
    results = (block for message in request.messages for block in message.blocks if isinstance(block, ToolResultBlock))
    return any(isinstance(part, ImageBlock | DocumentBlock) for result in results for part in result.content)


def _gives_thinking_back(request: Request) -> bool:
    if ReasoningBlock not in parts_of(request.messages):
        return False
    return any(message.role == "assistant" and ReasoningBlock in message.kinds for message in request.messages)


def _names_developer(request: Request) -> bool:
    """Whether a client of this dialect gave a message the role that bardo reads and writes as `system`."""
    if request.dialect != NAME or not request.body:
        return False
    messages = request.body.get("messages")
    # Each was read as an object; no step of Python for each.
    return isinstance(messages, list) and DEVELOPER in map(dict.get, messages, repeat("role"))


def _stream(request: Request, quirks: Quirks, value: Any) -> dict[str, Any]:
    if not request.stream:
        return {}
    options = {**(value or {}), **({"include_usage": True} if quirks.stream_usage else {})}
    return {"stream": True, "stream_options": options} if options else {"stream": True}


def _tools(tools: Sequence[Tool], losses: Losses) -> list[dict[str, Any]]:
    return [written for tool in tools for written in _tool(tool, losses)]


def _tool(tool: Tool, losses: Losses) -> list[dict[str, Any]]:
    own = fields_for(NAME, tool.carried)
    if tool.hosted:
        if not own:
            losses.lose_tool(tool)
        return [own] if own else []
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    if tool.schema is not None:
        function["parameters"] = tool.schema
    if tool.strict is not None:
        function["strict"] = tool.strict
    more = own.get("function")
    if more:
        own = {name: value for name, value in own.items() if name != "function"}
        function |= more
    return [{"type": "function", "function": function, **own}]


def _tool_choice(choice: ToolChoice | None) -> dict[str, Any]:
    if choice is None:
        return {}
    written: dict[str, Any] = {}
    if choice.mode == "named":
        written["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
    elif choice.mode != "auto" or choice.parallel is None:
        written["tool_choice"] = choice.mode
    if choice.parallel is not None:
        written["parallel_tool_calls"] = choice.parallel
    return written


def _output_format(output_format: OutputFormat) -> dict[str, Any]:
    if output_format.mode == "json_object":
        return {"type": "json_object"}
    inner: dict[str, Any] = {"name": output_format.name or "answer"}
    if output_format.schema is not None:
        inner["schema"] = output_format.schema
    if output_format.strict is not None:
        inner["strict"] = output_format.strict
    if output_format.description:
        inner["description"] = output_format.description
    return {"type": "json_schema", "json_schema": inner}


def encode_control(request: Request, losses: Losses) -> dict[str, Any]:
    """Return what is written of thinking: the control, and the caller's own words beside it."""
    if request.control is None:
        return {}
    written, left = with_own_words(request.control.fields, request, NAME)
    for path, value in left.items():
        losses.lose(path, value, "it goes with words that are not sent to this provider")
    return written
