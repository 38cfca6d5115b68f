"""The laws of a server: what each asks, why clients need it, and what a strict reader finds in a reply of any dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import msgspec

from bardo.operators.conform.checked_server import Frame, ReceivedReply

Status = Literal["kept", "broken", "unclear", "skipped"]


class Law(msgspec.Struct, frozen=True, kw_only=True):
    """One law. `why` says what goes wrong in clients where it does not hold."""

    id: str
    title: str
    why: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The finding about one law. `faults` describe the violations; `evidence` is the beginning of what the server sent.

    `cause`: why the request was refused, where it was: laws that were refused for the same cause are counted once.
    """

    law: str
    status: Status
    faults: tuple[str, ...] = ()
    evidence: str = ""
    cause: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The findings at one server. `at` is Unix time."""

    address: str
    dialect: str
    model: str
    at: float
    findings: tuple[Finding, ...]

    @property
    def broken(self) -> Sequence[Finding]:
        """The laws that do not hold."""
        return [finding for finding in self.findings if finding.status == "broken"]


LAWS: tuple[Law, ...] = (
    Law(
        id="reply.whole", title="A whole reply has the form of its API", why="official SDKs read fields by their types"
    ),
    Law(id="usage.whole", title="Tokens are told, and add up", why="what a call costs is reckoned from them"),
    Law(
        id="reply.stream",
        title="A stream has the form of its API, and ends once",
        why="readers wait for an end that does not come, or stop at one that came too early",
    ),
    Law(id="usage.stream", title="Tokens are told in a stream too", why="most calls of agents are streams"),
    Law(id="limit.told", title="A reply cut by its limit says so", why="half an answer passes for a whole one"),
    Law(id="thinking.whole", title="Thinking comes in its own field", why="it is lost, or shown as the answer"),
    Law(id="thinking.stream", title="Thinking comes in its own field of a stream", why="as above, in most programs"),
    Law(id="thinking.counted", title="Thinking is counted", why="it is paid for, and seen nowhere"),
    Law(id="tools.whole", title="A call of a tool has id, name and arguments", why="agents cannot act on it"),
    Law(
        id="tools.stream", title="The pieces of a call make one call", why="arguments are put together by their places"
    ),
    Law(
        id="tools.loop",
        title="The result of a tool is taken with the turn as it came",
        why="a turn that its own server refuses ends every agent's loop",
    ),
    Law(
        id="typed.whole",
        title="An answer in a schema is JSON of that schema",
        why="programs read its fields, and the next step fails far from the cause",
    ),
    Law(
        id="typed.stream",
        title="An answer in a schema is JSON of that schema in a stream too",
        why="its pieces are put together and read as above",
    ),
    Law(
        id="error.json", title="A body that is no JSON is a 400 in the API's form", why="SDKs raise by status and form"
    ),
    Law(
        id="error.value", title="A wrong value is a 400 in the API's form", why="the message is the only help there is"
    ),
    Law(id="error.model", title="An unknown model is an error in the API's form", why="clients fall back by it"),
    Law(id="error.key", title="A wrong key is a 401 in the API's form", why="programs ask for another key by it"),
    Law(id="error.overflow", title="A prompt too long is told in the API's words", why="agents shorten theirs by them"),
    Law(
        id="cut.loud",
        title="A stream that broke off does not end as if it were whole",
        why="half an answer passes for one",
    ),
)


TOOL = "get_weather"
TOOL_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "the name of the city"}},
    "required": ["city"],
}
ANSWER_SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "sky": {"type": "string", "enum": ["clear", "cloudy", "rain"]},
        "place": {
            "type": "object",
            "properties": {"country": {"type": "string"}, "coastal": {"type": "boolean"}},
            "required": ["country", "coastal"],
            "additionalProperties": False,
        },
    },
    "required": ["city", "sky", "place"],
    "additionalProperties": False,
}
"""Parts of a schema that all dialects take: an enumeration, and an object in the object."""
ANSWER_QUESTION = "Describe Lisbon on a sunny day, as JSON: its city, its sky, and its place with country and coastal."
QUESTION = "What is 27 * 43? Answer with the number."
TOOL_QUESTION = f"Call {TOOL} for the city Paris."


class ToolUse(msgspec.Struct):
    """One call of a tool, as it was put together."""

    id: str = ""
    name: str = ""
    arguments: str = ""


class Reading(msgspec.Struct):
    """The content of a reply, and the faults of its form."""

    text: str = ""
    thinking: str = ""
    hidden_thinking: bool = False
    calls: list[ToolUse] = []
    finish: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    thinking_tokens: int | None = None
    ended: bool = False
    refused: bool = False
    """Whether the model declined to answer, in the words that the dialect has for it."""
    error: str = ""
    faults: list[str] = []

    def wrong(self, fault: str) -> None:
        """Note a fault, once."""
        if fault not in self.faults:
            self.faults.append(fault)

    def require(self, holds: bool, fault: str) -> None:
        """Note a fault where something does not hold."""
        if not holds:
            self.wrong(fault)

    def field(self, holder: Any, name: str, kind: type | tuple[type, ...], where: str) -> Any:
        """Return a field, and note a fault where it is missing or of another type."""
        value = holder.get(name) if isinstance(holder, dict) else None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
            self.wrong(f"{where}.{name} is {_kind(value)}")
            return None
        return value


class Wire(Protocol):
    """A dialect, as a strict client knows it.

    `limits` are the words by which a reply that was cut by its limit ends, `key_statuses` those of an answer to a wrong key.
    `counts_thinking`: tokens of thinking are counted apart from the answer's. `names_calls`: each call of a tool has an id.
    """

    counts_thinking: bool
    names_calls: bool
    limits: frozenset[str]
    key_statuses: frozenset[int]

    def path(self, model: str, *, stream: bool) -> str: ...

    def auth(self, key: str) -> dict[str, str]: ...

    def question(self, model: str, text: str, *, stream: bool = False, limit: int = 2048) -> dict[str, Any]: ...

    def with_thinking(self, body: dict[str, Any]) -> dict[str, Any]: ...

    def with_tool(self, body: dict[str, Any], *, forced: bool) -> dict[str, Any]: ...

    def with_schema(self, body: dict[str, Any]) -> dict[str, Any]: ...

    def with_result(self, body: dict[str, Any], reply: Any, calls: Sequence[ToolUse]) -> dict[str, Any]: ...

    def wrong_value(self, body: dict[str, Any]) -> dict[str, Any]: ...

    def read_whole(self, reply: Any) -> Reading: ...

    def read_stream(self, frames: Sequence[Frame]) -> Reading: ...

    def error_faults(self, reply: ReceivedReply) -> list[str]: ...

    def is_overflow(self, reply: ReceivedReply) -> bool: ...


def read_frames(frames: Sequence[Frame], reading: Reading, take: Callable[[Frame, dict[str, Any]], None]) -> None:
    """Return each event that is a JSON object to `take`, and note the others as faults."""
    for frame in frames:
        value = frame.json
        if isinstance(value, dict):
            take(frame, value)
        else:
            reading.wrong(f"an event is no JSON object: {frame.data[:60]!r}")


def _kind(value: Any) -> str:
    if value is None:
        return "missing or null"
    names = {
        str: "a text",
        bool: "true or false",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), type(value).__name__)
