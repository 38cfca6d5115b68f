"""A client's generateContent body as a Request. Both spellings of the real API are read: `topP` and `top_p`.

A client's `generationConfig`: sampling, thinking and the shape of the answer.

The parts of a client's message as blocks.

What is said to the model between two of its turns.

Gemini matches the results of tools with the calls by name and order, and counts them in the one content that follows the calls: "Please
ensure that the number of function response parts is equal to the number of function call parts of the function call turn".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from bardo.dialects.gemini import wire
from bardo.dialects.gemini.reply_in import arguments_text
from bardo.dialects.gemini.tools import decode_tool_choice, decode_tools, json_schema
from bardo.dialects.gemini.wire import FORMAT, NAME, SAMPLING, opaque_of, split_fields
from bardo.dialects.shared.bounded_json import MAX_DEPTH
from bardo.dialects.shared.control_fields import decode_sampling, whole_number
from bardo.dialects.shared.json_values import decode_object, is_object, optional, take
from bardo.dialects.shared.known_beginnings import KnownBeginnings
from bardo.dialects.shared.media import is_document, picture_or_document, picture_type
from bardo.dialects.shared.options import read_options
from bardo.dialects.shared.repeated_items import read_once
from bardo.dialects.shared.structs import as_it_came, carried_fields, read
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
    BardoOptions,
    Effort,
    Message,
    OutputFormat,
    ReasoningPolicy,
    Request,
    Role,
    Sampling,
)
from bardo.values.wire import Arrival

_AT = "generationConfig."
_THINKING_AT = "generationConfig.thinkingConfig."
_THINKING = ("thinkingBudget", "thinkingLevel", "includeThoughts")
_JSON = "application/json"
_KNOWN_FIELDS = (
    "temperature",
    "topP",
    "topK",
    "maxOutputTokens",
    "stopSequences",
    "seed",
    "candidateCount",
    "presencePenalty",
    "frequencyPenalty",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "thinkingConfig",
)
# A field of other dialects too, which they are told by one name.
_ONE_SPELLING = {"response_logprobs": "responseLogprobs"}


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """What a `generationConfig` says; `unknown_fields` are the fields bardo has no word for."""

    sampling: Sampling = Sampling()
    max_output_tokens: int | None = None
    choices: int = 1
    output_format: OutputFormat | None = None
    reasoning: ReasoningPolicy | None = None
    unknown_fields: dict[str, Any] = {}


def decode_config(value: Any) -> Config:
    """Read the object. Raises InvalidRequest, naming the field."""
    if value is None:
        return Config()
    fields, others = split_fields(take(value, dict, "generationConfig"), _KNOWN_FIELDS)
    others = {_ONE_SPELLING.get(name, name): held for name, held in others.items()}
    output_format = _output_format(fields)
    if output_format is None:
        # A type that is not JSON (an enum as plain text) goes back as it came, with the schema that belongs to it.
        others |= {name: fields[name] for name in fields if name.startswith("response")}
    choices = whole_number(fields, "candidateCount", _AT)
    if choices is not None and choices < 1:
        raise InvalidRequest(f"{_AT}candidateCount must be at least 1", param=f"{_AT}candidateCount")
    return Config(
        sampling=decode_sampling(fields, SAMPLING, _AT),
        max_output_tokens=whole_number(fields, "maxOutputTokens", _AT),
        choices=choices or 1,
        output_format=output_format,
        reasoning=_policy(fields.get("thinkingConfig")),
        unknown_fields=others,
    )


def _output_format(fields: dict[str, Any]) -> OutputFormat | None:
    if optional(fields, "responseMimeType", str, _AT) != _JSON:
        return None
    schema = fields.get("responseJsonSchema")
    if schema is None and "responseSchema" in fields:
        schema = json_schema(take(fields["responseSchema"], dict, f"{_AT}responseSchema"))
    if schema is None:
        return OutputFormat(mode="json_object")
    return OutputFormat(mode="json_schema", schema=schema)


def _policy(value: Any) -> ReasoningPolicy | None:
    if value is None:
        return None
    fields, others = split_fields(take(value, dict, _THINKING_AT[:-1]), _THINKING)
    budget = whole_number(fields, "thinkingBudget", _THINKING_AT)
    effort = _effort(fields)
    visible = optional(fields, "includeThoughts", bool, _THINKING_AT)
    if budget is not None and effort is not None:
        raise InvalidRequest(
            "thinkingBudget and thinkingLevel cannot be used together", param=f"{_THINKING_AT}thinkingBudget"
        )
    if budget is not None and budget < -1:
        raise InvalidRequest("thinkingBudget must be -1 or more", param=f"{_THINKING_AT}thinkingBudget")
    if budget is None and effort is None and visible is None and not others:
        return None
    return ReasoningPolicy(
        mode=_mode(budget, effort),
        effort=effort,
        budget=budget if budget is not None and budget > 0 else None,
        visible=visible,
        # Who only asks to see thoughts does not ask for them to be had.
        enables_thinking=budget is not None or effort is not None,
        carried=Carried(NAME, others) if others else None,
        raw_fields={"generationConfig": {"thinkingConfig": fields}} if fields else {},
    )


def _mode(budget: int | None, effort: Effort | None) -> Literal["off", "budget", "effort", "auto"]:
    if budget == 0:
        return "off"
    if budget is not None and budget > 0:
        return "budget"
    return "auto" if effort is None else "effort"


def _effort(fields: dict[str, Any]) -> Effort | None:
    level = (optional(fields, "thinkingLevel", str, _THINKING_AT) or "").lower()
    if level in ("", "thinking_level_unspecified"):
        return None
    if level not in EFFORTS:
        hint = f"one of {', '.join(EFFORTS)}"
        raise InvalidRequest(f"unknown thinkingLevel {level!r:.60}", hint=hint, param=f"{_THINKING_AT}thinkingLevel")
    return level


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


READ = ("model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig")


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read the body; model and streaming stand in the URL. Raises InvalidRequest, naming the field."""
    parsed = decode_object(body)
    try:
        return _request(parsed, body, arrival)
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply", hint=f"stay under {MAX_DEPTH} levels") from None


def _request(body: dict[str, Any], raw: bytes, arrival: Arrival) -> Request:
    own = {name: value for name, value in body.items() if name != "bardo"}
    fields, extra = split_fields(own, READ)
    if not fields.get("contents"):
        raise InvalidRequest("contents is required", hint="give at least one content", param="contents")
    config = decode_config(fields.get("generationConfig"))
    choice, tool_config = decode_tool_choice(fields.get("toolConfig"))
    extra |= {"generationConfig": config.unknown_fields} if config.unknown_fields else {}
    extra |= {"toolConfig": tool_config} if tool_config else {}
    return Request(
        model=_model(fields, arrival),
        messages=(*_system(body, fields), *decode_contents(fields["contents"])),
        tools=decode_tools(fields.get("tools")),
        tool_choice=choice,
        max_output_tokens=config.max_output_tokens,
        sampling=config.sampling,
        reasoning=config.reasoning,
        output_format=config.output_format,
        choices=config.choices,
        stream=bool(arrival.stream),
        dialect=NAME,
        extra=extra,
        body=own,
        body_bytes=raw,
        options=_options(body, config),
    )


def _system(body: dict[str, Any], fields: dict[str, Any]) -> tuple[Message, ...]:
    """Return the system prompt, which stands in `body` under one of two spellings."""
    field = "systemInstruction" if "systemInstruction" in body else "system_instruction"
    return read_once(body, field, f"{NAME}.system", lambda: decode_system(fields.get("systemInstruction")))


def _model(fields: dict[str, Any], arrival: Arrival) -> str:
    model = arrival.model or optional(fields, "model", str) or ""
    if not model:
        raise InvalidRequest(
            "the URL names no model", hint="post to /v1beta/models/{model}:generateContent", param="model"
        )
    return model.removeprefix("models/")


def _options(fields: dict[str, Any], config: Config) -> BardoOptions:
    asked = read_options(fields)
    hidden = config.reasoning is not None and config.reasoning.visible is False
    return msgspec.structs.replace(asked, omit_reasoning=True) if hidden else asked


_ROLES: dict[str, Role] = {"user": "user", "function": "user", "model": "assistant"}


def decode_system(value: Any) -> tuple[Message, ...]:
    """Read a system instruction: an object, a string, or parts."""
    if value is None:
        return ()
    if isinstance(value, str | list):
        value = {"parts": value}
    reader = PartsReader(CallBook())
    reader.read(read(value, wire.Content, "systemInstruction"))
    blocks = reader.finish()
    return (Message("system", blocks),) if blocks else ()


def decode_contents(value: Any) -> tuple[Message, ...]:
    """Read the conversation. Raises InvalidRequest, naming the field."""
    listed: Any = take(value, (list, dict), "contents")
    contents = [listed] if isinstance(listed, dict) else listed
    return _BEGINNINGS.read(contents, Conversation, _read_content).finish()


def _read_content(conversation: Conversation, content: Any, place: int) -> None:
    conversation.read(content, f"contents[{place}]")


class Conversation:
    """Contents to messages. Google's SDK brings a streamed answer back as one content for each chunk: they are one message."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._book = CallBook()
        self._reader: PartsReader | None = None
        self._role: Role = "user"
        self._carried: Carried | None = None

    def read(self, value: Any, at: str) -> None:
        content = read(value, wire.Content, at)
        other_fields, role = carried_fields(content) or {}, content.role or "user"
        if role not in _ROLES:
            raise InvalidRequest(f"{at}.role {role!r:.60} is unknown", hint="use `user` or `model`", param=f"{at}.role")
        if role == "function":
            other_fields = {"role": role, **other_fields}
        if not self._continues(_ROLES[role], other_fields):
            self._begin(_ROLES[role], other_fields)
        if self._reader is not None:
            self._reader.read(content)

    def copy(self) -> Conversation:
        """Return a conversation that has read the same, and goes on by itself."""
        copied = Conversation()
        copied._messages, copied._book = [*self._messages], self._book.copy()
        copied._reader = None if self._reader is None else self._reader.copy(copied._book)
        copied._role, copied._carried = self._role, self._carried
        return copied

    def finish(self) -> tuple[Message, ...]:
        self._end()
        return tuple(self._messages)

    def _continues(self, role: Role, other_fields: dict[str, Any]) -> bool:
        both = role == self._role == "assistant" and self._reader is not None
        return both and not other_fields and self._carried is None

    def _begin(self, role: Role, other_fields: dict[str, Any]) -> None:
        self._end()
        if role == "assistant" and self._role == "user":
            self._book.new_turn()
        self._role, self._carried = role, Carried(NAME, other_fields) if other_fields else None
        self._reader = PartsReader(self._book, answer=role == "assistant")

    def _end(self) -> None:
        if self._reader is not None:
            self._messages.append(Message(self._role, self._reader.finish(), self._carried))


_BEGINNINGS: KnownBeginnings[Conversation] = KnownBeginnings()


Part = dict[str, Any]


class UserTurn:
    """Collects contents of one turn, whose results come first, in one content, in the order of the calls before them."""

    def __init__(self) -> None:
        self._order: dict[str, int] = {}
        self._results: list[tuple[str, list[Part]]] = []
        self._content: Part = {}
        self._beside: list[Part] = []
        self._others: list[Part] = []

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been said in it."""
        return not (self._results or self._others)

    def copy(self) -> UserTurn:
        """Return a turn that says the same, and goes on by itself."""
        copied = UserTurn()
        copied._order, copied._results, copied._content = {**self._order}, [*self._results], self._content
        copied._beside, copied._others = [*self._beside], [*self._others]
        return copied

    def follow(self, call_ids: Iterable[str]) -> None:
        """Note calls that the model made before this turn, in order."""
        for call_id in call_ids:
            self._order.setdefault(call_id, len(self._order))

    def add(self, content: Part) -> None:
        """Add a content without results."""
        self._others.append(content)

    def add_results(self, content: Part, results: Iterable[tuple[str, list[Part]]], beside: Iterable[Part]) -> None:
        """Add a content with results: the parts of each by the id of its call, and the other parts. Its own `parts` are not looked at."""
        self._content = self._content or content
        self._results.extend(results)
        self._beside.extend(beside)

    def contents(self) -> list[Part]:
        """Return all contents. Results of calls that the model did not make before this turn are the last of the results."""
        if not self._results:
            return [*self._others]
        unknown = len(self._order)
        ordered = sorted(self._results, key=lambda result: self._order.get(result[0], unknown))
        parts = [part for _, written in ordered for part in written]
        return [{**self._content, "parts": [*parts, *self._beside]}, *self._others]
