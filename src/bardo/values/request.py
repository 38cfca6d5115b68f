"""What a caller asks for, in no dialect."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bardo.values.blocks import Block, Carried, TextBlock

Role = Literal["system", "user", "assistant"]
Effort = Literal["minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[Effort, ...] = ("minimal", "low", "medium", "high", "xhigh", "max")


class Message(msgspec.Struct, frozen=True):
    """One turn. Tool results are blocks of a `user` message; an OpenAI `developer` message is `system` here."""

    role: Role
    blocks: tuple[Block, ...]
    carried: Carried | None = None

    @property
    def text(self) -> str:
        """All text blocks joined."""
        return "".join(block.text for block in self.blocks if isinstance(block, TextBlock))


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A function the model may call. `schema` is JSON Schema. A tool the provider runs itself has only `carried`."""

    name: str
    description: str = ""
    schema: dict[str, Any] | None = None
    strict: bool | None = None
    carried: Carried | None = None
    hosted: bool = False


class ToolChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Which tools may be called: `named` goes with `name`."""

    mode: Literal["auto", "none", "required", "named"] = "auto"
    name: str = ""
    parallel: bool | None = None


class ReasoningPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How the model should think: `off`, a named `effort`, a `budget` in tokens, or `auto` (the model decides).

    `visible` says whether the caller wants to read it: `None` leaves that to the provider.
    """

    mode: Literal["off", "effort", "budget", "auto"]
    effort: Effort | None = None
    budget: int | None = None
    visible: bool | None = None
    carried: Carried | None = None


class OutputFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The shape of the answer: any JSON object, or one that fits `schema`."""

    mode: Literal["json_object", "json_schema"]
    name: str = ""
    schema: Any = None
    strict: bool | None = None
    description: str = ""


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How tokens are chosen. `None` leaves each to the provider."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()


class BardoOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller asks of bardo itself, from the body's `bardo` object or the `X-Bardo-*` headers.

    `include` may hold `reasoning_chain` and `receipt`. `omit_reasoning` leaves all reasoning out of the reply.
    """

    include: tuple[str, ...] = ()
    omit_reasoning: bool = False


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One call.

    `dialect` is the language it arrived in and `extra` the top-level fields of that language which bardo has no word for:
    they are sent on where the target speaks it, and reported where it does not. `headers` are the dialect's own headers of the
    request (its betas), sent on likewise. `body` is the parsed original.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    max_output_tokens: int | None = None
    sampling: Sampling = Sampling()
    reasoning: ReasoningPolicy | None = None
    output_format: OutputFormat | None = None
    choices: int = 1
    stream: bool = False
    stream_usage: bool = True
    dialect: str = ""
    extra: dict[str, Any] = {}
    headers: dict[str, str] = {}
    body: dict[str, Any] | None = None
    options: BardoOptions = BardoOptions()
