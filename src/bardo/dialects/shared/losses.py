"""The losses of a request on its way to a dialect, each kind reported once.

`report_field_lacks` and `report_message_lacks` are the driver above all encoders: what they report follows from what a dialect declares.
Fields that another dialect has too, under the same name or in another place, are carried to it, and are no loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any

import msgspec

from bardo.catalog.fragments import merge_fields
from bardo.catalog.prompt_caching import CLIENTS_MARKER, CachingRule
from bardo.catalog.rows import ProviderRow
from bardo.catalog.shared_fields import ListSwitch, SharedFields, not_granted, shared_between
from bardo.dialects.shared.declaration import Check, Checks, Declaration
from bardo.dialects.shared.json_values import JsonObject
from bardo.values.blocks import (
    Block,
    Carried,
    Opaque,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.degradation import Degradation
from bardo.values.request import HistoryFacts, Request, Sampling, Tool

_NO_SAMPLING = Sampling()
_MOST_BREAKPOINTS = 80
"""How many breakpoints of a conversation OpenAI looks at (openai 3.57.0, `PromptCacheOptions`, 2026-11)."""


def _is_null(value: object) -> bool:
    """Whether a field says nothing: Gemini's calls without an id are carried as such."""
    return value is None or (isinstance(value, dict) and bool(value) and all(map(_is_null, value.values())))


def _members(carried: Carried) -> Iterable[tuple[str, Any]]:
    """Return the fields of another dialect, and instead of a tool's `function` those inside it: clients put markers there too."""
    inner = carried.fields.get("function")
    if not isinstance(inner, dict):
        return carried.fields.items()
    return [*((name, value) for name, value in carried.fields.items() if name != "function"), *inner.items()]


class Losses:
    """Collects the degradations of one request for a dialect. Those of one name and key are one."""

    def __init__(
        self, declaration: Declaration, *, markers: Mapping[str, int] | None = None, rule: CachingRule | None = None
    ) -> None:
        self.declaration = declaration
        self.rule = rule
        """How markers are written that have another name here, or None if they go as they are."""
        if rule is not None:
            markers = {CLIENTS_MARKER: rule.most, rule.marker: _MOST_BREAKPOINTS}
        self._markers = markers or declaration.markers
        self._offered: dict[str, int] = {}
        self.dialect = declaration.dialect
        self._by_key: dict[tuple[str, str], Degradation] = {}
        self._marked: dict[str, int] = {}
        self.notes = 0
        """How often something was lost or a marker seen, what was known before included."""

    def anew(self) -> Losses:
        """Return losses for the same dialect, none of which is known yet."""
        return Losses(self.declaration, markers=self._markers, rule=self.rule)

    @property
    def empty(self) -> bool:
        """Whether nothing was lost, and no marker was offered or placed."""
        return not (self._by_key or self._offered or self._marked)

    @property
    def markers(self) -> tuple[str, ...]:
        """The markers that the dialect has too."""
        return tuple(self._markers)

    def most_of(self, marker: str) -> int:
        """Return how many of a marker the dialect takes."""
        return self._markers[marker]

    @property
    def all(self) -> tuple[Degradation, ...]:
        """All of them, in order."""
        return tuple(self._by_key.values())

    @property
    def surplus(self) -> dict[str, int]:
        """The markers of which more were written than the dialect takes, and how many it takes."""
        return {name: self._markers[name] for name, marked in self._marked.items() if marked > self._markers[name]}

    def lose(self, what: str, asked: object, why: str, *, sent: object = None, key: str = "") -> None:
        """Add a loss, unless one of its name and `key` is there."""
        self.notes += 1
        if (what, key) not in self._by_key:
            self._by_key[what, key] = Degradation(what, asked=asked, sent=sent, why=why)

    def lose_each(self, what: str, asked: object, why: str, *, sent: object = None) -> None:
        """Add a loss, once for each value of `asked`."""
        self.lose(what, asked, why, sent=sent, key=str(asked))

    def add_all(self, degraded: Iterable[Degradation]) -> None:
        """Add degradations that another function found."""
        for loss in degraded:
            self.notes += 1
            self._by_key.setdefault((loss.what, loss.why), loss)

    def lose_states(self, states: Iterable[Opaque], *, sent: str | None = None) -> None:
        """Report opaque state that the dialect does not take back; `sent` is what was left of the reasoning."""
        for state in states:
            if state.format != self.declaration.own_format:
                self.lose_reasoning(state.format, sent=sent)

    def lose_reasoning(self, form: str, why: str = "", *, sent: str | None = None) -> None:
        """Report reasoning of a format that is not sent, or of which only `sent` is left."""
        default = self.declaration.reasoning_why or f"{self.declaration.title} takes earlier thinking as text only"
        self.lose("reasoning", form or "unsigned", why or default, sent=sent, key=form)

    def lose_unknown(self, block: UnknownBlock) -> None:
        """Report a block that only its own dialect knows."""
        named = block.value.get("type") if isinstance(block.value, dict) else None
        kind = named if isinstance(named, str) else block.dialect
        self.lose(f"content.{kind}", kind, f"a block that only {block.dialect} knows")

    def lose_tool(self, tool: Tool) -> None:
        """Report a tool that another provider runs itself."""
        self.lose(f"tool {tool.name}", tool.name, "a tool only its own provider runs")

    def lose_fields(self, carried: Carried | None, *, but: str = "") -> None:
        """Report fields of another dialect, all `but` one; one that is null, or holds nulls only, says nothing."""
        if carried is not None and carried.dialect != self.dialect:
            for name, value in _members(carried):
                if name == but:
                    continue
                if value is not None and name in self._markers:
                    self.notes += 1
                    self._offered[name] = self._offered.get(name, 0) + 1
                elif not _is_null(value) and (lost := not_granted(carried.dialect, name, value)) is not None:
                    self.lose(name, lost, f"a field of {carried.dialect}")

    def lose_unplaced_markers(self) -> None:
        """Report markers of other dialects that stood where this one has no place for them. To be called once all is written."""
        for name, offered in self._offered.items():
            if self._marked.get(name, 0) < offered:
                self.lose(name, offered, f"{self.declaration.title} takes none at such a place", key="place")

    def own_fields(self, carried: Carried | None) -> JsonObject:
        """Return the fields of this dialect, and markers of others that it has too; the driver reports the rest."""
        if carried is None or carried.dialect == self.dialect:
            return {} if carried is None else carried.fields
        taken = {name: value for name, value in _members(carried) if self._takes_marker(name, value)}
        if self.rule is None or (mark := taken.pop(CLIENTS_MARKER, None)) is None:
            return taken
        if isinstance(mark, dict) and mark.get("ttl") == "1h":
            why = f"{self.declaration.title} keeps a breakpoint for 30 minutes at least"
            self.lose(CLIENTS_MARKER, "1h", why, sent="30m", key="ttl")
        return {self.rule.marker: self.rule.value, **taken}

    def has_own_fields(self, carried: Carried | None) -> bool:
        """Whether `own_fields` would return some, as far as no marker is one too many."""
        if carried is None or carried.dialect == self.dialect:
            return bool(carried and carried.fields)
        return any(value is not None and name in self._markers for name, value in _members(carried))

    def _takes_marker(self, name: str, value: object) -> bool:
        most = self._markers.get(name)
        if most is None or value is None:
            return False
        self.notes += 1
        self._marked[name] = self._marked.get(name, 0) + 1
        if self._marked[name] > most:
            self.lose(name, value, f"{self.declaration.title} takes at most {most} of them")
        return self._marked[name] <= most

    def own_extra(self, request: Request) -> JsonObject:
        """Return the request's further fields where they are of this dialect; the driver reports those of others."""
        return request.extra if request.dialect in self.declaration.speaks else {}


def report_field_lacks(request: Request, losses: Losses) -> None:
    """Report all that a request says beside its messages and the dialect declares to lack, and fields of other dialects.

    A field at its default says nothing.
    """
    declaration = losses.declaration
    own = request.dialect in declaration.speaks
    checks = declaration.own_checks if own else declaration.foreign_checks
    _report(request, checks.fields.get("", ()), losses)
    if request.sampling != _NO_SAMPLING:
        _report(request.sampling, checks.fields.get("sampling", ()), losses)
    if request.tool_choice is not None:
        _report(request.tool_choice, checks.fields.get("tool_choice", ()), losses)
    if request.output_format is not None:
        _report(request.output_format, checks.fields.get("output_format", ()), losses)
    if request.reasoning is not None:
        losses.lose_fields(request.reasoning.carried)
    report_tool_lacks(request, losses)
    if not own:
        why = f"{losses.declaration.title} has no such field"
        for name, value in request.extra.items():
            lost = not_granted(request.dialect, name, value)
            if lost is not None:
                losses.lose(name, lost, why)
        for path, value in request.inner_fields.items():
            losses.lose(".".join(path), value, why)
        for name, value in request.headers.items():
            losses.lose(name, value, f"a header of {request.dialect}")


def with_inner_fields(body: JsonObject, request: Request, losses: Losses) -> JsonObject:
    """Return a body with the fields inside its objects that bardo has no word for; the driver reports those of other dialects."""
    for path, value in request.inner_fields.items() if request.dialect in losses.declaration.speaks else ():
        place: Any = body
        for name in path[:-1]:
            place = place.get(name) if isinstance(place, dict) else None
        if isinstance(place, dict) and path[-1] not in place:
            written = value
            for name in reversed(path):
                written = {name: written}
            body = merge_fields(body, written)
        else:
            losses.lose(".".join(path), value, f"{'.'.join(path[:-1])} is not sent")
    return body


def report_tool_lacks(request: Request, losses: Losses) -> None:
    """Report all that the tools of a request say and the dialect declares to lack, and fields of other dialects."""
    declaration, tools = losses.declaration, request.tools
    own = request.dialect in declaration.speaks
    checks = (declaration.own_checks if own else declaration.foreign_checks).fields.get("tools", ())

    for tool in tools:
        if not tool.hosted:
            _report(tool, checks, losses)
            losses.lose_fields(tool.carried)


def report_message_lacks(facts: HistoryFacts, losses: Losses, *, own: bool) -> None:
    """Report all that a conversation holds and the dialect declares to lack, and fields of other dialects.

    `own`: it came in a dialect whose fields are those of this one. Fields of reasoning are reported by the encoders, which send it or
    report the whole of it.
    """
    declaration = losses.declaration
    checks = declaration.own_checks if own else declaration.foreign_checks
    if facts.results and not (own or declaration.names_results):
        calls = {call.id: call.name for call in facts.calls}
        names = {(call.id, call.name) for call in facts.calls}
        for result in facts.results:
            if result.name and result.call_id in calls and (result.call_id, result.name) not in names:
                why = f"{declaration.title} names the tool in the call alone"
                losses.lose_each("tool_result.name", result.name, why, sent=calls[result.call_id])
    if _holds_no_lack(facts, checks):
        return

    # Most blocks hold nothing that could be lost: no function is called to find that.
    plain = frozenset((TextBlock, ToolCallBlock)).difference(checks.blocks, checks.kinds)
    passes_thinking = ReasoningBlock not in checks.kinds
    for message in facts.messages:
        carried = message.carried
        if carried is not None and (message.role != "system" or carried.fields.keys() != {"role"}):
            # OpenAI's roles `developer` and `system` are one in every other dialect.
            losses.lose_fields(carried)
        for block in message.blocks:
            kind = type(block)
            if kind is ReasoningBlock:
                if passes_thinking:
                    continue
            elif kind in plain and block.carried is None:  # type: ignore[union-attr]
                continue
            _report_block(block, kind, losses, checks)


def _holds_no_lack(facts: HistoryFacts, checks: Checks) -> bool:
    """Whether nothing in a conversation is to be reported, as of most: without a step of Python for each block."""
    if not facts.parts.isdisjoint(checks.kinds):
        return False
    looked_at = facts.parts.intersection(checks.blocks)
    if looked_at - {ToolResultBlock} or facts.carries_fields:
        return False
    for check in checks.blocks[ToolResultBlock] if looked_at else ():
        values = [*map(attrgetter(check.attribute), facts.results)]
        if values.count(check.default) < len(values):
            return False
    return True


def _report(part: msgspec.Struct, checks: Iterable[Check], losses: Losses) -> None:
    for attribute, default, what, lack in checks:
        value = getattr(part, attribute)
        if value != default and value is not None and value != () and value not in lack.same:
            losses.lose(what, _plain(value), lack.why, sent=lack.sent)


def _plain(value: object) -> Any:
    """Return a value as a person is told it: of a struct its name or mode."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, msgspec.Struct):
        return getattr(value, "name", "") or getattr(value, "mode", "")
    return value


def _report_block(block: Block, kind: type, losses: Losses, checks: Checks) -> None:
    if isinstance(block, UnknownBlock):
        if block.dialect != losses.dialect:
            losses.lose_unknown(block)
        return
    if kind in checks.kinds:
        name, lack = checks.kinds[kind]
        losses.lose(name, name, lack.why, sent=lack.sent)
        return
    if block.carried is not None:
        # What a result says of its tool's name, as LangChain for JavaScript does, is said by the call too.
        named = isinstance(block, ToolResultBlock) and block.carried.fields.get("name") == block.name
        losses.lose_fields(block.carried, but="name" if named else "")
    if kind in checks.blocks:
        _report(block, checks.blocks[kind], losses)
    if isinstance(block, ToolResultBlock):
        is_plain = not checks.looks_at(TextBlock)
        for part in block.content:
            if not (is_plain and type(part) is TextBlock and part.carried is None):
                _report_block(part, type(part), losses, checks)


def with_wrapped(bardo: JsonObject, calls: Iterable[ToolCallBlock], *, what: str, key: str) -> JsonObject:
    """Add to bardo's own fields which calls have arguments that are no JSON object, so that their text stands under `key` of one."""
    why = "the model's arguments are no JSON object, so their text stands under this key"
    lost = [{"what": what, "asked": call.id, "sent": key, "why": why} for call in calls]
    before = bardo.get("degraded")
    return {**bardo, "degraded": [*(before if isinstance(before, list) else ()), *lost]} if lost else bardo


_CHAT = "openai_chat"
"""The dialect of a request's further fields where it came from the library."""


def carry_shared(request: Request, row: ProviderRow, losses: Losses) -> tuple[Request, JsonObject]:
    """Return the request without the fields that its target's dialect has too, and these as they are written there.

    A provider that is not known to take them does not get them, which is reported.
    """
    request, of_reasoning = _carry_of_reasoning(request, row)
    client = request.dialect or _CHAT
    rows = shared_between(client, row.dialect) if request.extra else ()
    extra: JsonObject = dict(request.extra) if rows else {}
    fields: JsonObject = of_reasoning
    untouched = True
    for shared in sorted(rows, key=lambda field: (row.id not in field.providers, not field.specified)):
        taken = _take_shared(extra, shared, client, row.dialect)
        untouched = untouched and not taken
        for path, value in taken.items():
            why = _refused(shared, row, path, value)
            if not why:
                fields = merge_fields(fields, nested(path, value))
            elif value not in shared.silent and not_granted(request.dialect, path, value) is not None:
                losses.lose(path, value, why)
    return (request if untouched else msgspec.structs.replace(request, extra=extra)), fields


def _carry_of_reasoning(request: Request, row: ProviderRow) -> tuple[Request, JsonObject]:
    """Return the request without the words beside its reasoning policy that the target takes too, and these as they are written there."""
    policy = request.reasoning
    if policy is None or policy.carried is None or policy.carried.dialect != request.dialect:
        return request, {}
    rows = [
        field
        for field in shared_between(request.dialect, row.dialect)
        if row.id in field.providers or (row.generic and field.specified)
    ]
    there = dict(pair for field in rows for pair in field.paths(request.dialect, row.dialect))
    own = policy.carried.fields
    left = {path: value for path, value in own.items() if path not in there}
    if len(left) == len(own):
        return request, {}
    fields: JsonObject = {}
    for path in own.keys() - left.keys():
        fields = merge_fields(fields, nested(there[path], own[path]))
    carried = msgspec.structs.replace(policy.carried, fields=left) if left else None
    return msgspec.structs.replace(request, reasoning=msgspec.structs.replace(policy, carried=carried)), fields


def _refused(shared: SharedFields, row: ProviderRow, path: str, value: object) -> str:
    """Return why a provider does not get a field that its dialect has; empty where it does."""
    if row.id not in shared.providers and not (row.generic and shared.specified):
        return f"{row.id} is not known to take it"
    return "" if shared.takes(row.dialect, path, value) else "this endpoint has no such value"


def with_shared(body: JsonObject, carried: JsonObject) -> JsonObject:
    """Return a body with the fields that `carry_shared` gave; the items of a list go behind those that are there."""
    lists = {
        name: [*body[name], *(item for item in value if item not in body[name])]
        for name, value in carried.items()
        if isinstance(value, list) and isinstance(body.get(name), list)
    }
    return merge_fields(body, {**carried, **lists})


def _take_shared(extra: JsonObject, shared: SharedFields, source: str, target: str) -> JsonObject:
    """Take all that is shared out of `extra`, and return it by its paths in the target."""
    # Take the shared fields out of `extra`, and return them by their paths in the target.
    taken: JsonObject = {}
    for path, there in shared.paths(source, target):
        value = take_at(extra, path)
        if value is not None:
            taken[there] = value
    for switch in shared.switch:
        if {source, target} == {switch.dialect, switch.in_dialect}:
            taken |= _switched(extra, taken, switch, source)
    return taken


def _switched(extra: JsonObject, taken: JsonObject, switch: ListSwitch, source: str) -> JsonObject:
    """Take a switch out of `extra`, and return it as the target has it."""
    if source == switch.dialect:
        return {switch.list: [switch.item]} if take_at(extra, switch.name) is True else {}
    listed = extra.get(switch.list)
    if not isinstance(listed, list):
        listed = []
    named = switch.item in listed
    if named:
        left = [item for item in listed if item != switch.item]
        extra.pop(switch.list)
        extra |= {switch.list: left} if left else {}
    return {switch.name: True} if named or switch.implied_by in taken else {}


def take_at(extra: JsonObject, path: str) -> Any:
    """Take the value at a dotted path out of `extra`, and what holds nothing but it, or None if there is none.

    An object on the way is not changed but replaced, so that `extra` may share it with others.
    """
    name, _, rest = path.partition(".")
    value = extra.get(name)
    if not rest:
        return extra.pop(name, None)
    if not isinstance(value, dict) or rest.partition(".")[0] not in value:
        return None
    left = dict(value)
    inner = take_at(left, rest)
    if inner is not None and left:
        extra[name] = left
    elif inner is not None:
        extra.pop(name)
    return inner


def nested(path: str, value: object) -> JsonObject:
    """Return an object that holds the value at a dotted path."""
    name, _, rest = path.partition(".")
    return {name: nested(rest, value) if rest else value}
