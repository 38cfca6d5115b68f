"""Histories that a target would refuse, mended in the mildest way that it takes; each repair is reported.

Agents that were interrupted, cut their history or resume it send calls without results, results without calls, results twice, and the user
between a call and its result. What a target demands is said by rows (`catalog/data/request_shapes.toml`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec

from bardo.catalog.request_shapes import RequestShape
from bardo.dialects.shared.losses import Losses
from bardo.dialects.shared.turns import says_something
from bardo.values.blocks import Block, TextBlock, ToolCallBlock, ToolResultBlock, UnknownBlock
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest
from bardo.values.request import Message, Request

NO_RESULT = "The call was interrupted: no result was recorded."
OPENING = "Go on."
"""The user's message before a conversation that the model begins."""
BETWEEN = "OK."
"""The model's message between results of tools and the user, if its template requires one."""
_UNNAMED = "call"
WHAT = "history."
"""How the name of each repair begins. The order of roles that a template wants is no repair: such a history is sound."""
_OF_TOOLS = frozenset(
    ("tool_names", "property_keys", "plain_root", "tool_schemas", "strict_tools", "google_schemas", "assistant_fields")
)
# The broken part for the name of each repair, with a place for its id.
_BROKEN = {
    "call_without_result": "the call {} has no result behind it",
    "result_without_call": "the result of {} has no call before it",
    "result_twice": "the call {} has its result twice",
    "result_place": "the result of {} does not stand right behind its call",
    "call_id_twice": "two calls have the id {}",
    "call_id_missing": "a call of {} has no id",
    "turns_of_one_role": "two turns of the role {} follow each other",
    "empty_text": "a text has nothing in it but space",
}
# Fields of a request that say that its provider keeps earlier turns: results may be of calls in them.
_KEEPS_TURNS = (
    "previous_response_id",
    "conversation",
    "previous_interaction_id",
    "cachedContent",
    "thread",
    "container",
)
# Dialects in which messages of one role that follow each other are one turn.
_JOINED = frozenset(
    ("anthropic_messages", "bedrock_converse", "bedrock_invoke", "openai_responses", "gemini", "gemini_interactions")
)


# Anthropic itself joins turns of one role, so its own clients may send them.
_JOINS_ITS_OWN = frozenset(("anthropic_messages", "bedrock_invoke"))
# Dialects whose requests hold items or steps in place of turns.
_OF_ITEMS = frozenset(("openai_responses", "gemini_interactions"))


_Place = tuple[int, int, int]
"""The number of a turn, of a message in it, and of a block in that: one message may come several times."""


def is_sound(request: Request, shape: RequestShape, dialect: str) -> bool:
    """Whether a target takes the history of a request as it is."""
    rules = shape.rules
    if len(request.messages) < 2 or not (rules - _OF_TOOLS):
        return True
    checks_calls = "answered_calls" in rules and not any(name in request.extra for name in _KEEPS_TURNS)
    joined, unique = dialect in _JOINED, "unique_calls" in rules
    user_first, no_user_after_tool = "user_first" in rules, "no_user_after_tool" in rules
    # The calls that wait for a result: those of the last turn in their order, or else any. `called` are the ids of all calls before.
    expected: list[str] = []
    waiting: set[str] = set()
    called: set[str] = set()
    # `spoken`: not only the system has spoken. `heard`: the user has said something, or the model has.
    after_results = after_model = spoken = heard = False
    for message in request.messages:
        role = message.role
        if role == "assistant":
            if user_first and not heard:
                return False
            ids = [block.id for block in message.blocks if type(block) is ToolCallBlock]
            keys = ids if all(ids) else [call.id or f"name:{call.name}" for call in message.calls]
            if checks_calls:
                if (expected or waiting) and (not joined or after_results):
                    return False
                if len(keys) > 1 and len({*keys}) < len(keys):
                    return False
            if unique and keys:
                if not called.isdisjoint(keys) or "" in ids:
                    return False
                called.update(keys)
            if joined and (expected or waiting):
                waiting.update(expected)
                if checks_calls and not waiting.isdisjoint(keys):
                    return False
                waiting.update(keys)
                expected = []
            else:
                expected, waiting = keys, waiting and set()
            after_results, after_model, spoken, heard = False, True, True, True
        elif role == "user":
            blocks = message.blocks
            results = [block.call_id or f"name:{block.name}" for block in blocks if type(block) is ToolResultBlock]
            others = len(results) < len(blocks) or not results
            if no_user_after_tool and others and (after_results or results):
                return False
            if waiting or results != expected:
                waiting.update(expected)
                answered = {*results}
                if checks_calls:
                    if len(answered) < len(results) or not waiting >= answered or (waiting and not results):
                        return False
                    if results and others and len(waiting) > len(answered):
                        return False
                waiting -= answered
            # Most turns answer all calls of the turn before, in their order.
            expected = []
            after_results, after_model, spoken = bool(results), False, True
            heard = heard or (user_first and says_something(message))
        else:
            if ("one_system" in rules and spoken) or (no_user_after_tool and (after_results or after_model)):
                return False
            if checks_calls and (expected or waiting):
                return False
    # Calls that nothing follows are not answered yet; where a result follows, each of them needs its own.
    return not (checks_calls and (expected or waiting) and after_results)


def refuse_repairs(repairs: Iterable[Degradation], target: str) -> None:
    """Raise InvalidRequest, naming the broken parts, if a history was repaired; other differences are passed over."""
    broken = [_BROKEN[fix.what.removeprefix(WHAT)].format(fix.asked) for fix in repairs if fix.what.startswith(WHAT)]
    if broken:
        more = f", and {len(broken) - 3} more" if len(broken) > 3 else ""
        raise InvalidRequest(
            f"{target} refuses this history: {'; '.join(broken[:3])}{more}",
            hint="send the messages whole, or have repair_history = true in [inference] of bardo.toml",
            param="messages",
        )


def with_sound_history(request: Request, shape: RequestShape, losses: Losses) -> Request:
    """Return a request whose history the target takes: itself where it does as it is, or where its encoder joins turns of one role."""
    if "alternating_roles" in shape.rules and not (request.dialect == losses.dialect in _JOINS_ITS_OWN):
        _report_joined_turns(request, losses)
    if is_sound(request, shape, losses.dialect):
        return request
    messages: Sequence[Message] = request.messages
    if "answered_calls" in shape.rules and not any(name in request.extra for name in _KEEPS_TURNS):
        messages = _answered(messages, losses, unique="unique_calls" in shape.rules, joined=losses.dialect in _JOINED)
    if "user_first" in shape.rules:
        messages = _with_user_first(messages, losses)
    if "one_system" in shape.rules:
        messages = _with_one_system(messages, losses)
    if "no_user_after_tool" in shape.rules:
        messages = _with_model_between(messages, losses)
    return msgspec.structs.replace(request, messages=tuple(messages))


def _report_joined_turns(request: Request, losses: Losses) -> None:
    """Report turns of one role that follow each other. Results of tools are no turns; clients of items write one turn as several."""
    if request.dialect in _OF_ITEMS:
        return
    last = ""
    repeated: set[str] = set()
    role: str
    for message in request.messages:
        role = "" if message.role == "system" or ToolResultBlock in map(type, message.blocks) else message.role
        if not says_something(message):
            continue
        if role and role == last:
            repeated.add(role)
        last = role
    for role in sorted(repeated):
        why = f"turns of the {role} that follow each other are one for {losses.declaration.title}"
        losses.lose(f"{WHAT}turns_of_one_role", role, why, sent="joined", key=role)


def _key(call_id: str, name: str) -> str:
    """Return what a result is matched to its call by: older functions of Chat have names alone."""
    return call_id or f"name:{name}"


def _ids_of_unknown(message: Message) -> frozenset[str]:
    """Return the ids of calls that only their own dialect knows: results of those are right."""
    ids: set[str] = set()
    for block in message.blocks:
        if isinstance(block, UnknownBlock) and isinstance(block.value, dict):
            inner = block.value.get("tool_call")
            for held in (block.value, inner if isinstance(inner, dict) else {}):
                ids |= {part for name in ("id", "call_id") if isinstance(part := held.get(name), str)}
    return frozenset(ids)


def _answered(messages: Sequence[Message], losses: Losses, *, unique: bool, joined: bool) -> list[Message]:
    """Return messages in which each call has one result right behind it, and each result a call before it."""
    renamed = _Renamed(messages, losses) if unique else None
    read = [*messages] if renamed is None else renamed.messages
    turns = _turns(read, joined=joined)
    results: dict[tuple[int, str], ToolResultBlock] = {}
    used: set[_Place] = set()
    of_unknown = {key for message in read if message.role == "assistant" for key in _ids_of_unknown(message)}
    waiting: dict[str, deque[int]] = {}
    # Results by their call and a trait of what they say, so that none is compared with all others of its call.
    given: dict[tuple[str, int], list[ToolResultBlock]] = {}
    moved: set[_Place] = set()
    for number, turn in enumerate(turns):
        if turn[0].role == "assistant":
            for message in turn:
                for call in message.calls:
                    waiting.setdefault(_key(call.id, call.name), deque()).append(number)
            continue
        for at, block in _results_in(number, turn):
            key = _key(block.call_id, block.name)
            alike = given.setdefault((key, hash(repr(block.content))), [])
            if waiting.get(key):
                place = waiting[key].popleft()
                results[place, key] = block
                used.add(at)
                if place != number - 1:
                    moved.add(at)
            elif key in of_unknown:
                used.add(at)
            elif any(_same(block, other) for other in alike):
                losses.lose(f"{WHAT}result_twice", block.call_id, "this result came before", key=key)
                used.add(at)
                moved.add(at)
            alike.append(block)
    written: list[Message] = []
    for number, turn in enumerate(turns):
        if turn[0].role == "assistant":
            written += turn
            calls = [call for message in turn for call in message.calls]
            # Calls that nothing follows are not answered yet.
            if calls and number < len(turns) - 1:
                answers = [_result_of(call, number, results, losses) for call in calls]
                written.append(Message("user", tuple(answers)))
            continue
        for index, message in enumerate(turn):
            written += _without_results(message, (number, index), used, moved, losses, in_place=of_unknown)
    return written


def _results_in(number: int, turn: Sequence[Message]) -> Iterator[tuple[_Place, ToolResultBlock]]:
    for index, message in enumerate(turn):
        for position, block in enumerate(message.blocks):
            if isinstance(block, ToolResultBlock):
                yield (number, index, position), block


def _turns(messages: Sequence[Message], *, joined: bool) -> list[list[Message]]:
    """Return the messages of the model each for itself, or those that are one turn together; and the others between them."""
    turns: list[list[Message]] = []
    for message in messages:
        of_model = message.role == "assistant"
        if turns and (turns[-1][0].role == "assistant") is of_model and (joined or not of_model):
            turns[-1].append(message)
        else:
            turns.append([message])
    return turns


def _same(one: ToolResultBlock, other: ToolResultBlock) -> bool:
    return one.content == other.content and one.is_error == other.is_error


def _result_of(
    call: ToolCallBlock, number: int, results: dict[tuple[int, str], ToolResultBlock], losses: Losses
) -> ToolResultBlock:
    key = _key(call.id, call.name)
    result = results.get((number, key))
    if result is not None:
        return result
    why = f"{losses.declaration.title} refuses a call without its result"
    losses.lose(f"{WHAT}call_without_result", call.id or call.name, why, sent=NO_RESULT, key=key)
    return ToolResultBlock(call_id=call.id, name=call.name, content=(TextBlock(NO_RESULT),), is_error=True)


def _without_results(
    message: Message, at: tuple[int, int], used: set[_Place], moved: set[_Place], losses: Losses, *, in_place: set[str]
) -> list[Message]:
    """Return a message without the results that stand behind their calls now, and those without a call as text."""
    if ToolResultBlock not in message.kinds:
        return [message]
    blocks: list[Block] = []
    for position, block in enumerate(message.blocks):
        place = (*at, position)
        if not isinstance(block, ToolResultBlock):
            blocks.append(block)
        elif place not in used:
            why = f"{losses.declaration.title} refuses a result without its call"
            losses.lose(f"{WHAT}result_without_call", block.call_id, why, sent="text", key=block.call_id)
            blocks += _as_words(block)
        elif _key(block.call_id, block.name) in in_place:
            blocks.append(block)
        elif place in moved:
            losses.lose(f"{WHAT}result_place", block.call_id, "a result stands right behind its call", sent="moved")
    return [msgspec.structs.replace(message, blocks=tuple(blocks))] if blocks else []


def _as_words(result: ToolResultBlock) -> list[Block]:
    of = f" {result.name}" if result.name else ""
    return [TextBlock(f"Result of an earlier call of the tool{of}:"), *result.content]


class _Renamed:
    """Messages in which each call has an id, and no two have one: a later one, and its result, gets a number behind it.

    Results without an id are those of the calls without one, by their names and in their order.
    """

    def __init__(self, messages: Sequence[Message], losses: Losses) -> None:
        self._losses = losses
        self._seen: set[str] = set()
        self._numbers: dict[str, int] = {}
        """By id the next number that may be free."""
        self._now: dict[str, str] = {}
        self._unnamed: list[tuple[str, str]] = []
        """Ids that were made for calls, with the names of these, which wait for their results."""
        self.messages = [self._message(message) for message in messages]

    def _message(self, message: Message) -> Message:
        if message.kinds.isdisjoint((ToolCallBlock, ToolResultBlock)):
            return message
        blocks = tuple([self._block(block) for block in message.blocks])
        same = all(new is old for new, old in zip(blocks, message.blocks, strict=True))
        return message if same else msgspec.structs.replace(message, blocks=blocks)

    def _block(self, block: Block) -> Block:
        if isinstance(block, ToolResultBlock):
            other = self._now.get(block.call_id, block.call_id) if block.call_id else self._waiting(block.name)
            return block if other == block.call_id else msgspec.structs.replace(block, call_id=other)
        if not isinstance(block, ToolCallBlock):
            return block
        begin = block.id or _UNNAMED
        other, count = begin, self._numbers.get(begin, 2)
        while other in self._seen:
            other, count = f"{begin}_{count}", count + 1
        self._numbers[begin] = count
        self._seen.add(other)
        if not block.id:
            self._unnamed.append((other, block.name))
            why = f"{self._losses.declaration.title} wants an id of each call"
            self._losses.lose(f"{WHAT}call_id_missing", block.name, why, sent=other, key=other)
            return msgspec.structs.replace(block, id=other)
        self._now[block.id] = other
        if other == block.id:
            return block
        why = f"{self._losses.declaration.title} takes an id once"
        self._losses.lose(f"{WHAT}call_id_twice", block.id, why, sent=other, key=other)
        return msgspec.structs.replace(block, id=other)

    def _waiting(self, name: str) -> str:
        """Return the id of the first call without one that waits for a result: of that name, where a result has one."""
        place = next((place for place, (_, called) in enumerate(self._unnamed) if called == name or not name), None)
        return "" if place is None else self._unnamed.pop(place)[0]


def _with_user_first(messages: Sequence[Message], losses: Losses) -> Sequence[Message]:
    """Return messages in which the user says something before the model does."""
    for place, message in enumerate(messages):
        if message.role == "user" and says_something(message):
            break
        if message.role == "assistant":
            why = f"{losses.declaration.title} wants the user to speak first"
            losses.lose("messages.role", "assistant", why, sent=f"behind the user's {OPENING}", key="first")
            return [*messages[:place], Message("user", (TextBlock(OPENING),)), *messages[place:]]
    return messages


def _with_one_system(messages: Sequence[Message], losses: Losses) -> list[Message]:
    """Return messages with text of the system at the beginning alone: later one becomes the user's, before what the user says then."""
    turns: list[list[Message]] = []
    spoken = False
    for message in messages:
        spoken = spoken or message.role != "system"
        late = message.role == "system" and spoken
        if late:
            why = f"the templates of {losses.declaration.title}'s models refuse a system message that is not at the beginning"
            losses.lose("messages.role", "system", why, sent="user")
            message = Message("user", message.blocks)
        if late and turns and turns[-1][0].role == "user" and ToolResultBlock not in turns[-1][0].kinds:
            turns[-1].append(message)
        else:
            turns.append([message])
    return [_joined(turn) for turn in turns]


def _joined(turn: Sequence[Message]) -> Message:
    """Return the first of some messages with the blocks of all."""
    if len(turn) == 1:
        return turn[0]
    return msgspec.structs.replace(turn[0], blocks=tuple(chain.from_iterable(message.blocks for message in turn)))


def _with_model_between(messages: Sequence[Message], losses: Losses) -> list[Message]:
    """Return messages in which the user never speaks right behind a result: what stands beside one goes into it."""
    why = "its templates refuse the user right behind a tool"
    written: list[Message] = []
    for message in messages:
        results = [block for block in message.blocks if isinstance(block, ToolResultBlock)]
        others: list[Any] = [block for block in message.blocks if not isinstance(block, ToolResultBlock)]
        if results and others:
            losses.lose("messages.role", "user", why, sent="in the result before it", key="beside")
            last = results[-1]
            joined = msgspec.structs.replace(last, content=(*last.content, *others))
            written.append(Message("user", (*results[:-1], joined), message.carried))
            continue
        behind = bool(written) and ToolResultBlock in written[-1].kinds
        if message.role == "system" and (behind or (written and written[-1].role == "assistant")):
            losses.lose(
                "messages.role", "system", "its templates take text of the system before the user's alone", sent="user"
            )
            message = Message("user", message.blocks)
        if behind and message.role == "user" and not results:
            losses.lose("messages.role", "user", why, sent=f"behind the model's {BETWEEN}", key="behind")
            written.append(Message("assistant", (TextBlock(BETWEEN),)))
        written.append(message)
    return written


_WHY = "the same result of this call stands before it, and a call has one result"


def without_repeated_results(request: Request) -> Request:
    """Return the request without results that stand in it twice, which is reported.

    A call has one result, and providers refuse a second one. Only equal results are left out: where two results of one call differ, the
    client's intention is not known.
    """
    repeated = _repeated(request.messages)
    if not repeated:
        return request
    messages = [_without(message, repeated.get(place, ())) for place, message in enumerate(request.messages)]
    place, places = next(iter(repeated.items()))
    twice = request.messages[place].blocks[min(places)]
    named = (twice.call_id or twice.name) if isinstance(twice, ToolResultBlock) else ""
    lost = Degradation("history.result_twice", asked=named, sent="once", why=_WHY)
    return msgspec.structs.replace(
        request,
        messages=tuple(message for message in messages if message is not None),
        body=None,
        body_bytes=b"",
        degraded=(*request.degraded, lost),
    )


def _repeated(messages: Sequence[Message]) -> dict[int, set[int]]:
    """Return the places of the blocks to leave out, by the place of their message."""
    places: dict[int, set[int]] = {}
    named = [block.call_id for message in messages for block in message.blocks if type(block) is ToolResultBlock]
    if len({*named}) == len(named) and "" not in named:
        return places
    # The results since the model last spoke, by their calls; those that name no call by their tool and text.
    by_call: dict[str, ToolResultBlock] = {}
    by_text: dict[tuple[str, str], ToolResultBlock] = {}
    for place, message in enumerate(messages):
        if message.role == "assistant":
            by_call, by_text = {}, {}
            continue
        for at, block in enumerate(message.blocks):
            if type(block) is not ToolResultBlock:
                continue
            # A result that names no call answers none that is open: its tool has been answered.
            earlier = by_call.get(block.call_id) if block.call_id else by_text.get((block.name, block.text))
            if earlier is not None and (earlier.content, earlier.is_error) == (block.content, block.is_error):
                places.setdefault(place, set()).add(at)
                continue
            by_call[block.call_id] = by_text[block.name, block.text] = block
    return places


def _without(message: Message, dropped: Collection[int]) -> Message | None:
    """Return a message without some blocks, or None if nothing else was in it."""
    if not dropped:
        return message
    blocks: tuple[Block, ...] = tuple(block for at, block in enumerate(message.blocks) if at not in dropped)
    return msgspec.structs.replace(message, blocks=blocks) if blocks else None
