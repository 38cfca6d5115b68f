"""The state and the settings of the choice of tools: a session's plan, the tools that always stay, and the effects that keep both.

All that is kept is bounded and belongs to one tenant, but for the vectors of tools, which say nothing of who uses them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, Self

import msgspec

from bardo.catalog.layer_rows import ToolChoiceRows, tool_choice_rows
from bardo.context.layer import Effect, LayerFacts
from bardo.context.tool_choice.ranking import ToolUses, ToolVectors, Vector
from bardo.context.tool_choice.word_index import MOST_TEXT, named_in
from bardo.values.blocks import Carried, ToolCallBlock, ToolResultBlock
from bardo.values.request import Request, Tool

_MOST_USER_TEXT = 32_000
"""Characters of what the user said, from the end, in which names of tools are looked for."""
MOST_NAMED = 40
"""Names of tools that a receipt or a degradation lists; further ones are counted."""


def may_be_chosen(request: Request) -> bool:
    """Whether the client left the choice open: it did not choose among some of its tools itself."""
    return not any(name in request.extra for name in tool_choice_rows().own_choices)


def choosable(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return the tools among which may be chosen: functions of the client, whose loading it left open."""
    fields = tool_choice_rows().loading_fields
    return tuple(tool for tool in tools if not tool.hosted and not any(name in _carried(tool) for name in fields))


def surviving(request: Request, names: Collection[str], *, used: bool) -> set[str]:
    """Return the names that stay: those that the user says, that of the tool choice, and those that were `used` in the history."""
    room, texts = _MOST_USER_TEXT, []
    for message in reversed(request.messages):
        if room <= 0:
            break
        if message.role == "user" and (text := message.paragraphs):
            texts.append(text[-room:])
            room -= len(text)
    surviving_names = named_in("\n".join(texts), names)
    choice = request.tool_choice
    if choice is not None and choice.mode == "named" and choice.name in names:
        surviving_names.add(choice.name)
    return surviving_names | (called_in(request) & set(names)) if used else surviving_names


def called_in(request: Request) -> set[str]:
    """Return the names of the tools that were called in a conversation."""
    return {block.name for message in request.messages for block in message.blocks if isinstance(block, ToolCallBlock)}


def asked_text(request: Request) -> str:
    """Return the last thing that the user said, shortened to its beginning and its end."""
    for message in reversed(request.messages):
        if message.role == "user" and (text := message.paragraphs.strip()):
            half = MOST_TEXT // 2
            return text if len(text) <= MOST_TEXT else f"{text[:half]} {text[-half:]}"
    return ""


def is_users_turn(request: Request) -> bool:
    """Whether the last message is the user's own, and not the result of a tool."""
    last = request.messages[-1] if request.messages else None
    return last is not None and last.role == "user" and not any(isinstance(b, ToolResultBlock) for b in last.blocks)


def task_of(facts: LayerFacts, tasks: Mapping[str, tuple[str, ...]]) -> str:
    """Return which of the configured tasks a call belongs to: its workload, or what the classifier found; empty where none."""
    classification = facts.found.get("classify")
    values = classification.values() if isinstance(classification, Mapping) else ()
    return next((name for name in (facts.workload, *values) if isinstance(name, str) and name in tasks), "")


def names_in_words(tools: Sequence[Tool]) -> str:
    """Return the names of tools for people, the first of them where there are many."""
    listed = ", ".join(tool.name for tool in tools[:MOST_NAMED])
    return listed if len(tools) <= MOST_NAMED else f"{listed} and {len(tools) - MOST_NAMED} more"


def with_marks(kept: Sequence[Tool], dropped: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return the kept tools, the last of them with the marks of the cache that only tools had which are left out."""
    rows = tool_choice_rows()
    marks = _marks(dropped, rows)
    if not kept or not marks or _marks(kept, rows):
        return tuple(kept)
    dialect, fields = marks
    last = kept[-1]
    if last.carried is not None and last.carried.dialect != dialect:
        return tuple(kept)
    return (*kept[:-1], msgspec.structs.replace(last, carried=Carried(dialect, {**_carried(last), **fields})))


def _marks(tools: Sequence[Tool], rows: ToolChoiceRows) -> tuple[str, dict[str, Any]] | None:
    for tool in reversed(tools):
        fields = {name: _carried(tool)[name] for name in rows.marks if name in _carried(tool)}
        if fields and tool.carried is not None:
            return tool.carried.dialect, fields
    return None


def _carried(tool: Tool) -> dict[str, Any]:
    return {} if tool.carried is None else tool.carried.fields


class ToolPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of one session, in the order in which they are sent. Later turns only append to it.

    `functions`: the other tools are found by functions.
    """

    names: tuple[str, ...]
    functions: bool = False

    @classmethod
    def decode(cls, value: bytes | None) -> Self | None:
        """Return a plan that was kept as bytes, or None if there is none that can be read."""
        try:
            return None if value is None else msgspec.msgpack.decode(value, type=cls)
        except msgspec.MsgspecError:
            return None

    def encode(self) -> bytes:
        """Return the plan as bytes."""
        return msgspec.msgpack.encode(self)


class FindToolVectors(Effect, frozen=True):
    """Ask for the vectors of tools by the digests of their texts. It is answered with a mapping of those that are there."""

    digests: tuple[bytes, ...]


class StoreToolVectors(Effect, frozen=True):
    """Keep the vectors of tools by the digests of their texts."""

    vectors: Mapping[bytes, ToolVectors]


class FindToolUses(Effect, frozen=True):
    """Ask for the earlier uses of tools, measured with the embedding of this fingerprint. It is answered with a mapping by names."""

    tenant: str
    names: tuple[str, ...]
    fingerprint: str


class BuildWordIndex(Effect, frozen=True):
    """Build the index of the words of many tools, as `word_index` keeps it, while other calls have their turn."""

    tools: tuple[tuple[str, str], ...]


class RecordToolUse(Effect, frozen=True):
    """Note that tools were called for a text, given as its vector."""

    tenant: str
    names: tuple[str, ...]
    vector: Vector
    fingerprint: str


class FindToolTurns(Effect, frozen=True):
    """Ask for the turns behind calls that a client saw, by the ids of the calls. It is answered with a mapping by ids."""

    tenant: str
    ids: tuple[str, ...]


FoundUses = Mapping[str, ToolUses]


class ToolChoiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How tools are chosen.

    `most` is how many a request gets beside those that stay in any case, `added` how many more a new question of the user may add to a
    session's, and `order` how they are sent. A request with more than `meta_above` gets functions that find and call them instead, where
    0 means never. `tasks` are the tools of a workload, or of a label that the classifier gives. `vectors` and `uses`: whether tools are
    compared by vectors, and by their earlier uses. `most_searches` and `most_failures` bound what a model does with the functions in one
    call. `check_arguments`: whether the arguments of a call through the functions must fit the tool's schema before the client gets it.
    """

    most: int = 12
    added: int = 1
    order: Literal["client", "name"] = "client"
    meta_above: int = 40
    tasks: dict[str, tuple[str, ...]] = {}
    vectors: bool = True
    uses: bool = True
    most_searches: int = 8
    most_failures: int = 3
    check_arguments: bool = True
