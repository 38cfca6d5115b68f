"""A request in a form that all dialects share: the part that a script reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bardo.simulators.fields import Fields, fields, joined_text, rows, text
from bardo.simulators.turns import tokens_of


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool the request offers."""

    name: str
    description: str
    schema: Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One decoded request.

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
    def token_count(self) -> int:
        """The tokens of the request, its tools included."""
        tools = sum(len(tool.name) + len(tool.description) + len(repr(tool.schema)) for tool in self.tools)
        return max(1, tokens_of(self.characters + tools))


def function_tools(body: Fields) -> tuple[Tool, ...]:
    """Return the tools of a request that declares them as `{"function": {…}}`: Chat Completions, Cohere and Ollama do."""
    functions = [fields(tool.get("function")) for tool in rows(body.get("tools"))]
    return tuple(
        Tool(text(function.get("name")), text(function.get("description")), fields(function.get("parameters")))
        for function in functions
        if function
    )


def closing_tool_results(
    messages: Sequence[Fields], read_content: Callable[[object], str] = joined_text
) -> tuple[str, ...]:
    """Return the contents of the messages with the role `tool` that end a conversation, in order."""
    results: list[str] = []
    for message in reversed(messages):
        if message.get("role") != "tool":
            break
        results.append(read_content(message.get("content")))
    return tuple(reversed(results))
