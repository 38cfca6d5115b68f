"""Interleaved conversations of one key: none is ever given a thought of another, and each gets its own where that is certain."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bardo.adapters.stores.state import Bounds, MemoryStore
from bardo.catalog.load import builtin
from bardo.catalog.replay import Reader, builtin_replay
from bardo.reasoning.replay import Conversation as KeysOf
from bardo.reasoning.replay import Recalled, decode_kept, encode_kept, keys_in, remember, restore, turns_of
from bardo.values.blocks import ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message, Request
from bardo.values.response import Response


def reader(preset: str, model: str) -> Reader:
    row = builtin().provider(preset)
    assert row is not None
    return builtin_replay().reader(preset, row, model)


KIMI = reader("moonshot", "kimi-k3")


@dataclass
class Conversation:
    """What a plain client holds, and which reply each of its messages was: None for what no model said."""

    messages: list[Message] = field(default_factory=list)
    replies: list[int | None] = field(default_factory=list)
    calls: int = 0

    def add(self, message: Message, reply: int | None = None) -> None:
        self.messages.append(message)
        self.replies.append(reply)

    def fork(self) -> Conversation:
        return Conversation(list(self.messages), list(self.replies), self.calls)

    @property
    def request(self) -> Request:
        return Request(model="m", messages=tuple(self.messages))


class World:
    """A store that one key's conversations share, and a model that thinks something else every time."""

    def __init__(self, *, unique: bool, entries: int = 1000) -> None:
        self.store = MemoryStore(Bounds(entries=entries))
        self.unique = unique
        self.made = 0
        self.histories: list[tuple[Message, ...]] = []
        self._random = random.Random(1)

    def ask(self, conversation: Conversation, city: str, *, thinks: bool = True) -> None:
        """Have the model call a tool, and keep of its reply what a plain client keeps."""
        number, self.made = self.made, self.made + 1
        suffix = f"{self._random.getrandbits(96):024x}"
        call_id = f"call_{suffix}" if self.unique else f"functions.weather:{conversation.calls}"
        call = ToolCallBlock(id=call_id, name="weather", arguments=f'{{"city":"{city}"}}')
        thought = ReasoningBlock(text=f"thought {number}", format="reasoning_content")
        request = conversation.request
        for memory in remember(Response(blocks=(thought, call) if thinks else (call,)), request, request, KIMI):
            self.store.put("key", memory.keys, encode_kept(memory.kept), now=0, reply=str(number))
        conversation.calls += 1
        conversation.add(Message("assistant", (call,)), number)
        self.histories.append(tuple(conversation.messages))
        conversation.add(Message("user", (ToolResultBlock(call_id=call.id, content=(TextBlock("sunny"),)),)))

    def thoughts(self, conversation: Conversation) -> list[tuple[int | None, str]]:
        """Return, for each assistant message, which reply it was and the thought that it is sent with; "" for none."""
        return [(reply, text) for _, reply, text in self.placed_thoughts(conversation)]

    def placed_thoughts(self, conversation: Conversation) -> list[tuple[int, int | None, str]]:
        """Return the same with the place of each message."""
        request = conversation.request
        restored = restore(request, KIMI, self.recalled(request)).request.messages
        by_all_keys = restore(request, KIMI, self.recalled(request, every_key=True)).request.messages
        assert restored == by_all_keys, "what a turn brings with it leads to the reply that all keys lead to"
        texts = [
            next((block.text for block in message.blocks if isinstance(block, ReasoningBlock)), "")
            for message in restored
        ]
        filled = ("" if "not available" in text else text for text in texts)
        pairs = enumerate(zip(conversation.replies, filled, conversation.messages, strict=True))
        return [(place, reply, text) for place, (reply, text, message) in pairs if message.role == "assistant"]

    def recalled(self, request: Request, *, every_key: bool = False) -> Recalled:
        """Look for the earlier replies of a conversation, by all keys at once or as calls do."""
        by_steps = KeysOf(request)
        keys = keys_in(turns_of(request)) if every_key else by_steps.first_keys()
        raw = self.store.find("key", keys, now=0)
        if not every_key:
            raw |= self.store.find("key", by_steps.further_keys(raw), now=0)
        # One object stands for each reply, whichever of its keys found it.
        records = {value: decode_kept(value) for value in raw.values()}
        found = {key: record for key, value in raw.items() if (record := records[value]) is not None}
        return Recalled(found=found, turns=turns_of(request) if every_key else by_steps.history().turns)


def assert_own(world: World, conversation: Conversation) -> None:
    """Every thought is of the reply that the message was, or of one in a conversation that is the same to the last letter.

    A client may write ids anew: a reply whose own thought is not to be found may be given that of one that is alike but for them.
    """
    for place, reply, text in world.placed_thoughts(conversation):
        if text not in ("", f"thought {reply}"):
            kept, here = world.histories[int(text.split()[1])], tuple(conversation.messages[: place + 1])
            assert without_ids(kept) == without_ids(here)


def without_ids(messages: tuple[Message, ...]) -> list[tuple[str, str, object]]:
    return [
        (
            message.role,
            type(block).__name__,
            block.arguments if isinstance(block, ToolCallBlock) else getattr(block, "content", block),
        )
        for message in messages
        for block in message.blocks
    ]


QUESTIONS = st.sampled_from(["Weather?", "And now?"])
CITIES = st.sampled_from(["Paris", "Rome"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), st.integers(0, 5), QUESTIONS),
        st.tuples(st.just("ask"), st.integers(0, 5), CITIES),
        st.tuples(st.just("say"), st.integers(0, 5), QUESTIONS),
        st.tuples(st.just("fork"), st.integers(0, 5), CITIES),
        st.tuples(st.just("truncate"), st.integers(0, 5), CITIES),
        st.tuples(st.just("edit"), st.integers(0, 5), QUESTIONS),
        st.tuples(st.just("restart ids"), st.integers(0, 5), CITIES),
        st.tuples(st.just("unseen"), st.integers(0, 5), CITIES),
    ),
    min_size=4,
    max_size=40,
)


def take(world: World, conversations: list[Conversation], step: str, which: int, word: str) -> None:
    if step == "begin" or not conversations:
        conversations.append(Conversation())
        conversations[-1].add(Message("user", (TextBlock(word),)))
        return
    one = conversations[which % len(conversations)]
    match step:
        case "ask":
            world.ask(one, word)
        case "say":
            one.add(Message("user", (TextBlock(word),)))
        case "fork":
            conversations.append(one.fork())
        case "truncate":
            del one.messages[:1], one.replies[:1]
        case "edit" if one.messages:
            one.messages[0], one.replies[0] = Message("user", (TextBlock(word + "!"),)), None
        case "restart ids":
            one.calls = 0
        case "unseen":
            # A call that no provider of this bardo made, in a conversation it may know otherwise.
            call = ToolCallBlock(id=f"functions.weather:{one.calls}", name="weather", arguments=f'{{"city":"{word}"}}')
            one.add(Message("user", (TextBlock("unseen"),)))
            one.add(Message("assistant", (call,)))
            one.calls += 1


@pytest.mark.parametrize("unique", [False, True], ids=["ids that restart", "unique ids"])
@settings(max_examples=300)
@given(STEPS, st.sampled_from([2, 1000]))
def test_no_conversation_is_given_a_thought_of_another(
    unique: bool, steps: list[tuple[str, int, str]], entries: int
) -> None:
    world = World(unique=unique, entries=entries)
    conversations: list[Conversation] = []
    for step, which, word in steps:
        take(world, conversations, step, which, word)
        for one in conversations:
            if entries == 1000 or unique:
                assert_own(world, one)


@settings(max_examples=60)
@given(STEPS)
def test_with_unique_ids_each_conversation_gets_every_thought_of_its_own(steps: list[tuple[str, int, str]]) -> None:
    world = World(unique=True)
    conversations: list[Conversation] = []
    for step, which, word in steps:
        take(world, conversations, step, which, word)
    for one in conversations:
        assert_own(world, one)
        for reply, text in world.thoughts(one):
            assert reply is None or text == f"thought {reply}"


def test_a_conversation_that_was_never_seen_is_given_nothing() -> None:
    world = World(unique=False)
    seen, unseen = Conversation(), Conversation()
    seen.add(Message("user", (TextBlock("Weather?"),)))
    world.ask(seen, "Paris")
    unseen.add(Message("user", (TextBlock("What is it like in Paris?"),)))
    unseen.add(seen.messages[1])
    assert world.thoughts(unseen) == [(None, "")]
    assert world.thoughts(seen) == [(0, "thought 0")]


def test_the_same_question_and_arguments_with_different_ids_are_two_conversations() -> None:
    world = World(unique=True)
    one, other = Conversation(), Conversation()
    for conversation in (one, other):
        conversation.add(Message("user", (TextBlock("Weather?"),)))
        world.ask(conversation, "Paris")
    assert world.thoughts(one) == [(0, "thought 0")]
    assert world.thoughts(other) == [(1, "thought 1")]


@pytest.mark.parametrize("first", [True, False], ids=["thinking first", "thinking last"])
def test_a_reply_without_thinking_is_not_given_that_of_one_alike(first: bool) -> None:
    world = World(unique=False)
    one, other = Conversation(), Conversation()
    for conversation, thinks in ((one, first), (other, not first)):
        conversation.add(Message("user", (TextBlock("Weather?"),)))
        world.ask(conversation, "Paris", thinks=thinks)
    assert world.thoughts(one) == [(0, "")]
    assert world.thoughts(other) == [(1, "")]


def test_two_conversations_that_are_alike_in_everything_are_given_nothing_and_told() -> None:
    world = World(unique=False)
    one, other = Conversation(), Conversation()
    for conversation in (one, other):
        conversation.add(Message("user", (TextBlock("Weather?"),)))
        world.ask(conversation, "Paris")
    assert world.thoughts(one) == [(0, "")]
    assert world.thoughts(other) == [(1, "")]
    request = one.request
    assert [told.what for told in restore(request, KIMI).degraded] == ["reasoning"]
