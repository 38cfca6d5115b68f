"""Tell a provider which beginning of a prompt to cache: by markers where its static part ends, or by a key.

The hints are put into the bytes of the JSON that is sent, be it the client's own or written by bardo; every other byte stays as it is. A
request in which the client set a hint of its own is left alone, and prefixes that are too short to be cached get no marker.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from bardo.catalog.prompt_caching import CLIENTS_MARKER, CachePlace, CachingRule, caching_rules, least_cached
from bardo.dialects.shared.json_values import encode_json
from bardo.planning.forwarded import with_fields
from bardo.planning.knowledge import CachingPolicy, Knowledge
from bardo.planning.route import Target
from bardo.values.blocks import ToolResultBlock
from bardo.values.degradation import Degradation
from bardo.values.request import Request
from bardo.values.wire import WireRequest

_BYTES_PER_TOKEN = 4
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
# Anthropic refuses a marker in thinking, in an empty text, and at a tool that is loaded later (its answers with status 400).
_UNMARKABLE = frozenset({"thinking", "redacted_thinking"})
_POINT = b'{"cachePoint":{"type":"default"}}'


class MarkedFields(NamedTuple):
    """The fields of a body that markers changed, and the places in which they stand."""

    changes: dict[str, Any]
    places: tuple[str, ...]


class _Block(msgspec.Struct):
    """What decides whether a block can be marked."""

    type: str = ""
    text: str | None = None
    defer_loading: bool = False


class _Turn(msgspec.Struct):
    """Who speaks."""

    role: str = ""


_read_block = msgspec.json.Decoder(_Block).decode
_read_turn = msgspec.json.Decoder(_Turn).decode


def marked(fields: dict[str, msgspec.Raw], rule: CachingRule, least: int) -> MarkedFields:
    """Return what markers change in a body, where its prefix has at least so many tokens, by estimate.

    Markers stand behind the tools, the system prompt, and the turns that come again. A long history is not written again for a marker in
    its last turn.
    """
    return _Marker(fields, rule, least).run()


class _Marker:
    """Marks one body. `_least` is how many bytes a prefix has at least."""

    def __init__(self, fields: dict[str, msgspec.Raw], rule: CachingRule, least: int) -> None:
        self._fields = fields
        self._rule = rule
        self._mark = b"," + encode_json({rule.marker: rule.value})[1:-1]
        self._least = least * _BYTES_PER_TOKEN
        self._changes: dict[str, Any] = {}
        self._places: list[str] = []

    def run(self) -> MarkedFields:
        """Mark what may be marked, the places that save most first where not all may be."""
        if self._rule.form == "chat":
            self._mark_chat()
        else:
            tools = self._tools_bytes()
            system = bytes(self._fields.get("system", b""))
            before = len(tools) + len(system)
            self._mark_turns("messages", before, room=max(0, self._rule.most - bool(tools) - bool(system)))
            self._mark_head("system", system, before)
            self._mark_tools(tools)
        return MarkedFields(self._changes, tuple(reversed(self._places)))

    def _may(self, place: CachePlace, size: int) -> bool:
        return place in self._rule.places and size >= self._least and len(self._places) < self._rule.most

    def _put(self, place: str, field: str, value: bytes | None) -> None:
        if value is not None:
            self._changes[field] = msgspec.Raw(value)
            self._places.append(place)

    def _tools_bytes(self) -> bytes:
        if self._rule.form == "converse":
            config = bytes(self._fields.get("toolConfig", b""))
            return bytes(_fields(config).get("tools", b"")) if config.startswith(b"{") else b""
        return bytes(self._fields.get("tools", b""))

    def _mark_tools(self, tools: bytes) -> None:
        if not tools.startswith(b"[") or not self._may("tools", len(tools)):
            return
        done = self._marked_list(tools)
        if self._rule.form != "converse":
            self._put("tools", "tools", done)
        elif done is not None:
            config = bytes(self._fields["toolConfig"])
            self._put("tools", "toolConfig", _changed(config, {"tools": msgspec.Raw(done)}))

    def _mark_head(self, field: CachePlace, value: bytes, size: int) -> None:
        if value and self._may(field, size):
            self._put(field, field, self._marked_content(value))

    def _mark_turns(self, field: str, before: int, *, room: int) -> None:
        """Mark the last turn of a conversation that goes on, and that which was the last one the time before."""
        turns = bytes(self._fields.get(field, b""))
        if not turns.startswith(b"["):
            return
        items = [bytes(item) for item in _items(turns)]
        for place in _stable_turns([role_of(item) for item in items])[:room]:
            size = before + sum(map(len, items[: place + 1]))
            done = self._marked_turn(items[place]) if self._may("messages", size) else None
            if done is not None:
                turns = _with_item(turns, items, place, done)
                items[place] = done
                self._put("messages", field, turns)

    def _mark_chat(self) -> None:
        """Mark the last message of the system that heads a prompt, and the turns of a conversation that goes on."""
        turns = bytes(self._fields.get("messages", b""))
        items = [bytes(item) for item in _items(turns)] if turns.startswith(b"[") else []
        roles = [role_of(item) for item in items]
        head = next((place for place, role in enumerate(roles) if role not in ("system", "developer")), len(roles)) - 1
        before = len(bytes(self._fields.get("tools", b"")))
        # Parts of a tool's result are not known to take a marker.
        stable = [place for place in _stable_turns(roles) if roles[place] == "user"]
        chosen = [*stable[: self._rule.most - 1], *([head] if head >= 0 else [])]
        for place in chosen:
            where: CachePlace = "system" if place == head else "messages"
            size = before + sum(map(len, items[: place + 1]))
            done = self._marked_turn(items[place]) if self._may(where, size) else None
            if done is not None:
                turns = _with_item(turns, items, place, done)
                items[place] = done
                self._put(where, "messages", turns)

    def _marked_turn(self, turn: bytes) -> bytes | None:
        content = self._marked_content(bytes(_fields(turn).get("content", b""))) if turn.startswith(b"{") else None
        return None if content is None else _changed(turn, {"content": msgspec.Raw(content)})

    def _marked_content(self, content: bytes) -> bytes | None:
        """Return a text, or a list of blocks, with a marker at its end, or None if none can stand there."""
        if content.startswith(b'"') and content != b'""' and self._rule.form != "converse":
            return b'[{"type":"text","text":' + content + self._mark + b"}]"
        return self._marked_list(content) if content.startswith(b"[") else None

    def _marked_list(self, blocks: bytes) -> bytes | None:
        """Return a list of blocks or tools with a marker at the last one that takes one, or None if none does."""
        items = [bytes(item) for item in _items(blocks)]
        if self._rule.form == "converse":
            return blocks.rstrip()[:-1] + b"," + _POINT + b"]" if items else None
        for place in range(len(items) - 1, -1, -1):
            if _markable(items[place]):
                done = items[place].rstrip()[:-1] + self._mark + b"}"
                return _with_item(blocks, items, place, done)
        return None


def role_of(turn: bytes) -> str:
    """Return who speaks in a turn; empty for what is no message."""
    try:
        return _read_turn(turn).role
    except msgspec.MsgspecError:
        return ""


def _stable_turns(roles: list[str]) -> list[int]:
    """Return which turns end a prefix that comes again, the longest first: none where the conversation has just begun.

    The last turn is sent again with the next one; the user's turn before the last answer ended the prompt of the time before, and a marker
    there finds what was cached then, however many blocks have come since.
    """
    answers = [place for place, role in enumerate(roles) if role == "assistant"]
    if not answers:
        return []
    last = len(roles) - 1
    before = next(
        (place for place in range(answers[-1] - 1, -1, -1) if roles[place] not in ("assistant", "system")), -1
    )
    # An answer that the client began is another one the next time.
    return [place for place in (last, before) if place >= 0 and (place != last or roles[place] != "assistant")]


def _markable(item: bytes) -> bool:
    if item == b"{}" or not item.startswith(b"{"):
        return False
    try:
        block = _read_block(item)
    except msgspec.MsgspecError:
        return False
    return block.type not in _UNMARKABLE and block.text != "" and not block.defer_loading


def _with_item(array: bytes, items: list[bytes], place: int, item: bytes) -> bytes:
    """Return the JSON of an array with another item in one place, all other bytes as they are."""
    end = len(array)
    for later in reversed(items[place:]):
        end = array.rfind(later, 0, end)
    return array[:end] + item + array[end + len(items[place]) :]


def _changed(value: bytes, changes: dict[str, Any]) -> bytes:
    fields = _fields(value)
    return with_fields(value, dict(fields), changes) or encode_json({**fields, **changes})


_OWN_HINTS = (b'"cache_control"', b'"cachePoint"', b'"prompt_cache_breakpoint"')


class CacheHints(msgspec.Struct, frozen=True, kw_only=True):
    """What bardo added: in which places of the prompt a marker stands, the key, and for how long it is kept; empty where there is none."""

    markers: tuple[str, ...] = ()
    key: str = ""
    kept: str = ""


def with_cache_hints(
    wire: WireRequest, request: Request, target: Target, policy: CachingPolicy, *, marked: bool = False
) -> tuple[WireRequest, CacheHints | None]:
    """Return what is sent of `request` with the hints that its provider takes, and what was added, or None if that is nothing.

    `marked`: the client's marks in the request count, which ask to keep it for an hour where one says so.
    """
    row = target.provider.row
    rules = caching_rules(row.id, row.dialect, target.model)
    if not rules:
        return wire, None
    hints, body = CacheHints(), wire.body
    for rule in rules:
        fields = _fields(body)
        changes, hints = _hinted(rule, body, fields, hints, request, target, policy)
        marks = _clients_marks(request) if marked and rule.long_field and rule.long_field not in fields else ()
        if any(isinstance(mark, dict) and mark.get("ttl") == "1h" for mark in marks):
            changes = {**changes, rule.long_field: rule.long_value}
            hints = msgspec.structs.replace(hints, kept=rule.long_value)
        if changes:
            body = with_fields(body, dict(fields), changes) or encode_json({**fields, **changes})
    return (wire, None) if body is wire.body else (msgspec.structs.replace(wire, body=body), hints)


def in_place_of_markers(
    wire: WireRequest, request: Request, target: Target, knowledge: Knowledge
) -> tuple[WireRequest, CacheHints | None]:
    """Return the request with the hints that its provider takes, where the client marked what shall be cached and that was lost.

    A provider that caches by a key gets one, whatever the configuration says of calls without marks. What is lost says what came instead,
    but not where breakpoints stand for the client's marks: then it is one of these, and the key stands beside the others.
    """
    lost: Degradation | None = None
    for one in wire.degraded:
        if one.what == CLIENTS_MARKER:
            lost = one
            break
    # `rfind` takes half the time of `in`.
    is_own = wire.body.rfind(b'"prompt_cache_breakpoint"') >= 0 and (lost is not None or bool(_clients_marks(request)))
    if not (lost or is_own) or (knowledge.caching is not None and not knowledge.caching.markers):
        return (wire, None) if knowledge.caching is None else with_cache_hints(wire, request, target, knowledge.caching)
    policy = knowledge.caching or CachingPolicy(tenant=knowledge.tenant)
    wire, hints = with_cache_hints(wire, request, target, policy, marked=not request.options.private)
    if hints is None or is_own:
        return wire, hints
    sent = {name: value for name, value in msgspec.structs.asdict(hints).items() if value}
    why = "the provider is told what to cache in its own way"
    told = [msgspec.structs.replace(one, sent=sent, why=why) if one is lost else one for one in wire.degraded]
    return msgspec.structs.replace(wire, degraded=tuple(told)), hints


def _clients_marks(request: Request) -> list[Any]:
    """Return the marks of Anthropic's clients in a request."""
    carried = [tool.carried for tool in request.tools]
    for message in request.messages:
        for block in message.blocks:
            inner = block.content if isinstance(block, ToolResultBlock) else ()
            carried += [getattr(one, "carried", None) for one in (block, *inner)]
    found = [request.extra.get(CLIENTS_MARKER), *(one.fields.get(CLIENTS_MARKER) for one in carried if one is not None)]
    return [one for one in found if one is not None]


def _hinted(
    rule: CachingRule,
    body: bytes,
    fields: dict[str, msgspec.Raw],
    hints: CacheHints,
    request: Request,
    target: Target,
    policy: CachingPolicy,
) -> tuple[dict[str, Any], CacheHints]:
    """Return the fields that one rule changes, and all hints with those of the rule."""
    if rule.form == "key":
        if rule.field in fields:
            return {}, hints
        key = cache_key(policy.tenant, target.model, request)
        return {rule.field: key}, msgspec.structs.replace(hints, key=key)
    if not policy.markers or any(own in body for own in _OWN_HINTS):
        return {}, hints
    changes, places = marked(fields, rule, least_cached(target.model))
    return changes, msgspec.structs.replace(hints, markers=places)


def cache_key(tenant: str, model: str, request: Request) -> str:
    """Return the key of all prompts of a tenant to a model that begin alike: with these tools and this system prompt.

    Without either, the first turn tells conversations apart. The key is made of what a request says, so that a conversation keeps it where
    its client's own body is sent on in one call and bardo writes the next one.
    """
    digest = blake2b(digest_size=12)
    for part in (tenant.encode(), model.encode(), *_head(request)):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return f"bardo-{digest.hexdigest()}"


def _head(request: Request) -> list[bytes]:
    head = [
        encode_json((tool.name, tool.description, tool.schema, tool.strict, tool.hosted and tool.carried))
        for tool in request.tools
    ]
    head += [message.text.encode() for message in request.messages[:8] if message.role == "system"]
    return head or [message.text.encode() or encode_json(message.blocks) for message in request.messages[:1]]
