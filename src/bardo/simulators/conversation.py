"""What every dialect's request says, whatever its wire form: the part a script looks at."""

from __future__ import annotations

from dataclasses import dataclass

from bardo.simulators.fields import Fields
from bardo.simulators.turns import tokens_of


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

    @property
    def counted(self) -> int:
        """How many tokens the request has, its tools included: what a count of tokens says."""
        tools = sum(len(tool.name) + len(tool.description) + len(repr(tool.schema)) for tool in self.tools)
        return max(1, tokens_of(self.characters + tools))
