"""The wire format of an interaction, as Google's reference says it (2026-11), and its words beside bardo's.

What bardo has a word for is read; fields beside it are carried as they came, and steps and contents that it has no word for are kept whole.
Source: https://ai.google.dev/api/interactions-api.
"""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from bardo.dialects.gemini.wire import FORMAT, Number
from bardo.dialects.shared.json_values import JsonObject
from bardo.dialects.shared.states import unseal
from bardo.dialects.shared.structs import Unknown, Wire
from bardo.values.blocks import Opaque
from bardo.values.events import Finish, FinishReason


class Text(Wire, tag="text", kw_only=True):
    """Words."""

    CARRIED: ClassVar = ("annotations",)
    text: str
    annotations: object = None


class Image(Wire, tag="image", kw_only=True):
    """A picture, as base64 or where it is."""

    CARRIED: ClassVar = ("resolution",)
    mime_type: str | None = None
    data: str | None = None
    uri: str | None = None
    resolution: object = None


class Document(Wire, tag="document", kw_only=True):
    """A document, as base64 or where it is."""

    CARRIED: ClassVar = ("resolution", "processing")
    mime_type: str | None = None
    data: str | None = None
    uri: str | None = None
    resolution: object = None
    processing: object = None


Medium = Text | Image | Document | Unknown
"""The parts of a function's result; audio and video have no counterpart elsewhere."""


class FunctionResult(Wire, tag="function_result", kw_only=True):
    """The result of a function. It is not signed: a `signature` has no meaning."""

    call_id: str
    result: str | JsonObject | list[Medium]
    name: str | None = None
    is_error: bool | None = None
    signature: object = None


Content = Text | Image | Document | FunctionResult | Unknown
"""The parts of a turn. Some clients put results among its contents."""


class UserInput(Wire, tag="user_input", kw_only=True):
    """The user's input in one turn."""

    content: str | list[Content] | Content | None = None


class ModelOutput(Wire, tag="model_output", kw_only=True):
    """What the model says."""

    content: str | list[Content] | Content | None = None
    signature: str | None = None


class Summary(Wire, kw_only=True):
    """A part of a thought's summary: a text where it does not say otherwise."""

    type: object = "text"
    text: str | None = None


class Thought(Wire, tag="thought", kw_only=True):
    """A thought, of which only a summary can be read."""

    signature: str | None = None
    summary: list[Summary] | None = None


class FunctionCall(Wire, tag="function_call", kw_only=True):
    """A call of a function."""

    id: str
    name: str
    arguments: JsonObject | None = None
    signature: str | None = None


Item = Text | Image | Document | UserInput | ModelOutput | Thought | FunctionCall | FunctionResult | Unknown
"""A step of a conversation, or a content without a step around it."""


class Function(Wire, tag="function", kw_only=True):
    """A function that the model may call."""

    CARRIED: ClassVar = ("defer_loading", "short_description")
    name: str
    description: str | None = None
    parameters: JsonObject | None = None
    defer_loading: object = None
    short_description: object = None


class AllowedTools(Wire, kw_only=True):
    """Some of the tools, and whether one of them must be called."""

    mode: str | None = None
    tools: list[str] | None = None


class ToolChoice(Wire, kw_only=True):
    """A choice among some of the tools."""

    allowed_tools: AllowedTools | None = None


class GenerationConfig(Wire, kw_only=True):
    """Sampling, thinking and the choice of tools."""

    CARRIED: ClassVar = ("image_config", "speech_config", "video_config", "transcription_config")
    temperature: Number | None = None
    top_p: Number | None = None
    seed: Number | None = None
    stop_sequences: list[str] | None = None
    max_output_tokens: Number | None = None
    thinking_level: str | None = None
    thinking_summaries: str | None = None
    tool_choice: str | ToolChoice | None = None
    image_config: object = None
    speech_config: object = None
    video_config: object = None
    transcription_config: object = None


class Request(Wire, kw_only=True):
    """The body of a request. An agent stands in the place of a model."""

    CARRIED: ClassVar = (
        "agent", "background", "cached_content", "continuation_token", "environment", "labels", "previous_interaction_id",
        "response_modalities", "safety_settings", "service_tier", "store", "webhook_config",
    )  # fmt: skip
    input: str | list[Item] | Item | None = None
    model: object = None
    system_instruction: str | None = None
    tools: list[Function | Unknown] | None = None
    generation_config: GenerationConfig | None = None
    response_format: list[object] | JsonObject | None = None
    response_mime_type: str | None = None
    stream: bool | None = None
    agent: object = None
    background: object = None
    cached_content: object = None
    continuation_token: object = None
    environment: object = None
    labels: object = None
    previous_interaction_id: object = None
    response_modalities: object = None
    safety_settings: object = None
    service_tier: object = None
    store: object = None
    webhook_config: object = None


class TextDelta(Wire, tag="text", kw_only=True):
    """A piece of text, or a whole one."""

    CARRIED: ClassVar = ("annotations",)
    text: str = ""
    annotations: object = None


class SummaryDelta(Wire, tag="thought_summary", kw_only=True):
    """A part of a thought's summary. `continues` is bardo's own: it goes on with the part before."""

    content: Summary
    continues: object = None


class SignatureDelta(Wire, tag="thought_signature", kw_only=True):
    """The signature of a step."""

    signature: object = None


class ArgumentsDelta(Wire, tag="arguments_delta", kw_only=True):
    """A piece of a call's arguments."""

    arguments: object = None


class AnnotationsDelta(Wire, tag="text_annotation_delta", kw_only=True):
    """Sources of the text before."""

    CARRIED: ClassVar = ("annotations",)
    annotations: object = None


Delta = TextDelta | SummaryDelta | SignatureDelta | ArgumentsDelta | AnnotationsDelta | Unknown
"""A delta of a step."""


class ReplyThought(Wire, tag="thought", kw_only=True):
    """Thinking: the parts of a summary, and a signature."""

    summary: list[Summary] | None = None
    signature: object = None


class ReplyOutput(Wire, tag="model_output", kw_only=True):
    """What the model says."""

    content: list[Delta] | None = None
    signature: object = None


class ReplyCall(Wire, tag="function_call", kw_only=True):
    """A call of a function, whose arguments may come in pieces."""

    id: object = None
    name: object = None
    arguments: object = None
    signature: object = None


Step = ReplyThought | ReplyOutput | ReplyCall | Unknown
"""A step of a reply; one of a tool that Google runs has no counterpart elsewhere."""


class Interaction(Wire, kw_only=True):
    """A whole reply, or what its first and its last event say of it."""

    CARRIED: ClassVar = ("agent", "continuation_token", "environment_id", "errors", "labels", "service_tier", "updated")
    id: object = None
    model: object = None
    created: object = None
    status: object = None
    usage: object = None
    steps: list[Step] | None = None
    agent: object = None
    continuation_token: object = None
    environment_id: object = None
    errors: object = None
    labels: object = None
    service_tier: object = None
    updated: object = None
    kind: object = msgspec.field(name="object", default=None)


class StepStart(Wire, tag_field="event_type", tag="step.start", kw_only=True):
    """A step begins with what it already holds."""

    step: Step
    index: int = 0
    event_id: object = None
    metadata: object = None


class StepDelta(Wire, tag_field="event_type", tag="step.delta", kw_only=True):
    """A piece is added to a step. `metadata` may hold the usage so far."""

    delta: Delta
    index: int = 0
    event_id: object = None
    metadata: object = None


class StepStop(Wire, tag_field="event_type", tag="step.stop", kw_only=True):
    """A step is over."""

    index: int = 0
    event_id: object = None
    metadata: object = None
    usage: object = None
    step_usage: object = None


class InteractionCreated(Wire, tag_field="event_type", tag="interaction.created", kw_only=True):
    """The reply begins."""

    interaction: Interaction
    event_id: object = None
    metadata: object = None


class InteractionCompleted(Wire, tag_field="event_type", tag="interaction.completed", kw_only=True):
    """The reply is complete; without its steps, where they came one by one."""

    interaction: Interaction
    event_id: object = None
    metadata: object = None


class ErrorEvent(Wire, tag_field="event_type", tag="error", kw_only=True):
    """The reply has failed."""

    error: object = None
    event_id: object = None
    metadata: object = None


class OtherEvent(Wire, kw_only=True):
    """A change of status, which says nothing that the end does not, or an unknown event."""

    metadata: object = None


Event = StepStart | StepDelta | StepStop | InteractionCreated | InteractionCompleted | ErrorEvent
"""An event of a stream."""


NAME = "gemini_interactions"
TITLE = "Gemini Interactions"

REASONS: dict[str, FinishReason] = {
    "completed": "stop",
    "requires_action": "tool_calls",
    "incomplete": "length",
    "budget_exceeded": "length",
    "requires_continuation": "pause",
    "queued": "pause",
    "in_progress": "pause",
    "cancelled": "error",
    "failed": "error",
}
"""The statuses of an interaction in our words."""

_STATUSES: dict[FinishReason, str] = {
    "length": "incomplete",
    "pause": "incomplete",
    "tool_calls": "requires_action",
    "error": "failed",
}


def finish_of(status: str, *, called: bool) -> Finish:
    """Return how a reply ended. `called`: it ends with a call that waits for its result."""
    reason = REASONS.get(status, "unknown")
    return Finish("tool_calls" if reason == "stop" and called else reason, status)


def status_of(finish: Finish, *, called: bool) -> str:
    """Return the status a client knows: the provider's own where it is one of this dialect.

    OpenAI's Responses ends replies with calls by the same word, `completed`, and clients of this dialect run no tool after it.
    """
    if (
        finish.raw in REASONS
        and not (called and finish.raw == "completed")
        and finish_of(finish.raw, called=called).reason == finish.reason
    ):
        return finish.raw
    word = _STATUSES.get(finish.reason, "completed")
    return "requires_action" if called and word == "completed" else word


def states_of(signature: str) -> Sequence[Opaque]:
    """Return the state in a `signature`: what bardo sealed there, or Gemini's own."""
    if not signature:
        return ()
    # Typed clients may write bytes in base64's other alphabet.
    sealed = unseal(signature.replace("-", "+").replace("_", "/"))
    return (Opaque("signature", signature, FORMAT),) if sealed is None else sealed


SAMPLING = {"temperature": "temperature", "top_p": "top_p", "seed": "seed", "stop": "stop_sequences"}
"""The sampling parameters by their names here."""
