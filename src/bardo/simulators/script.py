"""Choose the next turn of a simulated model.

A `Script` is a list of `Turn`s. The server plays the turn whose place equals the number of assistant messages the
request already holds, so a tool loop needs no state: the first request gets the first turn, the request that brings
the tool's result gets the second. A script that is `in_order` counts requests instead, whatever they hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from bardo.simulators.answers import answer
from bardo.simulators.conversation import Conversation
from bardo.simulators.turns import Turn

TOOL_RESULT = "{tool_result}"
"""Where a turn's text or reasoning holds this, the tool's result is put."""


@dataclass(frozen=True, slots=True)
class Script:
    """Turns in order, the last one for ever. Without turns, `otherwise` answers any question.

    A turn that calls tools is passed over when the request offers none, as a real model could not have called them.
    """

    turns: tuple[Turn, ...] = ()
    otherwise: Callable[[Conversation], Turn] = answer
    in_order: bool = False

    def turn(self, conversation: Conversation, *, asked: int = 0) -> Turn:
        """Choose the turn for this request, before which the model was `asked` so many times."""
        if not self.turns:
            return self.otherwise(conversation)
        index = min(asked if self.in_order else conversation.rounds, len(self.turns) - 1)
        return _with_tool_result(self._playable(index, conversation), conversation)

    def _playable(self, index: int, conversation: Conversation) -> Turn:
        if conversation.tools:
            return self.turns[index]
        later = (turn for turn in self.turns[index:] if not turn.tool_calls)
        return next(later, self.turns[index])


def _with_tool_result(turn: Turn, conversation: Conversation) -> Turn:
    result = "\n".join(conversation.tool_results)
    return replace(
        turn,
        text=turn.text.replace(TOOL_RESULT, result),
        reasoning=turn.reasoning.replace(TOOL_RESULT, result),
    )
