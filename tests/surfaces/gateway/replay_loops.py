"""A tool loop of three calls with a plain Chat client, which keeps nothing of a reply but its text and its calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import openai

from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.state import KeyedStore, MemoryStore
from bardo.reasoning.replay.guard import OnChange
from bardo.simulators import Script, ToolCall, Turn
from support.gateway import House, Remembering, house
from support.sdk import openai_client
from surfaces.gateway.test_sdk_tool_loops import sealed_in

CITIES = ("Paris", "Rome", "Oslo")
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
WAIVER = "skip/thought/signature/validator"
"""Google's word for a call that another model made, as `sealed_in` spells it: no signature, and none that is forged."""
QUESTION = {"role": "user", "content": "Compare the weather in three cities."}
MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-3-flash-preview",
    "openai_responses": "gpt-5",
    "deepseek": "deepseek-v4-pro",
    "moonshot": "kimi-k3",
    "openrouter": "anthropic/claude-sonnet-4.5",
}
"""The six that ask their reasoning back."""


def script() -> Script:
    """Three calls, each thought over, and an answer."""
    calls = tuple(
        Turn(
            reasoning=f"I still need to know the weather in {city}.",
            tool_calls=(ToolCall("weather", {"city": city}),),
        )
        for city in CITIES
    )
    return Script((*calls, Turn(reasoning="I know all three.", text="Oslo is the coldest.")))


@contextmanager
def homes(
    presets: Sequence[str] = tuple(MODELS),
    *,
    store: KeyedStore | None = None,
    keeps: bool = True,
    on_change: OnChange = "restore",
) -> Iterator[House]:
    """Run a gateway over these providers; unless it `keeps` nothing, with a store."""
    held = (store or MemoryStore()) if keeps else None
    keeper = ReplayKeeper(held, on_change=on_change)
    try:
        with house([Remembering(preset, script=script()) for preset in presets], replay=keeper) as running:
            yield running
    finally:
        keeper.close()


@dataclass
class Talk:
    """One conversation, and what the client holds of it."""

    client: openai.OpenAI
    stream: bool
    history: list[Any]
    degraded: list[str]

    def step(self, provider: str, model: str = "", **asked: Any) -> Any:
        """Ask for the next message, keep of it what a plain client keeps, and answer its calls."""
        body = {
            "model": f"{provider}/{model or MODELS[provider]}",
            "messages": self.history,
            "tools": [TOOL],
            "reasoning_effort": "low",
            **asked,
        }
        message = self._streamed(body) if self.stream else self._whole(body)
        self.history.append(message)
        for call in message.get("tool_calls", ()):
            self.history.append({"role": "tool", "tool_call_id": call["id"], "content": "sunny"})
        return message

    def _whole(self, body: dict[str, Any]) -> dict[str, Any]:
        raw = self.client.chat.completions.with_raw_response.create(**body)
        self.degraded.append(raw.headers.get("x-bardo-degraded", ""))
        return _plain(raw.parse().choices[0].message)

    def _streamed(self, body: dict[str, Any]) -> dict[str, Any]:
        with self.client.chat.completions.stream(**body) as events:
            final = events.get_final_completion()
            self.degraded.append(events._response.headers.get("x-bardo-degraded", ""))
        return _plain(final.choices[0].message)


def _plain(message: Any) -> dict[str, Any]:
    """Return a message as most clients write it down: the text, and the calls by id, name and arguments."""
    kept: dict[str, Any] = {"role": "assistant", "content": message.content}
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.function.name, "arguments": call.function.arguments},
        }
        for call in message.tool_calls or ()
    ]
    return {**kept, "tool_calls": calls} if calls else kept


@contextmanager
def talk(running: House, *, stream: bool = False, system: str = "") -> Iterator[Talk]:
    """Begin a conversation."""
    client = openai_client(running.address)
    prompt = [{"role": "system", "content": system}] if system else []
    try:
        yield Talk(client, stream, [*prompt, QUESTION], [])
    finally:
        client.close()


def received_in(body: bytes) -> list[str]:
    """Return the signatures and ciphertexts in a request."""
    return [state for state in sealed_in(body) if state != WAIVER]


def loses_reasoning(conversation: Talk) -> bool:
    """Whether any reply said that reasoning was lost."""
    return any("reasoning" in one or "thought" in one.lower() for one in conversation.degraded)
