"""A client's generateContent body as a Request.

Model and streaming come with the URL. Thoughts that follow each other are one stretch of thinking, and the contents that Google's SDK makes
of the chunks of one answer are one message. Results are matched with calls by their ids, or else by name and order, as Google does.
"""

from __future__ import annotations

from collections import defaultdict, deque
from operator import attrgetter
from typing import Literal

import msgspec

from bardo.dialects.gemini import wire
from bardo.dialects.gemini.schemas import json_schema
from bardo.dialects.gemini.wire import FORMAT, NAME, arguments_text, camel, field_in, opaque_of
from bardo.dialects.shared.bounded_json import MAX_DEPTH
from bardo.dialects.shared.control_fields import as_whole_number
from bardo.dialects.shared.json_values import NO_SIGNATURES, JsonObject, decode_object, encode_json, is_object, take
from bardo.dialects.shared.media import is_document, picture_or_document, picture_type
from bardo.dialects.shared.options import read_options
from bardo.dialects.shared.structs import OTHERS, as_it_came, carried, carried_fields, read
from bardo.dialects.shared.tools import with_allowed_tools
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
from bardo.values.errors import InvalidRequest
from bardo.values.request import (
    EFFORTS,
    Effort,
    Message,
    OutputFormat,
    ReasoningPolicy,
    Request,
    Role,
    Sampling,
    Tool,
    ToolChoice,
)
from bardo.values.wire import Arrival

READ = tuple(field.encode_name for field in msgspec.structs.fields(wire.Request) if field.encode_name != OTHERS)
_ROLES: dict[str, Role] = {"user": "user", "function": "user", "model": "assistant"}
_MODES: dict[str, Literal["auto", "none", "required"]] = {
    "": "auto",
    "MODE_UNSPECIFIED": "auto",
    "AUTO": "auto",
    "VALIDATED": "auto",
    "ANY": "required",
    "NONE": "none",
}
_DATA = ("function_call", "function_response", "text", "inline_data", "file_data")
"""The fields of a part."""
_data_of = attrgetter(*_DATA)
_JSON = "application/json"
_AT = "generationConfig."
_THINKING_AT = "generationConfig.thinkingConfig."
_CALLING_AT = "toolConfig.functionCallingConfig."
# Whose sealed state goes with summaries; all others' goes with the full text.
_SUMMARISING = (FORMAT, "openai-responses-v1", "xai-responses-v1")


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read the body. Raises InvalidRequest, naming the field."""
    parsed = decode_object(body)
    try:
        own = {name: value for name, value in parsed.items() if name != "bardo"}
        if own.get("stream") is bool(arrival.stream):
            # Some clients say again what the path says, and Gemini refuses a field that it does not have.
            del own["stream"]
        if not field_in(own, "contents"):
            raise InvalidRequest("contents is required", hint="give at least one content", param="contents")
        request = read(own, wire.Request, "")
        config = request.generation_config or wire.GenerationConfig()
        choice, tool_config = _tool_choice(request.tool_config)
        output_format = _output_format(config)
        reasoning = _reasoning(config.thinking_config)
        options = read_options(parsed)
        if reasoning is not None and reasoning.visible is False:
            options = msgspec.structs.replace(options, omit_reasoning=True)
        system = request.system_instruction
        beside = carried_fields(system) if isinstance(system, wire.Content) else None
        configs = {
            "generationConfig": _carried_config(config, has_format=output_format is not None),
            "toolConfig": tool_config,
        }
        return Request(
            model=_model(request, arrival),
            messages=(*_system(system), *_messages(request.contents or [])),
            tools=_tools(request.tools),
            tool_choice=choice,
            max_output_tokens=as_whole_number(config.max_output_tokens, f"{_AT}maxOutputTokens"),
            sampling=Sampling(
                temperature=config.temperature,
                top_p=config.top_p,
                top_k=as_whole_number(config.top_k, f"{_AT}topK"),
                frequency_penalty=config.frequency_penalty,
                presence_penalty=config.presence_penalty,
                seed=as_whole_number(config.seed, f"{_AT}seed"),
                stop=tuple(config.stop_sequences or ()),
            ),
            reasoning=reasoning,
            output_format=output_format,
            choices=_choices(config),
            stream=bool(arrival.stream),
            dialect=NAME,
            extra={**(carried_fields(request) or {}), **{name: held for name, held in configs.items() if held}},
            inner_fields={("systemInstruction", name): value for name, value in beside.items()} if beside else {},
            body=own,
            body_bytes=body,
            options=options,
        )
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply", hint=f"stay under {MAX_DEPTH} levels") from None


def _model(request: wire.Request, arrival: Arrival) -> str:
    model = arrival.model or (take(request.model, str, "model") if request.model is not None else "")
    if not model:
        raise InvalidRequest(
            "the URL names no model", hint="post to /v1beta/models/{model}:generateContent", param="model"
        )
    return model.removeprefix("models/")


def _choices(config: wire.GenerationConfig) -> int:
    choices = as_whole_number(config.candidate_count, f"{_AT}candidateCount")
    if choices is not None and choices < 1:
        raise InvalidRequest(f"{_AT}candidateCount must be at least 1", param=f"{_AT}candidateCount")
    return choices or 1


def _carried_config(config: wire.GenerationConfig, *, has_format: bool) -> JsonObject:
    """Return what of a config bardo has no word for."""
    fields = dict(carried_fields(config) or {})
    # Other dialects have this field too, which they are told by one name.
    fields["responseLogprobs"] = config.response_logprobs
    if not has_format:
        # A type that is not JSON (an enum as plain text) goes back as it came, with the schema that belongs to it.
        fields["responseMimeType"] = config.response_mime_type
        fields["responseSchema"] = config.response_schema
        fields["responseJsonSchema"] = config.response_json_schema
    return {name: value for name, value in fields.items() if value is not None}


def _output_format(config: wire.GenerationConfig) -> OutputFormat | None:
    if config.response_mime_type != _JSON:
        return None
    if config.response_json_schema is not None:
        return OutputFormat(mode="json_schema", schema=config.response_json_schema)
    if config.response_schema is not None:
        schema = take(config.response_schema, dict, f"{_AT}responseSchema")
        return OutputFormat(mode="json_schema", schema=json_schema(schema))
    return OutputFormat(mode="json_object")


def _reasoning(config: wire.ThinkingConfig | None) -> ReasoningPolicy | None:
    if config is None:
        return None
    budget = as_whole_number(config.thinking_budget, f"{_THINKING_AT}thinkingBudget")
    effort = _effort((config.thinking_level or "").lower())
    others = carried(config, NAME)
    if budget is not None and effort is not None:
        raise InvalidRequest(
            "thinkingBudget and thinkingLevel cannot be used together", param=f"{_THINKING_AT}thinkingBudget"
        )
    if budget is not None and budget < -1:
        raise InvalidRequest("thinkingBudget must be -1 or more", param=f"{_THINKING_AT}thinkingBudget")
    if budget is None and effort is None and config.include_thoughts is None and others is None:
        return None
    mode: Literal["off", "budget", "effort", "auto"] = "auto" if effort is None else "effort"
    if budget is not None and budget >= 0:
        mode = "budget" if budget else "off"
    words = {
        "thinkingBudget": config.thinking_budget,
        "thinkingLevel": config.thinking_level,
        "includeThoughts": config.include_thoughts,
    }
    words = {name: value for name, value in words.items() if value is not None}
    return ReasoningPolicy(
        mode=mode,
        effort=effort,
        budget=budget if mode == "budget" else None,
        visible=config.include_thoughts,
        # Who only asks to see thoughts does not ask for them to be had.
        enables_thinking=budget is not None or effort is not None,
        carried=others,
        raw_fields={"generationConfig": {"thinkingConfig": words}} if words else {},
    )


def _effort(level: str) -> Effort | None:
    if level in ("", "thinking_level_unspecified"):
        return None
    if level not in EFFORTS:
        hint = f"one of {', '.join(EFFORTS)}"
        raise InvalidRequest(f"unknown thinkingLevel {level!r:.60}", hint=hint, param=f"{_THINKING_AT}thinkingLevel")
    return level


def _tools(tools: list[JsonObject] | JsonObject | None) -> tuple[Tool, ...]:
    """Read functions, and the tools that Google itself runs as `hosted`."""
    declared_tools: list[Tool] = []
    for place, tool in enumerate([tools] if isinstance(tools, dict) else tools or ()):
        for name, held in tool.items():
            if held is None:
                continue
            if camel(name) != "functionDeclarations":
                declared_tools.append(Tool(name=camel(name), hosted=True, carried=Carried(NAME, {camel(name): held})))
                continue
            at = f"tools[{place}].functionDeclarations"
            take(held, (list, dict), at)
            declared_tools += [
                _function(read(declaration, wire.FunctionDeclaration, f"{at}[{number}]"))
                for number, declaration in enumerate(held if isinstance(held, list) else [held])
            ]
    return tuple(declared_tools)


def _function(function: wire.FunctionDeclaration) -> Tool:
    fields = carried_fields(function) or {}
    schema = function.parameters_json_schema
    if schema is None and function.parameters is not None:
        schema = json_schema(function.parameters)
        if schema != function.parameters:
            # Older models know only Google's own schema words: an unchanged tool goes back in them.
            fields = {**fields, "parameters": function.parameters}
    return Tool(
        name=function.name,
        description=function.description or "",
        schema=schema,
        carried=Carried(NAME, fields) if fields else None,
    )


def _tool_choice(config: wire.ToolConfig | None) -> tuple[ToolChoice | None, JsonObject]:
    """Return the choice, and what of `toolConfig` bardo has no word for, in its own shape."""
    if config is None:
        return None, {}
    others, calling = carried_fields(config) or {}, config.function_calling_config
    if calling is None:
        return None, others
    mode = (calling.mode or "").upper()
    if mode not in _MODES:
        raise InvalidRequest(
            f"unknown function calling mode {mode!r:.60}", hint="AUTO, ANY or NONE", param=f"{_CALLING_AT}mode"
        )
    rest, allowed = carried_fields(calling) or {}, calling.allowed_function_names or []
    if mode == "ANY" and len(allowed) == 1:
        choice = ToolChoice(mode="named", name=allowed[0])
    else:
        choice = ToolChoice(mode=_MODES[mode])
        rest = {
            **rest,
            **({"allowedFunctionNames": allowed} if allowed else {}),
            **({"mode": mode} if mode == "VALIDATED" else {}),
        }
    return choice, {**others, **({"functionCallingConfig": rest} if rest else {})}


def with_plain_choice(request: Request) -> Request:
    """Return the request without a choice among some of its tools, which only this dialect's targets take as it is."""
    config: JsonObject = request.extra.get("toolConfig", {})
    calling: JsonObject = config.get("functionCallingConfig", {})
    names = calling.get("allowedFunctionNames")
    if not names:
        return request
    required = request.tool_choice is not None and request.tool_choice.mode == "required"
    plain = with_allowed_tools(request, names, required=required)
    if plain is request:
        return request
    rest = {name: value for name, value in calling.items() if name != "allowedFunctionNames"}
    config_left = {**config, "functionCallingConfig": rest}
    config_left = {name: value for name, value in config_left.items() if value or name != "functionCallingConfig"}
    extra = {**request.extra, "toolConfig": config_left}
    return msgspec.structs.replace(
        plain, extra={name: value for name, value in extra.items() if value or name != "toolConfig"}
    )


def _system(given: list[wire.Part | str] | wire.Content | str | None) -> tuple[Message, ...]:
    """Read a system instruction: an object, a string, or parts."""
    if given is None:
        return ()
    reader = _PartsReader(_Calls())
    reader.read(given.parts if isinstance(given, wire.Content) else given)
    blocks = reader.finish()
    return (Message("system", blocks),) if blocks else ()


def _messages(contents: list[wire.Content] | wire.Content) -> tuple[Message, ...]:
    """Read the conversation. Raises InvalidRequest for an unknown role."""
    messages: list[Message] = []
    calls = _Calls()
    reader: _PartsReader | None = None
    role: Role = "user"
    fields: JsonObject = {}
    for place, content in enumerate([contents] if isinstance(contents, wire.Content) else contents):
        own_role = content.role or "user"
        own_fields = carried_fields(content) or {}
        if own_role not in _ROLES:
            at = f"contents[{place}].role"
            raise InvalidRequest(f"{at} {own_role!r:.60} is unknown", hint="use `user` or `model`", param=at)
        if own_role == "function":
            own_fields = {"role": own_role, **own_fields}
        if reader is None or fields or own_fields or _ROLES[own_role] == "user" or role == "user":
            if reader is not None:
                messages.append(Message(role, reader.finish(), Carried(NAME, fields) if fields else None))
            if role == "user" and own_role == "model":
                calls.new_turn()
            role, fields = _ROLES[own_role], own_fields
            reader = _PartsReader(calls, answer=role == "assistant")
        reader.read(content.parts)
    if reader is not None:
        messages.append(Message(role, reader.finish(), Carried(NAME, fields) if fields else None))
    return tuple(messages)


class _PartsReader:
    """Reads the parts of one message, which may come in several contents.

    Thoughts that follow each other are one stretch of thinking; plain text that begins a further content continues the text before.
    """

    def __init__(self, calls: _Calls, *, answer: bool = False) -> None:
        self._calls = calls
        self._answer = answer
        self._blocks: list[Block] = []
        self._thoughts: list[str] = []
        self._texts: list[str] = []

    def read(self, parts: list[wire.Part | str] | wire.Part | str | None) -> None:
        """Take the parts of one content."""
        for place, part in enumerate(parts if isinstance(parts, list) else () if parts is None else (parts,)):
            if place and self._texts:
                self._end_text()
            self._part(wire.Part(text=part) if isinstance(part, str) else part)

    def finish(self) -> tuple[Block, ...]:
        """Return the blocks."""
        self._end_text()
        self._end_thinking()
        return tuple(self._blocks)

    def _part(self, part: wire.Part) -> None:
        text, signature = part.text, part.thought_signature
        fields = carried_fields(part) or {}
        opaque: tuple[Opaque, ...] = ()
        sealed = False
        if _data_of(part).count(None) < len(_DATA) - 1:
            # Google takes one of them: the others are what only its own dialect can say.
            held = [name for name in _DATA if getattr(part, name) is not None]
            held.remove("text" if part.thought and text is not None else held[0])
            fields |= {camel(name): as_it_came(value) for name in held if (value := getattr(part, name))}
            part = msgspec.structs.replace(part, **dict.fromkeys(held))
            text = part.text
        if signature in NO_SIGNATURES or (signature and not self._answer):
            # Gemini CLI writes a word for none at calls whose thoughts it dropped: like what no model signed, it is no state.
            fields = _signed(fields, signature)
        elif signature:
            opaque, sealed = opaque_of(signature)
        if part.thought and text is not None:
            self._end_text()
            self._thoughts.append(text)
            if opaque or fields:
                self._end_thinking(opaque, fields)
            return
        if self._thoughts:
            self._end_thinking()
        if part.thought:
            fields["thought"] = True
        if text is not None:
            self._text(text, opaque, fields, sealed=sealed)
            return
        self._end_text()
        if part.function_call is not None:
            self._blocks.append(self._call(part.function_call, opaque, fields))
        elif part.function_response is not None:
            self._blocks.append(self._result(part.function_response, _signed(fields, signature)))
        else:
            self._blocks.append(_medium(part, _signed(fields, signature)))

    def _text(self, text: str, opaque: tuple[Opaque, ...], fields: JsonObject, *, sealed: bool) -> None:
        if not opaque and not fields:
            # An empty text, which ends many of Gemini's streams, says nothing in an answer.
            self._texts += [text] if text or not self._answer else []
            return
        self._end_text()
        last = self._blocks[-1] if self._blocks else None
        if sealed and not text and isinstance(last, TextBlock) and not last.opaque:
            # This is how bardo's own streams bring state that came after the text it belongs to.
            self._blocks[-1] = msgspec.structs.replace(last, opaque=opaque)
            return
        self._blocks.append(TextBlock(text, opaque, Carried(NAME, fields) if fields else None))

    def _end_text(self) -> None:
        if self._texts:
            self._blocks.append(TextBlock("".join(self._texts)))
            self._texts.clear()

    def _end_thinking(self, opaque: tuple[Opaque, ...] = (), fields: JsonObject | None = None) -> None:
        if not self._thoughts and not opaque and not fields:
            return
        text = "".join(self._thoughts)
        self._thoughts.clear()
        if not text and not opaque and not fields:
            return
        format_name = opaque[0].format if opaque else FORMAT
        summary = (text,) if text and format_name in _SUMMARISING else ()
        self._blocks.append(
            ReasoningBlock(
                text="" if summary else text,
                summary=summary,
                format=format_name,
                opaque=opaque,
                carried=Carried(NAME, fields) if fields else None,
            )
        )

    def _call(self, call: wire.FunctionCall, opaque: tuple[Opaque, ...], fields: JsonObject) -> ToolCallBlock:
        inside = carried_fields(call) or {}
        if not call.id:
            # bardo needs an id, and must not send what Google did not say.
            inside["id"] = None
        if inside:
            fields["functionCall"] = inside
        return ToolCallBlock(
            id=self._calls.called(call.name, call.id),
            name=call.name,
            arguments=arguments_text(call.args or {}),
            opaque=opaque,
            carried=Carried(NAME, fields) if fields else None,
        )

    def _result(self, result: wire.FunctionResponse, fields: JsonObject) -> ToolResultBlock:
        inside = carried_fields(result) or {}
        call_id = self._calls.answered(result.name, result.id)
        if not result.id or result.id != call_id:
            inside["id"] = None
        if inside:
            fields["functionResponse"] = inside
        # What stands alone under `output` or `error` is the result, else the object itself.
        response = result.response or {}
        name, alone = next(iter(response.items())) if len(response) == 1 else ("", None)
        text = alone if name in ("output", "error") and isinstance(alone, str) else None
        if text is None or is_object(text):
            text = encode_json(response).decode()
        return ToolResultBlock(
            call_id=call_id,
            name=result.name,
            content=(TextBlock(text), *[_medium(part, carried_fields(part) or {}) for part in result.parts or ()]),
            is_error=name == "error",
            carried=Carried(NAME, fields) if fields else None,
        )


def _signed(fields: JsonObject, signature: str | None) -> JsonObject:
    """Return fields with a signature for which the block beside them has no place."""
    return {**fields, "thoughtSignature": signature} if signature else fields


def _medium(part: wire.Part | wire.ResponsePart, fields: JsonObject) -> ImageBlock | DocumentBlock | UnknownBlock:
    """Return the image or document that a part holds; any other part stays as it came."""
    blob, file = part.inline_data, part.file_data
    for name, held in (("inlineData", blob), ("fileData", file)):
        if held is not None and (more := carried_fields(held)):
            fields = {**fields, name: more}
    others = Carried(NAME, fields) if fields else None
    if blob is not None:
        media_type = blob.mime_type or ""
        if picture_type("", blob.data) or media_type.startswith("image/") or is_document(media_type):
            return picture_or_document(media_type, blob.data, carried=others)
    if file is not None:
        media_type = file.mime_type or ""
        if media_type.startswith("image/"):
            return ImageBlock(media_type=media_type, url=file.file_uri, carried=others)
        if is_document(media_type) and not _is_uploaded(file.file_uri):
            return DocumentBlock(media_type=media_type, url=file.file_uri, carried=others)
    return UnknownBlock(NAME, as_it_came(part))


def _is_uploaded(address: str) -> bool:
    """Whether an address is of a file stored at Google, which only its owner can read."""
    return not address.startswith(("http://", "https://")) or address.startswith(
        "https://generativelanguage.googleapis.com/"
    )


class _Calls:
    """The calls of a conversation without results, in order."""

    def __init__(self) -> None:
        self._by_name: defaultdict[str, deque[str]] = defaultdict(deque)
        self._without_id: defaultdict[str, deque[str]] = defaultdict(deque)
        self._answered: set[str] = set()
        self._own_ids: set[str] = set()
        self._count = 0

    def called(self, name: str, own_id: str | None) -> str:
        """Note a call and return its id, made up where it has none."""
        call_id = own_id or f"call_{self._count}"
        self._count += 1
        self._answered.discard(call_id)
        self._by_name[name].append(call_id)
        if own_id:
            self._own_ids.add(own_id)
        else:
            self._without_id[name].append(call_id)
        return call_id

    def answered(self, name: str, own_id: str | None) -> str:
        """Return the id of the call that a result answers: its own, or else that of the turn's next open call of that name.

        Gemini CLI makes up an id for a call that came without one, and sends it with the result only (0.61): no call has it.
        """
        if own_id not in self._own_ids:
            waiting = (self._without_id if own_id else self._by_name)[name]
            while waiting:
                call_id = waiting.popleft()
                if call_id not in self._answered:
                    own_id = call_id
                    break
        self._answered.add(own_id or "")
        return own_id or f"call_{name}"

    def new_turn(self) -> None:
        """The model speaks again: what was not answered by now stays so."""
        self._by_name.clear()
        self._without_id.clear()
