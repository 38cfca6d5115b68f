"""Encode a reply for a Gemini client: a stream of server-sent events, the JSON array that a request without `alt=sse` gets, or one body.

Text and thoughts go out as they come, a call goes out whole, and state and fields go out with the part they belong to. A chunk of a stream
holds thoughts, text or calls, and never two of these: clients keep one of them (google-genai-haystack 7, 2026). The finish reasons, usage,
grounding and bardo's own fields (under `bardo`, which Google's SDKs pass over) stand in the last chunk.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import msgspec

from bardo.dialects.gemini.errors import encode_error
from bardo.dialects.gemini.parts import (
    Part,
    call_part,
    candidate_of,
    is_blocked,
    reply_end,
    reply_ids,
    text_part,
    with_raw_arguments,
)
from bardo.dialects.gemini.wire import FORMAT, NAME, finish_word, is_native, opaque_of
from bardo.dialects.shared.json_values import JsonObject, encode_json
from bardo.dialects.shared.states import NO_STATE
from bardo.values.blocks import (
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    UnknownBlock,
    fields_for,
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
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.fold import CarriedFields, OpaqueStates
from bardo.values.response import Response
from bardo.values.usage import Usage


class PartCollector:
    """Collect the parts of one candidate: a chunk may begin with more of the text or the thought before it.

    `malformed` are the calls whose arguments are no JSON object.
    """

    def __init__(self) -> None:
        self.malformed: list[ToolCallBlock] = []
        self._parts: list[Part] = []
        self._texts: list[str] = []
        self._sealed = False

    def add_blocks(self, blocks: Sequence[ReplyBlock]) -> None:
        """Take the blocks of a reply."""
        for block in blocks:
            _ADD[type(block)](self, block)

    def add(self, parts: Sequence[Part]) -> None:
        """Take the parts of one chunk."""
        for place, part in enumerate(parts):
            last = self._parts[-1] if self._parts else None
            if last is None or not _is_plain(last) or last.get("thought") != part.get("thought"):
                self._append(part)
            elif _is_plain(part) and not place:
                self._texts.append(part["text"])
            elif _is_late_state(part):
                self._parts[-1] = {**part, "text": last["text"]}
            else:
                self._append(part)

    def parts(self) -> list[Part]:
        """Return the parts."""
        self._join()
        return self._parts

    def _add_text(self, block: TextBlock) -> None:
        fields = fields_for(NAME, block.carried)
        if not fields and not block.opaque:
            if block.text:
                self.add((text_part(block.text),))
            return
        states = OpaqueStates.of(block.opaque).states()
        # Gemini's own state stands on its text, any other behind it.
        if block.text and not all(map(is_native, states)):
            self.add((text_part(block.text),))
            self.add((text_part("", fields=fields, opaque=states),))
        else:
            self.add((text_part(block.text, fields=fields, opaque=states),))

    def _add_refusal(self, block: RefusalBlock) -> None:
        self._add_text(TextBlock(block.text, carried=block.carried))

    def _add_thinking(self, block: ReasoningBlock) -> None:
        if block.text:
            self.add((text_part(block.text, thought=True),))
        for number, text in enumerate(block.summary):
            if not number:
                self.add((text_part(text, thought=True),) if text else ())
            elif block.format == FORMAT:
                self.add((text_part("", thought=True), text_part(text, thought=True)))
            else:
                self.add((text_part("\n\n" + text, thought=True),))
        fields = fields_for(NAME, block.carried)
        if fields or block.opaque:
            # A stream gives the id of thinking first.
            states = OpaqueStates.of(sorted(block.opaque, key=lambda state: state.kind != "id")).states()
            self._sealed |= not all(map(is_native, states))
            self.add((text_part("", thought=True, fields=fields, opaque=states),))

    def _add_call(self, block: ToolCallBlock) -> None:
        if not block.complete:
            return
        part, raw = call_part(block, block.opaque)
        if raw:
            self.malformed.append(block)
        self.add((_sealed_call(part) if self._sealed else part,))

    def _add_unknown(self, block: UnknownBlock) -> None:
        if block.dialect == NAME:
            self.add((block.value,))

    def _append(self, part: Part) -> None:
        self._join()
        self._parts.append(part)
        self._texts.append(part.get("text", ""))

    def _join(self) -> None:
        if len(self._texts) > 1:
            self._parts[-1] = {**self._parts[-1], "text": "".join(self._texts)}
        self._texts.clear()


def _is_plain(part: Part) -> bool:
    return isinstance(part.get("text"), str) and len(part) == 1 + ("thought" in part)


def _is_late_state(part: Part) -> bool:
    """Whether the part holds nothing but the state of the thought before it, or state that bardo sealed of the text before it."""
    signature = part.get("thoughtSignature", "")
    return part.get("text") == "" and (bool(part.get("thought")) or opaque_of(signature)[1])


_ADD: dict[type[ReplyBlock], Callable[[PartCollector, Any], None]] = {
    TextBlock: PartCollector._add_text,
    RefusalBlock: PartCollector._add_refusal,
    ReasoningBlock: PartCollector._add_thinking,
    ToolCallBlock: PartCollector._add_call,
    UnknownBlock: PartCollector._add_unknown,
}


def _sealed_call(part: Part) -> Part:
    """Return a call behind thinking that bardo sealed, signed too, as the first call behind Gemini's own thinking is.

    google-genai-haystack 7 sends of a turn with a signature the parts alone that have one (ai.google.dev, "Thought Signatures", 2026-11).
    """
    return {"thoughtSignature": NO_STATE, **part}


class _PendingFields:
    """State and fields of a block which are not written yet."""

    def __init__(self) -> None:
        self.opaque = OpaqueStates()
        self.carried = CarriedFields()

    def __bool__(self) -> bool:
        return bool(self.opaque) or bool(self.carried)

    @property
    def own(self) -> bool:
        """Whether all of it is Gemini's, and so belongs to the very next text of the block."""
        return bool(self) and all(map(is_native, self.opaque.states()))

    def add(self, state: Opaque | JsonObject) -> None:
        if isinstance(state, dict):
            self.carried.merge(NAME, state)
        else:
            self.opaque.add(state)

    def part(self, text: str, *, thought: bool) -> Part:
        fields = self.carried.fields if self.carried else None
        return text_part(text, thought=thought, fields=fields, opaque=self.opaque.states())


class _Call:
    """A function call whose arguments are still coming."""

    def __init__(self) -> None:
        self.id = self.name = ""
        self.pieces: list[str] = []
        self.ended = False
        self.waiting = _PendingFields()
        self.behind: list[Part] = []

    def block(self) -> ToolCallBlock:
        return ToolCallBlock(
            id=self.id,
            name=self.name,
            arguments="".join(self.pieces),
            opaque=self.waiting.opaque.states(),
            carried=self.waiting.carried.carried(),
        )


class OpenParts:
    """The open parts of one candidate while it is written. Every method returns the parts that can be written now.

    A call goes out after it ended, and what began after it waits for it. What comes for a part that has gone already goes out on an empty
    part right after it.
    """

    def __init__(self) -> None:
        self.block = -1
        self.thought = False
        self.finish: Finish | None = None
        self.carried = CarriedFields()
        self.malformed: list[ToolCallBlock] = []
        self.began = False
        self._own = self._sealed = False
        self._part: int | None = None
        self._waiting = _PendingFields()
        self._early: dict[int, _PendingFields] = {}
        self._calls: OrderedDict[int, _Call] = OrderedDict()
        self._kinds: dict[int, bool] = {}

    @property
    def plain(self) -> bool:
        """Whether the next text of the open block can be written as it is: all that waits is for its end."""
        return self.block >= 0 and not self._calls and (self.thought or not self._waiting.own)

    def text(self, block: int, text: str) -> list[Part]:
        """Answer text; empty text begins a block whose state comes first."""
        parts = self._enter(block, thought=False)
        if not text:
            return self._behind_calls(parts)
        if not self._waiting.own:
            return self._behind_calls([*parts, text_part(text)])
        waiting, self._waiting = self._waiting, _PendingFields()
        return self._behind_calls([*parts, waiting.part(text, thought=False)])

    def think_start(self, block: int, format_name: str) -> list[Part]:
        """Thinking begins."""
        parts = self._enter(block, thought=True)
        self._own = format_name == FORMAT
        return self._behind_calls(parts)

    def think(self, block: int, text: str, part: int | None) -> list[Part]:
        """Thinking. A new part of a summary is told by an empty part before it, or by a blank line where it is not Gemini's."""
        parts = self._enter(block, thought=True)
        further = self._part is not None and part != self._part
        self._part = part if part is not None else self._part
        if further and self._own:
            return self._behind_calls([*parts, text_part("", thought=True), text_part(text, thought=True)])
        if further:
            text = "\n\n" + text
        return self._behind_calls([*parts, text_part(text, thought=True)] if text else parts)

    def call_start(self, block: int, call_id: str, name: str) -> list[Part]:
        """A function call begins."""
        parts = self._behind_calls(self._leave(block))
        call = self._call(block)
        call.id, call.name = call_id or call.id, name or call.name
        return parts

    def call_piece(self, block: int, arguments: str) -> list[Part]:
        """A piece of a call's arguments."""
        self._call(block).pieces.append(arguments)
        return []

    def call_end(self, block: int) -> list[Part]:
        """A call is complete. It goes out with what comes next, so that its signature can still join it."""
        self._call(block).ended = True
        return []

    def state(self, block: int, state: Opaque | JsonObject) -> list[Part]:
        """Opaque state or fields, of the open block, of a call, of one to come, or of one that has gone."""
        if block in self._calls:
            self._calls[block].waiting.add(state)
        elif block == self.block:
            self._waiting.add(state)
        elif block in self._kinds:
            late = _PendingFields()
            late.add(state)
            self._sealed |= self._kinds[block] and not late.own
            return self._behind_calls([*self._leave(block), late.part("", thought=self._kinds[block])])
        else:
            self._early.setdefault(block, _PendingFields()).add(state)
        return []

    def unknown(self, block: int, value: Part) -> list[Part]:
        """A whole part of Gemini's that bardo has no word for."""
        self.began = True
        return self._behind_calls([*self._leave(block), value])

    def rest(self) -> list[Part]:
        """Everything that was still held, without the calls that did not end."""
        last = self._leave(-1)
        parts: list[Part] = []
        while self._calls:
            parts += self._ended_calls()
            if self._calls:
                parts += self._calls.popitem(last=False)[1].behind
        parts += last
        for waiting in self._early.values():
            parts.append(waiting.part("", thought=False))
        return parts

    def drop_calls(self) -> None:
        """Forget the calls that are not written yet, and keep what waits behind them: the reply failed."""
        call = _Call()
        call.behind = [part for call in self._calls.values() for part in call.behind]
        self._calls = OrderedDict({-1: call} if call.behind else {})

    def _call(self, block: int) -> _Call:
        call = self._calls.get(block)
        if call is None:
            self.began = True
            call = self._calls[block] = _Call()
            call.waiting = self._early.pop(block, call.waiting)
            self._kinds[block] = False
        return call

    def _enter(self, block: int, *, thought: bool) -> list[Part]:
        if block == self.block and thought == self.thought:
            return []
        parts = self._leave(block)
        self.began = True
        self.block, self.thought = block, thought
        self._own, self._part = False, None
        self._waiting = self._early.pop(block, self._waiting)
        self._kinds[block] = thought
        return parts

    def _leave(self, block: int) -> list[Part]:
        """Return what must stand before `block`, beside the calls that began earlier."""
        if block == self.block:
            return []
        self.block = -1
        if not self._waiting:
            return []
        waiting, self._waiting = self._waiting, _PendingFields()
        self._sealed |= self.thought and not waiting.own
        return [waiting.part("", thought=self.thought)]

    def _behind_calls(self, parts: list[Part]) -> list[Part]:
        """Return the calls that are complete and these parts, which wait where a call is still open."""
        if not self._calls:
            return parts
        ended = self._ended_calls()
        if not self._calls:
            return ended + parts
        self._calls[next(reversed(self._calls))].behind += parts
        return ended

    def _ended_calls(self) -> list[Part]:
        """Return the complete calls in the order they began, up to one that is not."""
        parts, ended = [], []
        for block, open_call in self._calls.items():
            if not open_call.ended:
                break
            ended.append(block)
        for block in ended:
            open_call = self._calls.pop(block)
            call = open_call.block()
            part, raw = call_part(call, call.opaque)
            if raw:
                self.malformed.append(msgspec.structs.replace(call, carried=None))
            parts += [_sealed_call(part) if self._sealed else part, *open_call.behind]
        return parts


def _kind(part: Part) -> str:
    """Return what a part is for clients: thought, call or text."""
    return "thought" if part.get("thought") else "call" if "functionCall" in part else "text"


_TEXT = b'{"candidates":[{"content":{"parts":[{"text":'
_THOUGHT = b'{"candidates":[{"content":{"parts":[{"thought":true,"text":'


class GeminiEncoder:
    """Writes one streamed reply."""

    def __init__(self, framing: str = "sse") -> None:
        self._array = framing == "json_array"
        self.content_type = "application/json; charset=UTF-8" if self._array else "text/event-stream"
        # An empty line: Google's SDK takes a comment for an error.
        self.keep_alive = b"\n"
        self._before, self._after = (b"[", b"") if self._array else (b"data: ", b"\r\n\r\n")
        self._ids: dict[str, str] = {}
        self._choices: dict[int, OpenParts] = {}
        self._last_parts: dict[int, list[Part]] = {}
        self._usage = Usage()
        self._carried = CarriedFields()
        self._extension: JsonObject = {}
        self._closed = False
        # The block whose next piece is written without a look at anything else, and the bytes that follow its text.
        self._plain_kind: type[Event] | None = None
        self._plain_block = self._plain_choice = -1
        self._plain_part: int | None = None
        self._head = self._tail = b""

    def feed(self, item: Event) -> Sequence[bytes]:
        """Take one event, give the chunks it completes."""
        kind = type(item)
        if kind is self._plain_kind and self._continues(item):  # type: ignore[arg-type]
            return (b"".join((self._head, encode_json(item.text), self._tail)),)  # type: ignore[union-attr]
        take = _TAKE.get(kind)
        if take is None or self._closed:
            return ()
        self._plain_kind = None
        return take(self, item)

    def finish(self) -> Sequence[bytes]:
        """Close the stream. After a failure there is nothing more."""
        if self._closed:
            return ()
        self._closed = True
        for choice in self._choices.values():
            choice.finish = choice.finish or Finish("unknown")
        frames = [*self._rest(), self._frame({**self._ending(), **self._ids})]
        return (*frames, b"]") if self._array else frames

    def _continues(self, item: ContentChunk | ThinkChunk) -> bool:
        same = item.block == self._plain_block and item.choice == self._plain_choice and item.text != ""
        return same and (type(item) is ContentChunk or item.part == self._plain_part)  # type: ignore[union-attr]

    def _go_plain(self, item: ContentChunk | ThinkChunk) -> None:
        if not self._choice(item.choice).plain:
            return
        self._plain_kind, self._plain_block, self._plain_choice = type(item), item.block, item.choice
        self._plain_part = item.part if type(item) is ThinkChunk else None
        self._head = self._before + (_TEXT if type(item) is ContentChunk else _THOUGHT)
        ids = encode_json(self._ids)[1:]
        comma = b"," if self._ids else b""
        self._tail = b'}],"role":"model"},"index":%d}]%b%b%b' % (item.choice, comma, ids, self._after)

    def _choice(self, index: int) -> OpenParts:
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = OpenParts()
        return choice

    def _frame(self, body: JsonObject) -> bytes:
        frame = self._before + encode_json(body) + self._after
        if self._array:
            self._before = b",\r\n"
        return frame

    def _parts(self, parts: list[Part], index: int) -> Sequence[bytes]:
        """Return the chunks of some parts of a candidate."""
        return [
            self._frame({"candidates": [{"content": {"parts": [*same], "role": "model"}, "index": index}], **self._ids})
            for _, same in groupby(parts, key=_kind)
        ]

    def _rest(self) -> list[bytes]:
        """Return the chunks of what was held, but for the parts of the last kind, which go out with the ending."""
        frames: list[bytes] = []
        for index, choice in sorted(self._choices.items()):
            kinds = [[*same] for _, same in groupby(choice.rest(), key=_kind)]
            self._last_parts[index] = kinds.pop() if kinds else []
            frames += self._parts([part for same in kinds for part in same], index)
        return frames

    def _ending(self) -> JsonObject:
        """Return the last chunk, which follows the rest."""
        fields = self._carried.fields
        candidates = [self._last(index) for index in sorted(self._choices) if not self._is_silent(index, fields)]
        malformed = [call for choice in self._choices.values() for call in choice.malformed]
        end = reply_end(self._usage, fields, with_raw_arguments(self._extension, malformed))
        return {**({"candidates": candidates} if candidates else {}), **end}

    def _last(self, index: int) -> JsonObject:
        choice = self._choices[index]
        parts = self._last_parts[index] or [text_part("")]
        fields = choice.carried.fields
        return candidate_of(parts, index, finish=finish_word(choice.finish) if choice.finish else "", fields=fields)

    def _is_silent(self, index: int, fields: JsonObject) -> bool:
        choice = self._choices[index]
        return not choice.began and choice.finish is not None and is_blocked(fields, choice.finish)

    def _take_start(self, event: ReplyStart) -> Sequence[bytes]:
        self._ids = {**self._ids, **reply_ids(event.id, event.model)}
        return ()

    def _take_text(self, event: ContentChunk) -> Sequence[bytes]:
        frames = self._parts(self._choice(event.choice).text(event.block, event.text), event.choice)
        if event.text:
            self._go_plain(event)
        return frames

    def _take_refusal(self, event: RefusalChunk) -> Sequence[bytes]:
        return self._parts(self._choice(event.choice).text(event.block, event.text), event.choice)

    def _take_think_start(self, event: ThinkStart) -> Sequence[bytes]:
        return self._parts(self._choice(event.choice).think_start(event.block, event.format), event.choice)

    def _take_think(self, event: ThinkChunk) -> Sequence[bytes]:
        parts = self._choice(event.choice).think(event.block, event.text, event.part)
        frames = self._parts(parts, event.choice)
        if event.text:
            self._go_plain(event)
        return frames

    def _take_call_start(self, event: ToolCallStart) -> Sequence[bytes]:
        return self._parts(self._choice(event.choice).call_start(event.block, event.id, event.name), event.choice)

    def _take_call_piece(self, event: ToolCallChunk) -> Sequence[bytes]:
        return self._parts(self._choice(event.choice).call_piece(event.block, event.arguments), event.choice)

    def _take_call_end(self, event: ToolCallEnd) -> Sequence[bytes]:
        return self._parts(self._choice(event.choice).call_end(event.block), event.choice)

    def _take_opaque(self, event: OpaqueState) -> Sequence[bytes]:
        return self._parts(self._choice(event.choice).state(event.block, event.opaque), event.choice)

    def _take_block_fields(self, event: BlockFields) -> Sequence[bytes]:
        if event.dialect != NAME:
            return ()
        return self._parts(self._choice(event.choice).state(event.block, event.fields), event.choice)

    def _take_unknown(self, event: UnknownContent) -> Sequence[bytes]:
        if event.dialect != NAME:
            return ()
        return self._parts(self._choice(event.choice).unknown(event.block, event.value), event.choice)

    def _take_reply_fields(self, event: ReplyFields) -> Sequence[bytes]:
        if event.dialect != NAME:
            return ()
        if event.choice is None:
            self._carried.merge(NAME, event.fields)
        else:
            self._choice(event.choice).carried.merge(NAME, event.fields)
        return ()

    def _take_usage(self, event: UsageUpdate) -> Sequence[bytes]:
        self._usage = event.usage
        return ()

    def _take_finish(self, event: Finish) -> Sequence[bytes]:
        self._choice(event.choice).finish = event
        return ()

    def _take_extension(self, event: Extension) -> Sequence[bytes]:
        self._extension = {**self._extension, **event.fields}
        return ()

    def _take_failed(self, event: Failed) -> Sequence[bytes]:
        """Write what was held, what was counted, and the error, alone in its chunk as Google's SDK expects it."""
        self._closed = True
        for choice in self._choices.values():
            choice.drop_calls()
        frames = self._rest()
        ending = self._ending()
        frames += [self._frame({**ending, **self._ids})] if ending else []
        frames.append(self._before + encode_error(event.error) + (b"]" if self._array else self._after))
        return frames


def encode_response(response: Response) -> bytes:
    """Encode one whole reply. A reply that failed before it said anything is encoded as the error it is."""
    if response.error is not None and not response.blocks:
        return encode_error(response.error)
    fields = fields_for(NAME, response.carried)
    malformed: list[ToolCallBlock] = []
    replies = enumerate((response, *response.alternatives))
    candidates = [_candidate(index, reply, malformed) for index, reply in replies if not _is_silent(reply, fields)]
    for candidate in candidates if response.error is not None else ():
        candidate.setdefault("finishMessage", str(response.error))
    end = reply_end(response.usage, fields, with_raw_arguments(response.bardo, malformed))
    ids = reply_ids(response.id, response.model)
    return encode_json({**({"candidates": candidates} if candidates else {}), **end, **ids})


def _candidate(index: int, reply: Response, malformed: list[ToolCallBlock]) -> JsonObject:
    collector = PartCollector()
    collector.add_blocks(reply.blocks)
    malformed += collector.malformed
    fields = fields_for(NAME, reply.choice_carried)
    return candidate_of(collector.parts(), index, finish=finish_word(reply.finish), fields=fields)


def _is_silent(reply: Response, fields: JsonObject) -> bool:
    began = any(type(block) is not UnknownBlock or block.dialect == NAME for block in reply.blocks)
    return not began and is_blocked(fields, reply.finish)


_TAKE: dict[type, Callable[[GeminiEncoder, Any], Sequence[bytes]]] = {
    ReplyStart: GeminiEncoder._take_start,
    ThinkStart: GeminiEncoder._take_think_start,
    ThinkChunk: GeminiEncoder._take_think,
    ContentChunk: GeminiEncoder._take_text,
    RefusalChunk: GeminiEncoder._take_refusal,
    ToolCallStart: GeminiEncoder._take_call_start,
    ToolCallChunk: GeminiEncoder._take_call_piece,
    ToolCallEnd: GeminiEncoder._take_call_end,
    OpaqueState: GeminiEncoder._take_opaque,
    BlockFields: GeminiEncoder._take_block_fields,
    UnknownContent: GeminiEncoder._take_unknown,
    ReplyFields: GeminiEncoder._take_reply_fields,
    UsageUpdate: GeminiEncoder._take_usage,
    Finish: GeminiEncoder._take_finish,
    Failed: GeminiEncoder._take_failed,
    Extension: GeminiEncoder._take_extension,
}
