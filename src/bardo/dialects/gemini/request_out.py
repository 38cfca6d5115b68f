"""A Request as a generateContent body for one provider.

Messages are written as `contents` and `systemInstruction`; the model and whether to stream stand in the path.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import quote

import msgspec

from bardo.catalog.fragments import merge_fields
from bardo.catalog.models import builtin_models
from bardo.catalog.request_shapes import shape_at
from bardo.catalog.rows import ProviderRow
from bardo.dialects.gemini.parts import Part, call_part, reasoning_parts, text_part
from bardo.dialects.gemini.schemas import declared_parameters, json_schema, untaken_word, with_lone_references
from bardo.dialects.gemini.wire import FORMAT, NAME, RAW_ARGUMENTS, SAMPLING, field_in
from bardo.dialects.shared.control_fields import encode_sampling
from bardo.dialects.shared.declaration import Declaration, limitations, sampling_fields
from bardo.dialects.shared.json_values import NO_SIGNATURE, JsonObject, object_in
from bardo.dialects.shared.losses import Losses
from bardo.dialects.shared.media import data_of, type_by_name
from bardo.values.blocks import (
    Block,
    DocumentBlock,
    ImageBlock,
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    ResultPart,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
    fields_for,
)
from bardo.values.request import Control, Message, OutputFormat, Request, Tool, ToolChoice

_REFERENCE = "$ref"


class ContentWriter:
    """Writes one conversation. `own` says that it came from a Gemini client, `signed` that the model wants its calls signed."""

    def __init__(self, losses: Losses, *, own: bool, signed: bool) -> None:
        self._losses = losses
        self._own = own
        self._signed = signed
        self._calls: dict[str, ToolCallBlock] = {}

    def write(self, messages: tuple[Message, ...]) -> tuple[Part | None, list[Part]]:
        """Return the system instruction, if there is one, and the contents."""
        leading = 0
        while leading < len(messages) and messages[leading].role == "system":
            leading += 1
        system = [part for message in messages[:leading] for block in message.blocks for part in self._block(block)]
        contents: list[Part] = []
        turn = _UserTurn()
        for message in messages[leading:]:
            calls = [block for block in message.blocks if type(block) is ToolCallBlock]
            for call in calls:
                self._calls[call.id] = call
            written = [self._block(block) for block in message.blocks]
            parts = written[0] if len(written) == 1 else [part for some in written for part in some]
            own_fields = fields_for(NAME, message.carried)
            if not parts:
                for name, value in own_fields.items() if own_fields.keys() != {"role"} else ():
                    self._losses.lose(name, value, "Gemini takes no content without parts")
                continue
            if message.role == "system":
                self._losses.lose_each("messages.role", "system", "only the first messages can be system", sent="user")
            role = "model" if message.role == "assistant" else "user"
            content: Part = {"role": role, "parts": parts, **own_fields}
            if self._own or role == "model":
                contents += turn.contents()
                contents.append(content)
                turn = _UserTurn([call.id for call in calls], after=turn)
            else:
                turn.add(content, message.blocks, written)
        contents += turn.contents()
        if self._signed:
            self._mark_unsigned(contents)
        return ({"parts": system} if system else None), contents

    def _block(self, block: Block) -> list[Part]:
        kind = type(block)
        if kind is ToolResultBlock:
            return self._result(block)  # type: ignore[arg-type]
        if kind is ToolCallBlock:
            return [self._call(block)]  # type: ignore[arg-type]
        if kind is ReasoningBlock:
            return self._thoughts(block)  # type: ignore[arg-type]
        if isinstance(block, TextBlock):
            opaque = self._own_state(block.opaque, "text") if block.opaque else ()
            fields = fields_for(NAME, block.carried)
            if block.text or opaque or fields or self._own:
                return [text_part(block.text, fields=fields, opaque=opaque)]
            return []
        if isinstance(block, RefusalBlock):
            return [text_part(block.text)]
        return _medium(block)  # type: ignore[arg-type]

    def _own_state(self, states: Sequence[Opaque], what: str) -> tuple[Opaque, ...]:
        """Keep Gemini's last signature; report the others: a part has one, and a client may have joined several texts to one."""
        for state in states:
            if state.format != FORMAT:
                why = "only the provider that made it can read it"
                self._losses.lose_each(f"{what}.opaque", state.format or state.kind, why)
        own = [state for state in states if state.format == FORMAT]
        if len(own) > 1:
            why = "a part of Gemini's has one signature"
            self._losses.lose(f"{what}.opaque", f"{len(own)} signatures", why, sent="the last of them")
        # Another wire may have held the signature under a name of its own.
        return tuple(Opaque("signature", state.data, FORMAT) for state in own[-1:])

    def _thoughts(self, block: ReasoningBlock) -> list[Part]:
        formats = [state.format for state in block.opaque] or [block.format]
        if FORMAT not in formats:
            asked = next((name for name in (*sorted(formats), block.format) if name), "unsigned")
            self._losses.lose_each("reasoning", asked, "Gemini takes back only its own thoughts")
            return []
        self._losses.lose_fields(block.carried)
        return reasoning_parts(block, self._own_state(block.opaque, "reasoning"))

    def _call(self, block: ToolCallBlock) -> Part:
        opaque = self._own_state(block.opaque, "tool_call") if block.opaque else ()
        part, raw = call_part(block, opaque)
        if raw:
            why = "args must be an object, so the text stands under this key"
            self._losses.lose_each("tool_call.arguments", block.id, why, sent=RAW_ARGUMENTS)
        if not (self._own or block.own_id):
            # An id that is not Gemini's own says nothing to it: calls and results are matched by name and order.
            part["functionCall"].pop("id", None)
        return part

    def _result(self, block: ToolResultBlock) -> list[Part]:
        fields = fields_for(NAME, block.carried)
        beside = [part for inner in block.content if type(inner) is not TextBlock for part in _medium(inner) if part]
        response = fields.get("functionResponse", {})
        call = self._calls.get(block.call_id)
        name = (call.name if call is not None and not (self._own and block.name) else "") or block.name
        if not name:
            name = "unknown"
            why = "no call in the conversation has this id, and Gemini asks for the function's name"
            self._losses.lose_each("tool_result.name", block.call_id, why, sent=name)
        inside: Part = {"name": name, "response": self._response(block, beside, response)}
        if self._own or (call is not None and call.own_id):
            inside["id"] = block.call_id
        if beside and self._signed:
            inside["parts"] = beside
        part: Part = {"functionResponse": inside}
        if fields:
            inside |= response
            others = {name: value for name, value in fields.items() if name != "functionResponse"}
            part = {"functionResponse": {name: value for name, value in inside.items() if value is not None}, **others}
        # Models before Gemini 3 know no media inside a result.
        return [part] if self._signed else [part, *beside]

    def _response(self, block: ToolResultBlock, beside: list[Part], fields: Part) -> Part:
        """Return a result as the object Gemini wants. It may refer to its parts by their names."""
        key, text = "error" if block.is_error else "output", block.text
        response = object_in(text)
        if response is None:
            return {key: text}
        parts = [*beside, *(fields.get("parts") or ())]
        if _REFERENCE in text and refers_beyond(response, display_names(parts) if self._own else frozenset()):
            # "The referenced name `#/$defs/A` in function_response.response does not match to a display_name in the
            # function_response.parts" (vercel/ai#14369): to Gemini 3 this key names a part, and a schema means something else by it.
            why = "Gemini takes $ref for the name of a part, so the result goes as text"
            self._losses.lose_each("tool_result", block.call_id, why, sent="text")
            return {key: text}
        return response if not block.is_error or "error" in response else {"error": response}

    def _mark_unsigned(self, contents: list[Part]) -> None:
        """Mark the first call of each step of the current turn where it has no signature: Gemini 3 answers 400 otherwise."""
        for place in range(_turn_start(contents), len(contents)):
            content = contents[place]
            calls = [part for part in content["parts"] if "functionCall" in part] if content["role"] == "model" else []
            if calls and not calls[0].get("thoughtSignature"):
                marked = {**calls[0], "thoughtSignature": NO_SIGNATURE}
                parts = [marked if part is calls[0] else part for part in content["parts"]]
                contents[place] = {**content, "parts": parts}
                why = "Gemini 3 asks for a signature and the conversation has none: Google's word for that was sent"
                self._losses.lose_each("thoughtSignature", None, why, sent=NO_SIGNATURE)


def _medium(block: ResultPart) -> list[Part]:
    if isinstance(block, UnknownBlock):
        return [block.value] if block.dialect == NAME else []
    fields = fields_for(NAME, block.carried)
    if isinstance(block, DocumentBlock):
        media_type, data = data_of(block)
        if data:
            return [merge_fields({"inlineData": {"mimeType": media_type, "data": data}}, fields)]
        file = {"mimeType": block.media_type or type_by_name(block.url), "fileUri": block.url}
        return [merge_fields({"fileData": file}, fields)]
    if isinstance(block, ImageBlock):
        kind = {"mimeType": block.media_type} if block.media_type else {}
        head, comma, data = block.url.partition(";base64,")
        if comma and head.startswith("data:"):
            return [merge_fields({"inlineData": {"mimeType": head[5:], "data": data}}, fields)]
        if block.url:
            return [merge_fields({"fileData": {**kind, "fileUri": block.url}}, fields)]
        return [merge_fields({"inlineData": {**kind, "data": block.data}}, fields)]
    return []


class _UserTurn:
    """Collects contents between two of the model, whose results come first, in one content, in the order of the calls before them.

    Gemini counts the results in the content that follows the calls: "Please ensure that the number of function response parts is equal to
    the number of function call parts of the function call turn".
    """

    def __init__(self, call_ids: Iterable[str] = (), after: _UserTurn | None = None) -> None:
        # Calls that nothing of the user followed are answered in the same turn.
        self._order: dict[str, int] = {} if after is None or after._contents or after._results else after._order
        for call_id in call_ids:
            self._order.setdefault(call_id, len(self._order))
        self._contents: list[Part] = []
        self._results: list[tuple[str, list[Part]]] = []
        self._beside: list[Part] = []
        self._content: Part = {}

    def add(self, content: Part, blocks: Sequence[Block], written: Sequence[list[Part]]) -> None:
        """Add a content whose blocks are written so. Of one with results the parts are told apart."""
        if ToolResultBlock not in map(type, blocks):
            self._contents.append(content)
            return
        self._content = self._content or content
        for block, parts in zip(blocks, written, strict=True):
            if type(block) is ToolResultBlock:
                self._results.append((block.call_id, parts))
            else:
                self._beside += parts

    def contents(self) -> list[Part]:
        """Return all contents. Results of calls that the model did not make before this turn are the last of the results."""
        if not self._results:
            return self._contents
        unknown = len(self._order)
        ordered = sorted(self._results, key=lambda result: self._order.get(result[0], unknown))
        parts = [part for _, written in ordered for part in written]
        return [{**self._content, "parts": [*parts, *self._beside]}, *self._contents]


def _turn_start(contents: list[Part]) -> int:
    """Return where the current turn starts: at the last thing a person said."""
    for index in range(len(contents) - 1, -1, -1):
        content = contents[index]
        if content["role"] != "model" and not any("functionResponse" in part for part in content["parts"]):
            return index
    return 0


def display_names(parts: object) -> frozenset[str]:
    """Return the names by which a result may refer to its parts."""
    listed = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    blobs = [part.get("inlineData") or part.get("fileData") for part in listed]
    names = [blob.get("displayName") for blob in blobs if isinstance(blob, dict)]
    return frozenset(name for name in names if isinstance(name, str))


def refers_beyond(value: object, part_names: frozenset[str]) -> bool:
    """Whether JSON has the key of a reference anywhere, with another value than one of these names."""
    left = [value]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            if _REFERENCE in node and not (isinstance(node[_REFERENCE], str) and node[_REFERENCE] in part_names):
                return True
            left.extend(node.values())
        elif isinstance(node, list):
            left.extend(node)
    return False


def has_stray_references(contents: object) -> bool:
    """Whether results in contents as a client wrote them refer to parts that are not theirs, which Gemini refuses."""
    for content in contents if isinstance(contents, list) else ():
        parts = content.get("parts") if isinstance(content, dict) else None
        for part in parts if isinstance(parts, list) else ():
            result = part.get("functionResponse") if isinstance(part, dict) else None
            if isinstance(result, dict) and refers_beyond(result.get("response"), display_names(result.get("parts"))):
                return True
    return False


_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY", "named": "ANY"}
_COLLECTIONS = ("models", "tunedModels", "dynamic")

DECLARATION = Declaration(
    dialect=NAME,
    title="Gemini",
    needs_turn=True,
    expresses=frozenset(("choices", "document", "document.source", "tool_result.is_error", *sampling_fields(SAMPLING))),
    lacks={
        **limitations("Gemini has no such field", *sampling_fields(SAMPLING, others=True), "output_format.description"),
        **limitations("Gemini has no such field", "tools.strict", same=(False,)),
        **limitations("Gemini has no such field", "tool_choice.parallel", same=(True,)),
        **limitations("Gemini has no such field", "image.detail", same=("auto",)),
        **limitations("Gemini takes a document without its name", "document.name"),
        **limitations("Gemini always holds to the schema", "output_format.strict", same=(True,)),
    },
)


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> JsonObject:
    """Return the body."""
    own = request.dialect == NAME
    extra = losses.own_extra(request)
    writer = ContentWriter(losses, own=own, signed=_signs_calls(request.model))
    system, contents = writer.write(request.messages)
    schema_fields = shape_at(row, request.model).schema_fields
    for word in untaken_words(request, schema_fields):
        why = "Google's own schemas have no such word: the schema goes as JSON Schema"
        losses.lose("tools.schema", word, why, sent="parametersJsonSchema", key=word)
    if own and system is not None and (role := _system_role(request)):
        # It says nothing, and a prompt that is cached holds it.
        system = {**system, "role": role}
    further = {name: value for name, value in extra.items() if name not in ("generationConfig", "toolConfig")}
    body = {
        **further,
        "contents": contents,
        "systemInstruction": system,
        "tools": _tools(request.tools, losses, schema_fields, own=own),
        "toolConfig": _tool_config(request, extra),
        "generationConfig": {**_object(extra, "generationConfig"), **_generation_config(request)},
    }
    fields = {name: value for name, value in body.items() if value or name in further}
    return merge_fields(fields, encode_control(request, losses))


def encode_control(request: Request, losses: Losses) -> JsonObject:
    """Return the fields for thinking: the control, and a Gemini client's own words beside it."""
    words = losses.own_fields(request.reasoning.carried) if request.reasoning is not None else {}
    own = {"generationConfig": {"thinkingConfig": words}} if words else {}
    return merge_fields(own, (request.control or Control()).fields)


def lacks_signatures(request: Request) -> bool:
    """Whether a call of the current turn has no signature where the model wants one: it refuses such a request."""
    if not _signs_calls(request.model):
        return False
    for message in reversed(request.messages):
        if message.role != "assistant" and ToolResultBlock not in message.kinds:
            return False
        if message.role == "assistant" and message.calls and not message.calls[0].opaque:
            return "thoughtSignature" not in fields_for(NAME, message.calls[0].carried)
    return False


def _signs_calls(model: str) -> bool:
    row = builtin_models().find("google", model).row
    return row is not None and row.signed_calls is True


def untaken_words(request: Request, known: frozenset[str]) -> list[str]:
    """Return words of a client's schemas in Google's own words that the target, which knows `known`, does not take there."""
    if not known or not request.tools or request.dialect != NAME:
        return []
    return [word for schema in declared_parameters(request.body or {}) if (word := untaken_word(schema, known))]


def request_path(request: Request) -> str:
    """Return the path, which names the model and says whether to stream."""
    collection, slash, name = request.model.partition("/")
    if not slash or collection not in _COLLECTIONS:
        collection, name = "models", request.model
    method = "streamGenerateContent?alt=sse" if request.stream else "generateContent"
    return f"{collection}/{quote(name, safe='')}:{method}"


def _object(extra: JsonObject, name: str) -> JsonObject:
    value = extra.get(name)
    return value if isinstance(value, dict) else {}


def _generation_config(request: Request) -> JsonObject:
    config = {
        **encode_sampling(request.sampling, SAMPLING),
        "maxOutputTokens": request.max_output_tokens,
        "candidateCount": request.choices if request.choices > 1 else None,
        **_output_format(request.output_format, request),
    }
    return {name: value for name, value in config.items() if value is not None}


def _output_format(output_format: OutputFormat | None, request: Request) -> JsonObject:
    if output_format is None:
        return {}
    if output_format.mode == "json_object":
        return {"responseMimeType": "application/json"}
    return {"responseMimeType": "application/json", **_schema_field(output_format.schema, request)}


def _schema_field(schema: object, request: Request) -> JsonObject:
    """Return the schema under the name the client used: older models know only Google's own schema words."""
    if request.dialect == NAME and request.body is not None:
        config = field_in(request.body, "generationConfig")
        original = field_in(config, "responseSchema") if isinstance(config, dict) else None
        if isinstance(original, dict) and json_schema(original) == schema:
            return {"responseSchema": original}
    return {"responseJsonSchema": schema}


def _system_role(request: Request) -> str:
    """Return the role that a client gave its system prompt, empty where it gave none."""
    given = (request.body or {}).get("systemInstruction")
    role = given.get("role") if isinstance(given, dict) else None
    return role if isinstance(role, str) else ""


def _tools(tools: tuple[Tool, ...], losses: Losses, schema_fields: frozenset[str], *, own: bool) -> list[JsonObject]:
    declarations: list[JsonObject] = []
    written: list[JsonObject] = []
    for tool in tools:
        fields = losses.own_fields(tool.carried)
        if not tool.hosted:
            if not declarations:
                written.append({"functionDeclarations": declarations})
            if (parameters := fields.get("parameters")) is not None and untaken_word(parameters, schema_fields):
                fields = {name: value for name, value in fields.items() if name != "parameters"}
            declarations.append(_declaration(tool if own else _with_lone_references(tool, losses), fields))
        elif fields:
            written.append(fields)
        else:
            losses.lose_tool(tool)
    return written


def _with_lone_references(tool: Tool, losses: Losses) -> Tool:
    if tool.schema is None:
        return tool

    def lose(keywords: Iterable[str]) -> None:
        why = "Gemini takes only a description and a default beside $ref, and what it points to cannot be written in its place"
        for keyword in keywords:
            losses.lose("tools.schema", f"{keyword} beside $ref", why, key=f"{tool.name} {keyword}")

    schema = with_lone_references(tool.schema, lose)
    return tool if schema is tool.schema else msgspec.structs.replace(tool, schema=schema)


def _declaration(tool: Tool, fields: JsonObject) -> JsonObject:
    parameters = fields.get("parameters")
    others = {name: value for name, value in fields.items() if name != "parameters"}
    if parameters is not None and json_schema(parameters) == tool.schema:
        schema = {"parameters": parameters}
    else:
        schema = {} if tool.schema is None else {"parametersJsonSchema": tool.schema}
    description = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **description, **schema, **others}


def _tool_config(request: Request, extra: JsonObject) -> JsonObject:
    choice, held = request.tool_choice, dict(_object(extra, "toolConfig"))
    calling = _calling(choice, request)
    rest = _object(held, "functionCallingConfig")
    if calling.get("mode") != "AUTO":
        rest = {name: value for name, value in rest.items() if name != "mode"}
    if calling or rest:
        held["functionCallingConfig"] = {**calling, **rest}
    return held


def _calling(choice: ToolChoice | None, request: Request) -> JsonObject:
    if choice is None:
        return {}
    if request.dialect != NAME and not any(not tool.hosted for tool in request.tools):
        # Google refuses a choice among no functions.
        return {}
    return {"mode": _MODES[choice.mode], **({"allowedFunctionNames": [choice.name]} if choice.mode == "named" else {})}
