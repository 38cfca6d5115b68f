"""A request for a provider of this dialect, its messages written as input items.

By default nothing is stored, and the ciphertext of reasoning is asked for, so that a conversation can go on anywhere. Reasoning goes back
by its ciphertext and beside the item it led to; what this provider could not read is left out and reported.
"""

from __future__ import annotations

from collections.abc import Sequence

from bardo.catalog.fragments import merge_fields
from bardo.catalog.rows import ProviderRow
from bardo.dialects.openai_responses.functions import TOOL_SEARCH_OUTPUT, only_text
from bardo.dialects.openai_responses.wire import FORMAT, NAME, is_native
from bardo.dialects.shared.control_fields import OPENAI_SAMPLING, encode_sampling, with_own_words
from bardo.dialects.shared.declaration import Declaration, limitations
from bardo.dialects.shared.json_values import JsonObject, input_of
from bardo.dialects.shared.losses import Losses
from bardo.dialects.shared.media import as_text, data_of, file_name
from bardo.dialects.shared.tools import no_arguments
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
from bardo.values.request import HistoryFacts, Message, OutputFormat, Request, Tool

ENCRYPTED = "reasoning.encrypted_content"
# OpenAI's own parameters. A caller who writes this dialect means a server that knows more of it than OpenAI.
_SAMPLING = {"temperature": "temperature", "top_p": "top_p"}
# Fields that rest on what the provider stored, or ask it to store: then the caller's silence on `store` stays silence.
_STORED = ("previous_response_id", "conversation", "background", "prompt")

DECLARATION = Declaration(
    dialect=NAME,
    title="Responses",
    # A caller who writes this dialect means a server that knows more of it than OpenAI.
    own=frozenset(f"sampling.{name}" for name in OPENAI_SAMPLING.keys() - _SAMPLING.keys()),
    expresses=frozenset(
        (
            "tools.strict",
            "tool_choice.parallel",
            "output_format.strict",
            "output_format.description",
            "image.detail",
            "document",
            "document.source",
            "document.name",
        )
    ),
    lacks={
        **limitations("Responses gives one answer a call", "choices", sent=1),
        **limitations("Responses has no such field; the text stays", "tool_result.is_error"),
    },
)


def gives_refused_thinking(request: Request, row: ProviderRow, facts: HistoryFacts) -> bool:
    """Whether a client's own body gives back reasoning that leads to nothing, or another model's, which has no state here.

    OpenAI refuses either item, or its id.
    """
    if ReasoningBlock not in facts.parts:
        return False
    for block in [message.blocks[-1] for message in request.messages if message.blocks]:
        own = type(block) is ReasoningBlock and "format" not in fields_for(NAME, block.carried)
        if own and any(opaque.kind == "encrypted" for opaque in block.opaque):  # type: ignore[union-attr]
            return True
    if row.quirks.replay != "none" or row.generic:
        return False
    return not all(block.opaque for block in facts.blocks if type(block) is ReasoningBlock)


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> JsonObject:
    """Return the body for one provider."""
    own = request.dialect == NAME
    instructions, items = _input(request, row, losses)
    body: JsonObject = {"model": request.model, "input": items}
    if instructions:
        body["instructions"] = instructions
    fields: JsonObject = {}
    tools = [written for tool in request.tools if (written := _tool(tool, request.dialect, losses)) is not None]
    if tools:
        fields["tools"] = tools
    choice = request.tool_choice
    if choice is not None and (tools or choice.mode != "auto"):
        fields["tool_choice"] = {"type": "function", "name": choice.name} if choice.mode == "named" else choice.mode
    if choice is not None and choice.parallel is not None:
        fields["parallel_tool_calls"] = choice.parallel
    body |= fields
    if request.max_output_tokens is not None:
        body["max_output_tokens"] = request.max_output_tokens
    body |= encode_sampling(request.sampling, OPENAI_SAMPLING if own else _SAMPLING)
    text = dict(request.extra.get("text") or {}) if request.dialect == NAME else {}
    if request.output_format is not None:
        text["format"] = _format(request.output_format)
    body |= {"text": text} if text else {}
    if request.stream:
        body["stream"] = True
    body |= {name: value for name, value in losses.own_extra(request).items() if name != "text"}
    body = merge_fields(body, encode_control(request, losses))
    _add_storage(
        body, thinks=request.control is None or request.control.thinks is not False, kept=request.kept_as is not None
    )
    return body


def _tool(tool: Tool, asked_in: str, losses: Losses) -> JsonObject | None:
    own = fields_for(NAME, tool.carried)
    if tool.hosted:
        if not own:
            losses.lose_tool(tool)
        return own or None
    written: JsonObject = {
        "type": "function",
        "name": tool.name,
        "parameters": {"type": "object", **no_arguments(tool)} if tool.schema is None else tool.schema,
    }
    if tool.description:
        written["description"] = tool.description
    # Left out, strict would be on here, and off in the other dialects.
    if tool.strict is not None or asked_in != NAME:
        written["strict"] = bool(tool.strict)
    return {**written, **own}


def _format(output_format: OutputFormat) -> JsonObject:
    if output_format.mode == "json_object":
        return {"type": "json_object"}
    written = {"type": "json_schema", "name": output_format.name or "answer", "schema": output_format.schema}
    if output_format.strict is not None:
        written["strict"] = output_format.strict
    if output_format.description:
        written["description"] = output_format.description
    return written


def encode_control(request: Request, losses: Losses) -> JsonObject:
    """Return the fields for thinking: the control, and the caller's own words beside it."""
    if request.control is None:
        return {}
    written, left = with_own_words(request.control.fields, request, NAME)
    for path, value in left.items():
        losses.lose(path, value, "it goes with words that are not sent to this provider")
    return written


def _add_storage(body: JsonObject, *, thinks: bool, kept: bool) -> None:
    """Ask for nothing to be stored and for thinking as ciphertext; the latter not of a model that never thinks, which OpenAI refuses.

    Of a reply that the gateway keeps, the ciphertext is needed whatever else its client asked to be included.
    """
    if "store" not in body and not any(body.get(name) for name in _STORED):
        body["store"] = False
    if thinks and "include" not in body and body.get("store") is False:
        body["include"] = [ENCRYPTED]
    elif thinks and kept and ENCRYPTED not in (included := body.get("include") or []):
        body["include"] = [*included, ENCRYPTED]


def _input(request: Request, row: ProviderRow, losses: Losses) -> tuple[str, list[JsonObject]]:
    """Return the instructions and the input items. Leading system messages are instructions, unless they came as items.

    Where there is nothing else, the last one is an item: instructions without input are refused. Those with a marker are items too.
    """
    leading = 0
    while leading < len(request.messages) and _is_instruction(request.messages[leading], losses):
        leading += 1
    if 0 < leading == len(request.messages) and request.dialect != NAME:
        leading -= 1
    instructions = [message.paragraphs for message in request.messages[:leading]]
    writer = _ItemWriter(request, row, losses)
    for message in request.messages[leading:]:
        writer.write(message)
    return "\n\n".join(instructions), writer.items


def _is_instruction(message: Message, losses: Losses) -> bool:
    plain = all(
        isinstance(block, TextBlock) and (losses.rule is None or not losses.has_own_fields(block.carried))
        for block in message.blocks
    )
    return message.role == "system" and plain and "role" not in fields_for(NAME, message.carried)


class _ItemWriter:
    """Writes messages as input items, one after the other."""

    def __init__(self, request: Request, row: ProviderRow, losses: Losses) -> None:
        self.items: list[JsonObject] = []
        self._own = request.dialect == NAME
        self._row = row
        self._losses = losses

    def write(self, message: Message) -> None:
        """Write one message."""
        if message.role == "assistant":
            self._turn(message)
        else:
            self._prompt(message)

    def _prompt(self, message: Message) -> None:
        parts: list[JsonObject] = []
        for block in message.blocks:
            if isinstance(block, ToolResultBlock):
                self._content(message, parts)
                parts = []
                self._result(block)
            elif (part := self._part(block)) is not None:
                parts.append(part)
        self._content(message, parts)

    def _content(self, message: Message, parts: list[JsonObject]) -> None:
        own = fields_for(NAME, message.carried)
        if not parts and not message.blocks:
            for name, value in own.items():
                self._losses.lose(name, value, "a message without content is not sent")
        if parts:
            content = parts[0]["text"] if len(parts) == 1 and parts[0].keys() == _PLAIN else parts
            self.items.append({"type": "message", "role": message.role, "content": content, **own})

    def _part(self, block: Block) -> JsonObject | None:
        if isinstance(block, (TextBlock, RefusalBlock)):
            if isinstance(block, TextBlock) and block.opaque:
                self._lose_states(block.opaque)
            return {"type": "input_text", "text": block.text, **self._losses.own_fields(block.carried)}
        if isinstance(block, ImageBlock):
            url = block.url or f"data:{block.media_type};base64,{block.data}"
            detail = {"detail": block.detail} if block.detail else {}
            return {"type": "input_image", "image_url": url, **detail, **self._losses.own_fields(block.carried)}
        if isinstance(block, DocumentBlock):
            return self._document(block)
        if isinstance(block, UnknownBlock):
            return block.value if block.dialect == NAME and isinstance(block.value, dict) else None
        self._losses.lose_each("content", type(block).__name__, "only the model's own turns hold this")
        return None

    def _document(self, block: DocumentBlock) -> JsonObject:
        fields = fields_for(NAME, block.carried)
        text = "" if self._own else as_text(block)
        if text:
            why = "Responses takes PDF as a file; a document that is text goes as text"
            self._losses.lose("document.form", "document", why, sent="text")
            return {"type": "input_text", "text": text, **fields}
        media_type, data = data_of(block)
        if not data:
            name = {"filename": block.name} if block.name else {}
            return {"type": "input_file", "file_url": block.url, **name, **fields}
        content = f"data:{media_type};base64,{data}"
        return {"type": "input_file", "filename": file_name(block), "file_data": content, **fields}

    def _result(self, block: ToolResultBlock) -> None:
        parts = [part for inner in block.content if (part := self._part(inner)) is not None]
        output = block.text if not parts or (len(parts) == 1 and parts[0].keys() == _PLAIN) else parts
        own = fields_for(NAME, block.carried)
        if not self._own and output and block.carried is not None and (marks := self._losses.own_fields(block.carried)):
            output = _marked(output, marks)
        told = {} if own.get("type") == TOOL_SEARCH_OUTPUT else {"output": output}
        self.items.append({"type": "function_call_output", "call_id": block.call_id, **told, **own})

    def _turn(self, message: Message) -> None:
        texts: list[TextBlock | RefusalBlock] = []
        begin = len(self.items)
        for block in message.blocks:
            if type(block) is TextBlock or type(block) is RefusalBlock:
                if texts and _begins_message(block, texts[0]):
                    self._answer(texts)
                    texts = []
                texts.append(block)
                continue
            if texts:
                self._answer(texts)
                texts = []
            self._other(block)
        if texts:
            self._answer(texts)
        while len(self.items) > begin and _is_openai_reasoning(self.items[-1]):
            # OpenAI refuses reasoning without the item that follows.
            self.items.pop()
            self._lose_reasoning(FORMAT, "reasoning is refused without the item it led to")

    def _other(self, block: Block) -> None:
        if isinstance(block, ReasoningBlock):
            self._reasoning(block)
        elif isinstance(block, ToolCallBlock):
            self._call(block)
        elif isinstance(block, ToolResultBlock):
            self._result(block)
        elif not isinstance(block, UnknownBlock):
            self._losses.lose_each("content", type(block).__name__, f"{NAME} has no such content in an answer")
        elif block.dialect == NAME and isinstance(block.value, dict):
            self.items.append(block.value)

    def _answer(self, blocks: Sequence[TextBlock | RefusalBlock]) -> None:
        parts = [part for block in blocks if (part := self._answer_part(block)) is not None]
        if not parts:
            return
        meta = fields_for(NAME, blocks[0].carried).get("item") or {}
        plain = not meta and len(parts) == 1 and parts[0]["type"] == "output_text" and not parts[0]["annotations"]
        content = parts[0]["text"] if plain else parts
        self.items.append({"type": "message", "role": "assistant", "content": content, **meta})

    def _answer_part(self, block: TextBlock | RefusalBlock) -> JsonObject | None:
        own = {name: value for name, value in fields_for(NAME, block.carried).items() if name != "item"}
        if isinstance(block, RefusalBlock):
            return {"type": "refusal", "refusal": block.text, **own}
        self._lose_states(block.opaque)
        if not block.text and block.carried is None:
            return None
        return {"type": "output_text", "text": block.text, "annotations": [], **own}

    def _call(self, block: ToolCallBlock) -> None:
        self._lose_states(block.opaque)
        call_id, name, arguments = block.id, block.name, argument_text(block.arguments)
        own = fields_for(NAME, block.carried)
        match own.get("type"):
            case "custom_tool_call":
                self.items.append(
                    {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": only_text(arguments), **own}
                )
            case "tool_search_call":
                self.items.append(
                    {"type": "tool_search_call", "call_id": call_id, "arguments": input_of(arguments), **own}
                )
            case _:
                call = {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
                self.items.append({**call, **own})

    def _reasoning(self, block: ReasoningBlock) -> None:
        own = {name: value for name, value in fields_for(NAME, block.carried).items() if name != "status"}
        fields = own if "format" in own else {"format": self._row.quirks.reasoning_format}
        native: dict[str, str] = {}
        foreign: list[Opaque] = []
        for opaque in block.opaque:
            if is_native(opaque, fields):
                native[opaque.kind] = opaque.data
            else:
                foreign.append(opaque)
        shown = bool(block.text) and self._replays_text(native)
        if foreign or not ("encrypted" in native or shown or (self._own and native)):
            form = foreign[0].format if foreign else block.format
            self._lose_reasoning(form, "this provider takes back only reasoning of its own")
            return
        self._losses.lose_fields(block.carried)
        item: JsonObject = {"type": "reasoning", **({"id": native["id"]} if "id" in native else {})}
        item["summary"] = [{"type": "summary_text", "text": text} for text in block.summary]
        if shown:
            item["content"] = [{"type": "reasoning_text", "text": block.text}]
        if "encrypted" in native:
            item["encrypted_content"] = native["encrypted"]
        for name in ("summary", "content"):
            beside = own.pop(name, None)
            if beside and len(pieces := item.get(name, ())) == len(beside):
                item[name] = [{**piece, **fields} for piece, fields in zip(pieces, beside, strict=True)]
            elif beside:
                self._losses.lose(name, beside, "the pieces that they belong to are not sent one by one")
        self.items.append({**item, **own})

    def _lose_states(self, states: tuple[Opaque, ...]) -> None:
        for opaque in states:
            self._lose_reasoning(opaque.format, "this provider cannot read opaque state of that format")

    def _lose_reasoning(self, form: str, why: str) -> None:
        """Report reasoning that was left out, once for each format."""
        self._losses.lose_each("reasoning", form, why)

    def _replays_text(self, native: dict[str, str]) -> bool:
        # OpenAI refuses plain text beside its ciphertext; servers that have no ciphertext need the text.
        return "encrypted" not in native and (self._row.quirks.replay != "none" or (self._own and "id" in native))


def _marked(content: str | list[JsonObject], marks: JsonObject) -> list[JsonObject]:
    """Return the content of an item with the fields of a marker in its last part."""
    *parts, last = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
    return [*parts, {**last, **marks}]


def _begins_message(block: TextBlock | RefusalBlock, first: TextBlock | RefusalBlock) -> bool:
    item = fields_for(NAME, block.carried).get("item")
    held = fields_for(NAME, first.carried).get("item") or {}
    return item is not None and (item.get("id") is None or item.get("id") != held.get("id"))


def _is_openai_reasoning(item: JsonObject) -> bool:
    return item.get("type") == "reasoning" and "encrypted_content" in item and "format" not in item


_PLAIN = {"type", "text"}
"""The fields of a part that is nothing but text: alone it is written as one."""
