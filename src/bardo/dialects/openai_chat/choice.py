"""One choice of a chat reply: its deltas to events."""

from __future__ import annotations

from typing import Any

from bardo.dialects.lenient import as_text
from bardo.dialects.openai_chat.calls import CallReader
from bardo.dialects.openai_chat.carried import CarriedFields
from bardo.dialects.openai_chat.constants import NAME, decode_finish
from bardo.dialects.openai_chat.details import BLANK_LINE, decode_details, plain_before
from bardo.dialects.openai_chat.extra import decode_states
from bardo.dialects.openai_chat.open_block import Kind, OpenBlock
from bardo.dialects.openai_chat.plain_frame import PlainDelta
from bardo.dialects.openai_chat.thinking import ThinkingReader, hold_text
from bardo.dialects.openai_chat.thinking_blocks import ThinkingBlocks
from bardo.values.blocks import Opaque
from bardo.values.events import (
    ContentChunk,
    Event,
    Finish,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ThinkChunk,
    UnknownContent,
)


class ChoiceReader:
    """Reads the deltas of one choice, in order."""

    def __init__(self, index: int, *, returns_details: bool = False) -> None:
        self.returned = ReturnedDetails() if returns_details else None
        self._index = index
        self._open = OpenBlock(index)
        self._thinking = ThinkingReader(self._open)
        self._blocks = ThinkingBlocks()
        self.calls = CallReader(self._open)
        self._carried = CarriedFields()
        self._finish: Finish | None = None

    @property
    def begun(self) -> bool:
        """Whether anything has been said."""
        return self._open.number >= 0 or self.calls.any

    @property
    def position(self) -> object:
        """Which block is being written; differs whenever one began or ended."""
        # Of a call that is said twice, a frame that looks like the last may say nothing new.
        said_twice = object() if self.calls.said_twice else None
        return (self._open.kind, self._open.number, self.calls.waiting, said_twice)

    @property
    def finished(self) -> bool:
        """Whether a finish reason has come."""
        return self._finish is not None

    def take(self, choice: dict[str, Any], delta: dict[str, Any], *, whole: bool) -> list[Event]:
        """Take a whole choice object."""
        if self.returned is not None:
            self.returned.take(delta, whole=whole)
        events = self._take_thinking(delta, whole=whole)
        thought = any(type(event) is ThinkChunk for event in events)
        events += self._take_states(delta, whole=True) if whole else []
        events += self._take_content(delta.get("content"), read_thinking=not thought)
        blocks = delta.get("content_blocks")
        for block in blocks if isinstance(blocks, list) else ():
            wrapped = isinstance(block, dict) and block.keys() == {"index", "block"}
            events += self._unknown(block["block"] if wrapped else block)
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            events += self._enter("refusal")
            events.append(RefusalChunk(self._open.number, refusal, self._index))
        events += [] if whole else self._take_states(delta, whole=False)
        events += self.calls.take(delta)
        fields = self._carried.changes(choice, delta)
        if fields:
            events.append(ReplyFields(NAME, fields, self._index))
        return events + self._take_finish(choice.get("finish_reason"), choice.get("native_finish_reason"))

    def takes_plain(self, delta: PlainDelta) -> bool:
        """Whether all that `take` would do with a plain delta is in `take_plain`."""
        return not self.calls.any and (self.returned is None or not (delta.reasoning or delta.reasoning_content))

    def take_plain(self, delta: PlainDelta, finish: str | None) -> list[Event]:
        """Take a delta that holds text, thinking, or nothing; `finish` is the reason that came with it."""
        if delta.reasoning_content:
            events = self._add_reasoning(delta.reasoning_content, "reasoning_content")
        else:
            events = self._add_reasoning(delta.reasoning, "reasoning") if delta.reasoning else []
        if delta.content:
            events += self._text(delta.content)
        return events + self._take_finish(finish) if finish else events

    def close(self, *, settle: bool) -> list[Event]:
        """Close what is open. `settle`: the reply is complete; a choice without a finish reason gets the one that can be told."""
        broken = self._finish is not None and self._finish.reason == "error"
        events = [*self._open.leave(), *self.calls.close(complete=settle and not broken)]
        if settle and self._finish is None:
            events.append(self._finished(""))
        return events

    def _enter(self, kind: Kind) -> list[Event]:
        held = self.calls.settle() if self.calls.waiting else []
        return held + self._open.enter(kind)

    def _text(self, text: str) -> list[Event]:
        return [*self._enter("text"), ContentChunk(self._open.number, text, self._index)]

    def _add_reasoning(self, text: str, field: str) -> list[Event]:
        held = self.calls.settle() if self.calls.waiting else []
        return held + self._thinking.plain(text, field)

    def _unknown(self, value: Any) -> list[Event]:
        events = self._enter("")
        return [*events, UnknownContent(self._open.fresh(), NAME, value, self._index)]

    def _take_thinking(self, delta: dict[str, Any], *, whole: bool) -> list[Event]:
        details = delta.get("reasoning_details")
        if details is None and isinstance(blocks := delta.get("thinking_blocks"), list):
            details = self._blocks.pieces(blocks)
        if isinstance(details, list) and hold_text(details):
            before = self._plain_before(delta, details) if whole else []
            return [*self.calls.settle(), *before, *self._thinking.details(details, whole=whole)]
        events: list[Event] = []
        for field in ("reasoning_content", "reasoning", "reasoning_details"):
            text = delta.get(field)
            if isinstance(text, str) and text:
                events = self._add_reasoning(text, field)
                break
        events = events or self._take_steps(delta.get("reasoning_steps"))
        return events + self._thinking.details(details, whole=whole) if isinstance(details, list) else events

    def _take_steps(self, steps: Any) -> list[Event]:
        """Read Perplexity's steps: each has a thought, beside the search or the page that it led to."""
        found = steps if isinstance(steps, list) else ()
        thoughts = [
            step["thought"] for step in found if isinstance(step, dict) and isinstance(step.get("thought"), str)
        ]
        return [
            event
            for thought in thoughts
            if thought
            for event in self._add_reasoning(f"{thought}\n\n", "reasoning_steps")
        ]

    def _plain_before(self, message: dict[str, Any], details: list[Any]) -> list[Event]:
        """Read the thinking of a whole message that only its plain field has: bardo writes so what came before its first detail."""
        text = message.get("reasoning_content")
        if not isinstance(text, str) or not text.count(BLANK_LINE):
            return []
        pieces = [one for one in details if isinstance(one, dict)]
        before = plain_before(text, [one.block.readable for one in decode_details(pieces) if one.block.readable])
        return self._thinking.plain_before(before, "reasoning_content") if before else []

    def _take_content(self, content: Any, *, read_thinking: bool) -> list[Event]:
        if not isinstance(content, list):
            # Cloudflare answers a schema with the object itself.
            text = as_text(content)
            return self._text(text) if text else []
        events: list[Event] = []
        for part in content:
            events += self._take_part(part, read_thinking=read_thinking)
        return events

    def _take_part(self, part: Any, *, read_thinking: bool) -> list[Event]:
        if isinstance(part, str):
            return self._text(part) if part else []
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "thinking":
            return self._thinking_part(part) if read_thinking else []
        if kind not in ("text", "output_text") or not isinstance(part.get("text"), str):
            return self._unknown(part)
        events = self._text(part["text"]) if part["text"] else []
        rest = {f"message.{name}": value for name, value in part.items() if name not in ("type", "text") and value}
        return [*events, ReplyFields(NAME, rest, self._index)] if rest else events

    def _thinking_part(self, part: dict[str, Any]) -> list[Event]:
        """Read Mistral's thinking part: a list of texts, or a string. Its `closed` stands on every piece and says nothing."""
        inner = part.get("thinking")
        events: list[Event] = []
        for piece in inner if isinstance(inner, list) else [inner]:
            text = piece.get("text") if isinstance(piece, dict) else piece
            if isinstance(text, str):
                events += self._add_reasoning(text, "content_list") if text else []
            elif piece is not None:
                events += self._unknown(piece)
        signature = part.get("signature")
        if isinstance(signature, str) and signature and self._open.kind == "think":
            state = Opaque("signature", signature, "content_list")
            events.append(OpaqueState(self._open.number, state, self._index))
        return events

    def _take_states(self, delta: dict[str, Any], *, whole: bool) -> list[Event]:
        states, _ = decode_states(delta.get("extra_content"))
        if not states:
            return []
        events = self._enter("text")
        if whole:
            # The block begins before its state, and its text follows: who writes Gemini again knows both at once.
            events.append(ContentChunk(self._open.number, "", self._index))
        return events + [OpaqueState(self._open.number, state, self._index) for state in states]

    def _take_finish(self, raw: Any, native: Any = None) -> list[Event]:
        if not isinstance(raw, str) or not raw:
            return []
        # OpenRouter says "tool_calls" of a call that its provider cut off, and "max_output_tokens" beside it (gpt-4.1-mini, gpt-4o-mini).
        if isinstance(native, str) and decode_finish(native, calls=False) == "length":
            raw = native
        known = self._finish
        finish = self._finished(raw)
        events = [*self._open.leave(), *self.calls.close(complete=finish.reason != "error")]
        # Some hosts say it twice, once with the usage.
        return events if finish == known else [*events, finish]

    def _finished(self, raw: str) -> Finish:
        self._finish = Finish(decode_finish(raw, calls=self.calls.any), raw, choice=self._index)
        return self._finish


_TEXTS = {"reasoning.text": "text", "reasoning.summary": "summary"}


class ReturnedDetails:
    """Collects `reasoning_details` as the host takes them back: fragments of a stream joined, all else unmodified and in order.

    Nothing is returned where it cannot be told which of them a repeated frame continued.
    """

    # OpenRouter: "the entire sequence of consecutive reasoning blocks must match the outputs generated by the model during the original
    # request; you cannot rearrange or modify the sequence of these blocks" (openrouter.ai/docs, Reasoning tokens, 2026-11-20).

    def __init__(self) -> None:
        self._pieces: list[dict[str, Any]] = []
        self._texts: list[list[str]] = []
        self._beside = False
        self._repeated = False

    def take(self, delta: dict[str, Any], *, whole: bool) -> None:
        """Take one delta, or a whole message."""
        details = delta.get("reasoning_details")
        found = [detail for detail in details if isinstance(detail, dict)] if isinstance(details, list) else []
        for detail in found:
            if whole or not self._joins(detail):
                self._pieces.append(dict(detail))
                self._texts.append([])
            else:
                self._join(detail)
        if not found and (delta.get("reasoning") or delta.get("reasoning_content")):
            self._beside = True

    def more(self, text: str) -> None:
        """Take a further piece of text, of a frame that is the one before over again."""
        self._repeated = True
        if self._texts:
            self._texts[-1].append(text)

    def pieces(self) -> list[dict[str, Any]]:
        """Return the details."""
        if self._beside and self._repeated:
            return []
        return [self._whole(piece, texts) for piece, texts in zip(self._pieces, self._texts, strict=True)]

    def _joins(self, detail: dict[str, Any]) -> bool:
        kind = detail.get("type")
        if not self._pieces or not isinstance(kind, str) or kind not in _TEXTS:
            return False
        last = self._pieces[-1]
        return (last.get("type"), last.get("index")) == (kind, detail.get("index"))

    def _join(self, detail: dict[str, Any]) -> None:
        last, field = self._pieces[-1], _TEXTS[str(detail["type"])]
        for name, value in detail.items():
            if name == field and isinstance(value, str) and isinstance(last.get(name), str):
                self._texts[-1].append(value)
            elif value is not None or name not in last:
                last[name] = value

    def _whole(self, piece: dict[str, Any], texts: list[str]) -> dict[str, Any]:
        field = _TEXTS.get(str(piece.get("type")), "")
        return {**piece, field: "".join([str(piece[field]), *texts])} if texts and field in piece else dict(piece)
