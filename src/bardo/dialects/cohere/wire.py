"""The wire format of Cohere's v2 chat, as its reference says it (`POST /v2/chat`, 2026-11), and the dialect's words.

What bardo has a word for is read; fields beside it are carried as they came. `signature` is bardo's own: state that it sealed.
"""

from typing import ClassVar, Literal

from bardo.dialects.shared.json_values import JsonObject
from bardo.dialects.shared.structs import Unknown, Wire
from bardo.values.events import Finish, FinishReason


class Signed(Wire, kw_only=True):
    """A struct that may have opaque state."""

    CARRIED: ClassVar = ("signature",)
    signature: object = None


class Text(Signed, tag="text", kw_only=True):
    """Words."""

    text: str


class Thinking(Signed, tag="thinking", kw_only=True):
    """Thinking of the model."""

    thinking: str


class ImageUrl(Wire, kw_only=True):
    """Where a picture is, or its bytes as a data URL."""

    url: str
    detail: str | None = None


class Image(Wire, tag="image_url", kw_only=True):
    """A picture."""

    image_url: ImageUrl


class Document(Wire, tag="document", kw_only=True):
    """A document: text, or an object whose `data` is text or an object."""

    document: object = None


Part = Text | Image | Document | Thinking | Unknown
"""The parts of a message's content."""


class Function(Wire, kw_only=True):
    """Which function is called with which arguments, as JSON text."""

    name: str
    arguments: str | None = None


class Call(Signed, kw_only=True):
    """A call of a tool."""

    id: str
    function: Function
    type: object = None


class Message(Wire, kw_only=True):
    """A message of any role."""

    CARRIED: ClassVar = ("citations",)
    role: str
    content: str | list[Part] | None = None
    tool_plan: str | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None
    citations: object = None


class ToolFunction(Wire, kw_only=True):
    """A function that may be called, with the schema of its arguments."""

    name: str
    description: str | None = None
    parameters: JsonObject | None = None


class Tool(Wire, kw_only=True):
    """A tool: a function, unless its type says otherwise."""

    type: str | None = None
    function: ToolFunction | None = None


class ThinkingConfig(Wire, kw_only=True):
    """Whether the model thinks, and for how many tokens at most."""

    type: str
    token_budget: int | None = None


class ResponseFormat(Wire, kw_only=True):
    """The form of the answer; `schema` is the older name of `json_schema`."""

    type: object = None
    json_schema: JsonObject | None = None
    schema: JsonObject | None = None


class Request(Wire, kw_only=True):
    """The fields of a request that are read; its others are only carried."""

    messages: list[Message]
    tools: list[Tool] | None = None
    strict_tools: bool | None = None
    tool_choice: str | None = None
    response_format: ResponseFormat | None = None
    max_tokens: int | None = None
    temperature: int | float | None = None
    p: int | float | None = None
    k: int | float | None = None
    frequency_penalty: int | float | None = None
    presence_penalty: int | float | None = None
    seed: int | float | None = None
    stop_sequences: list[str] | None = None
    thinking: ThinkingConfig | None = None
    reasoning_effort: str | None = None
    stream: bool | None = None


class Piece(Signed, kw_only=True):
    """A block of an answer's content, or a piece of one, which need not say its type."""

    type: Literal["text", "thinking"] | None = None
    text: str | None = None
    thinking: str | None = None


class WrittenFunction(Wire, kw_only=True):
    """Which function the model calls, or a piece of its arguments."""

    name: str | None = None
    arguments: str | None = None


class WrittenCall(Signed, kw_only=True):
    """A call of a tool in an answer, or a piece of one."""

    id: str | None = None
    type: object = None
    function: WrittenFunction | None = None


class Answer(Wire, kw_only=True):
    """The message of a whole reply, or what of one stands in its start."""

    role: str | None = None
    content: list[Piece] | None = None
    tool_plan: str | None = None
    tool_calls: list[WrittenCall] | None = None
    citations: list[JsonObject] | None = None


class Delta(Wire, kw_only=True):
    """The message in the first frame of a stream."""

    message: Answer


class ContentAnswer(Wire, kw_only=True):
    """A message of which a piece of content comes."""

    content: Piece


class ContentAdded(Wire, kw_only=True):
    """A frame's delta of the content."""

    message: ContentAnswer


class CallAnswer(Wire, kw_only=True):
    """A message of which a call comes, or a piece of one."""

    tool_calls: WrittenCall


class CallAdded(Wire, kw_only=True):
    """A frame's delta of the calls."""

    message: CallAnswer


class PlanAnswer(Wire, kw_only=True):
    """A message of which a piece of the plan comes."""

    tool_plan: str | None = None


class PlanAdded(Wire, kw_only=True):
    """A frame's delta of the plan."""

    message: PlanAnswer


class CitationAnswer(Wire, kw_only=True):
    """A message of which a citation comes."""

    citations: JsonObject


class CitationAdded(Wire, kw_only=True):
    """A frame's delta of the citations."""

    message: CitationAnswer


class Step(Wire, kw_only=True):
    """A frame between the first and the last. `index` counts blocks of content, calls and citations apart; scores go with their piece."""

    index: int = 0
    logprobs: object = None


class ContentStart(Step, tag="content-start", kw_only=True):
    """A block of content begins."""

    delta: ContentAdded


class ContentDelta(Step, tag="content-delta", kw_only=True):
    """A piece of content."""

    delta: ContentAdded


class ContentEnd(Step, tag="content-end", kw_only=True):
    """A block of content ends."""


class ToolPlanDelta(Step, tag="tool-plan-delta", kw_only=True):
    """A piece of the plan, which has no number."""

    delta: PlanAdded


class ToolCallStart(Step, tag="tool-call-start", kw_only=True):
    """A call begins."""

    delta: CallAdded


class ToolCallDelta(Step, tag="tool-call-delta", kw_only=True):
    """A piece of a call's arguments."""

    delta: CallAdded


class ToolCallEnd(Step, tag="tool-call-end", kw_only=True):
    """A call ends."""


class CitationStart(Step, tag="citation-start", kw_only=True):
    """A citation."""

    delta: CitationAdded


class CitationEnd(Step, tag="citation-end", kw_only=True):
    """A citation ends."""


class MessageStart(Wire, tag="message-start", kw_only=True):
    """The first frame of a stream."""

    id: str | None = None
    model: str | None = None
    delta: Delta | None = None


class End(Wire, kw_only=True):
    """How a reply ended, and fields of its message that came at its end."""

    finish_reason: str | None = None
    usage: JsonObject | None = None
    message: JsonObject | None = None


class MessageEnd(Wire, tag="message-end", kw_only=True):
    """The last frame of a stream."""

    id: str | None = None
    delta: End


Frame = (
    ContentDelta
    | ToolPlanDelta
    | ToolCallDelta
    | ContentStart
    | ContentEnd
    | ToolCallStart
    | ToolCallEnd
    | CitationStart
    | CitationEnd
    | MessageStart
    | MessageEnd
)
"""A frame of a stream."""


class Reply(Wire, kw_only=True):
    """A whole reply."""

    CARRIED: ClassVar = ("logprobs",)
    id: str | None = None
    model: str | None = None
    message: Answer
    finish_reason: str | None = None
    usage: JsonObject | None = None
    logprobs: object = None


NAME = "cohere"
TITLE = "Cohere"
THINKING = "thinking"
"""The format of thinking in content blocks."""
PLAN = "cohere-tool-plan"
"""The format of `tool_plan`: what the model says to itself before its calls, which Cohere calls a chain of thought."""

REASONS: dict[str, FinishReason] = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "MAX_TOKENS": "length",
    "TOOL_CALL": "tool_calls",
    "ERROR": "error",
    "TIMEOUT": "error",
}
"""The dialect's finish reasons in our words."""

_FINISH_REASONS: dict[FinishReason, str] = {"length": "MAX_TOKENS", "tool_calls": "TOOL_CALL", "error": "ERROR"}


def encode_finish(finish: Finish, *, calls: bool) -> str:
    """Return the word a Cohere client knows: the provider's own where it is one of this dialect.

    Clients run their tools on `TOOL_CALL`, and some providers call a tool and say that they just stopped.
    """
    if finish.raw in REASONS:
        return finish.raw
    word = _FINISH_REASONS.get(finish.reason, "COMPLETE")
    if word != "COMPLETE":
        return word
    return "TOOL_CALL" if calls else "COMPLETE" if finish.stop_sequence is None else "STOP_SEQUENCE"


SAMPLING = {
    "temperature": "temperature",
    "top_p": "p",
    "top_k": "k",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
    "stop": "stop_sequences",
}
"""The sampling parameters by their names here."""
