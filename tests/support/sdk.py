"""The official client libraries, unmodified, each asked and read in the same words.

What a reply holds is taken from the library's own objects and from where its documentation says it stands, streamed replies from the
library's own accumulator.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from support.patience import PATIENCE
from support.talk import SCHEMA

if TYPE_CHECKING:
    import anthropic
    import openai
    from google import genai


@dataclass(frozen=True)
class Call:
    """A tool call as the library shows it."""

    id: str
    name: str
    arguments: Any


@dataclass(frozen=True)
class Heard:
    """One reply. `turn` is what the library wants back in the next request, its own objects."""

    text: str
    reasoning: str
    calls: list[Call]
    stop: str
    input_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    cached_tokens: int | None
    turn: list[Any] = field(repr=False)
    whole: Any = field(repr=False)


class Sdk(Protocol):
    """One client library. `stops` are its words for an ordinary end, and for an end with calls."""

    name: str
    stops: tuple[str, str]

    def ask(
        self, model: str, history: list[Any], *, stream: bool, reasoning: bool = True, tools: int = False
    ) -> Heard: ...

    def said(self, question: str) -> list[Any]: ...

    def results(self, heard: Heard, result: str) -> list[Any]: ...

    def models(self) -> list[str]: ...

    def close(self) -> None: ...


def tool_names(count: int) -> list[str]:
    """Return the names of so many tools: `weather`, and others that have nothing to do with it."""
    return ["weather", *[f"unrelated_{number}" for number in range(1, count)]]


class ChatSdk:
    """openai, Chat Completions."""

    name = "openai_chat"
    stops = ("stop", "tool_calls")

    def __init__(self, address: str) -> None:
        self.client = openai_client(address)

    def ask(self, model: str, history: list[Any], *, stream: bool, reasoning: bool = True, tools: int = False) -> Heard:
        asked: dict[str, Any] = {"model": model, "messages": history}
        if reasoning:
            asked["reasoning_effort"] = "low"
        if tools:
            parameters = {**SCHEMA, "additionalProperties": False}
            asked["tools"] = [
                {"type": "function", "function": {"name": name, "parameters": parameters, "strict": True}}
                for name in tool_names(tools)
            ]
        if not stream:
            return self._heard(self.client.chat.completions.create(**asked))
        with self.client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as events:
            return self._heard(events.get_final_completion())

    def _heard(self, whole: Any) -> Heard:
        choice, usage = whole.choices[0], whole.usage
        message = choice.message
        completion, prompt = usage.completion_tokens_details, usage.prompt_tokens_details
        return Heard(
            text=message.content or "",
            reasoning=getattr(message, "reasoning_content", None) or "",
            calls=[
                Call(call.id, call.function.name, json.loads(call.function.arguments))
                for call in message.tool_calls or ()
            ],
            stop=choice.finish_reason,
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
            reasoning_tokens=completion and completion.reasoning_tokens,
            cached_tokens=prompt and prompt.cached_tokens,
            turn=[_without_parsed(message.to_dict())],
            whole=whole,
        )

    def said(self, question: str) -> list[Any]:
        return [{"role": "user", "content": question}]

    def results(self, heard: Heard, result: str) -> list[Any]:
        return [{"role": "tool", "tool_call_id": call.id, "content": result} for call in heard.calls]

    def models(self) -> list[str]:
        return [model.id for model in self.client.models.list()]

    def close(self) -> None:
        self.client.close()


def _without_parsed(message: dict[str, Any]) -> dict[str, Any]:
    """Leave out what the library's stream helper added for its own user."""
    for call in message.get("tool_calls") or ():
        call["function"].pop("parsed_arguments", None)
    return {name: value for name, value in message.items() if name != "parsed"}


class ResponsesSdk:
    """openai, Responses."""

    name = "openai_responses"
    stops = ("completed", "completed")

    def __init__(self, address: str) -> None:
        self.client = openai_client(address)

    def ask(self, model: str, history: list[Any], *, stream: bool, reasoning: bool = True, tools: int = False) -> Heard:
        asked: dict[str, Any] = {"model": model, "input": history, "store": False}
        asked["include"] = ["reasoning.encrypted_content"]
        if reasoning:
            asked["reasoning"] = {"effort": "low", "summary": "auto"}
        if tools:
            parameters = {**SCHEMA, "additionalProperties": False}
            asked["tools"] = [
                {"type": "function", "name": name, "parameters": parameters, "strict": True}
                for name in tool_names(tools)
            ]
        if not stream:
            return self._heard(self.client.responses.create(**asked))
        with self.client.responses.stream(**asked) as events:
            return self._heard(events.get_final_response())

    def _heard(self, whole: Any) -> Heard:
        thoughts = [item for item in whole.output if item.type == "reasoning"]
        calls = [item for item in whole.output if item.type == "function_call"]
        usage = whole.usage
        return Heard(
            text=whole.output_text,
            reasoning="\n\n".join(
                part.text for item in thoughts for part in (*(item.content or ()), *(item.summary or ()))
            ),
            calls=[Call(item.call_id, item.name, json.loads(item.arguments)) for item in calls],
            stop=whole.status,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            reasoning_tokens=usage.output_tokens_details and usage.output_tokens_details.reasoning_tokens,
            cached_tokens=usage.input_tokens_details and usage.input_tokens_details.cached_tokens,
            turn=[_without_parsed_arguments(item.to_dict()) for item in whole.output],
            whole=whole,
        )

    def said(self, question: str) -> list[Any]:
        return [{"role": "user", "content": question}]

    def results(self, heard: Heard, result: str) -> list[Any]:
        return [{"type": "function_call_output", "call_id": call.id, "output": result} for call in heard.calls]

    def models(self) -> list[str]:
        return [model.id for model in self.client.models.list()]

    def close(self) -> None:
        self.client.close()


def _without_parsed_arguments(item: dict[str, Any]) -> dict[str, Any]:
    for part in item.get("content") or ():
        part.pop("parsed", None)
    return {name: value for name, value in item.items() if name != "parsed_arguments"}


class MessagesSdk:
    """anthropic, Messages."""

    name = "anthropic_messages"
    stops = ("end_turn", "tool_use")

    def __init__(self, address: str) -> None:
        self.client = anthropic_client(address)

    def ask(self, model: str, history: list[Any], *, stream: bool, reasoning: bool = True, tools: int = False) -> Heard:
        asked: dict[str, Any] = {"model": model, "messages": history, "max_tokens": 8000}
        if reasoning:
            asked["thinking"] = {"type": "enabled", "budget_tokens": 2048}
        if tools:
            asked["tools"] = [{"name": name, "input_schema": SCHEMA} for name in tool_names(tools)]
        if not stream:
            return self._heard(self.client.messages.create(**asked))
        with self.client.messages.stream(**asked) as events:
            return self._heard(events.get_final_message())

    def _heard(self, whole: Any) -> Heard:
        usage = whole.usage
        details = getattr(usage, "output_tokens_details", None)
        beside = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
        return Heard(
            text="".join(block.text for block in whole.content if block.type == "text"),
            reasoning="\n\n".join(block.thinking for block in whole.content if block.type == "thinking"),
            calls=[Call(block.id, block.name, block.input) for block in whole.content if block.type == "tool_use"],
            stop=whole.stop_reason,
            input_tokens=usage.input_tokens + beside,
            output_tokens=usage.output_tokens,
            reasoning_tokens=details and details.thinking_tokens,
            cached_tokens=usage.cache_read_input_tokens,
            turn=[{"role": "assistant", "content": whole.content}],
            whole=whole,
        )

    def said(self, question: str) -> list[Any]:
        return [{"role": "user", "content": question}]

    def results(self, heard: Heard, result: str) -> list[Any]:
        blocks = [{"type": "tool_result", "tool_use_id": call.id, "content": result} for call in heard.calls]
        return [{"role": "user", "content": blocks}]

    def models(self) -> list[str]:
        return [model.id for model in self.client.models.list()]

    def close(self) -> None:
        self.client.close()


class GeminiSdk:
    """google-genai."""

    name = "gemini"
    stops = ("STOP", "STOP")

    def __init__(self, address: str) -> None:
        self.client = gemini_client(address)

    def ask(self, model: str, history: list[Any], *, stream: bool, reasoning: bool = True, tools: int = False) -> Heard:
        config: dict[str, Any] = {"automatic_function_calling": {"disable": True}}
        if reasoning:
            config["thinking_config"] = {"include_thoughts": True, "thinking_budget": 2048}
        if tools:
            declared = [{"name": name, "parameters_json_schema": SCHEMA} for name in tool_names(tools)]
            config["tools"] = [{"function_declarations": declared}]
        asked: dict[str, Any] = {"model": model, "contents": history, "config": config}
        if not stream:
            return self._heard([self.client.models.generate_content(**asked)])
        return self._heard(list(self.client.models.generate_content_stream(**asked)))

    def _heard(self, chunks: list[Any]) -> Heard:
        # The library has no accumulator: its users join the parts of all chunks.
        candidates = [chunk.candidates[0] for chunk in chunks if chunk.candidates]
        parts = [part for one in candidates if one.content for part in one.content.parts or ()]
        calls = [part.function_call for part in parts if part.function_call]
        usage = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata][-1]
        stops = [one.finish_reason.value for one in candidates if one.finish_reason]
        return Heard(
            text="".join(part.text for part in parts if part.text and not part.thought),
            reasoning="".join(part.text for part in parts if part.text and part.thought),
            calls=[Call(call.id or "", call.name, call.args) for call in calls],
            stop=stops[-1],
            input_tokens=usage.prompt_token_count,
            output_tokens=(usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0),
            reasoning_tokens=usage.thoughts_token_count,
            cached_tokens=usage.cached_content_token_count,
            turn=[{"role": "model", "parts": parts}],
            whole=chunks[-1],
        )

    def said(self, question: str) -> list[Any]:
        return [{"role": "user", "parts": [{"text": question}]}]

    def results(self, heard: Heard, result: str) -> list[Any]:
        answers = [{"id": call.id or None, "name": call.name, "response": {"result": result}} for call in heard.calls]
        return [{"role": "user", "parts": [{"function_response": answer} for answer in answers]}]

    def models(self) -> list[str]:
        return [str(model.name).removeprefix("models/") for model in self.client.models.list()]

    def close(self) -> None:
        self.client.close()


def openai_client(address: str, **options: Any) -> openai.OpenAI:
    """Return OpenAI's client for a gateway."""
    import openai

    return openai.OpenAI(api_key="of-the-client", base_url=f"{address}/v1", max_retries=0, timeout=PATIENCE, **options)


def anthropic_client(address: str, **options: Any) -> anthropic.Anthropic:
    """Return Anthropic's client for a gateway."""
    import anthropic

    return anthropic.Anthropic(api_key="of-the-client", base_url=address, max_retries=0, timeout=PATIENCE, **options)


def gemini_client(address: str) -> genai.Client:
    """Return Google's client for a gateway."""
    from google import genai

    return genai.Client(api_key="of-the-client", vertexai=False, http_options={"base_url": address})


SDKS: dict[str, type[ChatSdk] | type[ResponsesSdk] | type[MessagesSdk] | type[GeminiSdk]] = {
    one.name: one for one in (ChatSdk, ResponsesSdk, MessagesSdk, GeminiSdk)
}
