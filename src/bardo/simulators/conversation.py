"""What every dialect's request says, whatever its wire form: the part a script looks at."""

from __future__ import annotations

from dataclasses import dataclass

from bardo.simulators.fields import Fields


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool the request offers."""

    name: str
    description: str
    schema: Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One request, read.

    `question` is the last thing the user said, `rounds` the number of assistant messages the request holds,
    `tool_results` the results that came after the last of them, `schema` the JSON Schema the answer must follow,
    `sse` whether a streamed reply comes as events (Gemini also has another way), `characters` the length of
    everything said.
    """

    model: str
    question: str
    rounds: int = 0
    tools: tuple[Tool, ...] = ()
    forced_tool: str | None = None
    tool_results: tuple[str, ...] = ()
    schema: Fields | None = None
    streamed: bool = False
    sse: bool = True
    characters: int = 0
