"""The turns of a request: one for dialects that need one, and for those that take them in alternation, each with a list of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from bardo.dialects.losses import Losses
from bardo.values.blocks import Block, Carried, TextBlock
from bardo.values.request import Message, Request


def with_turn(request: Request, losses: Losses) -> Request:
    """Return a request with a turn: where all it says is of the system, the last of that becomes the user's turn, which is reported.

    A request that has a turn, or that says nothing, is returned itself.
    """
    if any(message.role != "system" and says_something(message) for message in reversed(request.messages)):
        return request
    places = [place for place, message in enumerate(request.messages) if says_something(message)]
    if not places:
        return request
    losses.lose("messages.role", "system", f"{losses.declaration.title} needs a message of the user", sent="user")
    place = places[-1]
    last, others = request.messages[place], (*request.messages[:place], *request.messages[place + 1 :])
    return msgspec.structs.replace(
        request, messages=(*others, Message("user", last.blocks, _without_role(last.carried)))
    )


def says_something(message: Message) -> bool:
    """Whether a message has more than empty texts."""
    return any(map(_is_content, message.blocks))


def _is_content(block: Block) -> bool:
    return not isinstance(block, TextBlock) or bool(block.text and not block.text.isspace())


def _without_role(carried: Carried | None) -> Carried | None:
    """Return what a message carries beside the role `developer` of its own dialect."""
    if carried is None:
        return None
    fields = {name: value for name, value in carried.fields.items() if name != "role"}
    return Carried(carried.dialect, fields) if fields else None


class WrittenTurns(NamedTuple):
    """The turns of a conversation, and each as it is sent."""

    turns: list[dict[str, Any]]
    sent: list[dict[str, Any]]

    def extended(
        self, new: Iterable[dict[str, Any]], finish: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> WrittenTurns:
        """Return these turns and new ones; `finish` returns a turn as it is sent. What is here is not changed."""
        turns = [*self.turns]
        for turn in new:
            add_turn(turns, turn)
        # More may have been added to the last of those before.
        same = max(0, len(self.turns) - 1)
        return WrittenTurns(turns, [*self.sent[:same], *map(finish, turns[same:])])


def add_turn(turns: list[dict[str, Any]], turn: dict[str, Any]) -> None:
    """Add a turn, or its content to the turn before it where both have one role. An empty turn without further fields is left out.

    What is given is not changed.
    """
    plain = len(turn) == 2
    if plain and not turn["content"]:
        return
    if plain and turns and turns[-1]["role"] == turn["role"] and len(turns[-1]) == 2:
        turns[-1] = {**turns[-1], "content": [*turns[-1]["content"], *turn["content"]]}
    else:
        turns.append(turn)


def answers_without_thinking(
    turns: Sequence[dict[str, Any]],
    *,
    is_result: Callable[[dict[str, Any]], bool],
    is_thinking: Callable[[dict[str, Any]], bool],
) -> bool:
    """Return whether the last turn has results of tools that were called in a turn which does not begin with thinking.

    Such a turn is refused together with a budget for thinking.
    """
    if len(turns) < 2 or turns[-2]["role"] != "assistant":
        return False
    calling, answering = _blocks(turns[-2]), _blocks(turns[-1])
    return any(map(is_result, answering)) and not any(map(is_thinking, calling[:1]))


def _blocks(turn: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the blocks of a turn; none where its content is one text."""
    content = turn["content"]
    return content if isinstance(content, list) else []
