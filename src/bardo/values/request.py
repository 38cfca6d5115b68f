"""A request as the caller means it, in no dialect: messages, tools, sampling, thinking, and what is asked of bardo itself."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Annotated, Any, Literal

import msgspec

from bardo.values.agent import AgentStep, Tick
from bardo.values.blocks import Block, Carried, TextBlock, ToolCallBlock, ToolResultBlock, UnknownBlock
from bardo.values.degradation import Degradation
from bardo.values.effort import EFFORTS as EFFORTS
from bardo.values.effort import Effort as Effort
from bardo.values.profile import InferenceProfile

Quality = Literal["minimum", "low", "medium", "high", "maximum"]
QUALITIES: tuple[Quality, ...] = ("minimum", "low", "medium", "high", "maximum")

_Features = Annotated[
    tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=64)], ...], msgspec.Meta(max_length=32)
]


class Intent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one call needs. It holds no logic: `bardo.routing` finds who can do it.

    `model` None leaves the choice of a model to `quality` and `cost_sensitivity` (0: the price does not matter, 1: it matters most).
    `require` and `prefer` are names of features, rows of `features.toml`. Who lacks a required one is not asked as long as another has
    it; a preferred one that is lacking is reported. `max_latency_ms` bounds the time in which nine of ten calls are answered.
    `diem_available`: calls to a provider that is paid by staked DIEM cost nothing. `subsystem` is the part of an agent, or the workload,
    that asks.
    """

    model: str | None = None
    require: _Features = ()
    prefer: _Features = ()
    quality: Quality = "medium"
    max_latency_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None
    cost_sensitivity: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5
    diem_available: bool = False
    subsystem: str = ""


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """Who was found for an intent: a model at a provider, by its id in the configuration.

    `estimated_cost_usd` is None if no price is known. `features` are all that it has, sorted; `degraded` are the wanted features that
    it does not have, the preferred ones first.
    """

    model: str
    provider: str
    estimated_cost_usd: float | None
    features: tuple[str, ...]
    degraded: tuple[str, ...]


Operation = Literal["generate", "complete", "embed", "count_tokens", "compact"]
"""What a call asks for. `complete` is OpenAI's older form of `generate`. Lists of models are answered from memory, and are no calls."""
Role = Literal["system", "user", "assistant"]


class Message(msgspec.Struct, frozen=True, gc=False):
    """One turn. Tool results are blocks of a `user` message; an OpenAI `developer` message is `system` here."""

    role: Role
    blocks: tuple[Block, ...]
    carried: Carried | None = None

    @property
    def kinds(self) -> set[type[Block]]:
        """The classes of its blocks."""
        return {*map(type, self.blocks)}

    @property
    def parts(self) -> set[type[Block]]:
        """The classes of its blocks, and of what stands in results of tools."""
        kinds: set[type[Block]] = {*map(type, self.blocks)}
        if ToolResultBlock in kinds:
            results = [block for block in self.blocks if type(block) is ToolResultBlock]
            kinds.update([type(part) for result in results for part in result.content])
        return kinds

    @property
    def calls(self) -> tuple[ToolCallBlock, ...]:
        """Its tool calls."""
        return tuple([block for block in self.blocks if type(block) is ToolCallBlock])

    @property
    def text(self) -> str:
        """All text blocks joined."""
        if len(self.blocks) == 1 and type(self.blocks[0]) is TextBlock:
            return self.blocks[0].text
        return "".join(block.text for block in self.blocks if isinstance(block, TextBlock))

    @property
    def paragraphs(self) -> str:
        """All text blocks joined with a blank line: the blocks of a prompt are parts that belong to nobody's sentence."""
        return "\n\n".join(block.text for block in self.blocks if isinstance(block, TextBlock) and block.text)


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A function the model may call. `schema` is JSON Schema. A tool the provider runs itself has only `carried`."""

    name: str
    description: str = ""
    schema: dict[str, Any] | None = None
    strict: bool | None = None
    carried: Carried | None = None
    hosted: bool = False


class ToolChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Which tools may be called: `named` goes with `name`."""

    mode: Literal["auto", "none", "required", "named"] = "auto"
    name: str = ""
    parallel: bool | None = None


class ReasoningPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How the model should think: `off`, a named `effort`, a `budget` in tokens, or `auto` (the model decides).

    `visible` says whether the caller wants to read it: `None` leaves that to the provider. `enables_thinking` False: setting the effort
    does not enable thinking on models where these are separate fields (Claude). `between_tools`: the model should think only between tool
    calls, where it can. `raw_fields` is the fragment of the caller's body that was read as this policy.
    """

    mode: Literal["off", "effort", "budget", "auto"]
    effort: Effort | None = None
    budget: int | None = None
    visible: bool | None = None
    enables_thinking: bool = True
    between_tools: bool = False
    carried: Carried | None = None
    raw_fields: dict[str, Any] = {}


class OutputFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The shape of the answer: any JSON object, or one that fits `schema`.

    `guidance` is the caller's own instruction for models that cannot be held to a schema.
    """

    mode: Literal["json_object", "json_schema"]
    name: str = ""
    schema: Any = None
    strict: bool | None = None
    description: str = ""
    guidance: str = ""


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How tokens are chosen. `None` leaves each to the provider."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()


NEUTRAL: dict[str, float] = {
    "temperature": 1,
    "top_p": 1,
    "min_p": 0,
    "repetition_penalty": 1,
    "frequency_penalty": 0,
    "presence_penalty": 0,
}
"""The value of each sampling parameter that asks for nothing."""


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """The reasoning policy as one target takes it.

    `fields` is the JSON fragment that goes into the body: a dialect lays it in and says nothing of its own about thinking. `thinks` is
    what is expected of the model, or None if it is unknown.
    """

    fields: dict[str, Any] = {}
    thinks: bool | None = None


OnImpossible = Literal["fail", "floor", "reroute"]


class StructuredOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one call's answer in a schema is asked for, before what is configured: the best mode allowed, and how often it is asked again."""

    mode: Literal["schema_enforced", "tool_use_workaround", "prompt_guided", "none"] | None = None
    retries: Annotated[int, msgspec.Meta(ge=0, le=5)] | None = None


CacheAllowance = Literal["multi_turn", "tools", "time_words", "pii", "sampling", "media"]
"""What keeps a call from being answered by a kept reply, unless the operator or the caller allows it."""


class CacheOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one call uses kept replies.

    `mode`: `use` is given one and keeps its own, `refresh` is given none and keeps its own, `off` is given none and keeps none. A kept
    reply is not older than `max_age_seconds`, and the reply to this call is kept for `ttl_seconds`; None is what is configured. `tags`
    are names by which the operator removes it. `allow` are reasons for which a call would not be answered so, and that do not count.
    """

    mode: Literal["use", "refresh", "off"] = "use"
    max_age_seconds: Annotated[float, msgspec.Meta(ge=0)] | None = None
    ttl_seconds: Annotated[float, msgspec.Meta(gt=0, le=31_536_000)] | None = None
    tags: Annotated[
        tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=64)], ...], msgspec.Meta(max_length=16)
    ] = ()
    allow: tuple[CacheAllowance, ...] = ()


class SearchLimit(msgspec.Struct, frozen=True, kw_only=True):
    """What the searches of some calls may cost together: those of a day of a key, or of an agent's cycle. `key` tells these from others."""

    setting: str
    key: str
    usd: float


class BardoOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller asks of bardo itself, from the body's `bardo` object or the `X-Bardo-*` headers.

    `include` may hold `reasoning_chain`, `receipt`, `structured` (how a typed answer came about) and `partials` (events that show one
    while it grows). `omit_reasoning` leaves all reasoning out of the reply, `omit_unasked` that of a provider of
    another dialect, which the caller did not ask for, and `reasoning_tags` puts it into the text between `<think>` tags;
    `chose_display`: the caller said one of these. `on_impossible` says what becomes of a call that asks for no thinking where the model
    always thinks: it fails, gets the least there is, or goes to another
    provider. `reasoning` goes before the dialect's own fields. `allow_loss` names fields and parts whose loss is reported instead of
    refused although it changes what the request means; `*` names all.

    `intent` is what the call needs, where routing shall find who answers; `intent_fields` names the fields of it that the caller gave,
    which go before those of a workload. `profile` is how the call shall be answered; where it is `profile_locked`, it goes before the
    caller's own fields. `vitality`, from 0 (dying) to 1 (healthy), is what the agent that asks has left, `tick` what it says of
    the moment, and `agent_step` what the gateway settled by that. `private`: only providers that keep nothing of a call may be
    asked. `hosted_only`: tools that providers run are run by nobody else. `deadline_seconds`: within which
    the call has to be answered. `allow_stale`: how old, in seconds, the reply to an earlier, equal call may be that is given where nobody
    answers; None allows none. `verify` is a second model that is asked whether it agrees with the answer; None leaves that to the
    workload, and an empty name is none. `cache` is how the call uses kept replies, None as is configured. `pipeline` names the profile
    whose layers work on the call, None leaves that to the configuration, and `pipeline_by_operator` says that it is not the caller's word;
    `layers` turns single layers on and off.
    `session` is the caller's own id of the conversation that the call belongs to, `agent` the name of the program that asks, and
    `repository` that in which it works: costs are summed by them. `search_limits` are what its searches may cost, which the
    operator says. `alias_fields` are fields that the operator's alias adds to bodies for `alias_model`.
    """

    include: tuple[str, ...] = ()
    omit_reasoning: bool = False
    omit_unasked: bool = False
    reasoning_tags: bool = False
    chose_display: bool = False
    on_impossible: OnImpossible = "floor"
    reasoning: ReasoningPolicy | None = None
    structured: StructuredOptions | None = None
    allow_loss: tuple[str, ...] = ()
    intent: Intent | None = None
    intent_fields: tuple[str, ...] = ()
    profile: InferenceProfile | None = None
    profile_locked: bool = False
    vitality: float | None = None
    tick: Tick | None = None
    agent_step: AgentStep | None = None
    private: bool = False
    hosted_only: bool = False
    deadline_seconds: float | None = None
    allow_stale: float | None = None
    verify: str | None = None
    cache: CacheOptions | None = None
    pipeline: str | None = None
    pipeline_by_operator: bool = False
    layers: tuple[tuple[str, bool], ...] = ()
    session: str = ""
    agent: str = ""
    repository: str = ""
    search_limits: tuple[SearchLimit, ...] = ()
    alias_fields: dict[str, Any] = {}
    alias_model: str = ""


TRACE_HEADERS = ("traceparent", "tracestate")
"""Headers of W3C Trace Context, which providers of every dialect get."""


class KeptAs(msgspec.Struct, frozen=True, kw_only=True):
    """How the gateway keeps a reply: by which id, and behind which earlier reply or in which conversation.

    `store` False: only the conversation keeps it.
    """

    id: str
    store: bool = True
    previous: str = ""
    conversation: str = ""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One call.

    `dialect` is the language it arrived in and `extra` the top-level fields of that language which bardo has no word for:
    they are sent on where the target speaks it, and reported where it does not. `inner_fields` are those inside an object that bardo has a
    word for, such as the choice of a tool, by their paths. `headers` are the dialect's own headers of the
    request (its betas), sent on likewise. `client_headers` say which program asks, and in which session: they are sent on where the target
    speaks the dialect, and are no loss elsewhere. `body` is the parsed original, `body_bytes` the original itself, with what is asked of
    bardo. `control` is `reasoning` written for the target at hand.
    `attribution` is the line at the head of its system prompt by which Claude Code says to Anthropic whose it is: no part of the prompt.
    `kept_as` says how the gateway keeps the reply, or None if it does not.
    `operation` is what it is asked as, for the log. `degraded` is what was lost before: OpenAI's older completions are put to a chat.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    max_output_tokens: int | None = None
    sampling: Sampling = Sampling()
    reasoning: ReasoningPolicy | None = None
    control: Control | None = None
    output_format: OutputFormat | None = None
    choices: int = 1
    stream: bool = False
    stream_usage: bool = True
    attribution: str = ""
    kept_as: KeptAs | None = None
    operation: Operation = "generate"
    dialect: str = ""
    extra: dict[str, Any] = {}
    inner_fields: dict[tuple[str, ...], Any] = {}
    headers: dict[str, str] = {}
    client_headers: dict[str, str] = {}
    body: dict[str, Any] | None = None
    body_bytes: bytes = b""
    options: BardoOptions = BardoOptions()
    degraded: tuple[Degradation, ...] = ()


def with_search_limit(request: Request, limit: SearchLimit) -> Request:
    """Return a request whose searches count against one more limit."""
    limits = (*request.options.search_limits, limit)
    return msgspec.structs.replace(request, options=msgspec.structs.replace(request.options, search_limits=limits))


def how_to_install(extra: str) -> str:
    """Return the command that installs the packages of an extra of bardo."""
    return f"pip install '.[{extra}]' in a clone of bardo"


Messages = tuple[Message, ...]
_carried_of = attrgetter("carried")


class HistoryFacts(msgspec.Struct, frozen=True, gc=False):
    """The blocks of a conversation, the classes of them and of what stands in its tools' results, its calls, and their results."""

    messages: Messages
    blocks: tuple[Block, ...]
    parts: frozenset[type[Block]]
    calls: tuple[ToolCallBlock, ...]
    results: tuple[ToolResultBlock, ...]

    @property
    def carries_fields(self) -> bool:
        """Whether a message, a block or a part of a result carries fields of its dialect, or is a block that only its dialect knows."""
        if UnknownBlock in self.parts or _any_carry(self.messages) or _any_carry(self.blocks):
            return True
        return bool(self.results) and _any_carry([part for result in self.results for part in result.content])


def _any_carry(parts: Iterable[Message | Block]) -> bool:
    # No step of Python for each.
    carried = [*map(_carried_of, parts)]
    return carried.count(None) < len(carried)


def facts_of(messages: Messages, known: HistoryFacts | None = None) -> HistoryFacts:
    """Return what a conversation holds: `known` where that is of these messages."""
    if known is not None and known.messages is messages:
        return known
    blocks = tuple([block for message in messages for block in message.blocks])
    kinds: set[type[Block]] = {*map(type, blocks)}
    calls = [block for block in blocks if type(block) is ToolCallBlock] if ToolCallBlock in kinds else ()
    results: list[ToolResultBlock] = []
    if ToolResultBlock in kinds:
        results = [block for block in blocks if type(block) is ToolResultBlock]
        kinds.update([type(part) for result in results for part in result.content])
    return HistoryFacts(messages, blocks, frozenset(kinds), tuple(calls), tuple(results))
