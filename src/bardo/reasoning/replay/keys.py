"""Under which keys the reasoning of a reply is found again, whatever a client keeps of it.

A turn is known by the conversation before it and by what was said and called in it; a call whose id is globally unique by that id, its name
and its arguments; opaque state by its own bytes. An id alone is never a key: some providers number their calls, and the next conversation
begins at 0 again.

The conversation before a turn is how it began, how many turns there were, and all of the last eight: so a client may clear old turns, and a
long history costs no more than a short one. A turn that comes with the state of its reply is known by that alone.

Clients write a conversation anew: with ids of their own or none, texts cut or joined elsewhere, or left out beside calls, calls and results
in another order, results twice; and the operator's words may hold the time. So a turn has a loose
key too, of which none of that is a part. It is asked last, and leads nowhere where two replies have it.

A client may also write one turn as several messages in a row: text in one, each call in one of its own. So messages in a row have keys
together, too, and what follows goes by them together, however they were cut.

One question may have been put to several models, and each may have made the same call without an id. So such a turn has a key with the name
of the model asked for too.

A turn has one digest of all that was said since the turn before, and of that turn's own.

What a turn brings with it, its state and the globally unique ids of its calls, costs a tenth of what the conversation before it costs. So
a conversation is asked for by that first, and only turns that this does not lead to one reply have the other keys made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import chain

import msgspec

from bardo.reasoning.replay.call_identity import canonical, is_globally_unique, may_be_unique, stated_id
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
from bardo.values.request import Message, Request

_RESULTS = frozenset({ToolResultBlock})
_STATEFUL = frozenset((TextBlock, ToolCallBlock, ReasoningBlock))
# State this long is one reply's: signatures and ciphertexts have hundreds of characters, names of items may be numbers.
_TELLING_STATE = 24
# What `str.split` takes for space in ASCII.
_SPACE = b" \t\n\r\v\f\x1c\x1d\x1e\x1f"
_copy_of_empty = blake2b(digest_size=15).copy
_encode = msgspec.json.Encoder(order="sorted").encode


Texts = tuple[str, ...]


class Behind(msgspec.Struct, frozen=True, gc=False):
    """The conversation before a turn: `before` is the digest up to and with the last turn, `said` are the texts since then."""

    before: str
    said: Texts

    def key(self, kind: str, turn: Iterable[str]) -> str:
        """Return the key of a turn that says this."""
        return kind + _digest_behind(self.before, _digest_of((*self.said, *turn)))


class TurnKeys(msgspec.Struct, frozen=True, gc=False):
    """The keys of one assistant message, or of so many `messages` in a row, of which `place` is the first.

    `exact` holds the ids of its calls, `unnamed` does not and is empty where the client says ids, as is `of_model`, which holds the name
    of the model that was asked for besides; `calls` are those of calls whose ids may be globally unique, `states` those of opaque state
    that only one reply can have, `others` those of other state. `loose` is the same for a conversation that a client wrote anew. `says`:
    there is a text beside its `call_count` calls.

    One that came with state of its own has the keys of state alone, and one whose calls led to its reply those of state and calls.
    """

    place: int
    exact: str = ""
    unnamed: str = ""
    of_model: str = ""
    loose: str = ""
    calls: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    messages: int = 1
    says: bool = False
    call_count: int = 0

    @property
    def all(self) -> tuple[str, ...]:
        """Every key."""
        named = (self.exact, self.loose, self.unnamed, self.of_model)
        return tuple(filter(None, (*named, *self.calls, *self.states, *self.others)))


class History(msgspec.Struct, frozen=True, gc=False):
    """The keys of the turns of a conversation, and what its next reply stands behind: as it is, and without what clients change.

    `truncated`: the conversation's beginning is not there, and may be another's. `model` is the name that was asked for. `states` are the
    keys of all opaque state in the turns, by its data.
    """

    turns: tuple[TurnKeys, ...]
    exactly: Behind
    loosely: Behind
    truncated: bool = False
    model: str = ""
    states: dict[str, str] = {}


_TurnContent = tuple[str, list[str], list[str], list[Opaque]]
"""The content of a turn: its text, the name and the arguments of each call in turn, the ids of the calls, and all opaque state."""


def digest(*parts: str) -> str:
    """Return a short digest of texts; where one ends matters."""
    text = "".join(parts)
    # A copy of an empty digest is made in less time than a new one.
    made = _copy_of_empty()
    # A text of ASCII alone has as many bytes as letters, so that it is encoded in one go.
    if text.isascii():
        lengths = len(text) if len(parts) == 1 else ",".join(map(str, map(len, parts)))
        made.update(f"{lengths};{text}".encode())
    else:
        raw = [part.encode("utf-8", "surrogatepass") for part in parts]
        made.update(b"%b;%b" % (b",".join([b"%d" % len(part) for part in raw]), b"".join(raw)))
    return made.hexdigest()


def _digest_of(texts: Texts) -> str:
    """Return a short digest of the texts of a conversation: of many texts, which `digest` takes twice the time for."""
    text = "\0".join(texts)
    if text.count("\0") >= len(texts):
        # The letter stands in a text. The digested bytes then begin with the lengths, and only then.
        return digest(*texts)
    made = _copy_of_empty()
    made.update(text.encode("utf-8", "surrogatepass"))
    return made.hexdigest()


def _digest_behind(before: str, link: str) -> str:
    """Return the digest of a turn's own digest and of those before it."""
    made = _copy_of_empty()
    made.update(f"{before}\0{link}".encode())
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
        return [*_call_keys(ids, calls, is_globally_unique)]
    unnamed = (
        [history.exactly.key("u", (text, *calls)), history.exactly.key("a", (history.model, text, *calls))]
        if ids
        else []
    )
    loose = history.loosely.key("l", _loose_turn(text, calls))
    return [
        history.exactly.key("m", (text, *calls, *ids)),
        *unnamed,
        loose,
        *_call_keys(ids, calls, is_globally_unique),
    ]


def has_history(request: Request) -> bool:
    """Whether a model has spoken in this conversation."""
    for message in request.messages:  # noqa: SIM110 - asked in every call, where a loop costs half of what `any` does.
        if message.role == "assistant":
            return True
    return False


def turns_of(request: Request) -> tuple[TurnKeys, ...]:
    """Return the keys of every assistant message of a request, and of those in a row together, or none if there is no such message."""
    return history_of(request).turns if has_history(request) else ()


def history_of(request: Request) -> History:
    """Return the keys of all turns of a request, and what its reply stands behind."""
    return Conversation(request).history()


_BEFORE = 8
"""So many turns before a turn are part of what it is known by."""
_MOST_BEFORE = 64
"""So many messages of a row are each part of what the next is known by: else a row of thousands would take quadratic time."""


class Conversation:
    """The messages of a request as rows of the model's, with the others between them, and the keys of each row's turns.

    A row is the places of messages of the model that follow each other, mostly of one: where the row before ends, and where it begins and
    ends itself. Each has a link, the digests of what was said since the row before and in it, as it is and without what clients change.
    Links are made when they are asked for, each once.

    `first_keys`, `further_keys` and `history` are asked in this order; `history` alone makes all keys.
    """

    def __init__(self, request: Request) -> None:
        messages = request.messages
        self._messages = messages
        self._model = request.model or ""
        self._truncated = not _begins_with_a_prompt(request)
        self._rows: list[tuple[int, int, int]] = []
        self._states: dict[str, str] = {}
        start = -1
        end = 0
        for place, message in enumerate(messages):
            if message.role == "assistant":
                start = place if start < 0 else start
            elif start >= 0:
                self._rows.append((end, start, place))
                start, end = -1, place
        if start >= 0:
            self._rows.append((end, start, len(messages)))
        self._exact = [""] * len(self._rows)
        self._loose = [""] * len(self._rows)
        self._heads = ("", "")
        self._turns: list[list[TurnKeys]] = [[] for _ in self._rows]
        self._contents: list[_TurnContent | None] = [None] * len(self._rows)
        # Rows of one turn that has the keys of what it brings with it alone, so far.
        self._partly: list[int] = []

    def first_keys(self) -> list[str]:
        """Return what to look for first: what turns bring with them; of turns that bring nothing, all keys."""
        for number in range(len(self._rows)):
            self._turns[number] = self._by_state(number) or self._by_calls(number) or self._all_keys(number)
        return keys_in(chain.from_iterable(self._turns))

    def further_keys(self, found: Mapping[str, bytes]) -> list[str]:
        """Return the other keys of those turns that what was found leads to no reply, to several, or to one that another turn has too."""
        reached: Counter[bytes] = Counter()
        for turns in self._turns if found and self._partly else ():
            for turn in turns:
                reached.update({found[key] for key in turn.all if key in found})
        further: list[str] = []
        for number in self._partly:
            (turn,) = self._turns[number]
            values = {found[key] for key in turn.states if key in found}
            values = values or {found[key] for key in turn.calls if key in found}
            if len(values) == 1 and reached[values.pop()] == 1:
                continue
            before, loosely_before = self._before(number)
            if not self._exact[number]:
                self._link(number)
            exact = "m" + _digest_behind(before, self._exact[number])
            loose = "l" + _digest_behind(loosely_before, self._loose[number])
            brought = turn.calls, turn.states, turn.others
            self._turns[number] = [TurnKeys(turn.place, exact, "", "", loose, *brought, 1, turn.says, turn.call_count)]
            further += (exact, loose)
        self._partly = []
        return [*dict.fromkeys(further)]

    def history(self) -> History:
        """Return the keys of all turns, and what the next reply stands behind."""
        for number, made in enumerate(self._turns):
            if not made:
                self._turns[number] = self._by_state(number) or self._all_keys(number)
        turns = tuple(chain.from_iterable(self._turns))
        return History(turns, *self._end(), self._truncated, self._model, self._states)

    def _by_state(self, number: int) -> list[TurnKeys]:
        """Return the keys of a row of one turn that came with state of its own, by which alone it is known; none of any other."""
        _, start, end = self._rows[number]
        states: list[Opaque] = []
        for block in self._messages[start].blocks if end - start == 1 else ():
            if type(block) in _STATEFUL and block.opaque:  # type: ignore[union-attr]
                states += block.opaque  # type: ignore[union-attr]
        for state in states:
            # An id may be one that bardo gave, which no reply is kept under.
            if len(state.data) >= _TELLING_STATE and state.kind != "id":
                return [TurnKeys(start, "", "", "", "", (), *_state_keys(states, self._states))]
        return []

    def _by_calls(self, number: int) -> list[TurnKeys]:
        """Return the keys of state and calls of a row of one turn whose calls may have globally unique ids; none of any other."""
        _, start, end = self._rows[number]
        if end - start > 1:
            return []
        content = self._contents[number] = _turn_content(self._messages[start].blocks)
        text, calls, ids, states = content
        named = _call_keys(ids, calls, may_be_unique)
        if not named:
            return []
        self._partly.append(number)
        by_state = _state_keys(states, self._states)
        return [TurnKeys(start, "", "", "", "", named, *by_state, 1, text != "", len(ids))]

    def _all_keys(self, number: int) -> list[TurnKeys]:
        """Return the keys of the messages of a row, and of all of them together where they are several and others follow them.

        The model may go on behind its last message, so a reply goes by that one and not by the row.
        """
        messages = self._messages
        _, start, end = self._rows[number]
        before, loosely_before = self._before(number)
        since, loosely_said, content = self._link(number)
        together = self._turn(
            start, Behind(before, since), content, self._exact[number], loosely_before, self._loose[number]
        )
        if end - start == 1:
            return [together]
        exactly, loosely = Behind(before, since), Behind(loosely_before, loosely_said)
        keys: list[TurnKeys] = []
        for place in range(start, end):
            content = _turn_content(messages[place].blocks)
            exact, loose = _links(exactly.said, loosely.said, content)
            keys.append(self._turn(place, exactly, content, exact, loosely.before, loose))
            exactly, loosely = _continued(exactly, exact), _continued(loosely, loose)
        return [*keys, msgspec.structs.replace(together, messages=end - start)]

    def _turn(
        self, place: int, exactly: Behind, content: _TurnContent, exact: str, loosely_before: str, loose: str
    ) -> TurnKeys:
        text, calls, ids, states = content
        unnamed = bool(ids) and not any(ids)
        return TurnKeys(
            place,
            "m" + _digest_behind(exactly.before, exact),
            exactly.key("u", (text, *calls)) if unnamed else "",
            exactly.key("a", (self._model, text, *calls)) if unnamed else "",
            "l" + _digest_behind(loosely_before, loose),
            _call_keys(ids, calls, may_be_unique) if ids else (),
            *_state_keys(states, self._states),
            1,
            text != "",
            len(ids),
        )

    def _end(self) -> tuple[Behind, Behind]:
        """Return what the next reply stands behind: what follows the last row, or that row's messages where nothing does."""
        rows, messages = self._rows, self._messages
        number, last, start = len(rows), rows[-1][2] if rows else 0, len(messages)
        if rows and last == start:
            number, (last, start, _) = number - 1, rows[-1]
        before, loosely_before = self._before(number)
        since, loosely_said = _said_since(messages[last:start])
        exactly, loosely = Behind(before, since), Behind(loosely_before, loosely_said)
        for message in messages[start:]:
            exact, loose = _links(exactly.said, loosely.said, _turn_content(message.blocks))
            exactly, loosely = _continued(exactly, exact), _continued(loosely, loose)
        return exactly, loosely

    def _before(self, number: int) -> tuple[str, str]:
        """Return the digests of what stands before a row, as it is and without what clients change."""
        first = max(0, number - _BEFORE)
        if first and not self._heads[0]:
            since, loosely = _said_since(self._messages[: self._rows[0][1]])
            self._heads = _digest_of(since), _digest_of(loosely)
        if "" in self._exact[first:number]:
            for place in range(first, number):
                if not self._exact[place]:
                    self._link(place)
        exact, loose = self._heads if first else ("", "")
        begin = f"truncated\0{number}" if self._truncated else f"\0{number}"
        return "\0".join((begin, exact, *self._exact[first:number])), "\0".join(
            (begin, loose, *self._loose[first:number])
        )

    def _link(self, number: int) -> tuple[Texts, Texts, _TurnContent]:
        """Make the digests of a row, and return what they are of: what was said since the row before, in both ways, and what it says."""
        behind, start, end = self._rows[number]
        messages = self._messages
        since, loosely_said = _said_since(messages[behind:start])
        content = self._contents[number]
        if content is None:
            row = messages[start] if end - start == 1 else joined_messages(messages[start:end])
            content = self._contents[number] = _turn_content(row.blocks)
        self._exact[number], self._loose[number] = _links(since, loosely_said, content)
        return since, loosely_said, content


def _links(since: Texts, loosely_said: Texts, content: _TurnContent) -> tuple[str, str]:
    text, calls, ids, _ = content
    return _digest_of((*since, text, *calls, *ids)), _digest_of((*loosely_said, *_loose_turn(text, calls)))


def _continued(behind: Behind, link: str) -> Behind:
    """Return what stands behind a message of the model that another of it follows; what stands before very many is one digest."""
    before = behind.before
    if before.count("\0") >= _MOST_BEFORE - 1:
        before = _digest_of((before,))
    return Behind(f"{before}\0{link}", ("0",))


def _said_since(messages: Sequence[Message]) -> tuple[Texts, Texts]:
    """Return what messages that are not the model's say: as it is, and without what clients change.

    The operator's words are no part of the latter: they often hold the time. Texts are without space there, since clients trim them and cut
    them where they like; results are in no order, and each counts once. Each begins with how many there are: texts, and results.
    """
    pieces: list[str] = []
    loosely: list[str] = []
    results: set[str] = set()
    speaker = ""
    for message in messages:
        role = message.role
        pieces.append(role)
        for block in message.blocks:
            is_result = type(block) is ToolResultBlock
            if is_result:
                pieces.append("result")
            texts: list[str] = []
            for part in block.content if is_result else (block,):  # type: ignore[union-attr]
                if type(part) is TextBlock:
                    pieces += ("text", part.text)
                    texts.append(_without_space(part.text))
                else:
                    parts = _prompt(part)
                    pieces += parts
                    texts.append("\0".join(parts))
            if role == "system":
                continue
            text = texts[0] if len(texts) == 1 else "".join(texts)
            if is_result:
                results.add(text)
                continue
            if role != speaker:
                speaker = role
                # No text has a space in it here.
                loosely.append(f" {role} ")
            loosely.append(text)
    return (str(len(pieces)), *pieces), (str(len(results)), "".join(loosely), *sorted(results))


def _loose_turn(text: str, calls: Sequence[str]) -> Sequence[str]:
    """Return what a turn says without what clients change: of one with calls these alone, in any order, since the text may be dropped."""
    if not calls:
        return (_without_space(text),)
    if len(calls) > 2:
        calls = [*chain.from_iterable(sorted(zip(calls[::2], calls[1::2], strict=True)))]
    return ("", *calls)


def _without_space(text: str) -> str:
    if text.isascii():
        return text.encode().translate(None, _SPACE).decode()
    return "".join(text.split())


def joined_messages(messages: Sequence[Message]) -> Message:
    """Return the first of some messages with the blocks of all."""
    return msgspec.structs.replace(messages[0], blocks=tuple([block for turn in messages for block in turn.blocks]))


def turns_in(turns: Sequence[TurnKeys], client_request: Request, sent: Request) -> tuple[TurnKeys, ...]:
    """Return the turns of the client's own conversation with their places in the one that is sent, which layers have changed.

    Replies are kept under the keys of what the client asks, so these are what they are found by. Turns that are not sent are left out.
    """
    if not turns:
        return ()
    places = [place for place, message in enumerate(sent.messages) if message.role == "assistant"]
    before = [turn.place for turn in turns if turn.messages == 1]
    now: dict[int, int] = {}
    if len(places) == len(before):
        now = dict(zip(before, places, strict=True))
    else:
        for place in reversed(before):
            texts = _said_in(client_request.messages[place])
            while places and _said_in(sent.messages[places[-1]]) != texts:
                places.pop()
            if not places:
                break
            now[place] = places.pop()
    placed: list[TurnKeys] = []
    for turn in turns:
        at = [now.get(place, -1) for place in range(turn.place, turn.place + turn.messages)]
        if at[0] >= 0 and at == [*range(at[0], at[0] + turn.messages)]:
            placed.append(turn if at[0] == turn.place else msgspec.structs.replace(turn, place=at[0]))
    return tuple(placed)


def keys_in(turns: Iterable[TurnKeys]) -> list[str]:
    """Return all keys of these turns, each once."""
    keys: list[str] = []
    for turn in turns:
        keys += turn.all
    return [*dict.fromkeys(keys)]


def states_of(block: Block) -> tuple[Opaque, ...]:
    """Return the opaque state of a block of any kind."""
    return block.opaque if type(block) in _STATEFUL else ()  # type: ignore[union-attr]


def _state_keys(states: Sequence[Opaque], cached: dict[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the keys of state that only one reply can have, and of other state; `known` takes them by its data."""
    telling: list[str] = []
    others: list[str] = []
    for state in states:
        data = state.data
        key = cached[data] = cached.get(data) or state_key(state)
        (telling if len(data) >= _TELLING_STATE or is_globally_unique(data) else others).append(key)
    return tuple(telling), tuple(others)


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


def _call_keys(ids: Sequence[str], turn_texts: Sequence[str], is_one: Callable[[str, str], bool]) -> tuple[str, ...]:
    """Return the keys of the calls whose ids are globally unique, by `is_one`; a key that no reply is kept under leads nowhere."""
    keys: list[str] = []
    place = 0
    for call_id in ids:
        name = turn_texts[place]
        if is_one(call_id, name):
            keys.append("c" + digest(call_id, name, turn_texts[place + 1]))
        place += 2
    return tuple(keys)


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
