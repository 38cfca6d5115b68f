"""Replies that are looked for by what their turns bring with them first are those that all keys lead to, whatever clients change."""

from __future__ import annotations

import asyncio
import random

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.state import Bounds, MemoryStore
from bardo.catalog.load import builtin
from bardo.catalog.replay import Reader, builtin_replay
from bardo.reasoning.replay import Recalled, decode_kept, encode_kept, remember, restore, turns_in
from bardo.reasoning.replay.keys import history_of, keys_in
from bardo.values.blocks import Block, Opaque, ReasoningBlock, ReplyBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message, Request
from bardo.values.response import Response

RULES = builtin_replay()
FORMS = {
    "moonshot": ("kimi-k3", "reasoning_content"),
    "anthropic": ("claude-sonnet-4-5", "anthropic-claude-v1"),
    "openai": ("gpt-5.1", "openai-responses-v1"),
    "gemini": ("gemini-3-pro-preview", "google-gemini-v1"),
}


def reader(name: str) -> Reader:
    row = builtin().provider(name)
    assert row is not None
    return RULES.reader(name, row, FORMS[name][0])


READERS = [reader(name) for name in FORMS]


class Client:
    """Clients and a model of which each step is drawn: conversations that fork and are edited, and replies of several blocks."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.conversations: list[list[Message]] = []
        self.calls = 0

    def call_id(self) -> str:
        self.calls += 1
        numbered = (f"functions.look:{self.calls % 3}", f"call_{self.calls % 2}", "")
        drawn = (f"call_{self.source.getrandbits(96):024x}", f"toolu_01{self.source.getrandbits(100):020x}")
        return self.source.choice((*numbered, *drawn))

    def reply(self, form: str) -> tuple[ReplyBlock, ...]:
        source = self.source
        blocks: list[ReplyBlock] = []
        if source.random() < 0.75:
            data = source.choice([f"{source.getrandbits(200):050x}", f"rs_{source.randrange(3)}"])
            states = (Opaque(source.choice(["signature", "encrypted", "id"]), data, form),)
            thought = f"thought {source.getrandbits(40)}"
            blocks.append(ReasoningBlock(text=thought, format=form, opaque=states if source.random() < 0.6 else ()))
        if source.random() < 0.4:
            blocks.append(TextBlock(source.choice(["Ok.", "I look."])))
        for _ in range(source.choice([0, 1, 1, 1, 2, 3])):
            arguments = source.choice(['{"a": 1}', "{}", '{"a":2}'])
            blocks.append(ToolCallBlock(id=self.call_id(), name=source.choice(["look", "go"]), arguments=arguments))
        return tuple(blocks) or (TextBlock("Done."),)

    def edited(self, given: list[Message]) -> list[Message]:
        source, messages = self.source, list(given)
        place = source.randrange(len(messages))
        message = messages[place]
        match source.randrange(9):
            case 0:
                del messages[0]
            case 1:
                messages.insert(place, message)
            case 2 if message.role == "assistant":
                messages[place : place + 1] = [Message("assistant", (block,)) for block in message.blocks]
            case 3:
                names = {block.id: self.call_id() for block in message.blocks if isinstance(block, ToolCallBlock)}
                messages = [renamed(one, names) for one in messages]
            case 4:
                del messages[place]
            case 5:
                messages[0] = Message("user", (TextBlock("Something else."),))
            case 6:
                messages[place] = msgspec.structs.replace(message, blocks=message.blocks[:1])
            case 7:
                messages.insert(0, Message("system", (TextBlock(source.choice(["one", "two"])),)))
            case _:
                other = source.randrange(len(messages))
                messages[place], messages[other] = messages[other], message
        return messages


def renamed(message: Message, names: dict[str, str]) -> Message:
    blocks: list[Block] = []
    for block in message.blocks:
        if isinstance(block, ToolCallBlock):
            blocks.append(msgspec.structs.replace(block, id=names.get(block.id, block.id)))
        elif isinstance(block, ToolResultBlock):
            blocks.append(msgspec.structs.replace(block, call_id=names.get(block.call_id, block.call_id)))
        else:
            blocks.append(block)
    return msgspec.structs.replace(message, blocks=tuple(blocks))


def by_all_keys(store: MemoryStore, tenant: str, request: Request, sent: Request) -> Recalled:
    history = history_of(request)
    raw = store.find(tenant, keys_in(history.turns), now=0)
    # One object stands for each reply, whichever of its keys found it.
    records = {value: decode_kept(value) for value in raw.values()}
    found = {key: record for key, value in raw.items() if (record := records[value]) is not None}
    turns = history.turns if sent is request else turns_in(history.turns, request, sent)
    return Recalled(found=found, turns=turns, history=history, rules=RULES)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_replies_are_found_by_steps_as_they_are_by_all_keys(seed: int) -> None:
    client = Client(random.Random(seed))
    source = client.source
    store = MemoryStore(Bounds(entries=source.choice([3, 6, 1000])))
    keeper = ReplayKeeper(store, clock=lambda: 0.0)
    with asyncio.Runner() as runner:
        for step in range(source.randrange(5, 30)):
            tenant, name = source.choice(["a", "a", "a", "b"]), source.choice([*FORMS, "moonshot", "moonshot"])
            if not client.conversations or source.random() < 0.15:
                client.conversations.append([Message("user", (TextBlock(source.choice(["Where?", "When?"])),))])
            messages = source.choice(client.conversations)
            if source.random() < 0.15:
                client.conversations.append(list(messages))
            if messages and source.random() < 0.25:
                messages[:] = client.edited(messages)
            request = Request(model=source.choice(["m", "n"]), messages=tuple(messages))
            sent = request
            if messages and source.random() < 0.2:
                sent = msgspec.structs.replace(request, messages=tuple(client.edited(messages)))
            recalled = runner.run(keeper.recall(request, tenant, sent))
            if recalled.history is not None:
                every = by_all_keys(store, tenant, request, sent)
                assert every.history is not None
                assert recalled.history.exactly == every.history.exactly
                assert recalled.history.loosely == every.history.loosely
                for one in READERS:
                    assert restore(sent, one, recalled) == restore(sent, one, every)
            blocks = client.reply(FORMS[name][1])
            response = Response(blocks=blocks)
            for memory in remember(response, request, sent, reader(name), RULES, history=recalled.history):
                store.put(tenant, memory.keys, encode_kept(memory.kept), now=0, reply=str(step))
            keeps = source.random() < 0.25
            kept = [block for block in blocks if keeps or not isinstance(block, ReasoningBlock)]
            messages.append(Message("assistant", tuple(kept)))
            results = [
                ToolResultBlock(call_id=block.id, name=block.name, content=(TextBlock("sunny"),))
                for block in blocks
                if isinstance(block, ToolCallBlock)
            ]
            messages.append(Message("user", tuple(results) or (TextBlock("Go on."),)))
