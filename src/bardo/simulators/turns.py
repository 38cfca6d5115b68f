"""The values of a script: the request in a form that all dialects share, and what a simulated model says in one reply."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from bardo.simulators.faults import Fault
from bardo.simulators.fields import Fields, fields, joined_text, rows, text

Finish: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model makes. `arguments` as a string is sent as it is, so it may be broken JSON."""

    name: str
    arguments: Mapping[str, object] | str
    id: str | None = None

    @property
    def arguments_text(self) -> str:
        """The arguments as JSON text."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, separators=(",", ":"), ensure_ascii=False)

    @property
    def arguments_value(self) -> object:
        """The arguments as a value, for dialects that send them so; broken JSON stays text."""
        if not isinstance(self.arguments, str):
            return self.arguments
        try:
            value: object = json.loads(self.arguments)
        except ValueError:
            return self.arguments
        return value


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, in one algebra; each provider's own (reasoning inside or beside the output) is made from it.

    `input_tokens` includes those read from and written to a cache.
    """

    input_tokens: int
    answer_tokens: int
    reasoning_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def output_tokens(self) -> int:
        """All that was generated."""
        return self.answer_tokens + self.reasoning_tokens

    @property
    def total_tokens(self) -> int:
        """All that was read and generated."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One reply of the model. What a provider never shows (OpenAI Chat: reasoning text) is still counted.

    `reasoning_summary` is what providers that summarize show instead of `reasoning`. `redacted` sends the reasoning
    as ciphertext only; `hidden` sends it as an empty block with a signature. Without `usage`, tokens are estimated
    from the texts. `fault` breaks this reply.
    """

    text: str = ""
    reasoning: str = ""
    reasoning_summary: tuple[str, ...] = ()
    redacted: bool = False
    hidden: bool = False
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    finish: Finish | None = None
    fault: Fault | None = None

    @property
    def reasons(self) -> bool:
        """Whether the model reasoned at all, shown or not."""
        counted = self.usage is not None and self.usage.reasoning_tokens > 0
        return bool(self.reasoning or self.reasoning_summary or self.redacted or self.hidden or counted)

    @property
    def summary(self) -> tuple[str, ...]:
        """The parts a summarizing provider shows."""
        return self.reasoning_summary or ((self.reasoning,) if self.reasoning else ())

    @property
    def ending(self) -> Finish:
        """Why the reply ended."""
        return self.finish or ("tool_calls" if self.tool_calls else "stop")

    def count_usage(self, prompt: int) -> Usage:
        """Return the scripted usage, or an estimate; `prompt` is the characters the request held."""
        if self.usage is not None:
            return self.usage
        answer = self.text + "".join(call.name + call.arguments_text for call in self.tool_calls)
        thought = self.reasoning or "".join(self.reasoning_summary)
        fallback = 16 if self.reasons else 0
        return Usage(max(1, tokens_of(prompt)), tokens_of(len(answer)), tokens_of(len(thought)) or fallback)

    def without_reasoning(self) -> Turn:
        """Return the same reply from a model whose reasoning was switched off."""
        usage = replace(self.usage, reasoning_tokens=0) if self.usage else None
        return replace(self, reasoning="", reasoning_summary=(), redacted=False, hidden=False, usage=usage)

    def with_hidden_reasoning(self) -> Turn:
        """Return the same reply with its reasoning kept from the caller."""
        return replace(self, reasoning="", reasoning_summary=(), redacted=False, hidden=self.reasons)


def tokens_of(characters: int) -> int:
    """Estimate tokens the usual way: four characters each."""
    return math.ceil(characters / 4)


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
