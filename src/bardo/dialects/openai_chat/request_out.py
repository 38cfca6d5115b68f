"""A Request to a Chat Completions body for one provider.

What some servers of the family ask for beyond OpenAI's reference stands in their rows: where earlier thinking goes, one system message at
the beginning, pictures outside of results, and Google's word for calls that have no signature.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat, takewhile

from bardo.catalog.fragments import merge_fields
from bardo.catalog.matching import matches_any
from bardo.catalog.request_shapes import shape_at
from bardo.catalog.rows import ProviderRow, Quirks, ReplayForm
from bardo.dialects.openai_chat.thinking import FORMAT, replay_blocks, replay_details
from bardo.dialects.openai_chat.wire import DEVELOPER, GEMINI, NAME, encode_states, merge_extra
from bardo.dialects.shared.control_fields import OPENAI_SAMPLING, encode_sampling, with_own_words
from bardo.dialects.shared.declaration import Declaration, limitations, sampling_fields
from bardo.dialects.shared.history_repair import BETWEEN
from bardo.dialects.shared.json_values import NO_SIGNATURE, JsonObject
from bardo.dialects.shared.losses import Losses
from bardo.dialects.shared.media import as_text, behind_results, data_of, file_name
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
from bardo.values.request import HistoryFacts, Message, OutputFormat, Request, Tool, ToolChoice

SYSTEM = "system"
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
            *sampling_fields(OPENAI_SAMPLING),
        )
    ),
    lacks={**limitations("Chat Completions does not tell a failed tool from another", "tool_result.is_error")},
)


_MEDIA = (ImageBlock, DocumentBlock)
_NO_MEDIA = frozenset(_MEDIA).isdisjoint
# What of an answer stands beside its content.
_NOT_SHOWN = frozenset((ReasoningBlock, ToolCallBlock, RefusalBlock, ToolResultBlock))
Content = str | list[JsonObject]
"""The content of a message: a text, or parts."""


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> JsonObject:
    """Return the body for one provider."""
    quirks = row.quirks
    if not quirks.developer_role and _names_developer(request):
        losses.lose("messages.role.developer", DEVELOPER, "this provider calls that role system", sent="system")
    messages = MessageWriter(request, row, losses).write_all(request.messages)
    body: JsonObject = {
        "model": request.model,
        "messages": _with_waived_signatures(request.model, messages, quirks, losses),
    }
    if tools := [written for tool in request.tools for written in _tool(tool, losses)]:
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
    stream_options = body.pop("stream_options", None) or {}
    if request.stream:
        body["stream"] = True
        if quirks.stream_usage:
            stream_options = {**stream_options, "include_usage": True}
        if stream_options:
            body["stream_options"] = stream_options
    elif stream_options:
        losses.lose("stream_options", stream_options, "it goes with a stream alone")
    return body


def encode_control(request: Request, losses: Losses) -> JsonObject:
    """Return the fields for thinking: the control, and the caller's own words beside it."""
    if request.control is None:
        return {}
    written, left = with_own_words(request.control.fields, request, NAME)
    for path, value in left.items():
        losses.lose(path, value, "it goes with words that are not sent to this provider")
    return written


class MessageWriter:
    """Writes the messages of one request for one provider.

    A server of which only the dialect is known gets the thinking that a Chat client gives it in the field in which the client has it, and
    its own in the field in which it wrote it.
    """

    def __init__(self, request: Request, row: ProviderRow, losses: Losses) -> None:
        self._own = request.dialect == NAME
        self._generic = row.generic
        self._quirks = row.quirks
        self._form: ReplayForm = row.quirks.replay
        self._losses = losses
        # Whether the user may not speak right behind a result, so that the model does so between them.
        self._speaks_between = "no_user_after_tool" in shape_at(row, request.model).rules
        self._has_media = self._has_results = False
        self._dropped: set[tuple[str, str | None]] = set()

    def write_all(self, messages: Iterable[Message]) -> list[JsonObject]:
        """Return the wire messages of a conversation."""
        written: list[JsonObject] = []
        for message in messages:
            if message.role == "assistant":
                written_message = self._assistant(message)
                if written_message["content"] or not _says_nothing(message, written_message):
                    written.append(written_message)
            else:
                self._add_prompted(message, written)
        if self._quirks.one_system:
            written = with_one_system(written, self._losses)
        if self._has_media and self._has_results and not self._quirks.media_in_results:
            written = self._with_media_behind(written)
        return written

    def _assistant(self, message: Message) -> JsonObject:
        texts: list[str] = []
        thoughts: list[ReasoningBlock] = []
        calls: list[JsonObject] = []
        older: JsonObject = {}
        refusals: list[str] = []
        states: list[Opaque] = []
        plain = True
        for block in message.blocks:
            if type(block) is ReasoningBlock:
                thoughts.append(block)
            elif type(block) is TextBlock:
                texts.append(block.text)
                if block.opaque:
                    states += block.opaque
                # OpenAI takes no breakpoint in what the model said.
                if block.carried is not None and (self._own or self._losses.rule is None):
                    plain = plain and not self._losses.has_own_fields(block.carried)
            elif type(block) is ToolCallBlock:
                if block.carried is None and not block.opaque:
                    calls.append(call_object(block.id, block.name, argument_text(block.arguments), {}))
                else:
                    self._add_call(block, calls, older)
            elif type(block) is RefusalBlock:
                refusals.append(block.text)
                for name, value in fields_for(NAME, block.carried).items():
                    self._losses.lose(f"refusal.{name}", value, "what the model declined in is one text")
            elif type(block) is ToolResultBlock:
                self._losses.lose(
                    "tool_result", block.call_id, "what the model said has no place for it", key=block.call_id
                )
            else:
                plain = False
                own = block.value if type(block) is UnknownBlock and block.dialect == NAME else None
                if isinstance(own, dict) and own.keys() == {"tool_call"}:
                    calls.append(own["tool_call"])
        # Several blocks of text were one answer, cut only by what stood between them.
        content: Content
        if plain:
            content = texts[0] if len(texts) == 1 else "".join(texts)
        else:
            content = self._content([block for block in message.blocks if type(block) not in _NOT_SHOWN])
        output: JsonObject = {"role": "assistant", "content": content or (None if calls or older else "")}
        if refusals:
            output["content"] = content or None
            output["refusal"] = "".join(refusals)
        if calls:
            output["tool_calls"] = calls
        if older:
            output |= older
        extra = encode_states(self._accepted_states(states)) if states else {}
        if thoughts:
            self._give_back(thoughts, output)
        if message.carried is not None:
            output |= fields_for(NAME, message.carried)
        if extra:
            output["extra_content"] = merge_extra(extra, output.get("extra_content") or {})
        return output

    def _add_call(self, call: ToolCallBlock, calls: list[JsonObject], older: JsonObject) -> None:
        """Add a call to those of the message, or in the field of older clients where it came so."""
        carried = fields_for(NAME, call.carried) if call.carried is not None else {}
        if carried.get("function_call"):
            function = {"name": call.name, "arguments": argument_text(call.arguments)}
            older["function_call"] = {**function, **carried.get("function", {})}
            return
        if call.opaque and (states := encode_states(self._accepted_states(call.opaque))):
            carried = {**carried, "extra_content": merge_extra(states, carried.get("extra_content") or {})}
        arguments = call.arguments if carried.get("type") == "custom" else argument_text(call.arguments)
        calls.append(call_object(call.id, call.name, arguments, carried))

    def _accepted_states(self, states: Sequence[Opaque]) -> list[Opaque]:
        """Return the states of texts and calls this provider takes back; report the others."""
        accepted: list[Opaque] = []
        for state in states:
            if state.format == GEMINI and state.kind == "signature" and self._quirks.thought_signatures:
                accepted.append(state)
            else:
                self._drop_state(state.format)
        return accepted

    def _give_back(self, thoughts: Sequence[ReasoningBlock], output: JsonObject) -> None:
        """Put earlier thinking beside or inside the content of a message.

        Text goes wherever there is a place for text; opaque state only where it is kept with its format.
        """
        for block in thoughts:
            if block.carried is not None:
                self._losses.lose_fields(block.carried)
        form = self._form
        if form == "none" and self._generic:
            form = _FIELDS.get(thoughts[0].format, "reasoning_details" if self._own else "none")
        text = (
            thoughts[0].readable
            if len(thoughts) == 1
            else "\n\n".join([readable for block in thoughts if (readable := block.readable)])
        )
        if form == "reasoning_details":
            pieces = [piece for index, block in enumerate(thoughts) for piece in replay_details(block, index)]
            if pieces:
                output["reasoning_details"] = pieces
            return
        if form == FORMAT:
            signed = replay_blocks(thoughts)
            if text:
                output["reasoning_content"] = text
            if signed:
                output[FORMAT] = signed
            for block in thoughts:
                if not replay_blocks([block]):
                    if block.opaque:
                        self._drop_state(block.format, sent=form if text or signed else None)
                    for name, value in fields_for(NAME, block.carried).items():
                        self._losses.lose(name, value, "only thinking that it signed goes to this provider with it")
            return
        if form == "none" or not text:
            for block in thoughts:
                self._drop_state(block.format)
            return
        for block in thoughts:
            for name, value in fields_for(NAME, block.carried).items():
                self._losses.lose(name, value, "earlier thinking goes to this provider without it", key=form)
        content = output["content"]
        match form:
            case "content_list":
                part: JsonObject = {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
                for block in thoughts:
                    for state in block.opaque:
                        if state.format == form:
                            part["signature"] = state.data
                output["content"] = [part, *parts_of_content(content)]
            case "think_tags":
                tagged = f"<think>{text}</think>"
                if isinstance(content, list):
                    output["content"] = [{"type": "text", "text": tagged}, *content]
                else:
                    output["content"] = f"{tagged}{content or ''}"
            case _:
                output[form] = text
        for block in thoughts:
            for state in block.opaque:
                if not form == state.format == "content_list" and (state.format, form) not in self._dropped:
                    self._drop_state(state.format, sent=form)

    def _drop_state(self, style: str, sent: str | None = None) -> None:
        if (style, sent) not in self._dropped:
            self._dropped.add((style, sent))
            why = "this provider takes no earlier reasoning of that form"
            self._losses.lose("reasoning", style or "text", why, sent=sent, key=f"{style} {sent}")

    def _add_prompted(self, message: Message, written: list[JsonObject]) -> None:
        """Add the messages of the system or the user: results of tools are messages of their own, and go first."""
        results: list[ToolResultBlock] = []
        others: list[Block] = []
        for block in message.blocks:
            if type(block) is ToolResultBlock:
                results.append(block)
            else:
                others.append(block)
        if results:
            self._has_results = True
            media = [] if self._quirks.media_in_results else self._media(results)
            for result in results:
                parts = [part for part in result.content if not isinstance(part, _MEDIA)] if media else result.content
                written.append(self._result(result, parts))
            if not media and not others:
                return
            others = [*media, *others]
        content = self._prompt(message) if message.role == "system" else self._content(others)
        if results and not content:
            # What stood beside the results was lost, and servers refuse an empty message.
            return
        turn = {"role": message.role, "content": content, **fields_for(NAME, message.carried)}
        if content or not _says_nothing(message, turn):
            written.append(turn)

    def _prompt(self, message: Message) -> Content:
        """Return a system prompt as one text: many servers join parts without a space, or take none. A Chat client's parts stay."""
        texts = [block for block in message.blocks if isinstance(block, TextBlock)]
        plain = not self._own and not any(self._losses.has_own_fields(block.carried) for block in texts)
        return message.paragraphs if plain and len(texts) == len(message.blocks) else self._content(message.blocks)

    def _media(self, results: Sequence[ToolResultBlock]) -> list[Block]:
        """Return pictures and documents among the results, which go into the user's message after them."""
        blocks: list[Block] = []
        for result in results:
            for part in () if _NO_MEDIA(map(type, result.content)) else result.content:
                if isinstance(part, _MEDIA):
                    kind = "image" if isinstance(part, ImageBlock) else "document"
                    why = "the result of a tool is text in Chat Completions"
                    self._losses.lose(f"tool_result.{kind}", "in the result", why, sent="in a user message after it")
                    blocks.append(part)
        return blocks

    def _result(self, result: ToolResultBlock, parts: Sequence[Block]) -> JsonObject:
        content = self._content(parts)
        carried = result.carried
        if carried is not None and content and not self._own and (marks := self._losses.own_fields(carried)):
            content = _marked(content, marks)
        message = {"role": "tool", "tool_call_id": result.call_id, "content": content}
        if not result.call_id and result.name:
            message = {"role": "function", "name": result.name, "content": content}
        return message if carried is None else {**message, **fields_for(NAME, carried)}

    def _content(self, blocks: Sequence[Block]) -> Content:
        if len(blocks) == 1 and type(only := blocks[0]) is TextBlock and only.carried is None:
            return only.text
        parts = [part for block in blocks if (part := self._part(block)) is not None]
        if not parts:
            return ""
        return str(parts[0]["text"]) if len(parts) == 1 and parts[0].keys() == {"type", "text"} else parts

    def _part(self, block: Block) -> JsonObject | None:
        match block:
            case TextBlock():
                return {"type": "text", "text": block.text, **self._losses.own_fields(block.carried)}
            case ImageBlock():
                self._has_media = True
                url = block.url or f"data:{block.media_type};base64,{block.data}"
                image = {"url": url, "detail": block.detail} if block.detail else {"url": url}
                return merge_fields({"type": "image_url", "image_url": image}, fields_for(NAME, block.carried))
            case DocumentBlock():
                self._has_media = True
                return self._document(block)
            case RefusalBlock(text=text):
                return {"type": "refusal", "refusal": text, **fields_for(NAME, block.carried)}
            case UnknownBlock():
                is_own = block.dialect == NAME and isinstance(block.value, dict) and block.value.keys() != {"tool_call"}
                return block.value if is_own else None
            case _:
                self._losses.lose(f"content.{type(block).__name__}", None, "it has no place in this message")
        return None

    def _document(self, block: DocumentBlock) -> JsonObject | None:
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

    def _with_media_behind(self, written: list[JsonObject]) -> list[JsonObject]:
        """Return messages in which the pictures of results come behind all results of their turn.

        Where the user may not speak right behind a result, the model does so between them.
        """
        ordered = behind_results(written)
        if not self._speaks_between:
            return ordered
        spoken: list[JsonObject] = []
        for message in ordered:
            if message["role"] == "user" and spoken and spoken[-1]["role"] == "tool":
                why = "its templates refuse the user right behind a tool"
                self._losses.lose("messages.role", "user", why, sent=f"behind the model's {BETWEEN}", key="behind")
                spoken.append({"role": "assistant", "content": BETWEEN})
            spoken.append(message)
        return spoken


_FIELDS: dict[str, ReplayForm] = {
    "reasoning_content": "reasoning_content",
    "reasoning": "reasoning",
    "content_list": "content_list",
    "thinking_blocks": "thinking_blocks",
}
"""Where a Chat client has thinking, by its format; any other stands in `reasoning_details`."""


def _says_nothing(message: Message, output: JsonObject) -> bool:
    """Whether nothing is left of a message without content that held only what this dialect cannot say."""
    return (
        len(output) == 2 and bool(message.blocks) and all(isinstance(block, UnknownBlock) for block in message.blocks)
    )


def call_object(call_id: str, name: str, arguments: str, carried: JsonObject) -> JsonObject:
    """Return one entry of `tool_calls` with its further fields: a function, or a custom tool where they say so."""
    if not carried:
        return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    more = carried.get("function", {})
    others = {key: value for key, value in carried.items() if key != "function"}
    if others.get("type") == "custom":
        return {"id": call_id, "type": "custom", "custom": {"name": name, "input": arguments, **more}, **others}
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments, **more}, **others}


def _marked(content: Content, marks: JsonObject) -> list[JsonObject]:
    """Return a message's content with the fields of a marker in its last part."""
    *parts, last = parts_of_content(content)
    return [*parts, {**last, **marks}]


def parts_of_content(content: Content | None) -> list[JsonObject]:
    """Return a message's content as a list of parts; none of an empty one."""
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def with_one_system(messages: Sequence[JsonObject], losses: Losses) -> list[JsonObject]:
    """Return messages for a server that takes one of the system, at the beginning: none that it is given is changed.

    System messages at the beginning become one, and later ones messages of the user, which is reported. The chat templates of Qwen3.5 and
    later raise "System message must be at the beginning." for any other (vllm-project/vllm#41114, 2026-11); Codex sends `instructions` and
    items of the role `developer`, Claude Code system messages between the turns.
    """
    systems = [*takewhile(_is_system, messages)]
    begin = [_joined(systems, losses)] if systems else []
    rest: list[JsonObject] = []
    for message in messages[len(systems) :]:
        if not _is_system(message):
            rest.append(message)
        elif message["content"]:
            why = "chat templates of this server's models refuse a system message that is not at the beginning"
            losses.lose("messages.role", SYSTEM, why, sent="user")
            rest.append({**message, "role": "user"})
    return [*begin, *rest]


def _is_system(message: JsonObject) -> bool:
    return bool(message["role"] == SYSTEM)


def _joined(systems: Sequence[JsonObject], losses: Losses) -> JsonObject:
    if len(systems) == 1:
        return systems[0]
    fields: JsonObject = {}
    for message in systems:
        for name, value in message.items():
            if name != "content" and fields.setdefault(name, value) != value:
                why = "the system messages at the beginning are sent as one"
                losses.lose(f"messages.{name}", value, why, sent=fields[name], key="joined")
    return {**fields, "content": _paragraphs([content for message in systems if (content := message["content"])])}


def _paragraphs(contents: Sequence[Content]) -> Content:
    """Return several contents as one, with a blank line between: templates put nothing between the parts of a content."""
    texts = [*takewhile(lambda content: isinstance(content, str), contents)]
    text = "\n\n".join(map(str, texts))
    parts = [*parts_of_content(text)]
    for content in contents[len(texts) :]:
        first, *others = parts_of_content(content)
        if parts and first.get("type") == "text":
            first = {**first, "text": f"\n\n{first['text']}"}
        parts += [first, *others]
    return parts if len(texts) < len(contents) else text


def _with_waived_signatures(model: str, messages: list[JsonObject], quirks: Quirks, losses: Losses) -> list[JsonObject]:
    """Return the messages with Google's word for calls without a signature, where the model asks for one, and report it.

    OpenRouter hands it on to Gemini 3 as one encrypted detail for each message that calls tools, under the id of its first call
    (RooCodeInc/Roo-Code#10640, 2026-01). It is sent for the calls of the current turn alone, which are those that Google checks.
    """
    if not quirks.signed_calls or not matches_any(model.lower(), quirks.signed_calls):
        return messages
    unsigned = {id(message) for message in _unsigned(messages)}
    if not unsigned:
        return messages
    why = "this model asks for a signature and the conversation has none: Google's word for that was sent"
    losses.lose_each("thought_signature", None, why, sent=NO_SIGNATURE)
    return [_waived(message) if id(message) in unsigned else message for message in messages]


def _waived(message: JsonObject) -> JsonObject:
    first = message["tool_calls"][0].get("id")
    detail = {"type": "reasoning.encrypted", "data": NO_SIGNATURE, "format": GEMINI, "id": first, "index": 0}
    return {**message, "reasoning_details": [*(message.get("reasoning_details") or ()), detail]}


def _unsigned(messages: Sequence[object]) -> Iterator[JsonObject]:
    """Yield the messages behind the user's last one that call tools and have no state."""
    for message in reversed(messages):
        if not isinstance(message, dict) or message.get("role") == "user":
            return
        if message.get("role") != "assistant" or not message.get("tool_calls"):
            continue
        details = message.get("reasoning_details")
        pieces = details if isinstance(details, list) else []
        if not any(isinstance(piece, dict) and (piece.get("data") or piece.get("signature")) for piece in pieces):
            yield message


def _tool(tool: Tool, losses: Losses) -> list[JsonObject]:
    """Return a tool; nothing where only its own provider runs it."""
    own = fields_for(NAME, tool.carried)
    if tool.hosted:
        if not own:
            losses.lose_tool(tool)
        return [own] if own else []
    function: JsonObject = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    if tool.schema is not None:
        function["parameters"] = tool.schema
    if tool.strict is not None:
        function["strict"] = tool.strict
    if more := own.get("function"):
        own = {name: value for name, value in own.items() if name != "function"}
        function |= more
    return [{"type": "function", "function": function, **own}]


def _tool_choice(choice: ToolChoice | None) -> JsonObject:
    if choice is None:
        return {}
    written: JsonObject = {}
    if choice.mode == "named":
        written["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
    elif choice.mode != "auto" or choice.parallel is None:
        written["tool_choice"] = choice.mode
    if choice.parallel is not None:
        written["parallel_tool_calls"] = choice.parallel
    return written


def _output_format(output_format: OutputFormat) -> JsonObject:
    if output_format.mode == "json_object":
        return {"type": "json_object"}
    inner: JsonObject = {"name": output_format.name or "answer"}
    if output_format.schema is not None:
        inner["schema"] = output_format.schema
    if output_format.strict is not None:
        inner["strict"] = output_format.strict
    if output_format.description:
        inner["description"] = output_format.description
    return {"type": "json_schema", "json_schema": inner}


def differs(request: Request, row: ProviderRow, facts: HistoryFacts) -> bool:
    """Whether a body of this dialect holds what the provider does not take.

    That is the name of its output limit, a role or its place, an unsigned call, a picture in the result of a tool, or earlier thinking
    where there is no field for it.
    """
    body, quirks = request.body, row.quirks
    if not body:
        return False
    for limit in ("max_tokens", "max_completion_tokens"):
        if limit in body and limit != quirks.output_limit_field:
            return True
    if request.extra and is_asked_otherwise(request, row):
        return True
    messages = body.get("messages")
    signed = bool(quirks.signed_calls) and matches_any(request.model.lower(), quirks.signed_calls)
    if signed and isinstance(messages, list) and any(True for _ in _unsigned(messages)):
        return True
    # What any server takes is not known: a client that gives thinking back in a field knows its own.
    thinks = quirks.replay == "none" and not row.generic and ReasoningBlock in facts.parts
    if thinks and any(ReasoningBlock in message.kinds for message in request.messages if message.role == "assistant"):
        return True
    shows = not quirks.media_in_results and not facts.parts.isdisjoint(_MEDIA)
    if shows and any(type(part) in _MEDIA for result in facts.results for part in result.content):
        return True
    if quirks.one_system and has_later_system(messages):
        return True
    return not quirks.developer_role and _names_developer(request)


def has_later_system(messages: object) -> bool:
    """Whether a body's messages, each of them an object, have one of the system behind the first."""
    if not isinstance(messages, list):
        return False
    roles = [*islice(map(dict.get, messages, repeat("role")), 1, None)]
    return SYSTEM in roles or DEVELOPER in roles


def _names_developer(request: Request) -> bool:
    """Whether a client of this dialect gave a message the role that bardo reads and writes as `system`."""
    if request.dialect != NAME or not request.body:
        return False
    messages = request.body.get("messages")
    # Each was read as an object; no step of Python for each.
    return isinstance(messages, list) and DEVELOPER in map(dict.get, messages, repeat("role"))
