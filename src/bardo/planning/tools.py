"""Tools as a target takes them: names that it allows, and schemas of their arguments that it can read."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any

import msgspec

from bardo.catalog.request_shapes import NameRule, RequestShape
from bardo.reuse import TOOL_SCHEMAS, size_of
from bardo.structured.rewrite import Inexpressible, RewrittenSchema, rewrite
from bardo.structured.rewrite.keywords import in_new_words, parts, with_parts
from bardo.structured.subsets import Subset, subset
from bardo.structured.validation import checker
from bardo.values.blocks import Block, ToolCallBlock, ToolResultBlock
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest
from bardo.values.events import Event, ReplyFields, ToolCallChunk, ToolCallEnd, ToolCallStart
from bardo.values.request import HistoryFacts, Message, Request, Tool, facts_of

_CALLS = frozenset((ToolCallBlock, ToolResultBlock))
_CHOICES = ("tool_choice", "toolConfig")
"""Fields of one dialect alone that may choose among the tools by their names."""
_REPEATED = ("tools", "tool_choice")
"""Fields of a reply that say again what was asked: Responses has them."""


class WrittenToolNames(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of a request with names that are taken, and the client's own names by those that differ."""

    tools: tuple[Tool, ...]
    originals: dict[str, str]


def written_tool_names(tools: tuple[Tool, ...], rule: NameRule | None) -> WrittenToolNames | None:
    """Return tools with names that `rule` takes, or None if it takes every name as it is."""
    if rule is None or not tools:
        return None
    others = [tool.name for tool in tools if not rule.takes(tool.name) and not tool.hosted]
    if not others:
        return None
    named = [tool if tool.hosted else _renamed_one(tool, rule) for tool in tools]
    return WrittenToolNames(tools=tuple(named), originals={rule.written(name): name for name in others})


def _renamed_one(one: Any, rule: NameRule) -> Any:
    return one if rule.takes(one.name) else msgspec.structs.replace(one, name=rule.written(one.name))


def with_written_names(
    request: Request, names: WrittenToolNames | None, rule: NameRule | None, facts: HistoryFacts
) -> Request:
    """Return a request that has names of tools which are taken: in its tools, in the choice among them, in its calls and their results.

    `names` are those of its tools; its history may have called others, and `facts` may be of that. A request whose names are all taken is
    returned itself.
    """
    if rule is None or (names is None and takes_names(facts_of(request.messages, facts).calls, rule)):
        return request
    messages = tuple([_of_message(message, rule) for message in request.messages])
    if names is None:
        return msgspec.structs.replace(request, messages=messages)
    choice = request.tool_choice
    if choice is not None:
        choice = _renamed_one(choice, rule)
    written = {original: name for name, original in names.originals.items()}
    extra = {name: _renamed(value, written) if name in _CHOICES else value for name, value in request.extra.items()}
    return msgspec.structs.replace(request, tools=names.tools, tool_choice=choice, messages=messages, extra=extra)


def takes_names(calls: Sequence[ToolCallBlock], rule: NameRule | None) -> bool:
    """Whether every tool that was called has a name that `rule` takes."""
    return rule is None or all(map(rule.takes, {call.name for call in calls}))


def _of_message(message: Message, rule: NameRule) -> Message:
    """Return a message with names that are taken; itself where they are."""
    if _CALLS.isdisjoint(message.kinds):
        return message
    blocks: tuple[Block, ...] = tuple(
        [
            _renamed_one(block, rule) if isinstance(block, ToolCallBlock | ToolResultBlock) else block
            for block in message.blocks
        ]
    )
    return message if all(map(is_, blocks, message.blocks)) else msgspec.structs.replace(message, blocks=blocks)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a choice among tools, or tools, with other names in the place of those in `names`."""
    if isinstance(value, dict):
        return {name: _renamed(one, names) for name, one in value.items()}
    if isinstance(value, list):
        return [_renamed(one, names) for one in value]
    return names.get(value, value) if isinstance(value, str) else value


class RestoreToolNames:
    """A stage of one reply: its calls name the tools as the client does, and so do the tools that it says again."""

    passes_text = True
    acts_on: frozenset[type] = frozenset((ToolCallStart, ReplyFields))

    def __init__(self, originals: Mapping[str, str]) -> None:
        self._originals = originals

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, with the client's names of the tools."""
        if type(item) is ToolCallStart and item.name in self._originals:
            return (msgspec.structs.replace(item, name=self._originals[item.name]),)
        if type(item) is ReplyFields and not item.fields.keys().isdisjoint(_REPEATED):
            restored = {name: _renamed(item.fields[name], self._originals) for name in _REPEATED if name in item.fields}
            return (msgspec.structs.replace(item, fields={**item.fields, **restored}),)
        return (item,)

    def finish(self) -> Sequence[Event]:
        """Nothing is held."""
        return ()


WRAPPER = "value"
"""The only property of the object in which a root stands that is no plain object."""
_MOST_TOLD = 3
_encode = msgspec.msgpack.Encoder().encode
_ANY_KINDS = ("string", "number", "boolean", "object", "array", "null")
_NOT_PLAIN = ("oneOf", "anyOf", "allOf", "not", "enum", "$ref")
# Ways to write a schema that are taken in strict tools too.
_TAKEN_STRICT = frozenset({"const_as_enum", "ordered", "definitions_moved", "draft_updated"})
_DEFINITIONS = ("$defs", "definitions")
_VALUES = ("default", "const")
_LISTS_OF_VALUES = ("enum", "examples")


class ToolForm(msgspec.Struct, frozen=True, kw_only=True):
    """How the arguments of one tool go to a target: keys by other keys, and whether they stand in a property of an object.

    `rewritten` gives back what the target's keywords made of arguments, or None if they are the same.
    """

    keys: dict[str, str] = {}
    wrapped: bool = False
    rewritten: RewrittenSchema | None = None

    def written(self, arguments: str) -> str:
        """Return arguments as the target has them; those that are no JSON as they are."""
        return _changed(arguments, lambda value: self._wrap(_with_keys(value, self.keys)))

    def restored(self, arguments: str) -> str:
        """Return arguments as the client has them; those that are no JSON as they are."""
        own = {written: key for key, written in self.keys.items()}
        return _changed(arguments, lambda value: _with_keys(self._unwrap(self._restored(value)), own))

    def _restored(self, value: Any) -> Any:
        return value if self.rewritten is None else self.rewritten.restore(value)

    def _wrap(self, value: Any) -> Any:
        return {WRAPPER: value} if self.wrapped else value

    def _unwrap(self, value: Any) -> Any:
        # Models do not always hold to a schema.
        is_wrapped = self.wrapped and isinstance(value, dict) and value.keys() == {WRAPPER}
        return value[WRAPPER] if is_wrapped else value


class WrittenTools(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of a request with schemas that are taken, how the arguments of those that differ are written, and what is reported.

    `left_out` are the names of those that cannot be said.
    """

    tools: tuple[Tool, ...]
    forms: dict[str, ToolForm]
    left_out: frozenset[str]
    degraded: tuple[Degradation, ...]


def written_tool_schemas(tools: tuple[Tool, ...], shape: RequestShape) -> WrittenTools | None:
    """Return tools with schemas that a target takes, or None if it takes all as they are."""
    if not tools or (shape.property_keys is None and not shape.rules & {"plain_root", "tool_schemas", "strict_tools"}):
        return None
    try:
        # In MessagePack, where 1, 1.0 and true are three values, as they are in JSON.
        key = _encode(tools)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _written(tools, shape)
    # A caller of the library may change its dictionaries later.
    found: tuple[WrittenTools | None] = TOOL_SCHEMAS.of(
        (shape, key), lambda: (_written(copy.deepcopy(tools), shape),), lambda made: size_of((key, made))
    )
    return found[0]


def with_written_schemas(request: Request, written: WrittenTools | None) -> Request:
    """Return a request with tools that are taken, and with the calls of its history in the same form."""
    if written is None:
        return request
    messages = tuple([_with_calls(message, written.forms) for message in request.messages])
    return msgspec.structs.replace(request, tools=written.tools, messages=messages)


def _written(tools: tuple[Tool, ...], shape: RequestShape) -> WrittenTools | None:
    forms: dict[str, ToolForm] = {}
    degraded: list[Degradation] = []
    sent: list[Tool] = []
    left_out: set[str] = set()
    strict = 0
    for tool in tools:
        if tool.hosted or not isinstance(tool.schema, dict):
            sent.append(tool)
            continue
        form = _form_of(tool.schema, shape)
        schema = _schema(tool.schema, form)
        schema = _in_objects(schema) if shape.objects else schema
        if shape.modern:
            schema = _with_lists_of_required(in_new_words(schema))
        if tool.strict and shape.strict_subset:
            strict += 1
            tool, schema, rewritten, told = _strict(tool, schema, shape, strict)
            degraded += told
            if rewritten is not None:
                form = msgspec.structs.replace(form, rewritten=rewritten)
        elif shape.subset:
            try:
                rewritten = _in_subset(schema, shape)
            except (Inexpressible, InvalidRequest) as problem:
                why = f"the target takes no such schema of a tool: {problem}"
                degraded.append(Degradation("tools", asked=tool.name, sent=None, why=why))
                left_out.add(tool.name)
                continue
            schema = rewritten.schema
            if rewritten.changes_answers:
                form = msgspec.structs.replace(form, rewritten=rewritten)
            degraded += _schema_changes(tool.name, rewritten)
        sent.append(tool if schema == tool.schema else msgspec.structs.replace(tool, schema=schema))
        if form != ToolForm():
            forms[tool.name] = form
        if form.keys:
            first = next(iter(form.keys))
            why = f"the target takes other keys of properties of {tool.name}; the reply has yours"
            degraded.append(Degradation("tools.keys", asked=first, sent=form.keys[first], why=why))
        if form.wrapped:
            why = f"the target takes an object alone as the arguments of {tool.name}; the reply has yours"
            degraded.append(Degradation("tools.schema", asked=tool.name, sent=f"in the property {WRAPPER}", why=why))
    if len(sent) == len(tools) and all(map(is_, sent, tools)):
        return None
    return WrittenTools(tools=tuple(sent), forms=forms, left_out=frozenset(left_out), degraded=tuple(degraded))


def _strict(
    tool: Tool, schema: dict[str, Any], shape: RequestShape, number: int
) -> tuple[Tool, dict[str, Any], RewrittenSchema | None, list[Degradation]]:
    """Return a strict tool with a schema that may be strict, what gives its arguments back, and what is reported.

    It is not strict where its schema cannot be, or where the target takes no further one: `number` counts them.
    """
    plain = msgspec.structs.replace(tool, strict=False)
    if shape.most_strict and number > shape.most_strict:
        why = f"the target takes {shape.most_strict} strict tools"
        return plain, schema, None, [Degradation("tools.strict", asked=tool.name, sent=False, why=why)]
    wanted = schema
    if wanted.get("type", "object") == "object" and not any(
        name in wanted for name in (*_NOT_PLAIN, "patternProperties")
    ):
        # An object of which nothing is said is a tool without arguments.
        nothing = {"additionalProperties": False} if not wanted.get("properties") else {}
        wanted = {"type": "object", "properties": {}, **nothing, **wanted}
    try:
        rewritten = _rewritten(in_new_words(wanted), subset(shape.strict_subset))
    except (Inexpressible, InvalidRequest) as problem:
        why = f"the target binds no arguments to such a schema: {problem}"
        return plain, schema, None, [Degradation("tools.strict", asked=tool.name, sent=False, why=why)]
    if all(one.kind in _TAKEN_STRICT or one.note.startswith("$schema ") for one in rewritten.rewrites):
        return tool, wanted, None, []
    given = rewritten if rewritten.changes_answers else None
    return tool, rewritten.schema, given, _schema_changes(tool.name, rewritten)


def _schema_changes(name: str, rewritten: RewrittenSchema) -> list[Degradation]:
    """Return what is reported of a schema that was written in other keywords."""
    lost = [f"{one.path or 'the root'}: {one.note}" for one in rewritten.rewrites if one.effect != "lossless"]
    if not lost and not rewritten.changes_answers:
        return []
    why = (
        "; ".join(lost[:_MOST_TOLD])
        or "the target takes no such keywords; the reply has arguments as you declared them"
    )
    return [Degradation("tools.schema", asked=name, sent="in other keywords", why=why)]


def _in_subset(schema: dict[str, Any], shape: RequestShape) -> RewrittenSchema:
    """Return the schema of a tool in the keywords that a target knows. Raises Inexpressible, and InvalidRequest for one that is none."""
    kinds = schema.get("type")
    if not kinds and not any(name in schema for name in _NOT_PLAIN):
        schema = {**schema, "type": "object"}
    elif isinstance(kinds, list) and "object" in kinds:
        # Arguments of a call are an object whatever else is declared.
        schema = {**schema, "type": "object"}
    taken = subset(shape.subset)
    # Read as a schema of today, a list of items admits none.
    rewritten = _rewritten(schema if taken.verbatim else in_new_words(schema), taken)
    return replace(rewritten, schema=_typed(rewritten.schema)) if shape.typed else rewritten


def _rewritten(schema: dict[str, Any], taken: Subset) -> RewrittenSchema:
    """Return the schema of a tool, which nobody has checked yet, in other keywords. Raises what `rewrite` does, and InvalidRequest."""
    try:
        return rewrite(schema, taken)
    except (AttributeError, KeyError, TypeError, ValueError):
        # A keyword has a value of another kind than it takes: the checker says which.
        checker(schema)
        raise


def _in_objects(schema: Any) -> Any:
    """Return a schema in which true and false, and what is required, stand in the forms of today that are no booleans."""
    if not isinstance(schema, dict):
        return ({} if schema else {"not": {}}) if isinstance(schema, bool) else schema
    kept = {name: value for name, value in schema.items() if name != "required" or isinstance(value, list)}
    return {
        name: value
        if name == "additionalProperties" and isinstance(value, bool)
        else with_parts({name: value}, _in_objects)[name]
        for name, value in kept.items()
    }


def _with_lists_of_required(schema: Any) -> Any:
    """Return a schema in which `required` is a list, or is not there: the oldest drafts had it in each property."""
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if name != "required" or isinstance(value, list)}
    return with_parts(kept, _with_lists_of_required)


def _typed(schema: Any) -> Any:
    """Return a schema in which each place that may hold any value says all types."""
    if not isinstance(schema, dict):
        return {"anyOf": [{"type": kind} for kind in _ANY_KINDS]} if schema is True else schema
    inner = {
        name: value
        if name == "additionalProperties" and value in (True, False, {})
        else with_parts({name: value}, _typed)[name]
        for name, value in schema.items()
        if not (name == "items" and value in (True, {}))
    }
    if any(name in schema for name in ("type", "anyOf", "$ref")):
        return inner
    return {**inner, "anyOf": [{"type": kind} for kind in _ANY_KINDS]}


def _form_of(schema: dict[str, Any], shape: RequestShape) -> ToolForm:
    rule = shape.property_keys
    keys = {} if rule is None else {key: rule.written(key) for key in _keys_of(schema) if not rule.takes(key)}
    kind = schema.get("type")
    nullable = isinstance(kind, list) and "object" in kind and bool(shape.subset)
    plain = not kind or nullable or (isinstance(kind, str) and kind.lower() == "object")
    wrapped = "plain_root" in shape.rules and (not plain or any(name in schema for name in _NOT_PLAIN))
    return ToolForm(keys=keys, wrapped=wrapped)


def _keys_of(schema: Any) -> Iterator[str]:
    """Yield the keys of all properties of a schema, in the order of the schema."""
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            named = one.get("properties")
            if isinstance(named, dict):
                yield from named
            waiting += [inner for _, _, inner in parts(one)]


def _schema(schema: dict[str, Any], form: ToolForm) -> dict[str, Any]:
    inner: dict[str, Any] = _renamed_parts(schema, form) if form.keys or form.wrapped else schema
    if not form.wrapped:
        return inner
    kept = {name: inner[name] for name in _DEFINITIONS if name in inner}
    root = {name: value for name, value in inner.items() if name not in kept and name != "$schema"}
    return {
        "type": "object",
        "properties": {WRAPPER: root},
        "required": [WRAPPER],
        "additionalProperties": False,
        **kept,
    }


def _renamed_parts(schema: Any, form: ToolForm) -> Any:
    if not isinstance(schema, dict):
        return schema
    keys = form.keys
    changed: dict[str, Any] = with_parts(schema, lambda inner: _renamed_parts(inner, form))
    for name, value in changed.items():
        if name in ("properties", "dependentSchemas", "dependentRequired") and isinstance(value, dict):
            value = {keys.get(key, key): inner for key, inner in value.items()}
            if name == "dependentRequired":
                value = {key: _keys_in(inner, keys) for key, inner in value.items()}
        elif name == "required":
            value = _keys_in(value, keys)
        elif name == "$ref" and isinstance(value, str):
            value = _reference(value, form)
        elif name in _VALUES or (name in _LISTS_OF_VALUES and isinstance(value, list)):
            value = _with_keys(value, keys)
        changed[name] = value
    return changed


def _keys_in(value: Any, keys: Mapping[str, str]) -> Any:
    return [keys.get(one, one) if isinstance(one, str) else one for one in value] if isinstance(value, list) else value


def _reference(reference: str, form: ToolForm) -> str:
    """Return a reference to a place of the schema as it is written now."""
    if not reference.startswith("#"):
        return reference
    steps = reference.split("/")
    for place, step in enumerate(steps):
        if place and steps[place - 1] == "properties":
            key = step.replace("~1", "/").replace("~0", "~")
            steps[place] = form.keys.get(key, step)
    if form.wrapped and (len(steps) == 1 or steps[1] not in _DEFINITIONS):
        steps[1:1] = ["properties", WRAPPER]
    return "/".join(steps)


def _with_keys(value: Any, keys: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {keys.get(key, key): _with_keys(inner, keys) for key, inner in value.items()}
    return [_with_keys(inner, keys) for inner in value] if isinstance(value, list) else value


def _changed(arguments: str, change: Any) -> str:
    try:
        return json.dumps(change(json.loads(arguments)), ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return arguments


def _with_calls(message: Message, forms: Mapping[str, ToolForm]) -> Message:
    if ToolCallBlock not in message.kinds or not any(call.name in forms for call in message.calls):
        return message
    blocks = [
        msgspec.structs.replace(block, arguments=forms[block.name].written(block.arguments))
        if isinstance(block, ToolCallBlock) and block.name in forms
        else block
        for block in message.blocks
    ]
    return msgspec.structs.replace(message, blocks=tuple(blocks))


class RestoreToolArguments:
    """A stage of one reply: arguments of tools whose schema was written otherwise have the client's form. They wait for their end."""

    passes_text = True
    acts_on: frozenset[type] = frozenset((ToolCallStart, ToolCallChunk, ToolCallEnd))

    def __init__(self, forms: Mapping[str, ToolForm]) -> None:
        self._forms = forms
        self._open: dict[tuple[int, int], tuple[ToolForm, list[str]]] = {}

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on all but the arguments of these calls, which come whole before the end of their call."""
        if type(item) is ToolCallStart and item.name in self._forms:
            self._open[item.choice, item.block] = self._forms[item.name], []
        elif type(item) is ToolCallChunk and (item.choice, item.block) in self._open:
            self._open[item.choice, item.block][1].append(item.arguments)
            return ()
        elif type(item) is ToolCallEnd and (item.choice, item.block) in self._open:
            form, pieces = self._open.pop((item.choice, item.block))
            return (ToolCallChunk(item.block, form.restored("".join(pieces)), item.choice), item)
        return (item,)

    def finish(self) -> Sequence[Event]:
        """Give what came of calls in which the reply broke off."""
        left = [
            ToolCallChunk(block, "".join(held[1]), choice) for (choice, block), held in self._open.items() if held[1]
        ]
        self._open.clear()
        return left
