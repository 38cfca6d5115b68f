"""The layer `privacy` (L7): personal data is masked in requests and put back in replies; or it is only counted, or the call is refused.

First all texts are searched, then every value that was found anywhere is masked everywhere: a number that a word beside it gave away in one
message stands alone in the next. Where anything fails, the call is not sent.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from bardo.context.effects import TooMuchWork
from bardo.context.layer import Effect, KeptReply, LayerFacts, LayerSteps, Passed, Receipt, changed
from bardo.context.privacy.known_values import Pieces
from bardo.context.privacy.placeholders import ExactRestorer, JsonRestorer, Placeholders, RestorePlan, TextRestorer
from bardo.context.privacy.search import DetectedValue, DetectedValues, FindPersonalData, Found, find_values
from bardo.values.blocks import (
    Block,
    Carried,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    ResultPart,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, InternalError, InvalidRequest
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Failed,
    Finish,
    Partial,
    RefusalChunk,
    ReplyFields,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
)
from bardo.values.request import Message, Request
from bardo.values.response import Response

_Restorer = TextRestorer | ExactRestorer | JsonRestorer
_Place = tuple[int, int, int | None]
"""Choice, block and part of a summary."""
_Again = Callable[[str], Event]


class RestoreStage:
    """Restores the values of one reply. `typed`: its text is JSON.

    Values are put back in text, thinking, the arguments of calls, and the fields beside them.
    """

    def __init__(self, restoring: RestorePlan, *, typed: bool) -> None:
        self._restoring = restoring
        self._of_text: type[_Restorer] = JsonRestorer if typed else TextRestorer
        self._open: dict[_Place, tuple[_Restorer, _Again]] = {}
        self._texts: dict[int, _Place] = {}

    def feed(self, item: Event) -> Sequence[Event]:
        """Return the event with values, behind what was held before it."""
        take = _TAKE.get(type(item))
        return (item,) if take is None else take(self, item)

    def finish(self) -> Sequence[Event]:
        """Return what was held."""
        return [event for place in list(self._open) for event in self._close(place)]

    def _content(self, item: ContentChunk) -> Sequence[Event]:
        place = item.choice, item.block, None
        return self._text(place, item.text, self._of_text, lambda text: ContentChunk(item.block, text, item.choice))

    def _refusal(self, item: RefusalChunk) -> Sequence[Event]:
        place = item.choice, item.block, None
        return self._text(place, item.text, TextRestorer, lambda text: RefusalChunk(item.block, text, item.choice))

    def _thinking(self, item: ThinkChunk) -> Sequence[Event]:
        place = item.choice, item.block, item.part
        again = lambda text: ThinkChunk(item.block, text, item.part, item.choice)  # noqa: E731
        return self._text(place, item.text, ExactRestorer, again)

    def _arguments(self, item: ToolCallChunk) -> Sequence[Event]:
        place = item.choice, item.block, None
        again = lambda text: ToolCallChunk(item.block, text, item.choice)  # noqa: E731
        return self._piece(place, item.arguments, JsonRestorer, again)

    def _text(self, place: _Place, text: str, kind: type[_Restorer], again: _Again) -> Sequence[Event]:
        """Restore a piece of text. What another text of the choice held comes before it: no placeholder goes on in another block."""
        last = self._texts.get(place[0])
        before = () if last is None or last == place else self._close(last)
        self._texts[place[0]] = place
        return (*before, *self._piece(place, text, kind, again))

    def _piece(self, place: _Place, text: str, kind: type[_Restorer], again: _Again) -> Sequence[Event]:
        entry = self._open.get(place)
        restorer = kind(self._restoring) if entry is None else entry[0]
        self._open[place] = restorer, again
        restored = restorer.feed(text)
        return (again(restored),) if restored or not text else ()

    def _begin(self, item: ThinkStart | ToolCallStart | UnknownContent | BlockFields) -> Sequence[Event]:
        """Return what another text of the choice held, and the event of a block that comes behind it."""
        last = self._texts.get(item.choice)
        if last is None or last[1] >= item.block:
            return (item,)
        del self._texts[item.choice]
        return (*self._close(last), item)

    def _end(self, item: ThinkEnd | ToolCallEnd) -> Sequence[Event]:
        places = [place for place in self._open if place[:2] == (item.choice, item.block)]
        return (*(event for place in places for event in self._close(place)), item)

    def _finish(self, item: Finish) -> Sequence[Event]:
        places = [place for place in self._open if place[0] == item.choice]
        return (*(event for place in places for event in self._close(place)), item)

    def _failed(self, item: Failed) -> Sequence[Event]:
        return (*self.finish(), item)

    def _fields(self, item: BlockFields | ReplyFields) -> Sequence[Event]:
        restored = msgspec.structs.replace(item, fields=self._restoring.in_value(item.fields))
        return self._begin(restored) if isinstance(restored, BlockFields) else (restored,)

    def _value(self, item: UnknownContent | Partial) -> Sequence[Event]:
        restored = msgspec.structs.replace(item, value=self._restoring.in_value(item.value))
        return self._begin(restored) if isinstance(restored, UnknownContent) else (restored,)

    def _close(self, place: _Place) -> Sequence[Event]:
        entry = self._open.pop(place, None)
        rest = entry[0].finish() if entry else ""
        return (entry[1](rest),) if entry and rest else ()


_TAKE: dict[type, Callable[[RestoreStage, Any], Sequence[Event]]] = {
    ContentChunk: RestoreStage._content,
    RefusalChunk: RestoreStage._refusal,
    ThinkChunk: RestoreStage._thinking,
    ToolCallChunk: RestoreStage._arguments,
    ThinkStart: RestoreStage._begin,
    ToolCallStart: RestoreStage._begin,
    ThinkEnd: RestoreStage._end,
    ToolCallEnd: RestoreStage._end,
    Finish: RestoreStage._finish,
    Failed: RestoreStage._failed,
    BlockFields: RestoreStage._fields,
    ReplyFields: RestoreStage._fields,
    UnknownContent: RestoreStage._value,
    Partial: RestoreStage._value,
}


Change = Callable[[str], str]
_NO_TEXT = """
signature data encrypted_content encrypted_index thought_signature thoughtSignature bytes id call_id tool_use_id file_id type media_type
mimeType image_url
"""
OPAQUE_FIELDS = frozenset(_NO_TEXT.split())
"""Fields of blocks that hold what only their provider reads, or no text."""
_STRING = re.compile(r'"((?:[^"\\]++|\\.)*+)(?:"|\Z)', re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.+-])-?[0-9]+(?:\.[0-9]+)?(?![\w.+-])")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_MOST_NESTED = 2


class TextChanger:
    """Changes the texts of a request. `change` is given each text; `quoted` says what stands for a JSON number, None for most.

    They are prompts, tool results, arguments of calls, thinking, and the strings in fields that bardo only carries. Of a text that is JSON,
    each string is a text of its own. Opaque state, pictures and files are left as they are.
    """

    def __init__(self, change: Change, quoted: Callable[[str], str | None] = lambda number: None) -> None:
        self._change = change
        self._quoted = quoted
        self.skipped: Counter[str] = Counter()

    def request(self, request: Request) -> Request:
        """Return the request with changed texts, or itself where none changed."""
        messages = tuple([self.message(message) for message in request.messages])
        extra = self.value(request.extra)
        form = request.output_format
        if form is not None and form.guidance:
            guidance = self._change(form.guidance)
            form = form if guidance == form.guidance else msgspec.structs.replace(form, guidance=guidance)
        if form is request.output_format and extra is request.extra and _same(messages, request.messages):
            return request
        return changed(request, messages=messages, extra=extra, output_format=form)

    def message(self, message: Message) -> Message:
        """Return a message with changed texts, or itself."""
        blocks = tuple([self.block(block) for block in message.blocks])
        carried = self._carried(message.carried)
        same = carried is message.carried and _same(blocks, message.blocks)
        return message if same else Message(message.role, blocks, carried)

    def block(self, block: Block) -> Block:
        """Return a block with changed texts, or itself."""
        if isinstance(block, TextBlock | ImageBlock | DocumentBlock | UnknownBlock):
            return self._part(block)
        carried = self._carried(block.carried)
        if isinstance(block, ToolResultBlock):
            content = tuple([self._part(part) for part in block.content])
            return _with(block, carried=carried, content=block.content if _same(content, block.content) else content)
        if isinstance(block, ToolCallBlock):
            return _with(block, carried=carried, arguments=self.json(block.arguments))
        if isinstance(block, ReasoningBlock):
            summary = tuple([self._change(text) for text in block.summary])
            return _with(block, carried=carried, text=self._change(block.text), summary=summary)
        return _with(block, carried=carried, text=self.text(block.text))

    def _part(self, part: ResultPart) -> ResultPart:
        if isinstance(part, UnknownBlock):
            return _with(part, value=self.value(part.value))
        if isinstance(part, ImageBlock):
            self.skipped["pictures"] += 1
            return part
        carried = self._carried(part.carried)
        if isinstance(part, DocumentBlock):
            self.skipped["files"] += bool(part.data or part.url)
            name, source = self._change(part.name), self._change(part.source)
            return _with(part, carried=carried, text=self.text(part.text), name=name, source=source)
        return _with(part, carried=carried, text=self.text(part.text))

    def _carried(self, carried: Carried | None) -> Carried | None:
        return None if carried is None else _with(carried, fields=self.value(carried.fields))

    def text(self, text: str) -> str:
        """Return a text changed; string by string where it is JSON."""
        return self.json(text) if text[:1] in ("{", "[") else self._change(text)

    def json(self, text: str, nested: int = 0) -> str:
        """Return JSON text of which each string is changed, and each number that something stands for; all else stays as it is."""
        parts: list[str] = []
        read = 0
        for match in _STRING.finditer(text):
            parts.append(self._numbers(text[read : match.start()]))
            parts.append(self._string(match, nested))
            read = match.end()
        return "".join([*parts, self._numbers(text[read:])])

    def _string(self, match: re.Match[str], nested: int) -> str:
        try:
            plain = json.loads(match.group(), strict=False)
        except ValueError:
            return self._change(match.group())
        inner = plain[:1] in ("{", "[") and nested < _MOST_NESTED
        new = self.json(plain, nested + 1) if inner else self._change(plain)
        return match.group() if new == plain else json.dumps(new, ensure_ascii=False)

    def _numbers(self, text: str) -> str:
        def quoted(match: re.Match[str]) -> str:
            placeholder = self._quoted(match.group())
            return match.group() if placeholder is None else f'"{placeholder}"'

        return _NUMBER.sub(quoted, text)

    def value(self, value: Any) -> Any:
        """Return a JSON value with its strings changed, or itself; fields that hold no text stay as they are."""
        if isinstance(value, str):
            return self._change(value)
        if isinstance(value, Mapping):
            new = {key: inner if key in OPAQUE_FIELDS else self.value(inner) for key, inner in value.items()}
            return value if all(new[key] is inner for key, inner in value.items()) else new
        if isinstance(value, list):
            items = [self.value(item) for item in value]
            return value if _same(items, value) else items
        return value


def unescaped(text: str) -> str:
    """Return JSON text without its escapes, also those of JSON within it."""
    for _ in range(_MOST_NESTED + 1):
        if "\\" not in text:
            break
        text = _ESCAPE.sub(_plain, text)
    return text


def _plain(match: re.Match[str]) -> str:
    code, letter = match.groups()
    return chr(int(code, 16)) if code else {"n": "\n", "t": "\t", "r": "\r"}.get(letter, letter)


def _same(new: Any, old: Any) -> bool:
    return all(item is other for item, other in zip(new, old, strict=True))


Struct = TypeVar("Struct", bound=msgspec.Struct)


def _with(struct: Struct, **fields: Any) -> Struct:
    """Return a struct with other fields, or itself where they are equal."""
    if all(value is (old := getattr(struct, name)) or value == old for name, value in fields.items()):
        return struct
    return msgspec.structs.replace(struct, **fields)


class _PendingPlaceholders(msgspec.Struct, frozen=True):
    """The placeholders of a call whose reply comes later: of each value its placeholder, and whether it is masked in words too."""

    values: tuple[tuple[str, str, bool], ...]
    typed: bool


class MaskedReply:
    """The reply to a masked call.

    The reply comes now or hours later. Its values are put back, and the stored form of it has none.
    """

    most_bytes = 0

    def __init__(self, placeholders: Placeholders, *, typed: bool) -> None:
        self._placeholders = placeholders
        self._restoring = RestorePlan(placeholders)
        self._typed = typed

    @classmethod
    def of_kept(cls, state: bytes) -> MaskedReply:
        """Return what `state` was made from. Raises msgspec.DecodeError for anything else."""
        pending = msgspec.msgpack.decode(state, type=_PendingPlaceholders)
        return cls(Placeholders.of_kept(pending.values), typed=pending.typed)

    def kept(self) -> bytes:
        """Return what a reply that comes later needs, with all values: it is kept where the request itself is, and as long."""
        return msgspec.msgpack.encode(_PendingPlaceholders(self._placeholders.kept(), self._typed))

    def stage(self) -> RestoreStage:
        """Return what puts the values back into one reply."""
        return RestoreStage(self._restoring, typed=self._typed)

    def masked(self, response: Response) -> Response:
        """Return a reply with the provider's placeholders, for the log and the state that later turns need."""
        return _with_blocks(response, self._changer().block)

    def masked_request(self, request: Request) -> Request:
        """Return the request of the call as its provider got it."""
        return self._changer().request(request)

    def masked_turn(self, turn: Message) -> Message:
        """Return a further turn of the call with the same placeholders."""
        return self._changer().message(turn)

    def _changer(self) -> TextChanger:
        return TextChanger(self._placeholders.masked, self._placeholders.of)

    def shown(self, response: Response) -> Response:
        """Return a reply as its client gets it."""
        return _with_blocks(response, self._restoring.block)

    def ended(self, request: Request, response: Response, state: KeptReply | None) -> Iterable[Effect]:
        """Nothing is to be done."""
        return ()

    def failed(self) -> Iterable[Effect]:
        """Nothing is to be done."""
        return ()


def _with_blocks(response: Response, change: Callable[[Any], Any]) -> Response:
    others = tuple([_with_blocks(alternative, change) for alternative in response.alternatives])
    return msgspec.structs.replace(
        response, blocks=tuple([change(block) for block in response.blocks]), alternatives=others
    )


NAME = "privacy"
Mode = Literal["mask", "report", "block"]


class PrivacyLayer:
    """The layer. `mode`: values are masked and put back, only counted, or refused. `labels` are the words that placeholders may have."""

    name = NAME
    every_operation = True

    def __init__(self, mode: Mode, labels: Iterable[str]) -> None:
        self._mode = mode
        self.masks = mode != "report"
        self._labels = frozenset(labels)

    def steps(self, request: Request, facts: LayerFacts) -> LayerSteps:
        """Search the request.

        Raises InvalidRequest where it is to be refused, InternalError where it could not be searched, and TooMuchWork.
        """
        try:
            collector = _Collector()
            collector.request(request)
            texts, skipped = tuple(collector.texts), collector.skipped
            detected: Found = (yield FindPersonalData(texts)) if texts else ()
            if self._mode != "mask" or not any(detected):
                return self._counted(request, texts, detected, skipped)
            values = yield from find_values(texts, detected)
            return self._masked(request, values, skipped)
        except (BardoError, TooMuchWork):
            raise
        except Exception as problem:  # noqa: BLE001 - a call that was not searched must not be sent.
            raise InternalError(
                f"the request could not be searched for personal data ({type(problem).__name__}), and is not sent"
            ) from None

    @staticmethod
    def part_of(state: bytes) -> MaskedReply:
        """Return the part of a reply that comes later, by what it kept."""
        return MaskedReply.of_kept(state)

    def _counted(self, request: Request, texts: Sequence[str], detected: Found, skipped: Counter[str]) -> Passed:
        """Return the request as it is. Raises InvalidRequest where it holds what it must not."""
        values = {
            text[span.start : span.end]: span.entity
            for text, spans in zip(texts, detected, strict=True)
            for span in spans
        }
        counts = _counts(values)
        if counts and self._mode == "block":
            raise InvalidRequest(
                f"the request holds personal data: {', '.join(f'{name} ({count})' for name, count in counts.items())}",
                hint="leave it out, or have it masked: [inference.pipeline.privacy] mode",
                param="messages",
            )
        did = f"found {_number(len(values))}" if counts else ""
        receipt = Receipt(layer=NAME, did=did, saw={"texts": len(texts), **counts})
        return Passed(request=request, receipt=receipt, degraded=_not_searched(skipped))

    def _masked(self, request: Request, detected: DetectedValues, skipped: Counter[str]) -> Passed:
        reply = None
        if request.operation == "embed":
            masked = self._masked_apart(request, detected)
        else:
            placeholders = self._placeholders(detected.pieces, detected.values)
            masked = _changer(placeholders, detected.pieces).request(request)
            reply = MaskedReply(placeholders, typed=request.output_format is not None)
        values = {value.value: value.entity for value in detected.values}
        did = f"masked {_number(len(values))}"
        receipt = Receipt(layer=NAME, did=did, saw={"texts": len(detected.pieces), **_counts(values)})
        return Passed(request=masked, receipt=receipt, degraded=_not_searched(skipped), reply=reply)

    def _masked_apart(self, request: Request, detected: DetectedValues) -> Request:
        """Return a request for vectors with placeholders that count from 1 in each text: its vector depends on no other text."""
        by_value = {value.value: value for value in detected.values}

        def changer(collector: _Collector) -> TextChanger:
            pieces = {text: detected.pieces[text] for text in collector.texts}
            here = [by_value[part] for cut in pieces.values() for part, is_value in cut if is_value]
            return _changer(self._placeholders(pieces, here), pieces)

        messages = []
        for message in request.messages:
            (collector := _Collector()).message(message)
            messages.append(changer(collector).message(message))
        (collector := _Collector()).value(request.extra)
        return changed(request, messages=tuple(messages), extra=changer(collector).value(request.extra))

    def _placeholders(self, texts: Iterable[str], values: Iterable[DetectedValue]) -> Placeholders:
        placeholders = Placeholders()
        for text in texts:
            placeholders.avoid(text, self._labels)
        for value in values:
            placeholders.take(value.value, value.label, in_word=value.in_word)
        return placeholders


def _changer(placeholders: Placeholders, pieces: Mapping[str, Pieces]) -> TextChanger:
    """Return what masks texts, of which many are cut already."""

    def masked(text: str) -> str:
        cut = pieces.get(text)
        return placeholders.masked(text) if cut is None else placeholders.in_place(text, cut)

    return TextChanger(masked, placeholders.of)


class _Collector(TextChanger):
    """Notes texts and changes nothing.

    JSON text is searched whole, where the name of a field stands beside its value, and string by string, without escapes.
    """

    def __init__(self) -> None:
        self.texts: dict[str, None] = {}
        super().__init__(self._note)

    def _note(self, text: str) -> str:
        if text:
            self.texts[text] = None
        return text

    def json(self, text: str, nested: int = 0) -> str:
        if nested == 0:
            self._change(unescaped(text))
        if "\\" in text:
            super().json(text, nested)
        return text


def _counts(values: Mapping[str, str]) -> dict[str, int]:
    """Return how many values of each kind there are."""
    return dict(sorted(Counter(values.values()).items()))


def _not_searched(skipped: Counter[str]) -> tuple[Degradation, ...]:
    return tuple(
        Degradation(
            f"{NAME}.{what}", asked=count, why=f"personal data is not looked for in {what}: they are sent as they are"
        )
        for what, count in sorted(skipped.items())
        if count
    )


def _number(count: int) -> str:
    return f"{count} value{'' if count == 1 else 's'}"
