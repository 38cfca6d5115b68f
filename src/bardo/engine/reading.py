"""How the text of one reply is read: which thinking, and which tool calls, may stand in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.reasoning.formats import ReasoningFormat
from bardo.reasoning.inline import InlineReasoning
from bardo.reasoning.registry import FormatRegistry, builtin_formats
from bardo.reasoning.starting import explain_start
from bardo.streams.stage import Stage
from bardo.tools.formats import ToolCallFormat, tool_call_format_for_model
from bardo.tools.stage import InlineToolCalls
from bardo.values.events import Event
from bardo.values.request import Tool


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for in a reply's text; None where the text is only text.

    `starts_inside`: the reply begins inside its thinking. `tools` are those of the request.
    """

    reasoning: ReasoningFormat | None = None
    starts_inside: bool = False
    calls: ToolCallFormat | None = None
    tools: tuple[Tool, ...] = ()

    def stages(self, make_id: Callable[[], str]) -> list[Stage[Event, Event]]:
        """Return the stages of one reply. `make_id` names calls that come without an id."""
        stages: list[Stage[Event, Event]] = []
        if self.reasoning is not None:
            stages.append(InlineReasoning(self.reasoning, starts_inside=self.starts_inside))
        if self.calls is not None:
            stages.append(InlineToolCalls(self.calls, tools=self.tools, make_id=make_id))
        return stages


PLAIN = Reading()


def reading_of(
    row: ProviderRow,
    model: str,
    *,
    formats: FormatRegistry | None = None,
    toggles: Mapping[str, Any] | None = None,
    rendered: bool | None = None,
    tools: Sequence[Tool] = (),
) -> Reading:
    """Return how the replies of a model are read at a provider.

    A format of the user's own holds wherever its pattern fits; the built-in ones where the provider may leave thinking in the text.
    `toggles` are the arguments of the chat template that the request sets, `rendered` whether the prompt that the server renders without
    any opens the thinking, None where nobody knows.
    """
    known = formats or builtin_formats()
    choice = known.choose(model=model)
    if not row.quirks.inline_reasoning and not choice.own:
        return PLAIN
    found = choice.format if choice.own or choice.by == "pattern" else known.find(row.quirks.inline_reasoning)
    # A host may hide thinking, or separate it: then nothing says whether its text begins inside.
    begins = (row.local or choice.own) and _begins_inside(found, toggles, rendered)
    declared = tuple(tool for tool in tools if tool.carried is None and not tool.hosted)
    return Reading(
        reasoning=found,
        starts_inside=begins,
        calls=tool_call_format_for_model(model) if declared else None,
        tools=declared,
    )


def _begins_inside(found: ReasoningFormat, toggles: Mapping[str, Any] | None, rendered: bool | None) -> bool:
    start = explain_start(found, toggles=toggles or None)
    return rendered if rendered is not None and start.because == "row" else start.inside
