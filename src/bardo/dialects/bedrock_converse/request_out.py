"""A Request for Bedrock's Converse: system text on top, turns that alternate, results of tools first."""

from __future__ import annotations

import re
import zlib
from typing import Any

import msgspec

from bardo.catalog.endpoint_choice import dialect_models
from bardo.catalog.fragments import merge_fields
from bardo.catalog.rows import ProviderRow
from bardo.dialects.anthropic_messages.request_out import control_fields, with_thinking
from bardo.dialects.bedrock_converse.wire import (
    ADDITIONAL,
    AMOUNTS,
    FIELD,
    FORMAT,
    MARKER,
    NAME,
    SAMPLING,
    SIGNED_BLOCKS,
    TITLE,
    text_block,
    unknown_fields,
)
from bardo.dialects.bedrock_converse.wire import Block as WireBlock
from bardo.dialects.shared.control_fields import encode_sampling
from bardo.dialects.shared.declaration import Declaration, limitations, sampling_fields
from bardo.dialects.shared.json_values import INVALID_JSON, JsonObject, is_object, without, write_json
from bardo.dialects.shared.losses import Losses
from bardo.dialects.shared.media import data_of, ending_of, type_by_name
from bardo.dialects.shared.spellings import path_segment
from bardo.dialects.shared.structs import names_of
from bardo.dialects.shared.tools import no_arguments
from bardo.dialects.shared.turns import answers_without_thinking
from bardo.values.blocks import (
    Block,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
    fields_for,
    has_no_arguments,
)
from bardo.values.request import Message, OutputFormat, Request, Tool, ToolChoice

DECLARATION = Declaration(
    dialect=NAME,
    title=TITLE,
    needs_turn=True,
    own_format=FORMAT,
    reasoning_why="only thinking that Bedrock signed may be sent back to it",
    own=frozenset({"sampling.top_k"}),
    expresses=frozenset(
        (
            "tools.strict",
            "output_format.description",
            "document",
            "document.source",
            "document.name",
            "tool_result.is_error",
        )
    ),
    lacks={
        **limitations("Converse answers once", "choices", sent=1),
        **limitations("Converse has no such parameter", *sampling_fields((*SAMPLING, "top_k"), others=True)),
        **limitations("Converse has no such field", "tool_choice.parallel", same=(True,)),
        **limitations("Converse has no such field", "image.detail", same=("auto",)),
        **limitations("Converse always holds to the schema", "output_format.strict", same=(True,)),
    },
)


def request_path(request: Request) -> str:
    """Return the path of a call to Converse."""
    return path_of(request, "converse", "converse-stream")


def path_of(request: Request, whole: str, streamed: str) -> str:
    """Return the path: model ids hold colons, and those of inference profiles are ARNs with slashes."""
    return f"model/{path_segment(request.model)}/{streamed if request.stream else whole}"


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> JsonObject:
    """Return the body for the request's model."""
    system, turns = _MessageWriter(request, losses).write(request.messages)
    extra = losses.own_extra(request)
    body = {**extra, "messages": turns, "system": system, "toolConfig": _tool_config(request, turns, losses)}
    limit = {} if request.max_output_tokens is None else {"maxTokens": request.max_output_tokens}
    top_k = {} if request.sampling.top_k is None or request.dialect != NAME else {"top_k": request.sampling.top_k}
    sampling = {"inferenceConfig": {**limit, **encode_sampling(request.sampling, SAMPLING)}, ADDITIONAL: top_k}
    body = merge_fields(merge_fields(body, sampling), {"outputConfig": _output_format(request.output_format, losses)})
    lacks_thinking = answers_without_thinking(
        (turn["role"], FIELD in content[0], any("toolResult" in block for block in content))
        for turn in reversed(turns)
        if (content := turn["content"])
    )
    body = merge_fields(body, encode_control(request, losses, lacks_thinking=lacks_thinking))
    return {
        name: value
        for name, value in body.items()
        if value or name == "messages" or (name in extra and value is not None)
    }


_MEMBERS = names_of(WireBlock)


class _MessageWriter:
    """Writes the messages of one request. `own`: it came in Converse.

    `needs_signatures`: of earlier reasoning the model takes what it signed. `takes_unsigned`: it takes reasoning without a signature.
    """

    def __init__(self, request: Request, losses: Losses) -> None:
        takes = dialect_models(NAME, request.model).earlier_reasoning
        self._losses = losses
        self._own = request.dialect == NAME
        self._needs_signatures = takes == "signed"
        self._takes_unsigned = takes == "unsigned" or (self._own and takes != "signed")
        self._document_names: set[str] = set()

    def write(self, messages: tuple[Message, ...]) -> tuple[list[JsonObject], list[JsonObject]]:
        """Return the `system` blocks and the `messages`, in which turns of one role are joined unless one has fields of its own."""
        system: list[JsonObject] = []
        turns: list[JsonObject] = []
        leading = True
        for message in messages:
            leading = leading and message.role == "system"
            if leading:
                system += self._system(message)
                continue
            turn = self._turn(message)
            content, plain = turn["content"], len(turn) == 2
            if content and all(FIELD in block for block in content):
                self._losses.lose("reasoning", "a turn", "Bedrock refuses a turn that is thinking alone", key="turn")
            elif plain and turns and len(turns[-1]) == 2 and turns[-1]["role"] == turn["role"]:
                turns[-1]["content"] += content
            elif content or not plain:
                turns.append(turn)
        for turn in turns:
            if turn["role"] == "user":
                turn["content"].sort(key=lambda block: "toolResult" not in block)
        return system, turns

    def _system(self, message: Message) -> list[JsonObject]:
        content: list[JsonObject] = []
        for block in self._content(message.blocks):
            # What no block has is of a kind that is new.
            if block.keys() & {"text", "cachePoint", "guardContent"} or _MEMBERS.isdisjoint(block):
                content.append(block)
            else:
                self._losses.lose_each("system", next(iter(block), ""), "Converse's system prompt is text")
        self._mark(content, {**self._losses.own_fields(message.carried)})
        return content

    def _turn(self, message: Message) -> JsonObject:
        losses = self._losses
        fields = {**losses.own_fields(message.carried)}
        if message.role == "system":
            why = "Converse takes system text only before the conversation"
            losses.lose("system", "system", why, sent="user")
        content = self._content(message.blocks)
        self._mark(content, fields)
        if (
            not self._own
            and any("document" in item for item in content)
            and not any("text" in item for item in content)
        ):
            # "A text block is required when a document is included" (DocumentBlock in Bedrock's API reference, 2026-11).
            content.append({"text": "Document."})
            losses.lose("document.text", None, "Bedrock wants text beside a document", sent="Document.")
        return {"role": "user" if message.role == "system" else message.role, "content": content, **fields}

    def _mark(self, content: list[JsonObject], fields: JsonObject) -> None:
        """Put a cache point behind a message that is marked as a whole, and take the marker out of its fields."""
        marker = None if self._own else fields.pop(MARKER, None)
        if marker is not None and content:
            content.append(_cache_point(marker, self._losses))
        elif marker is not None:
            self._losses.lose(MARKER, marker, "nothing is left of the message to be marked", key="empty")

    def _content(self, blocks: tuple[Block, ...]) -> list[JsonObject]:
        """Return the blocks of a message, with a cache point behind each that is marked."""
        return _with_cache_points([wire for block in blocks for wire in self._block(block)], self._losses)

    def _block(self, block: Block) -> list[JsonObject]:
        """Return a block of a message, or of the result of a tool: none if it cannot be written, several for thinking with its state."""
        match block:
            case TextBlock() | RefusalBlock():
                return self._text(block)
            case ToolCallBlock():
                return [self._call(block)]
            case ToolResultBlock():
                return [self._result(block)]
            case ReasoningBlock():
                return self._thinking(block)
            case ImageBlock():
                return self._image(block)
            case DocumentBlock():
                return self._document(block)
            case UnknownBlock():
                return [block.value] if block.dialect == NAME and isinstance(block.value, dict) else []

    def _text(self, block: TextBlock | RefusalBlock) -> list[JsonObject]:
        losses = self._losses
        if isinstance(block, TextBlock):
            losses.lose_states(block.opaque)
        fields = losses.own_fields(block.carried)
        if block.text.strip() or "citations" in fields:
            return [text_block(block.text, fields)]
        # Bedrock refuses text without a word in it.
        if MARKER in fields and not self._own:
            losses.lose(MARKER, fields[MARKER], "nothing is left of the block to be marked", key="empty")
        if block.text:
            losses.lose("history.empty_text", block.text, "text of nothing but space is not accepted")
        return []

    def _call(self, block: ToolCallBlock) -> JsonObject:
        self._losses.lose_states(block.opaque)
        arguments: Any = {}
        if is_object(block.arguments):
            arguments = msgspec.Raw(block.arguments.encode())
        elif not has_no_arguments(block.arguments):
            arguments = {INVALID_JSON: block.arguments}
            self._losses.lose("tool arguments", block.arguments, "input must be a JSON object", sent=arguments)
        use = {"toolUseId": self._id(block.id), "name": block.name, "input": arguments}
        return merge_fields({"toolUse": use}, self._losses.own_fields(block.carried))

    def _result(self, block: ToolResultBlock) -> JsonObject:
        content: list[JsonObject] = []
        marked: JsonObject = {}
        for part in block.content:
            own = fields_for(NAME, part.carried) if isinstance(part, TextBlock) else {}
            for wire in [own] if "json" in own else self._block(part):
                if MARKER in wire and not self._own:
                    # A cache point stands behind the whole result.
                    marked = {MARKER: wire[MARKER]}
                    content.append({name: value for name, value in wire.items() if name != MARKER})
                else:
                    content.append(wire)
        result: JsonObject = {"toolUseId": self._id(block.call_id), "content": content}
        if block.is_error:
            result["status"] = "error"
        return merge_fields({"toolResult": result, **marked}, self._losses.own_fields(block.carried))

    def _id(self, call_id: str) -> str:
        """Return a call's id in the letters Converse takes; the same id always becomes the same."""
        if call_id and len(call_id) <= _LONGEST_ID and not _NO_ID.search(call_id):
            return call_id
        mark = f"_{zlib.crc32(call_id.encode('utf-8', 'replace')):08x}"
        sent = _NO_ID.sub("_", call_id)[: _LONGEST_ID - len(mark)] + mark
        why = f"Converse takes letters, digits and _.:- up to {_LONGEST_ID}"
        self._losses.lose("tool call id", call_id, why, sent=sent, key=call_id)
        return sent

    def _thinking(self, block: ReasoningBlock) -> list[JsonObject]:
        losses = self._losses
        own = [*filter(SIGNED_BLOCKS.is_own, block.opaque)]
        if own and not self._needs_signatures and any(state.kind == "signature" for state in own):
            losses.lose_reasoning(FORMAT, "thinking that Claude signed is not for another model")
            return []
        if not own and (block.opaque or not self._takes_unsigned or not block.text.strip()):
            losses.lose_reasoning(block.opaque[0].format if block.opaque else "")
            return []
        losses.lose_states(block.opaque)
        losses.lose_fields(block.carried)
        fields = losses.own_fields(block.carried)
        signed = SIGNED_BLOCKS.sign(own)
        written = [*signed.behind]
        if not signed.only_behind:
            written.insert(0, SIGNED_BLOCKS.thinking(block.text, signed.signature))
        return [merge_fields(written[0], fields), *written[1:]]

    def _image(self, block: ImageBlock) -> list[JsonObject]:
        inline = _DATA_URL.fullmatch(block.url)
        media_type, data = (inline[1], inline[2]) if inline else (block.media_type, block.data)
        fields = self._losses.own_fields(block.carried)
        form = _IMAGE_FORMATS.get(media_type.lower())
        if data and form is not None:
            source: JsonObject = {"bytes": data}
        elif data:
            self._losses.lose("image", media_type, "Converse takes png, jpeg, gif and webp")
            return []
        elif block.url.startswith("s3://"):
            suffix = block.url.rpartition(".")[2].lower().replace("jpg", "jpeg")
            form = suffix if suffix in _IMAGE_FORMATS.values() else "png"
            source = {"s3Location": {"uri": block.url}}
        else:
            self._losses.lose("image", block.url, "Converse takes pictures as bytes or from S3, not by their address")
            return []
        return [merge_fields({"image": {"format": form, "source": source}}, fields)]

    def _document(self, block: DocumentBlock) -> list[JsonObject]:
        media_type, data = data_of(block)
        in_bucket = block.url.startswith("s3://")
        form = ending_of(media_type or type_by_name(block.url))
        if not data and not in_bucket:
            why = "Converse takes documents as bytes or from S3, not by their address"
            self._losses.lose("document", block.url, why)
            return []
        if form not in _DOCUMENT_FORMATS:
            self._losses.lose("document", media_type, f"Converse takes {', '.join(_DOCUMENT_FORMATS)}")
            return []
        source: JsonObject = {"bytes": data} if data else {"s3Location": {"uri": block.url}}
        if block.text and self._own:
            source = {"text": block.text}
        document = {"format": form, "name": self._document_name(block), "source": source}
        return [merge_fields({"document": document}, fields_for(NAME, block.carried))]

    def _document_name(self, block: DocumentBlock) -> str:
        """Return the name of a document, which no other of the request has."""
        name = _NO_NAME.sub("-", block.name).strip()[:_LONGEST_NAME] or "document"
        stem, number = name, 2
        while name in self._document_names:
            name, number = f"{stem} {number}", number + 1
        self._document_names.add(name)
        if block.name and name != block.name:
            why = "Converse takes letters, digits, spaces and ()[]- in a name, and each name once"
            self._losses.lose("document.name", block.name, why, sent=name, key=name)
        return name


_NO_ID = re.compile(r"[^a-zA-Z0-9_.:-]")
_LONGEST_ID = 64
_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)
_IMAGE_FORMATS = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/jpg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
_DOCUMENT_FORMATS = ("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md")
# "alphanumeric characters, whitespace characters (no more than one in a row), hyphens, parentheses, square brackets"
# (DocumentBlock in the API reference of Bedrock, 2026-11).
_NO_NAME = re.compile(r"[^0-9A-Za-z ()\[\]-]|(?<= ) ")
_LONGEST_NAME = 200


def _with_cache_points(entries: list[JsonObject], losses: Losses) -> list[JsonObject]:
    """Return blocks or tools with a cache point behind each that holds a marker."""
    if not any(MARKER in entry for entry in entries):
        return entries
    entries_written: list[JsonObject] = []
    for entry in entries:
        entries_written.append({name: value for name, value in entry.items() if name != MARKER})
        if MARKER in entry:
            entries_written.append(_cache_point(entry[MARKER], losses))
    return entries_written


def _cache_point(marker: Any, losses: Losses) -> JsonObject:
    """Return a cache point that lives as long as the marker says."""
    fields = marker if isinstance(marker, dict) else {}
    for name, value in without(fields, "type", "ttl").items():
        losses.lose(f"{MARKER}.{name}", value, "Converse has no such field")
    ttl = fields.get("ttl")
    return {"cachePoint": {"type": "default", **({"ttl": ttl} if ttl else {})}}


def encode_control(request: Request, losses: Losses, *, lacks_thinking: bool = False) -> JsonObject:
    """Return the control's fields, and beside them the caller's own words that Converse hands on to the model."""
    fields = control_fields(request)
    told = _own_words(request)
    additional = fields.get(ADDITIONAL, {})
    for name in [name for name in told if name != "thinking"]:
        if isinstance(additional.get(name), dict):
            additional = merge_fields({name: told[name]}, additional)
        else:
            losses.lose(name, told[name], "this model is told how to think in other words")
    additional, degraded = with_thinking(additional, told.get("thinking", {}), lacks_thinking=lacks_thinking)
    losses.add_all(degraded)
    return {**fields, ADDITIONAL: additional} if additional else fields


def _own_words(request: Request) -> JsonObject:
    """Return what the caller said of thinking beside modes, levels and budgets; words of another dialect are lost."""
    policy = request.reasoning
    if policy is None or request.dialect != NAME:
        return {}
    return unknown_fields(policy.raw_fields.get(ADDITIONAL, {}), AMOUNTS)


def _tool_config(request: Request, turns: list[JsonObject], losses: Losses) -> JsonObject:
    """Return the tools and the choice among them; those whose calls stand in the conversation where there is no other."""
    tools = _with_cache_points([wire for tool in request.tools if (wire := _tool(tool, losses)) is not None], losses)
    choice = request.tool_choice
    if choice is not None and choice.mode == "none":
        if not _called_tools(turns):
            return {}
        losses.lose("tool_choice", "none", "Converse needs tools where calls stand in the conversation", sent="auto")
        choice = None
    if not any("toolSpec" in tool or "systemTool" in tool for tool in tools):
        called = _called_tools(turns)
        if not called:
            if choice is not None and choice.mode != "auto":
                losses.lose("tool_choice", choice.name or choice.mode, "no tool is left to choose")
            return {}
        losses.lose("tools", None, "Converse needs the tools whose calls stand in the conversation", sent=called)
        tools = [{"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}}} for name in called]
    return {"tools": tools, **_tool_choice(choice)}


def _called_tools(turns: list[JsonObject]) -> list[str]:
    """Return the names of the tools whose calls stand in the messages, each once."""
    uses = (block["toolUse"] for turn in turns for block in turn["content"] if isinstance(block.get("toolUse"), dict))
    return list(dict.fromkeys(str(use.get("name")) for use in uses if use.get("type", "tool_use") == "tool_use"))


def _tool(tool: Tool, losses: Losses) -> JsonObject | None:
    if tool.hosted:
        if tool.carried is not None and tool.carried.dialect == NAME:
            return tool.carried.fields
        losses.lose_tool(tool)
        return None
    spec: JsonObject = {"name": tool.name}
    if tool.description:
        spec["description"] = tool.description
    spec["inputSchema"] = {"json": {"type": "object", **(tool.schema or no_arguments(tool))}}
    if tool.strict is not None:
        spec["strict"] = tool.strict
    return merge_fields({"toolSpec": spec}, losses.own_fields(tool.carried))


def _tool_choice(choice: ToolChoice | None) -> JsonObject:
    if choice is None:
        return {}
    if choice.mode == "named":
        return {"toolChoice": {"tool": {"name": choice.name}}}
    return {"toolChoice": {"auto" if choice.mode == "auto" else "any": {}}}


def _output_format(output_format: OutputFormat | None, losses: Losses) -> JsonObject:
    if output_format is None:
        return {}
    if output_format.mode == "json_object":
        losses.lose("response_format", "json_object", "Converse needs a schema to promise JSON")
        return {}
    schema: JsonObject = {"schema": write_json(output_format.schema).decode()}
    if output_format.name:
        schema["name"] = output_format.name
    if output_format.description:
        schema["description"] = output_format.description
    return {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}
