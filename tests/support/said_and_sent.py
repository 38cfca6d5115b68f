"""What of a client's request did not reach its provider alike, seen without knowing either's dialect.

Looked for are texts, pictures, arguments of calls, names and schemas of tools, the chosen tool, stop sequences and the user.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from bardo.structured.rewrite.keywords import in_new_words
from bardo.structured.validation import checker
from support.odd_requests import JPEG, KEYS, PNG, TEXTS, Body, Drawn

TOLD_AS: dict[str, tuple[str, ...]] = {
    "text": ("history.", "messages", "content", "text", "tool_result", "system"),
    "picture": ("history.", "messages", "content", "image", "tool_result"),
    "arguments": ("history.", "tools", "tool_call"),
    "name": ("tools", "tool_choice"),
    "schema": ("tools", "tool_choice"),
    "choice": ("tool_choice", "tools"),
    "stop": ("stop",),
    "user": ("user", "metadata"),
}
"""How the names of changes begin that tell of each kind of what a client said."""
_STOPS = ("stop", "stop_sequences", "stopSequences")
_SCHEMAS = {"parameters", "parametersJsonSchema", "input_schema", "json"}
_VALUES: list[Any] = [
    "x",
    1,
    True,
    None,
    [],
    ["x"],
    [1],
    ["x", "y"],
    ["x", 1],
    {},
    {"u": {}},
    {"u": 1},
    "https://e.org",
]
_ARGUMENTS: list[Any] = [{}] + [
    {**more, key: value}
    for more in ({}, dict.fromkeys(KEYS, "x"))
    for key in (*KEYS, "b", "m", "x-1", "z", "d", "n", "c", "e", "x", "t", "l", "i")
    for value in _VALUES
]
_SAID = [text.strip() for text in TEXTS if text.strip()]
_SAID += ["Be brief.", "What is it?", "Well.", "Go on.", "And?", "From now on in French.", "sunny", "found"]


def changed(drawn: Drawn, said: Body, sent: Any) -> dict[str, str]:
    """Give what a provider got otherwise than the client said it, each kind with an example."""
    before, after = _Seen(said), _Seen(sent)
    lost: dict[str, str] = {}
    for text in _SAID:
        if before.holds(text) and not after.holds(text):
            lost["text"] = text
    for picture in (PNG, JPEG):
        if before.holds(picture) and not after.holds(picture):
            lost["picture"] = picture[:9]
    for turn in drawn.turns:
        for _, _, given in turn.calls:
            if given and given in before.objects and given not in after.objects:
                lost["arguments"] = json.dumps(given)
    # Where no tool may be called, a request without tools says the same.
    hidden = drawn.forced == "none" and not after.keys & {"tools", "toolConfig"}
    for name, schema in () if hidden else drawn.tools:
        # A name that is not taken keeps digits made of itself, and comes back in the reply.
        digits = hashlib.sha256(name.encode()).hexdigest()[:8]
        if name in before.texts and name not in after.texts and not after.holds(f"_{digits}"):
            lost["name"] = name
        # A strict object of which nothing is said is a tool without arguments.
        nothing = drawn.strict and schema == {"type": "object"}
        if (
            schema
            and not nothing
            and schema in before.schemas
            and not any(_is_alike(schema, one) for one in after.schemas)
        ):
            lost["schema"] = json.dumps(schema)
    chooses = "functionCallingConfig" in said.get("toolConfig", {}) or said.get("tool_choice") not in (None, "auto")
    if chooses and not hidden and not after.keys & {"tool_choice", "toolChoice", "toolConfig", "tool_config"}:
        lost["choice"] = drawn.forced
    said_stops = any(drawn.stops == one.get(name) for one in before.objects for name in _STOPS)
    if drawn.stops and said_stops and drawn.stops not in after.lists:
        lost["stop"] = str(drawn.stops)
    if drawn.user and before.holds(drawn.user) and not after.holds(drawn.user):
        lost["user"] = drawn.user
    return lost


def untold(drawn: Drawn, said: Body, sent: Any, told: set[str]) -> list[str]:
    """Give the changes of which no name in `told` tells."""
    return [
        f"{kind} {what}"
        for kind, what in changed(drawn, said, sent).items()
        if not any(name.startswith(TOLD_AS[kind]) for name in told)
    ]


def _is_alike(schema: Any, other: Any) -> bool:
    """Whether two schemas of tools admit the same of some arguments."""
    return schema == other or _verdicts(schema) == _verdicts(other)


def _verdicts(schema: Any) -> list[bool]:
    plain = in_new_words(schema)
    checked = checker(plain if "$defs" in plain else {"type": "object", "allOf": [plain]})
    return [checked.accepts(one) for one in _ARGUMENTS]


class _Seen:
    """All texts, objects, lists and keys of a body, and of JSON that stands in its texts."""

    def __init__(self, body: Any) -> None:
        self.texts: set[str] = set()
        self.objects: list[Any] = []
        self.lists: list[Any] = []
        self.keys: set[str] = set()
        self.schemas: list[Any] = []
        waiting = [body]
        while waiting:
            one = waiting.pop()
            if isinstance(one, dict):
                self.objects.append(one)
                self.keys |= one.keys()
                self.schemas += [value for name, value in one.items() if name in _SCHEMAS and isinstance(value, dict)]
            elif isinstance(one, list):
                self.lists.append(one)
            elif isinstance(one, str):
                self.texts.add(one.replace("-", "+").replace("_", "/") if len(one) > 60 and " " not in one else one)
                self.texts.add(one)
            waiting += _inner(one)

    def holds(self, text: str) -> bool:
        return any(text in one for one in self.texts)


def _inner(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value
    elif isinstance(value, str) and value[:1] in ("{", "["):
        try:
            yield json.loads(value)
        except ValueError:
            return
