"""What the clients of the basket send: no two requests are equal, and their shapes repeat as they do in life.

Six programs ask. Each has its own order of keys, its own options and one of three system prompts, which it keeps; words, lengths and
histories are new in every request. An agent's turn has its session's history behind it: each reply of the upstream as the client got it,
and what the called tool gave.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from benchmarks.basket_replies import VARIANTS, Delivery, name_of, said, words

Json = dict[str, Any]
PROGRAMS = 6
SESSIONS = 20
"""So many conversations are interleaved, each a turn at a time."""
PLAYED = 30, 10
"""The last turns of a history seen that went through the gateway, up to 30 calls and behind more: what it kept of them is looked up."""
History = Literal["seen", "new"]

_SYSTEMS = tuple(
    words(random.Random(f"system {place}"), count).capitalize() + "." for place, count in enumerate((12, 150, 600))
)
_AGENT_SYSTEM = 600
_TOOLS = 12
_SCHEMA = {
    "type": "object",
    "properties": {"animal": {"type": "string"}, "legs": {"type": "integer"}, "why": {"type": "string"}},
    "required": ["animal", "legs", "why"],
    "additionalProperties": False,
}


Numbered = tuple[str, Json]
"""The number of a request's reply, and the request's fields without its model."""


def short_request(dialect: str, kind: str, delivery: Delivery, place: int, salt: str) -> Numbered:
    """Return a request without a history. `salt` tells apart what is asked in different rounds."""
    chance = random.Random(f"{dialect} {kind} {delivery} {place} {salt}")
    program = place % PROGRAMS
    number = str(chance.randrange(VARIANTS))
    question = f"{words(chance, chance.randint(30, 350))} {name_of(kind, delivery, number)}"
    fields = {**_asked(dialect, _SYSTEMS[program % 3], question), **_options(dialect, program, kind)}
    fields["stream"] = delivery != "whole"
    return number, _in_order(fields, program)


def _asked(dialect: str, system: str, question: str) -> Json:
    user = {"role": "user", "content": question}
    match dialect:
        case "anthropic_messages":
            return {"system": system, "messages": [user]}
        case "openai_responses":
            return {"instructions": system, "input": [user]}
        case _:
            return {"messages": [{"role": "system", "content": system}, user]}


def _options(dialect: str, program: int, kind: str) -> Json:
    limit = (4096, 8192, 16_000)[program % 3]
    thinks = kind in ("short", "long", "agent")
    match dialect:
        case "anthropic_messages":
            thinking = {"thinking": {"type": "enabled", "budget_tokens": 2048}} if thinks else {}
            sampled = {"temperature": 0.5} if program < 3 and not thinks else {}
            return {"max_tokens": limit, **thinking, **sampled}
        case "openai_responses":
            state = {"store": False, "include": ["reasoning.encrypted_content"]}
            thinking = {"reasoning": {"effort": "medium", "summary": "auto"}} if thinks else {}
            return {"max_output_tokens": limit, **state, **thinking}
        case _:
            shape = {"type": "json_schema", "json_schema": {"name": "animal", "schema": _SCHEMA, "strict": True}}
            typed = {"response_format": shape} if kind == "typed" else {}
            effort = {"reasoning_effort": "medium"} if thinks else {}
            return {"max_tokens": limit, **effort, **typed}


def _in_order(fields: Mapping[str, Any], program: int) -> Json:
    """Return the fields in the order of a program, what is in a message too."""
    names = sorted(fields)
    random.Random(f"order {program}").shuffle(names)
    turned = program % 2 == 1
    return {
        name: [dict(reversed(one.items())) for one in fields[name]]
        if turned and name in ("messages", "input")
        else fields[name]
        for name in names
    }


def agent_turns(
    dialect: str, calls: int, history: History, turns: int, salt: str
) -> tuple[list[Numbered], list[Numbered]]:
    """Return what is sent before the measured turns, and these: `turns` of each of twenty sessions, one session after the other.

    A `seen` history is what was sent before, turn by turn (`PLAYED`), up to one turn shorter. Of the new ones every other is of a session
    that was never met; the rest are histories that the seen cell of the same `salt` sent, under a system prompt of which a word is another.
    """

    def turn(session: int, behind: int) -> Numbered:
        return agent_turn(dialect, f"{salt}.{calls}.{session}", session % PROGRAMS, behind, "today")

    def unmet(session: int, place: int) -> Numbered:
        return agent_turn(
            dialect, f"{salt}.{calls}.{session}.{place}.unmet", session % PROGRAMS, calls, f"{salt}, {session}, {place}"
        )

    def renamed(session: int, place: int) -> Numbered:
        return agent_turn(dialect, f"{salt}.{calls}.{session}", session % PROGRAMS, calls, f"{salt} {session} {place}")

    order = [(session, place) for place in range(turns) for session in range(SESSIONS)]
    if history == "new":
        return [], [(unmet if session % 2 else renamed)(session, place) for session, place in order]
    played = range(max(0, calls - PLAYED[calls > PLAYED[0]]), calls)
    before = [turn(session, behind) for behind in played for session in range(SESSIONS)]
    return before, [turn(session, calls + place) for session, place in order]


def agent_turn(dialect: str, session: str, program: int, calls: int, word: str) -> Numbered:
    """Return a turn behind so many calls. `word` stands in the system prompt, as a date or the name of a branch does."""
    chance = random.Random(f"agent {program % 3}")
    system = f"You mend programs. {words(chance, _AGENT_SYSTEM)}. It is {word}."
    fields = {**_conversation(dialect, system, session, calls), **_options(dialect, program, "agent")}
    asked = _in_order({**fields, "tools": _tools(dialect, program % 3), "stream": False}, program)
    return f"{session}.{calls}", asked


@lru_cache(maxsize=16)
def _tools(dialect: str, program: int) -> Sequence[Json]:
    chance = random.Random(f"tools {program}")
    shape = {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "A file."}, "line": {"type": "integer"}},
        "required": ["path"],
    }
    tools = [{"name": f"tool_{place}", "description": words(chance, 40)} for place in range(_TOOLS)]
    if dialect == "anthropic_messages":
        return [{**tool, "input_schema": shape} for tool in tools]
    return [{"type": "function", "function": {**tool, "parameters": shape}} for tool in tools]


def _conversation(dialect: str, system: str, session: str, calls: int) -> Json:
    first = {"role": "user", "content": f"{words(random.Random(session), 60)} {_reply(session, 0)}"}
    if dialect == "anthropic_messages":
        messages = [first, *(message for place in range(calls) for message in _called_in_messages(session, place))]
        return {"system": system, "messages": messages}
    called = (message for place in range(calls) for message in _called_in_chat(session, place))
    return {"messages": [{"role": "system", "content": system}, first, *called]}


def _reply(session: str, place: int) -> str:
    return name_of("agent", "whole", f"{session}.{place}")


@lru_cache(maxsize=50_000)
def _result(session: str, place: int) -> str:
    chance = random.Random(f"result {session} {place}")
    return f"{words(chance, chance.randint(20, 220))} {_reply(session, place + 1)}"


def _called_in_messages(session: str, place: int) -> tuple[Json, Json]:
    sent = said("agent", f"{session}.{place}")
    thinking = {"type": "thinking", "thinking": sent.thinking, "signature": sent.signature}
    call = {"type": "tool_use", "id": sent.call_id, "name": sent.tool, "input": json.loads(sent.arguments)}
    result = {"type": "tool_result", "tool_use_id": sent.call_id, "content": _result(session, place)}
    return {"role": "assistant", "content": [thinking, call]}, {"role": "user", "content": [result]}


def _called_in_chat(session: str, place: int) -> tuple[Json, Json]:
    sent = said("agent", f"{session}.{place}")
    detail = {"type": "reasoning.text", "text": sent.thinking, "signature": sent.signature}
    function = {"name": sent.tool, "arguments": sent.arguments}
    message = {
        "role": "assistant",
        "content": "",
        "reasoning": sent.thinking,
        "reasoning_details": [{**detail, "format": "anthropic-claude-v1", "index": 0}],
        "tool_calls": [{"id": sent.call_id, "type": "function", "function": function}],
    }
    return message, {"role": "tool", "tool_call_id": sent.call_id, "content": _result(session, place)}
