"""Under which keys the reasoning of a reply is found again, whatever a client keeps of it.

A turn is known by the whole conversation before it and by what was said and called in it; a call whose id is globally unique by that id,
its name and its arguments; opaque state by its own bytes. An id alone is never a key: some providers number their calls, and the next
conversation begins at 0 again.

Clients write a conversation anew: with ids of their own or none, texts cut or joined elsewhere, or left out beside calls, calls and results
in another order, results twice; and the operator's words may hold the time. So a turn has a loose
key too, of which none of that is a part. It is asked last, and leads nowhere where two replies have it.

A client may also write one turn as several messages in a row: text in one, each call in one of its own. So messages in a row have keys
together, too, and what follows goes by them together, however they were cut.

A turn has one digest of all that was said since the turn before, and of that turn's own: nothing is digested twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple

import msgspec

from bardo.reasoning.replay.call_identity import canonical, is_globally_unique, stated_id
from bardo.values.blocks import (
    Block,
    DocumentBlock,
    ImageBlock,
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.request import Message, Messages, Request

_RESULTS = frozenset({ToolResultBlock})
_STATEFUL = (TextBlock, ToolCallBlock, ReasoningBlock)
# State this long is one reply's: signatures and ciphertexts have hundreds of characters, names of items may be numbers.
_TELLING_STATE = 24
# What `str.split` takes for space in ASCII.
_SPACE = b" \t\n\r\v\f\x1c\x1d\x1e\x1f"
_copy_of_empty = blake2b(digest_size=15).copy
_encode = msgspec.json.Encoder(order="sorted").encode


Said = tuple[str, ...]
"""The digest of a conversation up to the last turn, how many texts were said since then, and these."""


class TurnKeys(msgspec.Struct, frozen=True):
    """The keys of one assistant message, or of so many `messages` in a row, of which `place` is the first.

    `exact` holds the ids of its calls, `unnamed` does not and is empty where the client says ids, `calls` are those of calls with
    globally unique ids, `states` those of opaque state that only one reply can have, `others` those of other state. `loose` is the same
    for a conversation that a client wrote anew. `says`: there is a text beside its `call_count` calls.
    """

    place: int
    exact: str
    unnamed: str
    loose: str
    calls: tuple[str, ...]
    states: tuple[str, ...]
    others: tuple[str, ...]
    messages: int = 1
    says: bool = False
    call_count: int = 0

    @property
    def all(self) -> tuple[str, ...]:
        """Every key."""
        named = (self.exact, self.loose, self.unnamed) if self.unnamed else (self.exact, self.loose)
        return (*named, *self.calls, *self.states, *self.others)


class History(msgspec.Struct, frozen=True):
    """The keys of the turns of a conversation, and what those of the next reply begin with: as it is, and without what clients change.

    `truncated`: the conversation's beginning is not there, and may be another's.
    """

    turns: tuple[TurnKeys, ...]
    before: Said
    loose: Said
    truncated: bool = False


_TurnContent = tuple[str, list[str], list[str], list[Opaque]]
"""What a turn says: its text, the name and the arguments of each call in turn, the ids of the calls, and all opaque state."""


def digest(*parts: str) -> str:
    """Return a short digest of texts; where one ends matters."""
    text = "".join(parts)
    # A copy of an empty digest is made in less time than a new one.
    made = _copy_of_empty()
    # A text of ASCII alone has as many bytes as letters, so that it is encoded in one go.
    if text.isascii():
        made.update(f"{','.join([str(len(part)) for part in parts])};{text}".encode())
    else:
        raw = [part.encode("utf-8", "surrogatepass") for part in parts]
        made.update(b"%b;%b" % (b",".join([b"%d" % len(part) for part in raw]), b"".join(raw)))
    return made.hexdigest()


def _turn_digest(said: Said) -> str:
    """Return a short digest of a turn and what stands before it: of many texts, which `digest` takes twice the time for."""
    text = "\0".join(said)
    if text.count("\0") >= len(said):
        # The letter stands in a text. What is digested then begins with the lengths, and no digest of a conversation does.
        return digest(*said)
    made = _copy_of_empty()
    made.update(text.encode("utf-8", "surrogatepass"))
    return made.hexdigest()


def call_digest(call: ToolCallBlock) -> str:
    """Return a short digest of what a call says, whatever its id is and however its arguments are spelt."""
    return digest(call.name, canonical(call.arguments))


def state_key(state: Opaque) -> str:
    """Return the key of the reply that held a piece of opaque state."""
    return "s" + digest(state.data)


def reply_keys(history: History, blocks: Sequence[Block]) -> list[str]:
    """Return the keys under which a reply to a conversation is kept."""
    ids = [block.id for block in blocks if isinstance(block, ToolCallBlock)]
    text, calls, _, _ = _turn_content(blocks)
    if history.truncated:
        return [*_call_keys(ids, calls)]
    exact = "m" + _turn_digest((*history.before, text, *calls, *ids))
    unnamed = ["u" + _turn_digest((*history.before, text, *calls))] if ids else []
    return [exact, *unnamed, _loose_key(history.loose, text, calls), *_call_keys(ids, calls)]


def has_history(request: Request) -> bool:
    """Whether a model has spoken in this conversation."""
    for message in request.messages:  # noqa: SIM110 - asked in every call, where a loop costs half of what `any` does.
        if message.role == "assistant":
            return True
    return False


def turns_of(request: Request) -> tuple[TurnKeys, ...]:
    """Return the keys of every assistant message of a request, and of those in a row together; none where no model has spoken yet."""
    return history_of(request).turns if has_history(request) else ()


def history_of(request: Request) -> History:
    """Return the keys of all turns of a request, and what those of its reply begin with: one pass over its messages."""
    messages = request.messages
    truncated = not _begins_with_a_prompt(request)
    begin = "truncated" if truncated else ""
    said = _SaidSince(begin, begin)
    turns: list[TurnKeys] = []
    row: _Row | None = None
    for place, message in enumerate(messages):
        if message.role != "assistant":
            if row is not None and place - row.place > 1:
                # What follows messages in a row goes by them together.
                together = _together(row, messages, place)
                turns.append(together)
                said = _SaidSince(together.exact, together.loose)
            row = None
            said.add(message)
            continue
        before, loose = said.exactly(), said.loosely()
        if row is None:
            row = _Row(place, before, loose)
        turn = _turn(place, before, loose, message)
        turns.append(turn)
        said = _SaidSince(turn.exact, turn.loose)
    if row is not None and len(messages) - row.place > 1:
        # The model may go on behind its last message, so a reply goes by that one and not by the row.
        turns.append(_together(row, messages, len(messages)))
    return History(tuple(turns), said.exactly(), said.loosely(), truncated)


class _SaidSince:
    """What was said since a turn, which its keys name: as it is, and without what clients change.

    The operator's words are no part of the latter: they often hold the time. Texts are without space there, since clients trim them and cut
    them where they like; results are in no order, and each counts once.
    """

    __slots__ = ("_before", "_loosely", "_loosely_before", "_results", "_role", "_said")

    def __init__(self, before: str, loosely_before: str) -> None:
        self._before, self._loosely_before = before, loosely_before
        self._said: list[str] = []
        self._loosely: list[str] = []
        self._results: set[str] = set()
        self._role = ""

    def exactly(self) -> Said:
        """Return all of it."""
        return (self._before, str(len(self._said)), *self._said)

    def loosely(self) -> Said:
        """Return it without what clients change."""
        results = self._results
        return (self._loosely_before, "".join(self._loosely), str(len(results)), *sorted(results))

    def add(self, message: Message) -> None:
        """Go on behind a message that is not the model's."""
        said, role = self._said, message.role
        said.append(role)
        is_system = role == "system"
        for block in message.blocks:
            if type(block) is ToolResultBlock:
                said.append("result")
                result = [_add_part(part, said) for part in block.content]
                if not is_system:
                    self._results.add(result[0] if len(result) == 1 else "".join(result))
                continue
            loosely = _add_part(block, said)
            if is_system:
                continue
            if role != self._role:
                self._role = role
                # No text has a space in it here.
                self._loosely.append(f" {role} ")
            self._loosely.append(loosely)


def _add_part(block: Block, said: list[str]) -> str:
    """Add what a block of a prompt says, and return it without what clients change: a text without its space, anything else as it is."""
    if type(block) is TextBlock:
        said += ("text", block.text)
        return _without_space(block.text)
    parts = _prompt(block)
    said += parts
    return "\0".join(parts)


def _loose_key(before: Said, text: str, turn_texts: Sequence[str]) -> str:
    """Return the key of a turn: of one with calls by these alone, in any order, since clients drop the text beside them."""
    if not turn_texts:
        return "l" + _turn_digest((*before, _without_space(text)))
    if len(turn_texts) > 2:
        calls = sorted(zip(turn_texts[::2], turn_texts[1::2], strict=True))
        turn_texts = [*chain.from_iterable(calls)]
    return "l" + _turn_digest((*before, "", *turn_texts))


def _without_space(text: str) -> str:
    if text.isascii():
        return text.encode().translate(None, _SPACE).decode()
    return "".join(text.split())


class _Row(NamedTuple):
    """Where messages of the model in a row begin, and what stands before them."""

    place: int
    before: Said
    loose: Said


def _together(row: _Row, messages: Messages, end: int) -> TurnKeys:
    """Return the keys of the messages of a row together."""
    joined = joined_messages(messages[row.place : end])
    turn = _turn(row.place, row.before, row.loose, joined)
    return msgspec.structs.replace(turn, messages=end - row.place)


def joined_messages(messages: Sequence[Message]) -> Message:
    """Return the first of some messages with the blocks of all."""
    return msgspec.structs.replace(messages[0], blocks=tuple([block for one in messages for block in one.blocks]))


def turns_in(turns: Sequence[TurnKeys], client_request: Request, sent: Request) -> tuple[TurnKeys, ...]:
    """Return the turns of the client's own conversation with their places in the one that is sent, which layers have changed.

    Replies are kept under the keys of what the client asks, so these are what they are found by. Turns that are not sent are left out.
    """
    if client_request.messages is sent.messages or not turns:
        return tuple(turns)
    places = [place for place, message in enumerate(sent.messages) if message.role == "assistant"]
    before = [turn.place for turn in turns if turn.messages == 1]
    now: dict[int, int] = {}
    if len(places) == len(before):
        now = dict(zip(before, places, strict=True))
    else:
        for place in reversed(before):
            said = _said_in(client_request.messages[place])
            while places and _said_in(sent.messages[places[-1]]) != said:
                places.pop()
            if not places:
                break
            now[place] = places.pop()
    found: list[TurnKeys] = []
    for turn in turns:
        at = [now.get(place, -1) for place in range(turn.place, turn.place + turn.messages)]
        if at[0] >= 0 and at == [*range(at[0], at[0] + turn.messages)]:
            found.append(turn if at[0] == turn.place else msgspec.structs.replace(turn, place=at[0]))
    return tuple(found)


def wanted(request: Request) -> list[str]:
    """Return every key that may be needed to send a request; nothing where no model has spoken yet."""
    return keys_in(turns_of(request))


def keys_in(turns: Iterable[TurnKeys]) -> list[str]:
    """Return all keys of these turns, each once."""
    keys: list[str] = []
    for turn in turns:
        keys += turn.all
    return list(dict.fromkeys(keys))


def states_of(block: Block) -> tuple[Opaque, ...]:
    """Return the opaque state of a block of any kind."""
    return block.opaque if isinstance(block, _STATEFUL) else ()


def has_state(message: Message) -> bool:
    """Whether any block of a message has opaque state."""
    for block in message.blocks:  # noqa: SIM110 - asked of each message of each call, where a loop costs half of what `any` does.
        if isinstance(block, _STATEFUL) and block.opaque:
            return True
    return False


def _turn(place: int, before: Said, loose: Said, message: Message) -> TurnKeys:
    text, calls, ids, states = _turn_content(message.blocks)
    telling: list[str] = []
    others: list[str] = []
    for state in states:
        data = state.data
        is_telling = len(data) >= _TELLING_STATE or is_globally_unique(data)
        (telling if is_telling else others).append(state_key(state))
    return TurnKeys(
        place,
        "m" + _turn_digest((*before, text, *calls, *ids)),
        "u" + _turn_digest((*before, text, *calls)) if ids and not any(ids) else "",
        _loose_key(loose, text, calls),
        _call_keys(ids, calls) if ids else (),
        tuple(telling),
        tuple(others),
        1,
        text != "",
        len(ids),
    )


def _begins_with_a_prompt(request: Request) -> bool:
    """Whether the first message behind the system prompt is a user's, and not the results of calls that are no longer there."""
    # Asked twice in each turn of an agent, where loops cost half of what generators do.
    for message in request.messages:
        if message.role != "system":
            return message.role == "user" and not message.kinds <= _RESULTS
    return False


def _said_in(message: Message) -> tuple[str, list[str], list[str]]:
    """Return what a turn says, without its opaque state."""
    return _turn_content(message.blocks)[:3]


def _turn_content(blocks: Iterable[Block]) -> _TurnContent:
    """Return what a turn of a conversation says. Reasoning is left out: clients may drop it."""
    text = ""
    texts: list[str] = []
    calls: list[str] = []
    ids: list[str] = []
    states: list[Opaque] = []
    for block in blocks:
        kind = type(block)
        if kind is TextBlock:
            texts.append(block.text)  # type: ignore[union-attr]
        elif kind is ToolCallBlock:
            calls += (block.name, canonical(block.arguments))  # type: ignore[union-attr]
            ids.append(block.id if block.carried is None else stated_id(block))  # type: ignore[union-attr,arg-type]
        elif kind is not ReasoningBlock:
            continue
        if block.opaque:  # type: ignore[union-attr]
            states += block.opaque  # type: ignore[union-attr]
    if texts:
        text = (texts[0] if len(texts) == 1 else "".join(texts)).strip()
    return text, calls, ids, states


def _call_keys(ids: Sequence[str], turn_texts: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of the calls whose ids are globally unique."""
    found: list[str] = []
    place = 0
    for call_id in ids:
        name = turn_texts[place]
        if is_globally_unique(call_id, name):
            found.append("c" + digest(call_id, name, turn_texts[place + 1]))
        place += 2
    return tuple(found)


def _prompt(block: Block) -> tuple[str, ...]:
    if isinstance(block, ToolResultBlock):
        return ("result", *[part for inner in block.content for part in _prompt(inner)])
    if isinstance(block, TextBlock | RefusalBlock):
        return ("text", block.text)
    if isinstance(block, DocumentBlock):
        return ("document", block.data, block.url, block.text, *((block.source,) if block.source else ()))
    if isinstance(block, ImageBlock):
        return ("image", block.data, block.url)
    return ("other", _encode(block.value).decode()) if isinstance(block, UnknownBlock) else ()
