"""What a Python caller writes, brought into a Request."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, TypedDict

import msgspec

from bardo.dialects.openai_chat.decode_request import decode_tool
from bardo.dialects.openai_chat.messages import decode_message
from bardo.dialects.options import policy_of as read_policy
from bardo.dialects.options import read_structured
from bardo.values.blocks import TextBlock
from bardo.values.errors import InvalidRequest
from bardo.values.operations import TASKS, EmbedRequest, Task
from bardo.values.request import BardoOptions, Message, ReasoningPolicy, Request, Sampling, StructuredOptions, Tool
from bardo.values.response import Response

Prompt = str | Sequence[Message | Response | dict[str, Any]]
Reasoning = str | int | ReasoningPolicy | None


class Options(TypedDict, total=False):
    """Everything that may be said beside the prompt and the model."""

    system: str
    reasoning: Reasoning
    tools: Sequence[Tool | dict[str, Any]]
    max_output_tokens: int | None
    temperature: float | None
    top_p: float | None
    seed: int | None
    stop: str | Sequence[str]
    structured: StructuredOptions | dict[str, Any] | None
    allow_loss: Sequence[str]


def build_request(prompt: Prompt, model: str, options: Options, *, stream: bool) -> Request:
    """Return the Request. Raises InvalidRequest naming what is wrong.

    A prompt is one text, or turns: Messages, earlier Responses (the assistant's turns, reasoning and all), or dicts as OpenAI's Chat has
    them.
    """
    unknown = sorted(options.keys() - Options.__annotations__.keys())
    if unknown:
        near = get_close_matches(unknown[0], Options.__annotations__, n=1)
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        raise TypeError(f"unknown option {unknown[0]!r}; known: {', '.join(Options.__annotations__)}{meant}")
    turns = [Message("user", (TextBlock(prompt),))] if isinstance(prompt, str) else _turns(prompt)
    stop = options.get("stop", ())
    system = options.get("system")
    if system:
        turns = [Message("system", (TextBlock(system),)), *turns]
    return Request(
        model=model,
        messages=tuple(turns),
        tools=tuple(
            tool if isinstance(tool, Tool) else decode_tool(tool, f"tools[{place}]")
            for place, tool in enumerate(options.get("tools", ()))
        ),
        max_output_tokens=options.get("max_output_tokens"),
        sampling=Sampling(
            temperature=options.get("temperature"),
            top_p=options.get("top_p"),
            seed=options.get("seed"),
            stop=(stop,) if isinstance(stop, str) else tuple(stop),
        ),
        reasoning=policy_of(options.get("reasoning")),
        stream=stream,
        options=BardoOptions(
            structured=read_structured(options.get("structured"), "structured"),
            allow_loss=tuple(options.get("allow_loss", ())),
        ),
    )


def build_embed_request(
    texts: str | Sequence[str],
    model: str,
    *,
    dimensions: int | None = None,
    task: Task | None = None,
    allow_loss: Sequence[str] = (),
) -> EmbedRequest:
    """Return the request for the vectors of one text or of several. Raises InvalidRequest where there is none, or a task is unknown."""
    inputs = (texts,) if isinstance(texts, str) else tuple(texts)
    if not inputs or not all(isinstance(text, str) for text in inputs):
        raise InvalidRequest("texts must be a text, or a list of texts", param="texts")
    if task is not None and task not in TASKS:
        raise InvalidRequest(f"task is {task!r}", hint=f"use one of {', '.join(TASKS)}", param="task")
    options = BardoOptions(allow_loss=tuple(allow_loss))
    return EmbedRequest(model=model, inputs=inputs, dimensions=dimensions, task=task, options=options)


def _turns(prompt: Sequence[Message | Response | dict[str, Any]]) -> list[Message]:
    return [_turn(turn, place) for place, turn in enumerate(prompt)]


def _turn(turn: Message | Response | dict[str, Any], place: int) -> Message:
    if isinstance(turn, Message):
        return turn
    if isinstance(turn, Response):
        return Message("assistant", turn.blocks)
    return decode_message(turn, f"prompt[{place}]")


def policy_of(asked: Reasoning) -> ReasoningPolicy | None:
    """Return the policy; its thinking is meant to be read. Raises InvalidRequest for what is none."""
    if asked is None or isinstance(asked, ReasoningPolicy):
        return asked
    policy = read_policy(asked, "reasoning")
    return policy if policy.mode == "off" else msgspec.structs.replace(policy, visible=True)
