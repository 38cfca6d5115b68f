"""What a Python caller writes, brought into a Request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypedDict

import msgspec

from bardo.dialects.openai_chat.request_in import decode_message, decode_tool
from bardo.dialects.shared.options import policy_of as read_policy
from bardo.dialects.shared.options import (
    read_cache,
    read_intent,
    read_layers,
    read_on_impossible,
    read_pipeline,
    read_profile,
    read_seconds,
    read_session,
    read_structured,
    read_tick,
    read_verify,
    read_vitality,
)
from bardo.surfaces.library.functions import tool_of
from bardo.values.blocks import TextBlock
from bardo.values.errors import InvalidRequest
from bardo.values.intent import Intent
from bardo.values.operations import TASKS, EmbedRequest, Task
from bardo.values.profile import InferenceProfile
from bardo.values.request import (
    BardoOptions,
    CacheOptions,
    Message,
    OnImpossible,
    ReasoningPolicy,
    Request,
    Sampling,
    StructuredOptions,
    Tool,
    ToolChoice,
)
from bardo.values.response import Response

Prompt = str | Sequence[Message | Response | dict[str, Any]]
Reasoning = str | int | ReasoningPolicy | None


class Options(TypedDict, total=False):
    """Everything that may be said beside the prompt and the model.

    `tools` are Tools, dicts as OpenAI's Chat has them, or Python functions; `tool_choice` is `auto`, `none`, `required`, a tool's name or
    its function. `max_tokens` is another name of `max_output_tokens`. `n` asks for so many answers: the others are in `alternatives`.
    `timeout` is the most seconds that the whole call may take. `on_impossible` says what becomes of a call that asks for no thinking where
    the model always thinks: `fail`, `floor` or `reroute`. `vitality`, from 0 to 1, is what is left of the
    agent that asks, and `tick` what it says of the moment. `allow_stale`: how old, in seconds, the reply to an equal call may be that
    is given where nobody answers. `verify` is a second model that is asked whether it agrees with the answer. `pipeline` is
    the profile whose layers work on the call, and `layers` turns single ones on and off; `session` is your own name of the conversation.
    `cache` is how the call uses kept replies. `extra` are further fields of a Chat Completions body, sent to providers that speak it and
    reported elsewhere.
    """

    system: str
    reasoning: Reasoning
    tools: Sequence[Tool | dict[str, Any] | Callable[..., Any]]
    tool_choice: str | dict[str, Any] | Callable[..., Any] | ToolChoice | None
    parallel_tool_calls: bool | None
    max_output_tokens: int | None
    max_tokens: int | None
    n: int
    temperature: float | None
    top_p: float | None
    top_k: int | None
    min_p: float | None
    frequency_penalty: float | None
    presence_penalty: float | None
    repetition_penalty: float | None
    seed: int | None
    stop: str | Sequence[str]
    structured: StructuredOptions | dict[str, Any] | None
    on_impossible: OnImpossible
    allow_loss: Sequence[str]
    intent: Intent | dict[str, Any] | None
    profile: InferenceProfile | dict[str, Any] | None
    private: bool
    vitality: float | None
    tick: Mapping[str, Any] | None
    allow_stale: float | None
    verify: str
    pipeline: str | None
    layers: Mapping[str, bool] | None
    session: str | None
    cache: CacheOptions | dict[str, Any] | None
    timeout: float | None
    extra: Mapping[str, Any] | None


_ANY = Intent()
_SAMPLED = (
    "temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty", "seed",
)  # fmt: skip


def build_call(prompt: Prompt, model: str, options: Options, *, stream: bool) -> Request:
    """Return the Request of a call. Raises InvalidRequest as build_request does, and where neither a model nor an intent is given."""
    if not model and options.get("intent") is None:
        hint = 'name one, a workload such as "bardo/cheap", or give an intent'
        raise InvalidRequest("no model is named", hint=hint, param="model")
    return build_request(prompt, model, options, stream=stream)


def build_request(prompt: Prompt, model: str, options: Options, *, stream: bool) -> Request:
    """Return the Request. Raises InvalidRequest naming what is wrong.

    A prompt is one text, or turns: Messages, earlier Responses (the assistant's turns, reasoning and all), or dicts as OpenAI's Chat has
    them.
    """
    _check_names(options)
    turns = [Message("user", (TextBlock(prompt),))] if isinstance(prompt, str) else _as_messages(prompt)
    system = options.get("system")
    if system:
        turns = [Message("system", (TextBlock(system),)), *turns]
    tools = tuple(_tool(tool, place) for place, tool in enumerate(options.get("tools", ())))
    return Request(
        model=model,
        messages=tuple(turns),
        tools=tools,
        tool_choice=_tool_choice(options.get("tool_choice"), options.get("parallel_tool_calls"), tools),
        max_output_tokens=_max_output_tokens(options),
        choices=_answer_count(options.get("n", 1)),
        sampling=_sampling(options),
        extra=dict(options.get("extra") or {}),
        reasoning=policy_of(options.get("reasoning")),
        stream=stream,
        options=_bardo_options(options),
    )


def _check_names(options: Options) -> None:
    """Raise TypeError for an option that there is not."""
    unknown = sorted(options.keys() - Options.__annotations__.keys())
    if unknown:
        near = get_close_matches(unknown[0], Options.__annotations__, n=1)
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        raise TypeError(f"unknown option {unknown[0]!r}; known: {', '.join(Options.__annotations__)}{meant}")


def _sampling(options: Options) -> Sampling:
    stop = options.get("stop", ())
    return Sampling(
        **{name: value for name, value in options.items() if name in _SAMPLED},  # type: ignore[arg-type]
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
    )


def _bardo_options(options: Options) -> BardoOptions:
    """Return what is asked of bardo itself. Raises InvalidRequest naming the option that is wrong."""
    intent, intent_fields = _intent(options.get("intent"))
    return BardoOptions(
        structured=read_structured(options.get("structured"), "structured"),
        on_impossible=read_on_impossible(options.get("on_impossible"), "on_impossible"),
        allow_loss=tuple(options.get("allow_loss", ())),
        intent=intent,
        intent_fields=intent_fields,
        profile=_profile(options.get("profile")),
        private=options.get("private", False),
        vitality=read_vitality(options.get("vitality"), "vitality"),
        tick=read_tick(options.get("tick"), "tick"),
        allow_stale=read_seconds(options.get("allow_stale"), "allow_stale"),
        verify=read_verify(options.get("verify"), "verify"),
        pipeline=read_pipeline(options.get("pipeline"), "pipeline"),
        layers=read_layers(options.get("layers"), "layers"),
        session=read_session(options.get("session"), "session"),
        cache=read_cache(options.get("cache"), "cache"),
    )


def _intent(given: Intent | dict[str, Any] | None) -> tuple[Intent | None, tuple[str, ...]]:
    """Return an intent, and which of its fields go before those of a workload. Raises InvalidRequest."""
    if not isinstance(given, Intent):
        return read_intent(given, "intent")
    fields = {name: getattr(given, name) for name in Intent.__struct_fields__}
    checked, _ = read_intent(fields, "intent")
    return checked, tuple([name for name, value in fields.items() if value != getattr(_ANY, name)])


def _profile(given: InferenceProfile | dict[str, Any] | None) -> InferenceProfile | None:
    return given if isinstance(given, InferenceProfile) else read_profile(given, "profile")


def seconds_of(options: Options) -> float | None:
    """Return the most seconds that the call may take. Raises InvalidRequest for any other value."""
    seconds = options.get("timeout")
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0):
        raise InvalidRequest(f"timeout is {seconds!r}", hint="give a number of seconds above 0", param="timeout")
    return seconds


def _tool(tool: Any, place: int) -> Tool:
    if isinstance(tool, Tool):
        return tool
    return decode_tool(tool, f"tools[{place}]") if isinstance(tool, dict) or not callable(tool) else tool_of(tool)


def _tool_choice(choice: Any, parallel: bool | None, tools: Sequence[Tool]) -> ToolChoice | None:
    if choice is None:
        return None if parallel is None else ToolChoice(parallel=parallel)
    if isinstance(choice, ToolChoice):
        return choice if parallel is None else msgspec.structs.replace(choice, parallel=parallel)
    if isinstance(choice, str) and choice in ("auto", "none", "required"):
        return ToolChoice(mode=choice, parallel=parallel)  # type: ignore[arg-type]
    function = choice.get("function") if isinstance(choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else getattr(choice, "__name__", choice)
    if not isinstance(name, str) or not name:
        hint = "use auto, none, required, or the name of a tool"
        raise InvalidRequest(f"tool_choice is {choice!r}"[:200], hint=hint, param="tool_choice")
    names = [tool.name for tool in tools]
    if name not in names:
        hint = f"use auto, none, required, or one of {', '.join(names)}" if names else "give the tools too"
        raise InvalidRequest(
            f"tool_choice is {name!r}"[:200] + ", which is none of the tools", hint=hint, param="tool_choice"
        )
    return ToolChoice(mode="named", name=name, parallel=parallel)


def _max_output_tokens(options: Options) -> int | None:
    given, other = options.get("max_output_tokens"), options.get("max_tokens")
    if given is not None and other is not None and given != other:
        hint = "give one of them"
        raise InvalidRequest("max_tokens and max_output_tokens say different things", hint=hint, param="max_tokens")
    return other if given is None else given


def _answer_count(asked: Any) -> int:
    if isinstance(asked, bool) or not isinstance(asked, int) or asked < 1:
        raise InvalidRequest(f"n is {asked!r}", hint="give a whole number from 1 on", param="n")
    return asked


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


def _as_messages(prompt: Sequence[Message | Response | dict[str, Any]]) -> list[Message]:
    if not isinstance(prompt, Iterable) or isinstance(prompt, Mapping):
        hint = "give a text, or a list of turns"
        raise InvalidRequest(f"a prompt cannot be {type(prompt).__name__}", hint=hint, param="prompt")
    return [_as_message(turn, place) for place, turn in enumerate(prompt)]


def _as_message(turn: Message | Response | dict[str, Any], place: int) -> Message:
    if isinstance(turn, Message):
        return turn
    if isinstance(turn, Response):
        return Message("assistant", turn.blocks)
    return decode_message(turn, f"prompt[{place}]")


def policy_of(asked: Reasoning) -> ReasoningPolicy | None:
    """Return the policy; its thinking is meant to be read. Raises InvalidRequest for any other value."""
    if asked is None or isinstance(asked, ReasoningPolicy):
        return asked
    policy = read_policy(asked, "reasoning")
    return policy if policy.mode == "off" else msgspec.structs.replace(policy, visible=True)
