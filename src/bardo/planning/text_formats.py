"""How the text of one reply is read: which thinking, and which tool calls, may stand in it, and whether it begins inside the thinking.

Of a reply that is still to come, the facts about the server and its prompts tells (`text_formats_of`); of a text that is there, the text
itself does (`formats_of_text`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.reasoning.formats import ReasoningFormat
from bardo.reasoning.inline import InlineReasoning, ThinkingPlace
from bardo.reasoning.machines import lacks_opener
from bardo.reasoning.registry import FormatChoice, FormatRegistry, builtin_formats
from bardo.reasoning.starting import explain_start, toggles_thinking
from bardo.reasoning.undecided import LIKELY_ANSWER_LIMIT, LIKELY_THINKING_LIMIT, SEEN_THINKING_LIMIT, can_be_undecided
from bardo.streams.stage import Stage
from bardo.tools.formats import ToolCallFormat, tool_call_format_for_model
from bardo.tools.stage import CallsInThinking, InlineToolCalls
from bardo.values.events import Event
from bardo.values.request import Tool

SeenStart = Literal["separated", "inside", "outside"]
"""How earlier replies of a server began: it separates thinking from the text; its text began inside the thinking; or with the answer."""


class ReplyOpening(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of where a reply begins, beside its format.

    `streamed`: a client waits for each piece. `toggles` are the arguments of the chat template that the request sets, or None if nothing
    is known of the request. `off`: no thinking was asked for, and it is not known that the model thinks all the same. `schema`: the answer
    must be JSON. `rendered`: whether the prompt that the server renders of such a request opens the thinking; `seen`: how earlier replies
    to such requests began. Both are None if unknown.
    """

    streamed: bool = False
    toggles: Mapping[str, Any] | None = None
    off: bool = False
    schema: bool = False
    rendered: bool | None = None
    seen: SeenStart | None = None


UNKNOWN = ReplyOpening()


class TextFormats(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for in a reply's text, or None if the text is only text.

    `starts_inside`: the reply begins inside its thinking, or probably does where that is `undecided`: then its first closing delimiter, or
    its end, says so. `hold_limit` is how many characters may be held to find out. `explained`: a reply without thinking has a reason.
    `tools` are those of the request.
    """

    reasoning: ReasoningFormat | None = None
    starts_inside: bool = False
    undecided: bool = False
    hold_limit: int | None = None
    explained: bool = False
    calls: ToolCallFormat | None = None
    tools: tuple[Tool, ...] = ()

    def with_tools(self, tools: Sequence[Tool], model: str) -> TextFormats:
        """Return how the reply of a model is read where the request has these tools: calls may stand in its text.

        Without tools the format of its calls counts only where a marker of it begins answers as well.
        """
        declared = tuple(tool for tool in tools if tool.carried is None and not tool.hosted)
        calls = tool_call_format_for_model(model)
        if calls is None or not (declared or calls.answers):
            return self
        return msgspec.structs.replace(self, calls=calls, tools=declared)

    def stages(self, make_id: Callable[[], str]) -> list[Stage[Event, Event]]:
        """Return the stages of one reply. `make_id` names calls that come without an id."""
        stages: list[Stage[Event, Event]] = []
        if self.reasoning is not None:
            stages.append(
                InlineReasoning(
                    self.reasoning,
                    starts_inside=self.starts_inside,
                    undecided=self.undecided,
                    limit=self.hold_limit,
                    explained=self.explained,
                )
            )
        if self.calls is not None and self.calls.in_thinking:
            stages.append(CallsInThinking(self.calls))
        if self.calls is not None:
            stages.append(InlineToolCalls(self.calls, tools=self.tools, make_id=make_id))
        return stages


PLAIN = TextFormats()


def text_formats_of(
    row: ProviderRow,
    model: str,
    *,
    formats: FormatRegistry | None = None,
    beginning: ReplyOpening = UNKNOWN,
    tools: Sequence[Tool] = (),
) -> TextFormats:
    """Return how the replies of a model are read at a provider.

    A format of the user's own holds wherever its pattern fits; the built-in ones where the provider may leave thinking in the text.
    """
    known = formats or builtin_formats()
    choice = known.choose(model=model)
    if not row.quirks.inline_reasoning and not choice.own:
        return PLAIN
    found = choice.format if choice.own or choice.by == "pattern" else known.find(row.quirks.inline_reasoning)
    starts_inside, undecided = _beginning(found, choice, row, beginning)
    found_formats = TextFormats(
        reasoning=found,
        starts_inside=starts_inside,
        undecided=undecided,
        hold_limit=_hold_limit(beginning, likely_inside=starts_inside) if undecided else None,
        explained=beginning.off or beginning.schema,
    )
    return found_formats.with_tools(tools, model)


class ExplainedFormats(msgspec.Struct, frozen=True):
    """How a text that is there is read, which format was chosen for its thinking, and why it begins inside it or not."""

    formats: TextFormats
    choice: FormatChoice
    because: str


def formats_of_text(
    text: str,
    choice: FormatChoice,
    *,
    model: str = "",
    starts_inside: bool | None = None,
    prompt: str | None = None,
    toggles: Mapping[str, Any] | None = None,
    tools: Sequence[Tool] = (),
) -> ExplainedFormats:
    """Return how a whole text is read in the format of `choice`.

    It begins inside its thinking where `starts_inside` says so, else where the end of the `prompt` does, else where the text closes
    a block that it never opened. A text that closes no block is the answer, unless the `toggles` (template arguments) turned thinking on.
    Calls are read in the notation of `model`; without `tools`, JSON that nothing announces is an answer.
    """
    row = choice.format
    start = explain_start(row, starts_inside=starts_inside, prompt=prompt, toggles=toggles)
    inside = start.inside
    because = _BECAUSE_OF_ROW[row.starts_inside] if start.because == "row" else _BECAUSE[start.because]
    if start.because in ("row", "toggles") and can_be_undecided(row):
        guessed = start.inside and toggles_thinking(toggles or {}) is not True
        if lacks_opener(text, row):
            inside, because = True, "the text closes a block that it never opened"
        elif guessed and not any(end in text for end in row.implicit_ends) and not text.lstrip().startswith(row.starts):
            inside, because = False, "the text closes no block, so that it is the answer"
    calls = tool_call_format_for_model(model) if model else None
    if calls is not None and calls.bare and not tools and not calls.answers:
        calls = None
    formats = TextFormats(reasoning=row, starts_inside=inside, calls=calls, tools=tuple(tools))
    return ExplainedFormats(formats, choice, because)


_BECAUSE = {
    "asked": "the caller said so",
    "prompt": "the prompt ends so",
    "toggles": "the template arguments, or their defaults, say so",
}
_BECAUSE_OF_ROW: Mapping[bool | str, str] = {
    True: "the prompts of this format's models end inside",
    False: "replies in this format begin so",
    "prompt": "nothing was said of the prompt, which decides in this format",
}


def seen_start(place: ThinkingPlace | None, *, off: bool) -> SeenStart | None:
    """Return what a reply says of how later ones to such a request begin, or None if it says nothing.

    That one reply did not think says so only where it was told not to: the next question may be harder.
    """
    match place:
        case "field":
            return "separated"
        case "text":
            return "inside"
        case "none" if off:
            return "outside"
    return None


def _beginning(
    found: ReasoningFormat, choice: FormatChoice, row: ProviderRow, known: ReplyOpening
) -> tuple[bool, bool]:
    """Return whether a reply begins inside its thinking, and whether that is undecided.

    A whole reply is always decided by its own text, which costs nobody time. A stream is held only where the evidence leaves both open.
    """
    start = explain_start(found, toggles=known.toggles)
    if not can_be_undecided(found):
        return start.inside and (row.at_users_address or choice.own), False
    if known.seen == "separated":
        return False, False
    inside = known.rendered if known.rendered is not None else start.inside
    explained = known.off or known.schema
    if not choice.own and not row.at_users_address:
        # A host may hide thinking, or separate it: then nothing says whether its text begins inside.
        return False, not known.streamed and choice.by == "pattern"
    if known.seen == "inside":
        return not known.schema, True
    likely = inside and not explained and not row.quirks.separates_reasoning
    if not known.streamed:
        return likely, True
    if choice.own and inside:
        return not known.schema, known.schema
    if choice.own or known.rendered is False or known.seen == "outside":
        return False, False
    # Some models think though they are told not to, and their template opens the thinking.
    return likely, inside or (known.off and choice.by == "pattern")


def _hold_limit(known: ReplyOpening, *, likely_inside: bool) -> int | None:
    if not known.streamed:
        return None
    if not likely_inside:
        return LIKELY_ANSWER_LIMIT
    return SEEN_THINKING_LIMIT if known.seen == "inside" else LIKELY_THINKING_LIMIT
