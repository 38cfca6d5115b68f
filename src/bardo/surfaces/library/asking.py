"""Bring the arguments of a Python caller, functions as tools included, into a Request, and change bodies of clients' requests."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, TypedDict, get_args, get_origin, get_type_hints

import msgspec

from bardo.dialects.openai_chat.request_in import decode_message, decode_tool
from bardo.dialects.shared.options import policy_of as read_policy
from bardo.dialects.shared.options import (
    read_cache,
    read_intent,
    read_intent_header,
    read_label,
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
from bardo.planning.workloads import ANY_MODEL
from bardo.routing.workloads import PREFIX
from bardo.structured.types import schema_of
from bardo.values.blocks import TextBlock
from bardo.values.errors import InvalidRequest
from bardo.values.operations import TASKS, EmbedRequest, Task
from bardo.values.profile import InferenceProfile
from bardo.values.request import (
    BardoOptions,
    CacheOptions,
    Intent,
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

# `name: what it is` as Google's style writes it, with a type or not, and `:param name:` of Sphinx.
_LINE = re.compile(r"^\s*(?::param\s+(?:\S+\s+)?)?(?P<name>\w+)(?:\s*\([^)]*\))?\s*:\s+(?P<text>\S.*)$")


def tool_of(function: Callable[..., Any]) -> Tool:
    """Return the tool that a function is: each parameter a property, those without a default required.

    A parameter without an annotation may be anything. `Annotated[int, "what it is"]`, or a line `name: what it is` in the docstring,
    describes one. The model's call is not made: its arguments are in `Response.tool_calls`. Raises InvalidRequest, naming the function,
    for a parameter whose type has no JSON Schema, and for `*args` and parameters that have no name.
    """
    given = _unwrapped(function)
    name = getattr(given, "__name__", "") or type(given).__name__
    docstring = inspect.getdoc(given) or ""
    parameters = _parameters(function, name)
    names = inspect.signature(given).parameters
    found = (_LINE.match(line) for line in docstring.splitlines())
    described = {match["name"]: match["text"].strip() for match in found if match and match["name"] in names}
    properties: dict[str, Any] = {}
    required: list[str] = []
    definitions: dict[str, Any] = {}
    for parameter in parameters:
        schema = _schema(_hints(function, name).get(parameter.name, Any), f"{name}({parameter.name})", definitions)
        text = schema.pop("description", "") or described.get(parameter.name, "")
        default = {} if parameter.default is parameter.empty else _default(parameter.default)
        properties[parameter.name] = {**schema, **({"description": text} if text else {}), **default}
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    whole: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    whole["additionalProperties"] = False
    if definitions:
        whole["$defs"] = definitions
    return Tool(name=name, description=_summary(docstring, described), schema=whole)


def _unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that a `functools.partial` calls, which has the name, the docstring and the annotations."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as problem:
        raise InvalidRequest(f"the tool {name} has no signature: {problem}", param="tools") from problem
    bound = function.keywords if isinstance(function, functools.partial) else {}
    # What a partial holds already is the caller's to say.
    found = [parameter for parameter in found if parameter.name not in bound]
    for parameter in found:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            hint = "a model gives arguments by their names"
            raise InvalidRequest(f"the tool {name} takes {parameter} without a name", hint=hint, param="tools")
    return [parameter for parameter in found if parameter.kind is not parameter.VAR_KEYWORD]


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    function = _unwrapped(function)
    called = function if inspect.isroutine(function) else type(function).__call__
    try:
        return get_type_hints(called, include_extras=True)
    except (NameError, TypeError) as problem:
        raise InvalidRequest(f"the tool {name} has an annotation without a type: {problem}", param="tools") from problem


def _schema(hint: Any, place: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of one parameter; what it refers to goes into `definitions`."""
    kind, text = _unwrap_annotated(hint)
    if kind is Any:
        return {"description": text} if text else {}
    try:
        schema = schema_of(kind).schema
    except InvalidRequest as problem:
        raise InvalidRequest(f"{place}: {problem.message}", hint=problem.hint, param="tools") from problem
    found = dict(schema) if isinstance(schema, dict) else {}
    definitions.update(found.pop("$defs", {}))
    return {**found, **({"description": text} if text else {})}


def _unwrap_annotated(hint: Any) -> tuple[Any, str]:
    """Return a type, and the words that stand beside it in `Annotated`."""
    if get_origin(hint) is not Annotated:
        return hint, ""
    kind, *extras = get_args(hint)
    words = [extra for extra in extras if isinstance(extra, str)]
    others = [extra for extra in extras if not isinstance(extra, str)]
    for extra in others:
        kind = Annotated[kind, extra]
    return kind, " ".join(words)


def _default(value: Any) -> dict[str, Any]:
    try:
        return {"default": msgspec.to_builtins(value)}
    except TypeError:
        return {}


def _summary(docstring: str, described: Mapping[str, str]) -> str:
    """Return the docstring without the lines that describe parameters."""
    kept = [
        line for line in docstring.splitlines() if not ((found := _LINE.match(line)) and found["name"] in described)
    ]
    text = "\n".join(line for line in kept if line.strip().lower() not in ("args:", "arguments:", "parameters:"))
    return re.sub(r"\n{3,}", "\n\n", text).strip()


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
    the profile whose layers work on the call, and `layers` turns single ones on and off; `session` is your own name of the conversation,
    `agent` that of your program and `repository` that in which it works: costs are summed by them.
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
    agent: str | None
    repository: str | None
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
    """Return the Request. Raises InvalidRequest naming the mistake.

    A prompt is one text, or turns: Messages, earlier Responses (the assistant's turns, reasoning and all), or dicts as OpenAI's Chat has
    them.
    """
    unknown = sorted(options.keys() - Options.__annotations__.keys())
    if unknown:
        near = get_close_matches(unknown[0], Options.__annotations__, n=1)
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        raise TypeError(f"unknown option {unknown[0]!r}; known: {', '.join(Options.__annotations__)}{meant}")
    turns = [Message("user", (TextBlock(prompt),))] if isinstance(prompt, str) else _as_messages(prompt)
    system = options.get("system")
    if system:
        turns = [Message("system", (TextBlock(system),)), *turns]
    tools = tuple(_tool(tool, place) for place, tool in enumerate(options.get("tools", ())))
    stop = options.get("stop", ())
    given, other = options.get("max_output_tokens"), options.get("max_tokens")
    if given is not None and other is not None and given != other:
        hint = "give one of them"
        raise InvalidRequest("max_tokens and max_output_tokens say different things", hint=hint, param="max_tokens")
    return Request(
        model=model,
        messages=tuple(turns),
        tools=tools,
        tool_choice=_tool_choice(options.get("tool_choice"), options.get("parallel_tool_calls"), tools),
        max_output_tokens=other if given is None else given,
        choices=_answer_count(options.get("n", 1)),
        sampling=Sampling(
            **{name: value for name, value in options.items() if name in _SAMPLED},  # type: ignore[arg-type]
            stop=(stop,) if isinstance(stop, str) else tuple(stop),
        ),
        extra=dict(options.get("extra") or {}),
        reasoning=policy_of(options.get("reasoning")),
        stream=stream,
        options=_bardo_options(options),
    )


def _bardo_options(options: Options) -> BardoOptions:
    """Return what is asked of bardo itself. Raises InvalidRequest naming the option that is wrong."""
    intent, intent_fields = _intent(options.get("intent"))
    given = options.get("profile")
    profile = given if isinstance(given, InferenceProfile) else read_profile(given, "profile")
    return BardoOptions(
        structured=read_structured(options.get("structured"), "structured"),
        on_impossible=read_on_impossible(options.get("on_impossible"), "on_impossible"),
        allow_loss=tuple(options.get("allow_loss", ())),
        intent=intent,
        intent_fields=intent_fields,
        profile=profile,
        private=options.get("private", False),
        vitality=read_vitality(options.get("vitality"), "vitality"),
        tick=read_tick(options.get("tick"), "tick"),
        allow_stale=read_seconds(options.get("allow_stale"), "allow_stale"),
        verify=read_verify(options.get("verify"), "verify"),
        pipeline=read_pipeline(options.get("pipeline"), "pipeline"),
        layers=read_layers(options.get("layers"), "layers"),
        session=read_session(options.get("session"), "session"),
        agent=read_label(options.get("agent"), "agent", "the program that asks"),
        repository=read_label(options.get("repository"), "repository", "the repository that the call is about"),
        cache=read_cache(options.get("cache"), "cache"),
    )


def _intent(given: Intent | dict[str, Any] | None) -> tuple[Intent | None, tuple[str, ...]]:
    """Return an intent, and which of its fields go before those of a workload. Raises InvalidRequest."""
    if not isinstance(given, Intent):
        return read_intent(given, "intent")
    fields = {name: getattr(given, name) for name in Intent.__struct_fields__}
    checked, _ = read_intent(fields, "intent")
    return checked, tuple([name for name, value in fields.items() if value != getattr(_ANY, name)])


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


SAMPLE_TEXT = "What is 27 * 43?"


def sample_bodies(text: str) -> dict[str, dict[str, Any]]:
    """Return a small request with a text, in each dialect that clients speak most."""
    return {
        "openai_chat": {"messages": [{"role": "user", "content": text}]},
        "openai_responses": {"input": text},
        "anthropic_messages": {"max_tokens": 4096, "messages": [{"role": "user", "content": text}]},
        "gemini": {"contents": [{"role": "user", "parts": [{"text": text}]}]},
    }


SAMPLES = sample_bodies(SAMPLE_TEXT)
"""What is asked where no request is given."""
ANY = PREFIX + ANY_MODEL
"""The model of a request that only says what it needs."""


def decode_body(content: bytes | str, name: str) -> dict[str, Any]:
    """Return the JSON object of a request; `name` is what errors call it. Raises InvalidRequest."""
    try:
        body = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as problem:
        raise InvalidRequest(
            f"{name} is not valid JSON: {problem}", hint="give the body of a client's request"
        ) from problem
    if not isinstance(body, dict):
        raise InvalidRequest(f"{name} is no JSON object", hint="give the body of a client's request")
    return body


def with_intent(body: dict[str, Any], workload: str, intent: str, param: str = "intent") -> dict[str, Any]:
    """Return the request with the needs that `workload` and `intent` give, which go before its own.

    `intent` is JSON, or pairs as in `quality=high; require=vision`; `param` names it in errors. Raises InvalidRequest.
    """
    said = read_intent_header(intent, param)
    if workload:
        said["subsystem"] = workload.removeprefix(PREFIX)
    if not said:
        return body
    own = body.get("bardo")
    own = own if isinstance(own, dict) else {}
    before = own.get("intent")
    needs = {**(before if isinstance(before, dict) else {}), **said}
    return {**body, "bardo": {**own, "intent": needs}}


def with_reasoning(body: dict[str, Any], policy: int | str | None) -> dict[str, Any]:
    """Return the request with a policy of thinking that goes before its own."""
    if policy is None:
        return body
    own = body.get("bardo")
    return {**body, "bardo": {**(own if isinstance(own, dict) else {}), "reasoning": policy}}
