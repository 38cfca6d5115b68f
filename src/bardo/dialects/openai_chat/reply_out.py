"""Encode a reply for a Chat Completions client, whole or streamed.

Reasoning goes into `reasoning_content`; where more than its text is known (whose it is, that it is a summary, a signature, ciphertext), its
pieces go into `reasoning_details` as well, in OpenRouter's form, so that a client can give them back. What bardo has no word for stands
under flat names: `message.<name>` is a field of the message or delta, `logprobs.<name>` one of its log probabilities, others are its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bardo.dialects.openai_chat.errors import error_object
from bardo.dialects.openai_chat.request_out import call_object
from bardo.dialects.openai_chat.thinking import Place, ThinkingWriter, encode_position, is_bare, piece_of_text
from bardo.dialects.openai_chat.usage import encode_usage
from bardo.dialects.openai_chat.wire import NAME, encode_finish, encode_states, merge_extra
from bardo.dialects.shared.blocks import RunEncoder
from bardo.dialects.shared.json_values import JsonObject
from bardo.streams.sse import KEEP_ALIVE, encode_sse
from bardo.values.blocks import (
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    UnknownBlock,
    fields_for,
    has_no_arguments,
)
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Extension,
    Failed,
    Finish,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkStart,
    ToolCallChunk,
    ToolCallStart,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.runs import texts_of
from bardo.values.usage import Usage

json_bytes = msgspec.json.Encoder().encode


def encode_response(response: Response, request: Request) -> bytes:
    """Encode one whole reply, all choices of it."""
    usage = encode_usage(response.usage)
    return json_bytes(
        {
            "id": response.id,
            "object": "chat.completion",
            "created": response.created or 0,
            "model": response.model or request.model,
            **fields_for(NAME, response.carried),
            "choices": encode_choices(response),
            **({"usage": usage} if usage is not None else {}),
            **({"bardo": response.bardo} if response.bardo else {}),
        }
    )


def encode_choices(response: Response) -> list[JsonObject]:
    """Return all choices of a reply. Blocks of the dialect's own are numbered through them."""
    unknowns = 0
    choices: list[JsonObject] = []
    for index, reply in enumerate((response, *response.alternatives)):
        collector = MessageCollector(unknowns)
        choices.append(collector.choice(index, reply))
        unknowns = collector.unknowns
    return choices


class MessageCollector:
    """Collects the blocks of one choice in the fields that a client would collect the deltas in.

    `unknowns` is how many blocks of the dialect's own came before. It takes the deltas of a ThinkingWriter.
    """

    def __init__(self, unknowns: int = 0) -> None:
        self.unknowns = unknowns
        self._texts: list[str] = []
        self._length = 0
        self._thinking: list[str] = []
        self._details: list[JsonObject] = []
        self._calls: list[JsonObject] = []
        self._refusals: list[str] = []
        self._extra: JsonObject = {}
        self._states = 0
        self._blocks: list[object] = []
        self._writer = ThinkingWriter(self)

    def choice(self, index: int, reply: Response) -> JsonObject:
        """Return the choice."""
        for number, block in enumerate(reply.blocks):
            _ADD[type(block)](self, number, block)
        message = self._message()
        fields: JsonObject = {}
        if carried := fields_for(NAME, reply.choice_carried):
            more, fields = unflatten(carried)
            message = add_carried(message, more)
        finish = encode_finish(reply.finish, refused=bool(self._refusals))
        return {"index": index, "message": message, "finish_reason": finish, **fields}

    def thinking(self, choice: int, text: str) -> Sequence[bytes]:
        """Take thinking of which only the text is known."""
        self._thinking.append(text)
        return ()

    def detailed_thinking(self, choice: int, text: str, index: int) -> Sequence[bytes]:
        """Take text that goes on with the piece `index` of the details."""
        piece = {**piece_of_text(text, None), "index": index}
        return self.add(choice, {"reasoning_content": text, "reasoning_details": [piece]})

    def add(self, choice: int, delta: JsonObject) -> Sequence[bytes]:
        """Take thinking with its details."""
        if "reasoning_content" in delta:
            self._thinking.append(delta["reasoning_content"])
        for piece in delta["reasoning_details"]:
            # Add a piece of thinking: to the one before where that is of its index.
            details = self._details
            last = details[-1] if details and details[-1]["index"] == piece["index"] else None
            if last is None:
                details.append(dict(piece))
            else:
                kind = piece["type"] if is_bare(last) else last["type"]
                texts = {name: last.get(name, "") + piece[name] for name in ("text", "summary") if piece.get(name)}
                empty = [name for name in ("text", "summary") if name in piece and not piece[name]]
                last |= {name: value for name, value in piece.items() if name not in empty} | texts | {"type": kind}
        return ()

    def _add_text(self, number: int, block: TextBlock) -> None:
        self._texts.append(block.text)
        self._length += len(block.text)
        for state in block.opaque:
            written = encode_states([state], before=self._states)
            if "bardo" in self._extra and "bardo" in written:
                self._extra["bardo"]["opaque"].update(written["bardo"]["opaque"])
            else:
                self._extra |= written
            self._states += 1

    def _add_refusal(self, number: int, block: RefusalBlock) -> None:
        self._refusals.append(block.text)

    def _add_thinking(self, number: int, block: ReasoningBlock) -> None:
        writer = self._writer
        writer.start(ThinkStart(number, block.format), encode_position(self._length, len(self._calls)))
        if carried := fields_for(NAME, block.carried):
            writer.fields(BlockFields(number, NAME, carried))
        if block.text:
            writer.chunk(ThinkChunk(number, block.text))
        for part, text in enumerate(block.summary):
            writer.chunk(ThinkChunk(number, text, part))
        if block.opaque:
            # Its id is the first of its state in a stream.
            for state in sorted(block.opaque, key=lambda state: state.kind != "id"):
                writer.hold(OpaqueState(number, state))
            writer.release(None)

    def _add_call(self, number: int, block: ToolCallBlock) -> None:
        if not block.complete and has_no_arguments(block.arguments):
            # Clients take no arguments at all for an empty object.
            return
        fields = fields_for(NAME, block.carried)
        extra = fields.get("extra_content", {})
        for state in block.opaque:
            extra = merge_states(extra, encode_states([state]))
        carried = {**fields, "extra_content": extra} if block.opaque else fields
        self._calls.append(call_object(block.id, block.name, block.arguments, carried))

    def _add_unknown(self, number: int, block: UnknownBlock) -> None:
        if block.dialect == NAME:
            self._blocks.append({"index": self.unknowns, "block": block.value})
            self.unknowns += 1

    def _message(self) -> JsonObject:
        message: JsonObject = {"role": "assistant", "content": "".join(self._texts) if self._texts else None}
        message["refusal"] = "".join(self._refusals) or None
        if self._thinking:
            message["reasoning_content"] = "".join(self._thinking)
        if self._details:
            message["reasoning_details"] = self._details
        if self._calls:
            message["tool_calls"] = self._calls
        if self._extra:
            message["extra_content"] = self._extra
        if self._blocks:
            message["content_blocks"] = self._blocks
        return message


_ADD: dict[type[ReplyBlock], Callable[[MessageCollector, int, Any], None]] = {
    TextBlock: MessageCollector._add_text,
    ReasoningBlock: MessageCollector._add_thinking,
    ToolCallBlock: MessageCollector._add_call,
    RefusalBlock: MessageCollector._add_refusal,
    UnknownBlock: MessageCollector._add_unknown,
}


def merge_states(one: JsonObject, other: JsonObject) -> JsonObject:
    """Return two `extra_content` objects as one; both may hold state that bardo keeps there."""
    before, more = one.get("bardo"), other.get("bardo")
    merged = merge_extra(one, other)
    if isinstance(before, dict) and isinstance(more, dict) and "opaque" in before and "opaque" in more:
        merged["bardo"]["opaque"] = before["opaque"] | more["opaque"]
    return merged


_NO_FINISH = Finish("unknown")


class ChatEncoder(RunEncoder):
    """Writes one streamed reply.

    The `bardo` object stands in the last frame: with the usage where that was asked for, else with the finish reason.
    """

    content_type = "text/event-stream"
    keep_alive = KEEP_ALIVE

    def __init__(self, request: Request) -> None:
        self._wants_usage = request.stream_usage
        self._chunks = ChunkWriter(request.model)
        self._thinking = ThinkingWriter(self._chunks)
        self._calls: dict[Place, int] = {}
        self._call_counts: dict[int, int] = {}
        self._lengths: defaultdict[int, int] = defaultdict(int)
        self._refused: set[int] = set()
        self._stated: dict[int, int] = {}
        self._unknowns = 0
        self._finishes: dict[int, Finish] = {}
        self._usage: Usage | None = None
        self._extension: JsonObject = {}
        self._failed = False
        self._signed_call: ToolCallStart | None = None

    def feed(self, item: Event) -> Sequence[bytes]:
        """Write one event."""
        if self._failed:
            return ()
        released: Sequence[bytes] = ()
        if self._thinking.pending_states and (place := _block_of(item)) is not None:
            released = self._thinking.release(place)
        if self._signed_call is not None and not self._continues_head(item):
            released = [*released, *self._release_call()]
        writer = _WRITERS.get(type(item))
        written = writer(self, item) if writer is not None else ()
        return [*released, *written] if released else written

    def go_on(self, first: Event, further: Sequence[Event]) -> Sequence[bytes] | None:
        """Return the frames of pieces of the answer, or of thinking that says something."""
        if self._failed:
            return None
        texts = texts_of(further)
        if type(first) is ThinkChunk and self._thinking.repeats(first) and all(texts):
            return self._chunks.thoughts(first.choice, texts, self._thinking.detail_index)
        if type(first) is not ContentChunk:
            return None
        self._lengths[first.choice] += sum(map(len, texts))
        return self._chunks.texts(first.choice, texts)

    def _content(self, item: ContentChunk) -> Sequence[bytes]:
        choice, text = item.choice, item.text
        self._lengths[choice] += len(text)
        return self._chunks.text(choice, text)

    def finish(self) -> Sequence[bytes]:
        """Write the finish of each choice, usage where asked for, the extension, and `[DONE]`."""
        if self._failed:
            return ()
        usage = encode_usage(self._usage) if self._wants_usage and self._usage is not None else None
        last = {"bardo": self._extension} if self._extension else {}
        out = [*self._thinking.release(None), *self._release_call()]
        choices = sorted(self._chunks.choices | set(self._finishes)) or [0]
        for choice in choices:
            finish = self._finishes.get(choice, _NO_FINISH)
            ends = usage is None and choice == choices[-1]
            word = encode_finish(finish, refused=choice in self._refused)
            out += self._chunks.finish(choice, word, last if ends else {})
        if usage is not None:
            out.append(self._chunks.frame({"choices": [], "usage": usage, **last}))
        return [*out, b"data: [DONE]\n\n"]

    def _begin(self, item: ReplyStart) -> tuple[()]:
        self._chunks.begin(item)
        return ()

    def _think_start(self, item: ThinkStart) -> Sequence[bytes]:
        calls = sum(choice == item.choice for choice, _ in self._calls)
        self._thinking.start(item, encode_position(self._lengths[item.choice], calls))
        return ()

    def _think(self, item: ThinkChunk) -> Sequence[bytes]:
        return self._thinking.chunk(item)

    def _opaque(self, item: OpaqueState) -> Sequence[bytes]:
        place = (item.choice, item.block)
        if self._signed_call is not None:
            return self._release_call(item.opaque)
        if self._thinking.knows(place):
            self._thinking.hold(item)
            return ()
        if place in self._calls:
            return self._more_of_call(place, {"extra_content": encode_states([item.opaque])})
        before = self._stated.get(item.choice, 0)
        self._stated[item.choice] = before + 1
        return self._chunks.add(item.choice, {"extra_content": encode_states([item.opaque], before=before)})

    def _refusal(self, item: RefusalChunk) -> Sequence[bytes]:
        self._refused.add(item.choice)
        return self._chunks.add(item.choice, {"refusal": item.text})

    def _call_start(self, item: ToolCallStart) -> Sequence[bytes]:
        if item.state_follows:
            # The AI SDK reads a call's signature in its first delta only (2026-11), so the delta waits for the state that comes next.
            self._signed_call = item
            return ()
        return self._begin_call(item)

    def _continues_head(self, item: Event) -> bool:
        """Whether this is the state that the head of a call waits for, or something before it that no Chat client is told."""
        start = self._signed_call
        own = start is not None and _block_of(item) == (start.choice, start.block)
        return own and (type(item) is OpaqueState or (type(item) is BlockFields and item.dialect != NAME))

    def _release_call(self, state: Opaque | None = None) -> Sequence[bytes]:
        start, self._signed_call = self._signed_call, None
        return () if start is None else self._begin_call(start, state)

    def _begin_call(self, item: ToolCallStart, state: Opaque | None = None) -> Sequence[bytes]:
        index = self._call(item.choice, item.block)
        function = {"name": item.name, "arguments": ""}
        extra = {"extra_content": encode_states([state])} if state is not None else {}
        call = {"index": index, "id": item.id, "type": "function", "function": function, **extra}
        return self._chunks.add(item.choice, {"tool_calls": [call]})

    def _call_chunk(self, item: ToolCallChunk) -> Sequence[bytes]:
        return self._chunks.arguments(item.choice, self._call(item.choice, item.block), item.arguments)

    def _call(self, choice: int, block: int) -> int:
        place = (choice, block)
        index = self._calls.get(place)
        if index is None:
            index = self._calls[place] = self._call_counts.get(choice, 0)
            self._call_counts[choice] = index + 1
        return index

    def _more_of_call(self, place: Place, fields: JsonObject) -> Sequence[bytes]:
        # OpenAI's library insists on a function in every piece.
        function = {"arguments": "", **fields.get("function", {})}
        return self._chunks.add(
            place[0], {"tool_calls": [{"index": self._calls[place], **fields, "function": function}]}
        )

    def _block_fields(self, item: BlockFields) -> Sequence[bytes]:
        place = (item.choice, item.block)
        if item.dialect != NAME:
            return ()
        if place in self._calls:
            return self._more_of_call(place, item.fields)
        return self._thinking.fields(item) if self._thinking.knows(place) else ()

    def _unknown(self, item: UnknownContent) -> Sequence[bytes]:
        if item.dialect != NAME:
            return ()
        self._unknowns += 1
        return self._chunks.add(item.choice, {"content_blocks": [{"index": self._unknowns - 1, "block": item.value}]})

    def _fields(self, item: ReplyFields) -> Sequence[bytes]:
        if item.dialect != NAME:
            return ()
        if item.choice is None:
            self._chunks.add_fields(item.fields)
            return ()
        message, choice = unflatten(item.fields)
        return self._chunks.add_choice(item.choice, message, choice)

    def _usage_update(self, item: UsageUpdate) -> tuple[()]:
        self._usage = item.usage
        return ()

    def _finish_event(self, item: Finish) -> tuple[()]:
        self._finishes[item.choice] = item
        return ()

    def _extend(self, item: Extension) -> tuple[()]:
        self._extension |= item.fields
        return ()

    def _fail(self, item: Failed) -> Sequence[bytes]:
        self._failed = True
        own = {"bardo": self._extension} if self._extension else {}
        return (encode_sse(json_bytes({"error": error_object(item.error), **own})),)


def _block_of(item: Event) -> Place | None:
    block = getattr(item, "block", None)
    return None if block is None else (getattr(item, "choice", 0), block)


_WRITERS: dict[type, Callable[[Any, Any], Sequence[bytes]]] = {
    ContentChunk: ChatEncoder._content,
    ThinkChunk: ChatEncoder._think,
    ToolCallChunk: ChatEncoder._call_chunk,
    ReplyStart: ChatEncoder._begin,
    ThinkStart: ChatEncoder._think_start,
    OpaqueState: ChatEncoder._opaque,
    RefusalChunk: ChatEncoder._refusal,
    ToolCallStart: ChatEncoder._call_start,
    BlockFields: ChatEncoder._block_fields,
    UnknownContent: ChatEncoder._unknown,
    ReplyFields: ChatEncoder._fields,
    UsageUpdate: ChatEncoder._usage_update,
    Finish: ChatEncoder._finish_event,
    Extension: ChatEncoder._extend,
    Failed: ChatEncoder._fail,
}


_END = b',"finish_reason":null}]}\n\n'
# The bytes around the two texts of a piece of thinking, and its index.
_PLAIN, _DETAIL, _ = json_bytes({"reasoning_content": "", "reasoning_details": [piece_of_text("", None)]}).split(b'""')
_DETAIL_END = b',"index":%d}]}'
_TEXT = b'{"content":'
_TEXT_END = b"}" + _END
_SMALL = 200
# Fields that stand in every frame; the others stand in the next one only.
_MOST_REPEATED = 32


class ChunkWriter:
    """Writes `chat.completion.chunk` frames, all with the same head; their content does not matter to it.

    The bytes before a delta are written once for each choice, so that a plain delta costs two joins. Small fields of the reply stand in
    that head, as the providers' own servers have it; large ones are sent once, in the next frame.
    """

    def __init__(self, model: str) -> None:
        self._head: JsonObject = {"id": "", "object": "chat.completion.chunk", "created": 0, "model": model}
        self._small: JsonObject = {}
        self._pending: JsonObject = {}
        self._prefixes: dict[int, bytes] = {}
        self._text_prefixes: dict[int, bytes] = {}
        self._begun: set[int] = set()

    @property
    def choices(self) -> set[int]:
        """The choices that have begun."""
        return self._begun

    def begin(self, start: ReplyStart) -> None:
        """Take the id, the model and the time, as far as they are known."""
        self._head["id"] = start.id or self._head["id"]
        self._head["model"] = start.model or self._head["model"]
        self._head["created"] = start.created if start.created is not None else self._head["created"]
        self._forget_prefixes()

    def add_fields(self, fields: JsonObject) -> None:
        """Take fields of the reply, for the next frame and, where they are small, for all after it."""
        for name, value in fields.items():
            plain = value is None or (isinstance(value, str | int | float) and len(str(value)) <= _SMALL)
            repeated = plain and (name in self._small or len(self._small) < _MOST_REPEATED)
            target = self._small if repeated else self._pending
            held = target.get(name)
            if isinstance(held, list) and isinstance(value, list):
                held.extend(value)
            else:
                target[name] = [*value] if isinstance(value, list) else value
        self._forget_prefixes()

    def delta(self, choice: int, delta: bytes) -> Sequence[bytes]:
        """Return the frame of a delta that is written already."""
        prefix = self._prefixes.get(choice)
        if prefix is not None:
            return (prefix + delta + _END,)
        return self._next(choice, delta)

    def text(self, choice: int, text: str) -> Sequence[bytes]:
        """Return the frame of a piece of the answer."""
        prefix = self._text_prefixes.get(choice)
        if prefix is not None:
            return (prefix + json_bytes(text) + _TEXT_END,)
        return self.delta(choice, _TEXT + json_bytes(text) + b"}")

    def texts(self, choice: int, texts: Sequence[str]) -> Sequence[bytes]:
        """Return the frames of pieces of the answer, which go on with one that was written."""
        prefix = self._text_prefixes[choice]
        return [prefix + json_bytes(text) + _TEXT_END for text in texts]

    def thinking(self, choice: int, text: str) -> Sequence[bytes]:
        """Return the frame of a piece of thinking of which only the text is known."""
        return self.delta(choice, b'{"reasoning_content":' + json_bytes(text) + b"}")

    def detailed_thinking(self, choice: int, text: str, index: int) -> Sequence[bytes]:
        """Return the frame of text that goes on with the piece `index` of the details."""
        written = json_bytes(text)
        return self.delta(choice, b"".join((_PLAIN, written, _DETAIL, written, _DETAIL_END % index)))

    def thoughts(self, choice: int, texts: Sequence[str], index: int) -> Sequence[bytes]:
        """Return the frames of pieces of thinking, which go on with one that was written; `index` is -1 without details."""
        prefix = self._prefixes[choice]
        if index < 0:
            head, tail = prefix + b'{"reasoning_content":', b"}" + _END
            return [head + json_bytes(text) + tail for text in texts]
        head, tail = prefix + _PLAIN, _DETAIL_END % index + _END
        return [head + written + _DETAIL + written + tail for written in map(json_bytes, texts)]

    def arguments(self, choice: int, index: int, text: str) -> Sequence[bytes]:
        """Return the frame of a piece of the arguments of call `index`."""
        head = b'{"tool_calls":[{"index":%d,"function":{"arguments":' % index
        return self.delta(choice, head + json_bytes(text) + b"}}]}")

    def add(self, choice: int, delta: JsonObject) -> Sequence[bytes]:
        """Return the frame of a delta."""
        return self.delta(choice, json_bytes(delta))

    def add_choice(self, choice: int, delta: JsonObject, fields: JsonObject) -> Sequence[bytes]:
        """Return the frame of a delta with further fields of its choice."""
        choice_chunk = {"index": choice, "delta": delta, "finish_reason": None, **fields}
        return (*self._opening(choice), self.frame({"choices": [choice_chunk]}))

    def finish(self, choice: int, word: str, last: JsonObject) -> Sequence[bytes]:
        """Return the frame with a choice's finish reason; `last` are fields of the reply."""
        entry = {"index": choice, "delta": {}, "finish_reason": word}
        return (*self._opening(choice), self.frame({"choices": [entry], **last}))

    def frame(self, fields: JsonObject) -> bytes:
        """Return a frame with all that is known of the reply, and `fields`."""
        pending, self._pending = self._pending, {}
        return encode_sse(json_bytes({**self._head, **self._small, **pending, **fields}))

    def _next(self, choice: int, delta: bytes) -> Sequence[bytes]:
        """Return the first frame after the head changed, and keep the head for those that follow."""
        opening = self._opening(choice, content="" if delta.startswith(_TEXT) else None)
        head = json_bytes({**self._head, **self._small})[:-1]
        place = b',"choices":[{"index":' + str(choice).encode() + b',"delta":'
        self._prefixes[choice] = b"data: " + head + place
        self._text_prefixes[choice] = b"data: " + head + place + _TEXT
        large, self._pending = self._pending, {}
        more = b"," + json_bytes(large)[1:-1] if large else b""
        return (*opening, b"data: " + head + more + place + delta + _END)

    def _forget_prefixes(self) -> None:
        self._prefixes.clear()
        self._text_prefixes.clear()

    def _opening(self, choice: int, *, content: str | None = None) -> Sequence[bytes]:
        """Return the frame that begins a choice. Its content is null where no text follows at once, as OpenAI begins a call."""
        if choice in self._begun:
            return ()
        self._begun.add(choice)
        entry = {"index": choice, "delta": {"role": "assistant", "content": content}, "finish_reason": None}
        return (self.frame({"choices": [entry]}),)


def encode_partial(value: object, start: ReplyStart) -> bytes:
    """Write a partial answer as a chunk without choices, as the chunk with the usage is."""
    head = {"id": start.id, "object": "chat.completion.chunk", "created": start.created or 0, "model": start.model}
    return encode_sse(json_bytes({**head, "choices": [], "bardo": {"partial": value}}))


def unflatten(fields: JsonObject) -> tuple[JsonObject, JsonObject]:
    """Return what was carried of a choice as (fields of its message, fields of the choice)."""
    message: JsonObject = {}
    choice: JsonObject = {}
    logprobs: JsonObject = {}
    for name, value in fields.items():
        head, dot, rest = name.partition(".")
        if head == "message" and dot:
            message[rest] = _join_text(value) if rest == "audio" else value
        elif head == "logprobs" and dot:
            logprobs[rest] = value
        else:
            choice[name] = value
    return message, {**choice, "logprobs": logprobs} if logprobs else choice


def add_carried(message: JsonObject, carried: JsonObject) -> JsonObject:
    """Return a message with its carried fields; opaque state already in its `extra_content` stays."""
    own, more = message.get("extra_content"), carried.get("extra_content")
    merged = {**message, **carried}
    if own and isinstance(more, dict):
        merged["extra_content"] = merge_extra(own, more)
    return merged


def _join_text(pieces: object) -> object:
    if not isinstance(pieces, list):
        return pieces
    whole: JsonObject = {}
    for piece in pieces:
        for name, value in piece.items() if isinstance(piece, dict) else ():
            held = whole.get(name)
            grows = name in ("data", "transcript") and isinstance(held, str) and isinstance(value, str)
            whole[name] = held + value if grows else value
    return whole
