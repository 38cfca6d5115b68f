"""The gateway's search for tools as a function that it executes itself: search, tell the client, and offer the model what was found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from bardo.context.own_functions import OwnCall, OwnResult, OwnSteps
from bardo.dialects import dialect
from bardo.dialects.shared.json_values import JsonObject
from bardo.planning.tool_search import MOST_SEARCHES, ToolSearchPlan, found_text
from bardo.replies.typed_answer import SlowWork
from bardo.values.blocks import TextBlock, ToolResultBlock
from bardo.values.degradation import Degradation
from bardo.values.events import Event, UnknownContent
from bardo.values.request import Request, Tool

_ROUNDS_BEYOND = 2
_MOST_ARGUMENTS = 20_000
_NO_ID = re.compile(r"[^a-zA-Z0-9_]")


class ToolSearchFunction:
    """The searches for tools of one reply. The client gets each as the blocks of its dialect, and sends them back with its next turn.

    `loaded` are the tools that were found, in the order in which the model may call them. `request` is the client's own.
    """

    cause: Literal["search", "tools"] = "tools"
    why = "the model goes on with the tools that were found"
    remembered = False
    most_rounds = MOST_SEARCHES + _ROUNDS_BEYOND

    def __init__(self, plan: ToolSearchPlan, request: Request) -> None:
        self._plan = plan
        self._request = request
        self._searches = 0
        self._loaded: dict[str, Tool] = {}
        self.names = frozenset({plan.tool})

    @property
    def loaded(self) -> Sequence[Tool]:
        """The tools that were found."""
        return [*self._loaded.values()]

    def answer(self, call: OwnCall, block: int) -> OwnSteps:
        """Make one search, tell the client of it, and return what was found for the model."""
        self._searches += 1
        arguments = _object(call.arguments)
        found: tuple[Tool, ...] = ()
        error = "too_many_requests" if self._searches > MOST_SEARCHES else ""
        if not error:
            found, error = yield SlowWork(lambda: self._plan.found(arguments))
        self._loaded |= {tool.name: tool for tool in found if tool.name not in self._loaded}
        declared = dialect(self._request.dialect).reply
        form = None if declared is None else declared.tool_searches
        key = f"{self._searches:02d}{_NO_ID.sub('', call.id)[-16:]}"
        names = [tool.name for tool in found]
        values = [] if form is None else form.write(self._request, key, self._plan.tool, arguments, names, error)
        events = tuple(UnknownContent(block + at, self._request.dialect, value) for at, value in enumerate(values))
        content = (TextBlock(found_text(found, error)),)
        result = ToolResultBlock(call_id=call.id, name=self._plan.tool, content=content, is_error=bool(error))
        return OwnResult(result, events)

    def opens(self, name: str, arguments: str) -> tuple[str, int] | None:
        """Return that no search is the client's."""
        return None

    def ending(self) -> Sequence[Event]:
        """Return nothing: each search was told when it was made."""
        return ()

    def stopped(self) -> Degradation:
        """Return that the model went on to search."""
        return Degradation("tools", why="the model went on to search for tools beyond what is allowed")


def _object(arguments: str) -> JsonObject:
    try:
        value = msgspec.json.decode(arguments[:_MOST_ARGUMENTS])
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
