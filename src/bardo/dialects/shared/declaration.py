"""The declarations of the parts of a request and of a reply that a dialect can express.

A declaration names each field of the vocabulary once: as expressed, as expressed only for clients of the dialect itself, or as lacking.
`losses.py` reports everything else that a request says, and `replies/translation_stages.py` everything else that a reply holds. A new
field, event, count or reason to finish that a dialect does not name fails `test_declarations.py` or `test_reply_declarations.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from typing import NamedTuple

import msgspec

from bardo.dialects.shared.content_forms import CitationForm, LogprobForm, PictureForm, SearchForm, ToolSearchForm
from bardo.dialects.shared.json_values import JsonObject
from bardo.values import events
from bardo.values.blocks import (
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from bardo.values.request import NEUTRAL, OutputFormat, Request, Sampling, Tool, ToolChoice
from bardo.values.usage import Usage

BLOCKS: dict[str, type[msgspec.Struct]] = {
    "text": TextBlock,
    "image": ImageBlock,
    "document": DocumentBlock,
    "reasoning_block": ReasoningBlock,
    "tool_call": ToolCallBlock,
    "tool_result": ToolResultBlock,
    "refusal": RefusalBlock,
}
"""The kinds of blocks by the names they are declared under. A block of unknown kind goes to its own dialect only."""

PARTS: dict[str, type[msgspec.Struct]] = {
    "": Request,
    "sampling": Sampling,
    "tools": Tool,
    "tool_choice": ToolChoice,
    "output_format": OutputFormat,
    **BLOCKS,
}
"""The structs whose fields are declared, by the name that stands before the field: `tools.strict`, `image.detail`."""

NOT_DECLARED: dict[str, str] = {
    "model": "every dialect names the model",
    "messages": "declared block by block",
    "sampling": "declared field by field",
    "reasoning": "the control plan writes it, and reports what a model cannot be told",
    "control": "the fragment of the body that the control plan wrote",
    "operation": "chooses what is asked of the provider, before a dialect writes it",
    "stream": "every dialect streams",
    "stream_usage": "says what the client's stream holds",
    "dialect": "says where the request came from",
    "body": "the request as it came",
    "body_bytes": "the request as it came",
    "options": "what is asked of bardo itself",
    "degraded": "what was lost where the request was read",
    "extra": "fields of one dialect: the driver reports those of another",
    "inner_fields": "fields of one dialect: the driver writes them, and reports those of another",
    "headers": "headers of one dialect: the driver reports those of another",
    "client_headers": "say which program asks: nothing of the request",
    "attribution": "no part of the prompt: the driver writes or reports it, by the row of the provider",
    "kept_as": "says how the gateway keeps the reply: nothing that a provider does",
    "*.carried": "fields of one dialect: the driver reports those of another",
    "*.opaque": "state of one provider: the encoders report what theirs does not take, by its format",
    "tool_call.own_id": "says whose id a call has: only the provider that gave it is told",
    "tool_call.complete": "says that a reply broke off in a call: no request holds such a call",
    "tools.name": "part of every tool",
    "tools.hosted": "a tool that only its own provider runs: the encoders report those of others",
    "tool_choice.mode": "the encoders report a mode that the dialect cannot express",
    "tool_choice.name": "goes with the mode `named`",
    "output_format.mode": "the encoders report a mode that the model does not offer",
    "output_format.schema": "goes with the mode `json_schema`",
    "output_format.name": "a label that some dialects demand; it means nothing to the others",
    "output_format.guidance": "said in the prompt, where a model cannot be held to a schema",
    "text.text": "what the block is",
    "refusal.text": "what the block is",
    "image.data": "what the block is",
    "image.url": "what the block is; the encoders report addresses that the dialect does not take",
    "image.media_type": "goes with the data",
    "document.data": "what the block is",
    "document.text": "what the block is",
    "document.url": "what the block is; the encoders report addresses that the dialect does not take",
    "document.media_type": "goes with the data; the encoders report types that the dialect does not take",
    "reasoning_block.text": "what the block is",
    "reasoning_block.summary": "what the block is",
    "reasoning_block.format": "says whose reasoning it is",
    "tool_call.id": "part of every call",
    "tool_call.name": "part of every call",
    "tool_call.arguments": "part of every call",
    "tool_result.call_id": "part of every result",
    "tool_result.name": "the call that is answered names the tool; another name is reported",
    "tool_result.content": "what the block is",
}
"""The fields that no dialect declares, and why."""

COMMON = frozenset(
    {
        "max_output_tokens", "tools", "tools.description", "tools.schema", "tool_choice", "output_format", "sampling.temperature",
        "sampling.top_p", "sampling.stop", "text", "image", "reasoning_block", "tool_call", "tool_result", "refusal",
    }
)  # fmt: skip
"""The fields that a dialect expresses unless it declares otherwise. A field belongs here only where every dialect can express it."""

_NAMES = {
    "choices": "n",
    "reasoning_block": "reasoning",
    "output_format": "response_format",
    "output_format.strict": "response_format.strict",
    "output_format.description": "response_format.description",
    "tool_choice.parallel": "parallel_tool_calls",
}


class Limitation(NamedTuple):
    """A field that a dialect cannot express: why, the substitute that is sent, and the values that mean the same without the field."""

    why: str
    sent: object = None
    same: tuple[object, ...] = ()


class Check(NamedTuple):
    """A field to look at: its attribute, the value that says nothing, the name it is reported under, and its limitation."""

    attribute: str
    default: object
    what: str
    lack: Limitation


class Checks(NamedTuple):
    """The fields to look at, by the part of the request they belong to; and the kinds of blocks that the dialect does not have."""

    fields: dict[str, tuple[Check, ...]]
    blocks: dict[type, tuple[Check, ...]]
    kinds: dict[type, tuple[str, Limitation]]

    def looks_at(self, kind: type) -> bool:
        """Whether blocks of a kind are looked at beside the fields of other dialects that they carry."""
        return kind in self.blocks or kind in self.kinds


class Declaration(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """The parts of a request that one dialect can express, beside those that all can (COMMON).

    `expresses` are further fields, `own` those that are written only for clients of this dialect, `lacks` those that cannot be expressed.
    `title` is what people call the dialect. `own_format` is the format of opaque state that it takes back, or None if it takes none;
    `reasoning_why` says why reasoning in any other format is lost. Requests of a dialect in `also_speaks` have its own fields too.
    `markers` are fields of blocks and tools that other dialects have by the same name, and how many of each a request may hold.
    `needs_turn`: a request that is only of the system is refused. `names_results`: results say the names of their tools themselves.
    """

    dialect: str
    title: str
    expresses: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    lacks: Mapping[str, Limitation]
    own_format: str | None = None
    reasoning_why: str = ""
    also_speaks: frozenset[str] = frozenset()
    markers: Mapping[str, int] = msgspec.field(default_factory=dict)
    needs_turn: bool = False
    names_results: bool = False

    @cached_property
    def speaks(self) -> frozenset[str]:
        """The dialects whose requests have fields of this one."""
        return self.also_speaks | {self.dialect}

    @property
    def declared(self) -> frozenset[str]:
        """All fields that are named, with those of a part that is lacking as a whole."""
        named = COMMON | self.expresses | self.own | self.lacks.keys()
        return named | {name for name in vocabulary() if name.partition(".")[0] in self.lacks}

    @cached_property
    def own_checks(self) -> Checks:
        """The fields to check in a request that came in this dialect."""
        return _checks({name: lack for name, lack in self.lacks.items() if name not in self.own})

    @cached_property
    def foreign_checks(self) -> Checks:
        """The fields to check in a request that came in another dialect."""
        return _checks({**dict.fromkeys(self.own, Limitation(f"{self.title} has no such field")), **self.lacks})


@cache
def vocabulary() -> frozenset[str]:
    """Return the names of all that a dialect must declare: fields of requests and their parts, and kinds of blocks."""
    fields = {f"{part}.{name}".lstrip(".") for part, struct in PARTS.items() for name in struct.__struct_fields__}
    return frozenset(name for name in {*fields, *BLOCKS} if not _is_not_declared(name))


def _is_not_declared(name: str) -> bool:
    return name in NOT_DECLARED or ("." in name and f"*.{name.rpartition('.')[2]}" in NOT_DECLARED)


def _checks(lacks: Mapping[str, Limitation]) -> Checks:
    fields: dict[str, tuple[Check, ...]] = {}
    for name, lack in lacks.items():
        if name not in BLOCKS:
            part, attribute = name.partition(".")[::2] if "." in name else ("", name)
            if part == "sampling" and attribute in NEUTRAL:
                lack = lack._replace(same=(*lack.same, NEUTRAL[attribute]))
            check = Check(attribute, _default(PARTS[part], attribute), reported_name(name), lack)
            fields[part] = (*fields.get(part, ()), check)
    blocks = {BLOCKS[part]: fields.pop(part) for part in [*fields] if part in BLOCKS}
    return Checks(
        fields, blocks, {BLOCKS[name]: (reported_name(name), lack) for name, lack in lacks.items() if name in BLOCKS}
    )


def _default(struct: type[msgspec.Struct], attribute: str) -> object:
    return next(field.default for field in msgspec.structs.fields(struct) if field.encode_name == attribute)


def reported_name(name: str) -> str:
    """Return the name under which a field is reported: the one that most clients know."""
    return _NAMES.get(name, name.removeprefix("sampling."))


def limitations(why: str, *names: str, sent: object = None, same: tuple[object, ...] = ()) -> dict[str, Limitation]:
    """Return these fields as lacking for one reason."""
    return dict.fromkeys(names, Limitation(why, sent, same))


def sampling_fields(names: Iterable[str], *, others: bool = False) -> list[str]:
    """Return the parameters of sampling among these, or the `others`, without those that all dialects have."""
    names_known = {*names}
    fields = [f"sampling.{name}" for name in Sampling.__struct_fields__ if (name in names_known) is not others]
    return [name for name in fields if name not in COMMON]


EVENTS: dict[type, str] = {
    events.ThinkStart: "reasoning",
    events.ContentChunk: "text",
    events.RefusalChunk: "refusal",
    events.ToolCallStart: "tool_call",
    events.OpaqueState: "opaque",
}
"""The events that begin or hold content, by the names they are declared under."""

COMMON_REPLY = frozenset(
    {
        "text", "reasoning", "tool_call", "opaque", "usage.input_tokens", "usage.output_tokens", "finish.stop", "finish.length",
        "finish.tool_calls",
    }
)  # fmt: skip
"""The content that a dialect expresses unless it declares otherwise."""


class ReplyDeclaration(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """The parts of a reply that one dialect can express, beside those that all can (COMMON).

    `expresses` is what else it can, `lacks` what it cannot; of a reason to finish `sent` is the one that its clients read instead.
    `finish_words` are words of the dialect's own, which are written as they came. `counts` are those that its clients must get, as 0 if
    uncounted; `counts_always`: also where nothing at all was counted. `counts_instead` are those that its clients read from another count
    if they are missing. `framing` are fields of its own replies that hold nothing for clients of other dialects: what the request said,
    ids, times, bills, and how blocks are wrapped. `within` names content inside of such fields, `usual` the values of other fields that say
    nothing; a type stands for all of its values. `logprobs` is where log probabilities of tokens stand, `citations` where web pages that
    the answer cites do, `searches` how searches of the web are shown, `tool_searches` how those for tools are, and `pictures` how pictures
    are. `shared` are fields of the reply as a whole that the dialects which declare them have under one name, with the same words.
    `refusal_words` is the dotted path of the field that says in words why a reply was refused, where the words are not the model's own, and
    `refusal_field` the field of the choice where clients read such words beside the reason to finish.
    """

    expresses: frozenset[str] = frozenset()
    lacks: Mapping[str, Limitation]
    finish_words: frozenset[str] = frozenset()
    counts: tuple[str, ...] = ()
    counts_always: bool = False
    counts_instead: Mapping[str, str] = msgspec.field(default_factory=dict)
    framing: frozenset[str] = frozenset()
    within: Mapping[str, frozenset[str]] = msgspec.field(default_factory=dict)
    usual: Mapping[str, tuple[object, ...]] = msgspec.field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    logprobs: LogprobForm | None = None
    citations: CitationForm | None = None
    searches: SearchForm | None = None
    tool_searches: ToolSearchForm | None = None
    pictures: PictureForm | None = None
    refusal_words: str = ""
    refusal_field: str = ""

    @cached_property
    def lacked_counts(self) -> tuple[tuple[str, str], ...]:
        """The counts that the dialect has no place for: their names, and those of the fields of `Usage`."""
        fields = frozenset(Usage.__struct_fields__)
        split = [(name, name.partition(".")[2]) for name in self.lacks]
        return tuple([(name, count) for name, count in split if count in fields])

    @cached_property
    def lacked_reasons(self) -> dict[str, Limitation]:
        """The words that clients read instead of the reasons to finish that the dialect has no word for."""
        return {name.removeprefix("finish."): lack for name, lack in self.lacks.items() if name.startswith("finish.")}

    @property
    def declared(self) -> frozenset[str]:
        """All that is named."""
        return COMMON_REPLY | self.expresses | self.lacks.keys()

    def content(self, fields: Mapping[str, object]) -> JsonObject:
        """Return what a reply's fields hold for clients of other dialects, by name; of a framing field the parts named in `within`."""
        content: JsonObject = {}
        for name, value in fields.items():
            if name not in self.framing:
                content[name] = value
            elif name in self.within and isinstance(value, dict):
                content |= {f"{name}.{part}": value[part] for part in value if part in self.within[name]}
        return {name: value for name, value in content.items() if not (is_empty(value) or self._is_usual(name, value))}

    def _is_usual(self, name: str, value: object) -> bool:
        usual = self.usual.get(name, ())
        return value in usual or type(value) in usual


def is_empty(value: object, depth: int = 5) -> bool:
    """Whether a value says nothing: 0, an empty text, and an object or list of such. Anything nested deeper than `depth` is content."""
    if not value:
        return True
    if depth == 0 or not isinstance(value, dict | list):
        return False
    return all(is_empty(inner, depth - 1) for inner in (value.values() if isinstance(value, dict) else value))
