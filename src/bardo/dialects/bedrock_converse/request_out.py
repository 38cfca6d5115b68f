"""A Request for Bedrock's Converse.

Messages for Converse: system text on top, turns that alternate, tool results first.

Documents for Converse, which names them all and takes a few formats.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import Any

from bardo.catalog.dialect_models import dialect_models
from bardo.catalog.fragments import merge_fields
from bardo.catalog.rows import ProviderRow
from bardo.dialects.anthropic_messages.request_out import control_fields, with_thinking
from bardo.dialects.bedrock_converse.reply_out import text_block
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
    cache_point,
    unknown_fields,
    with_cache_points,
)
from bardo.dialects.shared.control_fields import encode_sampling
from bardo.dialects.shared.declaration import Declaration, limitations
from bardo.dialects.shared.json_values import INVALID_JSON, input_of, is_object, write_json
from bardo.dialects.shared.losses import Losses, fold_without_loss
from bardo.dialects.shared.media import data_of, ending_of, type_by_name
from bardo.dialects.shared.spellings import path_segment
from bardo.dialects.shared.turns import WrittenTurns, answers_without_thinking
from bardo.values.blocks import (
    Block,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    RefusalBlock,
    ResultPart,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
    fields_for,
    has_no_arguments,
)
from bardo.values.histories import Messages, parts_of
from bardo.values.request import Message, OutputFormat, Request, Tool, ToolChoice

WireDocuments = dict[str, Any]
_DOCUMENT_FORMATS = ("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md")
# "alphanumeric characters, whitespace characters (no more than one in a row), hyphens, parentheses, square brackets"
# (DocumentBlock in the API reference of Bedrock, 2026-11).
_NO_NAME = re.compile(r"[^0-9A-Za-z ()\[\]-]|(?<= ) ")
_LONGEST_NAME = 200


class DocumentWriter:
    """Writes the documents of one request, each under a name of its own. `own`: the request came in Converse."""

    def __init__(self, *, own: bool) -> None:
        self._own = own
        self._names: set[str] = set()

    def write(self, block: DocumentBlock, losses: Losses) -> list[WireDocuments]:
        """Return the block, or nothing where Converse does not take the document, which is reported."""
        media_type, data = data_of(block)
        in_bucket = block.url.startswith("s3://")
        form = ending_of(media_type or type_by_name(block.url))
        if not data and not in_bucket:
            losses.lose("document", block.url, "Converse takes documents as bytes or from S3, not by their address")
            return []
        if form not in _DOCUMENT_FORMATS:
            losses.lose("document", media_type, f"Converse takes {', '.join(_DOCUMENT_FORMATS)}")
            return []
        source = {"bytes": data} if data else {"s3Location": {"uri": block.url}}
        if block.text and self._own:
            source = {"text": block.text}
        document = {"format": form, "name": self._name(block, losses), "source": source}
        return [merge_fields({"document": document}, fields_for(NAME, block.carried))]

    def _name(self, block: DocumentBlock, losses: Losses) -> str:
        name = _NO_NAME.sub("-", block.name).strip()[:_LONGEST_NAME] or "document"
        stem, number = name, 2
        while name in self._names:
            name, number = f"{stem} {number}", number + 1
        self._names.add(name)
        if block.name and name != block.name:
            why = "Converse takes letters, digits, spaces and ()[]- in a name, and each name once"
            losses.lose("document.name", block.name, why, sent=name, key=name)
        return name


Wire = dict[str, Any]
# What is found of a conversation once.
_WRITTEN = "bedrock_converse.written"
_NO_ID = re.compile(r"[^a-zA-Z0-9_.:-]")
_LONGEST_ID = 64
_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)
_FORMATS = {"image/png": "png", "image/jpeg": "jpeg", "image/jpg": "jpeg", "image/gif": "gif", "image/webp": "webp"}


class MessageWriter:
    """Writes the messages of one request: of earlier reasoning, what the model takes back.

    `needs_signatures`: it takes what it signed. `takes_unsigned`: it takes reasoning without a signature.
    """

    def __init__(self, losses: Losses, *, own: bool, needs_signatures: bool, takes_unsigned: bool) -> None:
        self._losses = losses
        self._own = own
        self._documents = DocumentWriter(own=own)
        self._needs_signatures = needs_signatures
        self._takes_unsigned = takes_unsigned or (own and not needs_signatures)

    def write(self, request: Request) -> tuple[list[Wire], list[Wire]]:
        """Return the `system` blocks and the `messages`."""
        leading = 0
        while leading < len(request.messages) and request.messages[leading].role == "system":
            leading += 1
        system = [wire for message in request.messages[:leading] for wire in self._system(message)]
        return system, self._turns(request.messages[leading:])

    def _turns(self, messages: Messages) -> list[Wire]:
        """Return the messages. Those that came before are shared: they must not be changed."""
        begin = WrittenTurns([], [])
        if DocumentBlock in parts_of(messages):
            # The name of a document depends on those of all others.
            return self._extended(begin, messages, 0).sent
        form = (self._own, self._needs_signatures, self._takes_unsigned, self._losses.dialect, self._losses.markers)
        return fold_without_loss(messages, _WRITTEN, form, self._losses, begin, self._extended).sent

    def _extended(self, found: WrittenTurns, messages: Messages, place: int) -> WrittenTurns:
        new: list[Wire] = []
        for message in messages[place:]:
            turn = self._turn(message)
            if turn["content"] and all(FIELD in block for block in turn["content"]):
                self._losses.lose("reasoning", "a turn", "Bedrock refuses a turn that is thinking alone", key="turn")
                continue
            new.append(turn)
        return found.extended(new, _as_sent)

    def _system(self, message: Message) -> list[Wire]:
        written = with_cache_points(wire for block in message.blocks for wire in self._block(block))
        kept = [wire for wire in written if wire.keys() & {"text", "cachePoint", "guardContent"}]
        for wire in written:
            if wire not in kept:
                self._losses.lose_each("system", next(iter(wire), ""), "Converse's system prompt is text")
        self._mark(kept, dict(self._losses.own_fields(message.carried)))
        return kept

    def _mark(self, content: list[Wire], fields: Wire) -> None:
        """Put a cache point behind a message that is marked as a whole, and take the marker out of its fields."""
        marker = None if self._own else fields.pop(MARKER, None)
        if marker is not None and content:
            content.append(cache_point(marker))
        elif marker is not None:
            self._losses.lose(MARKER, marker, "nothing is left of the message to be marked", key="empty")

    def _turn(self, message: Message) -> Wire:
        fields = dict(self._losses.own_fields(message.carried))
        role: str = message.role
        if role == "system":
            role = "user"
            why = "Converse takes system text only before the conversation"
            self._losses.lose("system", "system", why, sent="user")
        content = with_cache_points(wire for block in message.blocks for wire in self._block(block))
        self._mark(content, fields)
        if (
            not self._own
            and any("document" in wire for wire in content)
            and not any("text" in wire for wire in content)
        ):
            # "A text block is required when a document is included" (DocumentBlock in Bedrock's API reference, 2026-11).
            content.append({"text": "Document."})
            self._losses.lose("document.text", None, "Bedrock wants text beside a document", sent="Document.")
        return {"role": role, "content": content, **fields}

    def _block(self, block: Block) -> list[Wire]:
        if isinstance(block, ReasoningBlock):
            return self._thinking(block)
        if isinstance(block, ToolCallBlock):
            return [self._call(block)]
        if isinstance(block, ToolResultBlock):
            return [self._result(block)]
        return self._plain(block)

    def _plain(self, block: RefusalBlock | ResultPart) -> list[Wire]:
        if isinstance(block, UnknownBlock):
            return self._unknown(block)
        if isinstance(block, ImageBlock):
            return self._image(block)
        if isinstance(block, DocumentBlock):
            return self._documents.write(block, self._losses)
        if isinstance(block, TextBlock):
            self._losses.lose_states(block.opaque)
        fields = self._losses.own_fields(block.carried)
        if not block.text.strip() and "citations" not in fields:
            # Bedrock refuses text without a word in it.
            if MARKER in fields and not self._own:
                self._losses.lose(MARKER, fields[MARKER], "nothing is left of the block to be marked", key="empty")
            if block.text:
                self._losses.lose("history.empty_text", block.text, "text of nothing but space is not accepted")
            return []
        return [text_block(block.text, fields)]

    def _unknown(self, block: UnknownBlock) -> list[Wire]:
        if block.dialect == NAME and isinstance(block.value, dict):
            return [block.value]
        return []

    def _image(self, block: ImageBlock) -> list[Wire]:
        inline = _DATA_URL.fullmatch(block.url)
        media_type, data = (inline[1], inline[2]) if inline else (block.media_type, block.data)
        fields = self._losses.own_fields(block.carried)
        if not data:
            if block.url.startswith("s3://"):
                suffix = block.url.rpartition(".")[2].lower().replace("jpg", "jpeg")
                form = suffix if suffix in _FORMATS.values() else "png"
                return [merge_fields({"image": {"format": form, "source": {"s3Location": {"uri": block.url}}}}, fields)]
            self._losses.lose("image", block.url, "Converse takes pictures as bytes or from S3, not by their address")
            return []
        if media_type.lower() not in _FORMATS:
            self._losses.lose("image", media_type, "Converse takes png, jpeg, gif and webp")
            return []
        return [merge_fields({"image": {"format": _FORMATS[media_type.lower()], "source": {"bytes": data}}}, fields)]

    def _thinking(self, block: ReasoningBlock) -> list[Wire]:
        own = [state for state in block.opaque if state.format == FORMAT and state.kind != "id"]
        if own and not self._needs_signatures and any(state.kind == "signature" for state in own):
            self._losses.lose_reasoning(FORMAT, "thinking that Claude signed is not for another model")
            return []
        if not own:
            return self._unsigned_thinking(block)
        self._losses.lose_states(block.opaque)
        self._losses.lose_fields(block.carried)
        fields = self._losses.own_fields(block.carried)
        signed = SIGNED_BLOCKS.sign(own)
        if signed.only_behind:
            return list(signed.behind)
        return [merge_fields(SIGNED_BLOCKS.thinking(block.text, signed.signature), fields), *signed.behind]

    def _unsigned_thinking(self, block: ReasoningBlock) -> list[Wire]:
        if block.opaque or not self._takes_unsigned or not block.text.strip():
            self._losses.lose_reasoning(block.opaque[0].format if block.opaque else "")
            return []
        self._losses.lose_fields(block.carried)
        return [merge_fields(SIGNED_BLOCKS.thinking(block.text, ""), self._losses.own_fields(block.carried))]

    def _call(self, block: ToolCallBlock) -> Wire:
        self._losses.lose_states(block.opaque)
        if not has_no_arguments(block.arguments) and not is_object(block.arguments):
            sent = {INVALID_JSON: block.arguments}
            self._losses.lose("tool arguments", block.arguments, "input must be a JSON object", sent=sent)
        use = {"toolUseId": self._id(block.id), "name": block.name, "input": input_of(block.arguments)}
        return merge_fields({"toolUse": use}, self._losses.own_fields(block.carried))

    def _result(self, block: ToolResultBlock) -> Wire:
        content = [wire for part in block.content for wire in self._result_part(part)]
        # A cache point stands behind the whole result.
        marks = [wire.pop(MARKER) for wire in content if not self._own and MARKER in wire]
        result: Wire = {"toolUseId": self._id(block.call_id), "content": content}
        if block.is_error:
            result["status"] = "error"
        marked = {MARKER: marks[-1]} if marks else {}
        return merge_fields({"toolResult": result, **marked}, self._losses.own_fields(block.carried))

    def _result_part(self, part: ResultPart) -> list[Wire]:
        fields = part.carried.fields if isinstance(part, TextBlock) and part.carried else {}
        if isinstance(part, TextBlock) and part.carried and part.carried.dialect == NAME and "json" in fields:
            return [fields]
        return self._plain(part)

    def _id(self, call_id: str) -> str:
        sent = tool_id(call_id)
        if sent != call_id:
            why = f"Converse takes letters, digits and _.:- up to {_LONGEST_ID}"
            self._losses.lose("tool call id", call_id, why, sent=sent, key=call_id)
        return sent


def tool_id(call_id: str) -> str:
    """Return a call's id in the letters Converse takes; the same id always becomes the same."""
    if call_id and len(call_id) <= _LONGEST_ID and not _NO_ID.search(call_id):
        return call_id
    mark = f"_{zlib.crc32(call_id.encode('utf-8', 'replace')):08x}"
    return _NO_ID.sub("_", call_id)[: _LONGEST_ID - len(mark)] + mark


def named_tools(turns: list[Wire]) -> list[str]:
    """Return the names of the tools whose calls stand in the messages, each once."""
    uses = (block["toolUse"] for turn in turns for block in turn["content"] if isinstance(block.get("toolUse"), dict))
    return list(dict.fromkeys(str(use.get("name")) for use in uses if use.get("type", "tool_use") == "tool_use"))


def lacks_thinking(turns: Sequence[Wire]) -> bool:
    """Whether the tools that are being answered were called in a turn that does not begin with thinking."""
    return answers_without_thinking(
        turns, is_result=lambda block: "toolResult" in block, is_thinking=lambda block: FIELD in block
    )


def _as_sent(turn: Wire) -> Wire:
    return {**turn, "content": _results_first(turn)}


def _results_first(turn: Wire) -> list[Wire]:
    if turn["role"] != "user":
        return list(turn["content"])
    return sorted(turn["content"], key=lambda block: "toolResult" not in block)


_CHOICES = {"auto": "auto", "required": "any"}

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
        **limitations(
            "Converse has no such parameter",
            "sampling.min_p",
            "sampling.repetition_penalty",
            "sampling.frequency_penalty",
            "sampling.presence_penalty",
            "sampling.seed",
        ),
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


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> dict[str, Any]:
    """Return the body for the request's model."""
    takes = dialect_models(NAME, request.model).earlier_reasoning
    writer = MessageWriter(
        losses, own=request.dialect == NAME, needs_signatures=takes == "signed", takes_unsigned=takes == "unsigned"
    )
    system, turns = writer.write(request)
    body = {
        **losses.own_extra(request),
        "messages": turns,
        "system": system,
        "toolConfig": _tool_config(request, turns, losses),
    }
    sampling = {"inferenceConfig": _inference_config(request), ADDITIONAL: _top_k(request)}
    body = merge_fields(merge_fields(body, sampling), {"outputConfig": _output_format(request.output_format, losses)})
    body = merge_fields(body, encode_control(request, losses, lacks_thinking=lacks_thinking(turns)))
    return {name: value for name, value in body.items() if value or name == "messages"}


def encode_control(request: Request, losses: Losses, *, lacks_thinking: bool = False) -> dict[str, Any]:
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


def _own_words(request: Request) -> dict[str, Any]:
    """Return what the caller said of thinking beside modes, levels and budgets; words of another dialect are lost."""
    policy = request.reasoning
    if policy is None or request.dialect != NAME:
        return {}
    return unknown_fields(policy.raw_fields.get(ADDITIONAL, {}), AMOUNTS)


def _inference_config(request: Request) -> dict[str, Any]:
    limit = {} if request.max_output_tokens is None else {"maxTokens": request.max_output_tokens}
    return {**limit, **encode_sampling(request.sampling, SAMPLING)}


def _top_k(request: Request) -> dict[str, Any]:
    top_k = request.sampling.top_k
    return {"top_k": top_k} if top_k is not None and request.dialect == NAME else {}


def _tool_config(request: Request, turns: list[dict[str, Any]], losses: Losses) -> dict[str, Any]:
    tools = with_cache_points(wire for tool in request.tools if (wire := _tool(tool, losses)) is not None)
    called = named_tools(turns)
    choice = request.tool_choice
    if choice is not None and choice.mode == "none":
        if not called:
            return {}
        losses.lose("tool_choice", "none", "Converse needs tools where calls stand in the conversation", sent="auto")
    if not any("toolSpec" in tool or "systemTool" in tool for tool in tools):
        if not called:
            _lose_choice(choice, losses)
            return {}
        why = "Converse needs the tools whose calls stand in the conversation"
        losses.lose("tools", None, why, sent=called)
        tools = [{"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}}} for name in called]
    return {"tools": tools, **_tool_choice(choice)}


def _tool(tool: Tool, losses: Losses) -> dict[str, Any] | None:
    if tool.hosted:
        if tool.carried is not None and tool.carried.dialect == NAME:
            return tool.carried.fields
        losses.lose_tool(tool)
        return None
    spec: dict[str, Any] = {"name": tool.name}
    if tool.description:
        spec["description"] = tool.description
    spec["inputSchema"] = {"json": {"type": "object", **(tool.schema or {"properties": {}})}}
    if tool.strict is not None:
        spec["strict"] = tool.strict
    return merge_fields({"toolSpec": spec}, losses.own_fields(tool.carried))


def _tool_choice(choice: ToolChoice | None) -> dict[str, Any]:
    if choice is None:
        return {}
    if choice.mode == "none":
        return {}
    output_format = "tool" if choice.mode == "named" else _CHOICES[choice.mode]
    return {"toolChoice": {output_format: {"name": choice.name} if output_format == "tool" else {}}}


def _lose_choice(choice: ToolChoice | None, losses: Losses) -> None:
    if choice is not None and choice.mode in ("required", "named"):
        losses.lose("tool_choice", choice.name or choice.mode, "no tool is left to choose")


def _output_format(output_format: OutputFormat | None, losses: Losses) -> dict[str, Any]:
    if output_format is None:
        return {}
    if output_format.mode == "json_object":
        losses.lose("response_format", "json_object", "Converse needs a schema to promise JSON")
        return {}
    schema: dict[str, Any] = {"schema": write_json(output_format.schema).decode()}
    if output_format.name:
        schema["name"] = output_format.name
    if output_format.description:
        schema["description"] = output_format.description
    return {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}
