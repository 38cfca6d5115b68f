"""The demands of a server on the shape of a request beside the fields of its dialect, each refused in the server's own words.

A request is seen alike in every dialect: the names and schemas of its tools, its stop sequences, and its messages one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bardo.simulators.exchange import Refusal
from bardo.simulators.fields import Fields, at, fields, rows, text

_ROOTS = ("oneOf", "anyOf", "allOf", "enum", "not")
_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern that a text must match whole, and the words for one that does not: `{place}` is its place, `{given}` the text itself."""

    pattern: str
    words: str

    def check(self, place: str, given: str) -> None:
        """Raise Refusal for a text that is not taken."""
        if not re.fullmatch(self.pattern, given, re.DOTALL):
            raise Refusal("bad_value", self.words.format(place=place, given=given), parameter=place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """The demands of one model of a server; a field that is None or empty demands nothing. The texts are the words of the refusal.

    `plain_root`: a tool's schema has an object at its root and none of `oneOf` and the like beside it. `check_schema` raises Refusal for a
    tool's schema, given its place, `check_strict` for that of a tool with `strict: true`. `user_after_tool`: the user does not speak right
    behind a result. `late_system`: the system speaks at the beginning alone. `most_stops` is how many stop sequences there may be,
    `too_many_stops` the words for more.
    """

    tool_names: Rule | None = None
    property_keys: Rule | None = None
    call_ids: Rule | None = None
    plain_root: str = ""
    check_schema: Callable[[str, Fields], None] | None = None
    check_strict: Callable[[str, Fields], None] | None = None
    repeated_call: str = ""
    user_after_tool: str = ""
    late_system: str = ""
    alternating: str = ""
    most_stops: int | None = None
    too_many_stops: str = ""

    def check(self, seen: SeenShape) -> None:
        """Raise Refusal for the first demand that a request does not meet."""
        if self.tool_names is not None:
            for place, name in seen.names:
                self.tool_names.check(place, name)
        for place, schema in seen.schemas:
            if self.plain_root and (schema.get("type", "object") != "object" or any(name in schema for name in _ROOTS)):
                raise Refusal("bad_value", self.plain_root.format(place=place), parameter=place)
            if self.check_schema is not None:
                self.check_schema(place, schema)
            if self.property_keys is not None:
                for key in _keys(schema):
                    self.property_keys.check(place, key)
        if self.check_strict is not None:
            for place, schema in seen.strict:
                self.check_strict(place, schema)
        self._check_calls(seen.turns)
        self._check_order(seen.turns)
        if self.most_stops is not None and len(seen.stops) > self.most_stops:
            raise Refusal("bad_value", self.too_many_stops.format(given=len(seen.stops), most=self.most_stops))

    def _check_calls(self, turns: Sequence[SeenTurn]) -> None:
        called: set[str] = set()
        for turn in turns:
            for place, given in (*turn.calls, *turn.results):
                if self.call_ids is not None:
                    self.call_ids.check(place, given)
            for place, given in turn.calls:
                if self.repeated_call and given in called:
                    raise Refusal("bad_value", self.repeated_call.format(place=place))
                called.add(given)

    def _check_order(self, turns: Sequence[SeenTurn]) -> None:
        before: SeenTurn | None = None
        spoken = False
        for turn in turns:
            if self.late_system and turn.role == "system" and spoken:
                raise Refusal("bad_value", self.late_system)
            if self.alternating and before is not None and turn.role == before.role:
                raise Refusal("bad_value", self.alternating)
            if self.user_after_tool and before is not None:
                follows = "tool" if before.results else before.role
                if (turn.role == "user" and turn.speaks and follows == "tool") or (
                    turn.role == "system" and follows in ("tool", "assistant")
                ):
                    raise Refusal("bad_value", self.user_after_tool.format(role=turn.role, before=follows))
            spoken = spoken or turn.role != "system"
            before = turn


@dataclass(frozen=True, slots=True)
class SeenTurn:
    """One message: ids of its calls and results with their places, and whether it has something besides results."""

    role: str
    calls: list[tuple[str, str]] = field(default_factory=list)
    results: list[tuple[str, str]] = field(default_factory=list)
    speaks: bool = True


@dataclass(frozen=True, slots=True)
class SeenShape:
    """The parts of a request that demands are about; each name, schema and id with the place where it stands.

    `strict` are the schemas of tools with `strict: true` once more.
    """

    names: list[tuple[str, str]]
    schemas: list[tuple[str, Fields]]
    turns: list[SeenTurn]
    stops: list[object]
    strict: list[tuple[str, Fields]] = field(default_factory=list)


def seen_shape(dialect: str, body: Fields) -> SeenShape:
    """Return the parts of a request of any dialect."""
    return _READERS[dialect](body)


def _keys(schema: object) -> Iterator[str]:
    """Yield the keys of all properties of a schema."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        if not isinstance(node, dict):
            continue
        yield from fields(node.get("properties"))
        for name, value in node.items():
            if name in _SCHEMAS:
                waiting += fields(value).values()
            elif name not in ("enum", "const", "default", "examples"):
                waiting.append(value)


def _stops(value: object) -> list[object]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _chat(body: Fields) -> SeenShape:
    names, schemas, turns, strict = [], [], [], []
    for index, tool in enumerate(rows(body.get("tools"))):
        function = fields(tool.get("function"))
        if function:
            names.append((f"tools[{index}].function.name", text(function.get("name"))))
            schemas.append((f"tools[{index}].function.parameters", fields(function.get("parameters"))))
            strict += schemas[-1:] if function.get("strict") is True and "parameters" in function else []
    if chosen := fields(at(body, "tool_choice.function")):
        names.append(("tool_choice.function.name", text(chosen.get("name"))))
    for index, message in enumerate(rows(body.get("messages"))):
        role = text(message.get("role"))
        turn = SeenTurn(role if role != "tool" else "user", speaks=role != "tool")
        for place, call in enumerate(rows(message.get("tool_calls"))):
            where = f"messages[{index}].tool_calls[{place}]"
            turn.calls.append((f"{where}.id", text(call.get("id"))))
            names.append((f"{where}.function.name", text(at(call, "function.name"))))
        if role == "tool":
            turn.results.append((f"messages[{index}].tool_call_id", text(message.get("tool_call_id"))))
        turns.append(turn)
    return SeenShape(names, schemas, turns, _stops(body.get("stop")), strict)


def _responses(body: Fields) -> SeenShape:
    names, schemas, turns, strict = [], [], [], []
    for index, tool in enumerate(rows(body.get("tools"))):
        if tool.get("type") in ("function", "custom"):
            names.append((f"tools[{index}].name", text(tool.get("name"))))
            schemas.append((f"tools[{index}].parameters", fields(tool.get("parameters"))))
            strict += schemas[-1:] if tool.get("strict") is True and tool.get("parameters") is not None else []
    for index, item in enumerate(rows(body.get("input"))):
        kind, where = text(item.get("type")), (f"input[{index}].call_id", text(item.get("call_id")))
        if kind in ("function_call", "custom_tool_call"):
            names.append((f"input[{index}].name", text(item.get("name"))))
            turns.append(SeenTurn("assistant", calls=[where]))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            turns.append(SeenTurn("user", results=[where], speaks=False))
        else:
            turns.append(SeenTurn(text(item.get("role")) or "assistant"))
    return SeenShape(names, schemas, turns, [], strict)


def _messages(body: Fields) -> SeenShape:
    names, schemas, turns, strict = [], [], [], []
    for index, tool in enumerate(rows(body.get("tools"))):
        if "input_schema" in tool:
            names.append((f"tools.{index}.custom.name", text(tool.get("name"))))
            schemas.append((f"tools.{index}.custom.input_schema", fields(tool.get("input_schema"))))
            strict += schemas[-1:] if tool.get("strict") is True else []
    for index, message in enumerate(rows(body.get("messages"))):
        turn = SeenTurn(text(message.get("role")))
        for place, block in enumerate(rows(message.get("content"))):
            where = f"messages.{index}.content.{place}"
            if block.get("type") == "tool_use":
                turn.calls.append((f"{where}.tool_use.id", text(block.get("id"))))
                names.append((f"{where}.tool_use.name", text(block.get("name"))))
            elif block.get("type") == "tool_result":
                turn.results.append((f"{where}.tool_result.tool_use_id", text(block.get("tool_use_id"))))
        turns.append(turn)
    return SeenShape(names, schemas, turns, _stops(body.get("stop_sequences")), strict)


def _converse(body: Fields) -> SeenShape:
    names, schemas, turns, strict = [], [], [], []
    for index, tool in enumerate(rows(at(body, "toolConfig.tools"))):
        if spec := fields(tool.get("toolSpec")):
            where = f"toolConfig.tools.{index + 1}.member.toolSpec"
            names.append((f"{where}.name", text(spec.get("name"))))
            schemas.append((f"tools.{index}.custom.input_schema", fields(at(spec, "inputSchema.json"))))
            strict += schemas[-1:] if spec.get("strict") is True else []
    for index, message in enumerate(rows(body.get("messages"))):
        turn = SeenTurn(text(message.get("role")))
        for place, block in enumerate(rows(message.get("content"))):
            where = f"messages.{index + 1}.member.content.{place + 1}.member"
            if use := fields(block.get("toolUse")):
                turn.calls.append((f"{where}.toolUse.toolUseId", text(use.get("toolUseId"))))
                names.append((f"{where}.toolUse.name", text(use.get("name"))))
            elif result := fields(block.get("toolResult")):
                turn.results.append((f"{where}.toolResult.toolUseId", text(result.get("toolUseId"))))
        turns.append(turn)
    return SeenShape(names, schemas, turns, _stops(at(body, "inferenceConfig.stopSequences")), strict)


def _gemini(body: Fields) -> SeenShape:
    names = []
    for place, tool in enumerate(rows(body.get("tools"))):
        for index, function in enumerate(rows(tool.get("functionDeclarations", tool.get("function_declarations")))):
            where = f"GenerateContentRequest.tools[{place}].function_declarations[{index}].name"
            names.append((where, text(function.get("name"))))
    config = fields(body.get("generationConfig", body.get("generation_config")))
    return SeenShape(names, [], [], _stops(config.get("stopSequences", config.get("stop_sequences"))))


def _interactions(body: Fields) -> SeenShape:
    names = [
        (f"tools[{index}].name", text(tool.get("name")))
        for index, tool in enumerate(rows(body.get("tools")))
        if tool.get("type") == "function"
    ]
    return SeenShape(names, [], [], _stops(at(body, "generation_config.stop_sequences")))


def _ollama(body: Fields) -> SeenShape:
    seen = _chat(body)
    return SeenShape(seen.names, seen.schemas, seen.turns, _stops(at(body, "options.stop")))


def _cohere(body: Fields) -> SeenShape:
    seen = _chat(body)
    return SeenShape(seen.names, seen.schemas, seen.turns, _stops(body.get("stop_sequences")))


def _text_alone(body: Fields) -> SeenShape:
    return SeenShape([], [], [], _stops(at(body, "parameters.stop_sequences")))


_READERS = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "anthropic_messages": _messages,
    "bedrock_converse": _converse,
    "gemini": _gemini,
    "gemini_interactions": _interactions,
    "ollama": _ollama,
    "cohere": _cohere,
    "watsonx_text": _text_alone,
}

OPENAI_NAMES = Rule(
    r"[a-zA-Z0-9_-]{1,64}",
    "Invalid '{place}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
)
LONGEST_NAMES = Rule(r".{0,64}", "Invalid '{place}': string too long. Expected a string with maximum length 64")
OPENAI_ROOT = (
    "Invalid schema for function in '{place}': schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top "
    "level."
)
_STRICT_WORDS = frozenset((
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref",
    "$defs", "definitions", "title", "description", "$schema", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "pattern", "format",
))  # fmt: skip


def check_openai_strict(place: str, schema: Fields) -> None:
    """Refuse a strict tool's schema as OpenAI does (567-labs/instructor#1074, lastmile-ai/openai-agents-mcp#2, dotnet/extensions#6302)."""
    for context, node in _nodes(schema):
        words = f"Invalid schema for function in '{place}': In context={context}, "
        if beside := sorted(node.keys() - {"$ref"}) if "$ref" in node else []:
            raise Refusal("bad_value", f"{words}$ref cannot have keywords {beside}.", parameter=place)
        for name in node:
            if name not in _STRICT_WORDS:
                raise Refusal("bad_value", f"{words}'{name}' is not permitted.", parameter=place)
        if "object" in _types(node):
            if node.get("additionalProperties") is not False:
                missing = "'additionalProperties' is required to be supplied and to be false."
                raise Refusal("bad_value", words + missing, parameter=place)
            listed, named = node.get("required", []), fields(node.get("properties"))
            if not isinstance(listed, list) or set(listed) != set(named):
                missing = "'required' is required to be supplied and to be an array including every key in properties."
                raise Refusal("bad_value", words + missing, parameter=place)


def check_claude_strict(place: str, schema: Fields) -> None:
    """Refuse a strict tool's schema as Anthropic and Bedrock do (vercel/ai#20681, BerriAI/litellm#39115, agentjido/req_llm#707, 2026)."""
    where = place.removesuffix(".input_schema")
    for _, node in _nodes(schema):
        kinds = _types(node)
        if "object" in kinds and node.get("additionalProperties") is not False:
            words = f"{where}: For 'object' type, 'additionalProperties' must be explicitly set to false"
            raise Refusal("bad_value", words, parameter=place)
        for kind, names in _NOT_BOUND.items():
            for name in names if kind in kinds else ():
                if name in node and not (name == "minItems" and node[name] in (0, 1)):
                    words = f"{where}: For '{kind}' type, property '{name}' is not supported"
                    raise Refusal("bad_value", words, parameter=place)


def check_new_draft(place: str, schema: Fields) -> None:
    """Refuse a schema that is not valid in 2020-12 (anthropics/claude-code#7365, 2025-09)."""
    for _, node in _nodes(schema):
        lists = isinstance(node.get("items"), list) or not isinstance(node.get("required", []), list)
        if lists or any(isinstance(node.get(name), bool) for name in ("exclusiveMinimum", "exclusiveMaximum")):
            words = f"{place}: JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12)."
            raise Refusal("bad_value", words, parameter=place)


_RANGES = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_NOT_BOUND = {
    "array": ("maxItems", "minItems", "uniqueItems"),
    "integer": _RANGES,
    "number": _RANGES,
    "string": ("minLength", "maxLength"),
}


def _types(schema: Fields) -> list[object]:
    kind = schema.get("type")
    return kind if isinstance(kind, list) else [kind]


def _nodes(schema: Fields) -> Iterator[tuple[tuple[str, ...], Fields]]:
    """Yield each schema inside a schema, itself first, with the way to it."""
    waiting: list[tuple[tuple[str, ...], object]] = [((), schema)]
    while waiting:
        context, node = waiting.pop(0)
        if isinstance(node, list):
            waiting += [((*context, str(index)), inner) for index, inner in enumerate(node)]
        if not isinstance(node, dict):
            continue
        yield context, node
        for name, value in node.items():
            if name in _SCHEMAS:
                waiting += [((*context, name, key), inner) for key, inner in fields(value).items()]
            elif name in ("items", "anyOf", "allOf", "oneOf", "additionalProperties", "prefixItems"):
                waiting.append(((*context, name), value))


CLAUDE = Demands(
    tool_names=Rule(r"[a-zA-Z0-9_-]{1,128}", "{place}: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"),
    property_keys=Rule(
        r"[a-zA-Z0-9_.-]{1,64}", "{place}.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'"
    ),
    call_ids=Rule(r"[a-zA-Z0-9_-]+", "{place}: String should match pattern '^[a-zA-Z0-9_-]+$'"),
    plain_root="{place}: input_schema does not support oneOf, allOf, or anyOf at the top level",
    repeated_call="{place}: `tool_use` ids must be unique",
    check_schema=check_new_draft,
    check_strict=check_claude_strict,
)
MISTRAL_ORDER = "Unexpected role '{role}' after role '{before}'"
"""What the templates of Mistral's models, and its own API, say of the user behind a result (BerriAI/litellm#17761, 2026)."""
MISTRALS = re.compile(r"(?i)mi[sx]tral|ministral|magistral|devstral|codestral|pixtral|voxtral")
"""Names of models with such a template."""


def _check_go_types(place: str, schema: Fields) -> None:
    """Refuse a property that is no object, and a `required` that is no list (can1357/oh-my-pi#4488 and ollama/ollama#18051, 2026)."""
    waiting: list[object] = [schema]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict):
            words = "json: cannot unmarshal bool into Go struct field ToolFunctionParameters.tools.function.parameters.properties"
            raise Refusal("bad_value", f"{words} of type api.ToolProperty", parameter=place)
        if not isinstance(node.get("required", []), list):
            words = "json: cannot unmarshal object into Go struct field ToolProperty.required of type []string"
            raise Refusal("bad_value", words, parameter=place)
        waiting += fields(node.get("properties")).values()


def ollama_demands(model: str) -> Demands:
    """Return what Ollama demands: the renderers of Qwen3.5 and later take the system at the beginning alone (ollama/ollama#17774, 2026)."""
    late = "system message must be at the beginning" if re.search(r"(?i)qwen3\.[5-9]", model) else ""
    return Demands(late_system=late, check_schema=_check_go_types)
