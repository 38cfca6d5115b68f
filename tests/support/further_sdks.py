"""The official libraries of Ollama, AWS, Cohere and Interactions, and Anthropic's for Bedrock, in the words of `sdk.py`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from support.patience import PATIENCE
from support.sdk import Call, Heard, MessagesSdk
from support.talk import SCHEMA

KEY = "of-the-client"


class OllamaSdk:
    """ollama."""

    name = "ollama"
    stops = ("stop", "stop")

    def __init__(self, address: str) -> None:
        import ollama

        self.client: Any = ollama.Client(address, timeout=PATIENCE, headers={"authorization": f"Bearer {KEY}"})

    def ask(
        self, model: str, history: list[Any], *, stream: bool, reasoning: bool = True, tools: bool = False
    ) -> Heard:
        function = {"name": "weather", "parameters": SCHEMA}
        asked: dict[str, Any] = {"model": model, "messages": history, "think": "low" if reasoning else None}
        asked["tools"] = [{"type": "function", "function": function}] if tools else None
        if not stream:
            return self._heard([self.client.chat(**asked)])
        return self._heard(list(self.client.chat(**asked, stream=True)))

    def _heard(self, lines: list[Any]) -> Heard:
        # The library has no accumulator: its examples join the lines like this.
        messages = [line.message for line in lines]
        calls = [call for message in messages for call in message.tool_calls or ()]
        text = "".join(message.content or "" for message in messages)
        thinking = "".join(message.thinking or "" for message in messages)
        last = lines[-1]
        assert [line.done for line in lines] == [False] * (len(lines) - 1) + [True]
        return Heard(
            text=text,
            reasoning=thinking,
            calls=[Call("", call.function.name, dict(call.function.arguments)) for call in calls],
            stop=last.done_reason,
            input_tokens=last.prompt_eval_count,
            output_tokens=last.eval_count,
            reasoning_tokens=None,
            cached_tokens=None,
            turn=[{"role": "assistant", "content": text, "thinking": thinking, "tool_calls": calls}],
            whole=last,
        )

    def said(self, question: str) -> list[Any]:
        return [{"role": "user", "content": question}]

    def results(self, heard: Heard, result: str) -> list[Any]:
        return [{"role": "tool", "tool_name": call.name, "content": result} for call in heard.calls]

    def models(self) -> list[str]:
        return [str(model.model) for model in self.client.list().models]

    def close(self) -> None:
        self.client.close()


class ConverseSdk:
    """boto3, Converse and ConverseStream."""

    name = "bedrock_converse"
    stops = ("end_turn", "tool_use")

    def __init__(self, address: str) -> None:
        self.client = bedrock_client(address)

    def ask(
        self, model: str, history: list[Any], *, stream: bool, reasoning: bool = True, tools: bool = False
    ) -> Heard:
        asked: dict[str, Any] = {"modelId": model, "messages": history, "inferenceConfig": {"maxTokens": 8000}}
        if reasoning:
            thinking = {"type": "enabled", "budget_tokens": 2048}
            asked["additionalModelRequestFields"] = {"thinking": thinking}
        if tools:
            spec = {"name": "weather", "inputSchema": {"json": SCHEMA}}
            asked["toolConfig"] = {"tools": [{"toolSpec": spec}]}
        if not stream:
            return self._heard(self.client.converse(**asked))
        return self._heard(converse_message(self.client.converse_stream(**asked)["stream"]))

    def _heard(self, whole: Any) -> Heard:
        message, usage = whole["output"]["message"], whole["usage"]
        blocks = message["content"]
        thoughts = [block["reasoningContent"] for block in blocks if "reasoningContent" in block]
        calls = [block["toolUse"] for block in blocks if "toolUse" in block]
        cached, kept = usage.get("cacheReadInputTokens"), usage.get("cacheWriteInputTokens")
        return Heard(
            text="".join(block.get("text", "") for block in blocks),
            reasoning="\n\n".join(one["reasoningText"]["text"] for one in thoughts if "reasoningText" in one),
            calls=[Call(call["toolUseId"], call["name"], call["input"]) for call in calls],
            stop=whole["stopReason"],
            input_tokens=usage["inputTokens"] + (cached or 0) + (kept or 0),
            output_tokens=usage["outputTokens"],
            reasoning_tokens=None,
            cached_tokens=cached,
            turn=[message],
            whole=whole,
        )

    def said(self, question: str) -> list[Any]:
        return [{"role": "user", "content": [{"text": question}]}]

    def results(self, heard: Heard, result: str) -> list[Any]:
        blocks = [{"toolResult": {"toolUseId": call.id, "content": [{"text": result}]}} for call in heard.calls]
        return [{"role": "user", "content": blocks}]

    def close(self) -> None:
        self.client.close()


def converse_message(events: Iterable[Any]) -> dict[str, Any]:
    """Return the whole reply that a stream of boto3's events adds up to."""
    blocks: dict[int, dict[str, Any]] = {}
    whole: dict[str, Any] = {}
    for event in events:
        ((name, value),) = event.items()
        match name:
            case "messageStart":
                whole["output"] = {"message": {"role": value["role"], "content": []}}
            case "contentBlockStart":
                blocks[value["contentBlockIndex"]] = {"toolUse": {**value["start"]["toolUse"], "input": ""}}
            case "contentBlockDelta":
                _add_delta(blocks.setdefault(value["contentBlockIndex"], {}), value["delta"])
            case "messageStop" | "metadata":
                whole |= value
    for _, block in sorted(blocks.items()):
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"] or "{}")
    whole["output"]["message"]["content"] = [block for _, block in sorted(blocks.items())]
    return whole


def _add_delta(block: dict[str, Any], delta: dict[str, Any]) -> None:
    ((kind, value),) = delta.items()
    if kind == "text":
        block["text"] = block.get("text", "") + value
    elif kind == "toolUse":
        block["toolUse"]["input"] += value["input"]
    elif "redactedContent" in value:
        block["reasoningContent"] = value
    else:
        held = block.setdefault("reasoningContent", {"reasoningText": {"text": ""}})["reasoningText"]
        for name, piece in value.items():
            held[name] = held.get(name, "") + piece


class InvokeSdk(MessagesSdk):
    """anthropic's client for Bedrock, InvokeModel and InvokeModelWithResponseStream: what Claude Code speaks there."""

    name = "bedrock_invoke"

    def __init__(self, address: str) -> None:
        import anthropic

        self.client = anthropic.AnthropicBedrock(  # type: ignore[assignment]
            api_key=KEY, base_url=address, aws_region="us-east-1", max_retries=0, timeout=PATIENCE
        )


class CohereSdk:
    """cohere, v2 chat."""

    name = "cohere"
    stops = ("COMPLETE", "TOOL_CALL")

    def __init__(self, address: str) -> None:
        import cohere

        self.client = cohere.ClientV2(api_key=KEY, base_url=address, timeout=PATIENCE, max_retries=0)

    def ask(
        self, model: str, history: list[Any], *, stream: bool, reasoning: bool = True, tools: bool = False
    ) -> Heard:
        asked: dict[str, Any] = {"model": model, "messages": history}
        if reasoning:
            asked["thinking"] = {"type": "enabled", "token_budget": 2048}
        if tools:
            asked["tools"] = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
        if not stream:
            whole = self.client.chat(**asked)
            return self._heard(whole.message.model_dump(exclude_none=True), whole.finish_reason, whole.usage, whole)
        return self._streamed(list(self.client.chat_stream(**asked)))

    def _streamed(self, events: list[Any]) -> Heard:
        content: dict[int, dict[str, Any]] = {}
        calls: dict[int, dict[str, Any]] = {}
        plan = ""
        for event in events:
            match event.type:
                case "content-start":
                    content[event.index] = event.delta.message.content.model_dump(exclude_none=True)
                case "content-delta":
                    for name, added in event.delta.message.content.model_dump(exclude_none=True).items():
                        content[event.index][name] = content[event.index].get(name, "") + added
                case "tool-call-start":
                    calls[event.index] = event.delta.message.tool_calls.model_dump(exclude_none=True)
                case "tool-call-delta":
                    piece = event.delta.message.tool_calls.model_dump(exclude_none=True)
                    calls[event.index]["function"]["arguments"] += piece.pop("function")["arguments"]
                    calls[event.index] |= piece
                case "tool-plan-delta":
                    plan += event.delta.message.tool_plan
        last = events[-1].delta
        message = {"role": "assistant", "content": [one for _, one in sorted(content.items())], "tool_plan": plan}
        message["tool_calls"] = [one for _, one in sorted(calls.items())]
        return self._heard({name: one for name, one in message.items() if one}, last.finish_reason, last.usage, last)

    def _heard(self, message: dict[str, Any], stop: Any, usage: Any, whole: Any) -> Heard:
        content, calls = message.get("content") or [], message.get("tool_calls") or []
        thoughts = [one["thinking"] for one in content if one["type"] == "thinking"]
        return Heard(
            text="".join(one["text"] for one in content if one["type"] == "text"),
            reasoning="\n\n".join([*thoughts, *([message["tool_plan"]] if message.get("tool_plan") else [])]),
            calls=[
                Call(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls
            ],
            stop=str(stop),
            input_tokens=_whole(usage.tokens and usage.tokens.input_tokens),
            output_tokens=_whole(usage.tokens and usage.tokens.output_tokens),
            reasoning_tokens=None,
            cached_tokens=_whole(usage.cached_tokens),
            turn=[message],
            whole=whole,
        )

    def said(self, question: str) -> list[Any]:
        return [{"role": "user", "content": question}]

    def results(self, heard: Heard, result: str) -> list[Any]:
        return [{"role": "tool", "tool_call_id": call.id, "content": result} for call in heard.calls]

    def close(self) -> None:
        return


def _whole(count: float | None) -> int | None:
    return None if count is None else int(count)


class InteractionsSdk:
    """google-genai, Interactions."""

    name = "gemini_interactions"
    stops = ("completed", "requires_action")

    def __init__(self, address: str) -> None:
        from google import genai

        # The library waits for seconds between its attempts after a 429 or a 503.
        options: Any = {"base_url": address, "retry_options": {"attempts": 1}}
        self.client = genai.Client(api_key=KEY, vertexai=False, http_options=options)

    def ask(
        self, model: str, history: list[Any], *, stream: bool, reasoning: bool = True, tools: bool = False
    ) -> Heard:
        asked: dict[str, Any] = {"model": model, "input": history, "store": False}
        if reasoning:
            asked["generation_config"] = {"thinking_level": "low", "thinking_summaries": "auto"}
        if tools:
            asked["tools"] = [{"type": "function", "name": "weather", "parameters": SCHEMA}]
        if not stream:
            whole: Any = self.client.interactions.create(**asked)
            return self._heard(whole, [_plain(step) for step in whole.steps])
        events: list[Any] = list(self.client.interactions.create(**asked, stream=True))
        for event in events:
            if event.event_type == "error":
                raise StreamError(event.error.message)
        return self._heard(events[-1].interaction, _steps(events))

    def _heard(self, whole: Any, steps: list[dict[str, Any]]) -> Heard:
        said = [part for step in steps if step["type"] == "model_output" for part in step.get("content") or ()]
        thoughts = [part for step in steps if step["type"] == "thought" for part in step.get("summary") or ()]
        calls = [step for step in steps if step["type"] == "function_call"]
        usage = whole.usage
        return Heard(
            text="".join(part["text"] for part in said),
            reasoning="\n\n".join(part["text"] for part in thoughts),
            calls=[Call(call["id"], call["name"], call["arguments"]) for call in calls],
            stop=str(whole.status),
            input_tokens=usage.total_input_tokens,
            output_tokens=(usage.total_output_tokens or 0) + (usage.total_thought_tokens or 0),
            reasoning_tokens=usage.total_thought_tokens,
            cached_tokens=usage.total_cached_tokens,
            turn=steps,
            whole=whole,
        )

    def said(self, question: str) -> list[Any]:
        return [{"type": "user_input", "content": [{"type": "text", "text": question}]}]

    def results(self, heard: Heard, result: str) -> list[Any]:
        return [
            {"type": "function_result", "call_id": call.id, "name": call.name, "result": result} for call in heard.calls
        ]

    def close(self) -> None:
        self.client.close()


class StreamError(Exception):
    """The error event of an interaction's stream: the library gives it to its user as it gives any other."""


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_none=True)


def _steps(events: list[Any]) -> list[dict[str, Any]]:
    """Return the steps that a stream's events add up to."""
    steps: dict[int, dict[str, Any]] = {}
    for event in events:
        if event.event_type == "step.start":
            steps[event.index] = _plain(event.step)
        elif event.event_type == "step.delta":
            _add_to_step(steps[event.index], _plain(event.delta))
    for step in steps.values():
        if isinstance(step.get("arguments"), str):
            step["arguments"] = json.loads(step["arguments"] or "{}")
    return [step for _, step in sorted(steps.items())]


def _add_to_step(step: dict[str, Any], delta: dict[str, Any]) -> None:
    match delta["type"]:
        case "text":
            parts = step.setdefault("content", [])
            if parts:
                parts[-1]["text"] += delta["text"]
            else:
                parts.append(delta)
        case "thought_summary":
            parts = step.setdefault("summary", [])
            if parts:
                parts[-1]["text"] += delta["content"]["text"]
            else:
                parts.append(delta["content"])
        case "thought_signature":
            step["signature"] = step.get("signature", "") + delta["signature"]
        case "arguments_delta":
            held = step.get("arguments")
            step["arguments"] = (held if isinstance(held, str) else "") + delta["arguments"]


def bedrock_client(address: str, **options: Any) -> Any:
    """Return AWS's client for a gateway. It signs its requests: over plain HTTP it sends no bearer token."""
    boto3 = import_module("boto3")
    make_config = import_module("botocore.config").Config
    given = {"aws_access_key_id": KEY, "aws_secret_access_key": "any", "region_name": "us-east-1", **options}
    config = make_config(retries={"total_max_attempts": 1}, read_timeout=PATIENCE, connect_timeout=PATIENCE)
    return boto3.client("bedrock-runtime", endpoint_url=address, config=config, **given)


FURTHER_SDKS: dict[str, Callable[[str], Any]] = {
    one.name: one for one in (OllamaSdk, ConverseSdk, InvokeSdk, CohereSdk, InteractionsSdk)
}
