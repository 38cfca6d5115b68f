"""Conversations of an agent for the subject `context`: files that are read again after a change, searches as JSON, logs and pictures."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache

from bardo.values.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message, Request

_WORDS = re.findall(
    r"\w+",
    "rate quarter order ledger balance client invoice parse retry window token cache region stock carrier route refund limit "
    "open closed pending result value table index column field record batch queue worker signal memory socket",
)
_SYSTEM = "You are an agent that works on a code base. Read before you write, and test what you changed. " * 40
_QUESTION = "Find out why the refunds of the second quarter are counted twice, and mend it."
SEED = 7


@cache
def agent_request(calls: int) -> Request:
    """Return a conversation with one question and so many calls of tools, the same for the same number."""
    chance = random.Random(SEED)
    messages = [Message("system", (TextBlock(_SYSTEM),)), Message("user", (TextBlock(_QUESTION),))]
    files = [_file(chance) for _ in range(8)]
    for number in range(calls):
        name, text = _result(chance, files)
        call = ToolCallBlock(id=f"call_{number}", name=name, arguments=json.dumps({"at": number}))
        messages.append(Message("assistant", (TextBlock(f"Next I look at step {number}."), call)))
        messages.append(Message("user", (ToolResultBlock(call_id=f"call_{number}", content=(TextBlock(text),)),)))
    return Request(model="bench", messages=tuple(messages))


def turns_of(request: Request) -> Iterator[Request]:
    """Yield the requests of a conversation, one for each turn of the model."""
    for place, message in enumerate(request.messages):
        if message.role == "user":
            yield Request(model=request.model, messages=request.messages[: place + 1])


def _result(chance: random.Random, files: list[list[str]]) -> tuple[str, str]:
    kind = chance.choice(("read", "read", "search", "log", "test", "picture"))
    match kind:
        case "read":
            lines = chance.choice(files)
            lines[chance.randrange(len(lines))] = _line(chance)
            return "read_file", "\n".join(lines)
        case "search":
            rows = [
                {"path": f"src/{_name(chance)}.py", "line": chance.randrange(900), "text": _line(chance)}
                for _ in range(25)
            ]
            return "search", json.dumps(rows, indent=2)
        case "log":
            return "run", "\n".join(
                f"2026-11-{day:02d} 12:00 {_line(chance)}   " for day in range(1, 29) for _ in range(4)
            )
        case "picture":
            return "screenshot", "data:image/png;base64," + "".join(
                chance.choices("ABCDEFGHabcdefgh0123456789+/", k=4_000)
            )
        case _:
            return "run_tests", "1 failed, 212 passed. The sum of the refunds is 20, and 10 was expected."


def _file(chance: random.Random) -> list[str]:
    return [_line(chance) for _ in range(chance.randrange(40, 220))]


def _line(chance: random.Random) -> str:
    return " ".join(chance.choices(_WORDS, k=chance.randrange(5, 12)))


def _name(chance: random.Random) -> str:
    return "_".join(chance.choices(_WORDS, k=2))


def shared_beginning(before: Sequence[Message], now: Sequence[Message]) -> int:
    """Return how many messages two conversations have in common at their beginnings."""
    return next(
        (place for place, (one, other) in enumerate(zip(before, now, strict=False)) if one != other),
        min(len(before), len(now)),
    )
