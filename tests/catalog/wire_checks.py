"""What the catalog says, in the words in which the collected facts ask."""

from __future__ import annotations

from typing import Any

import msgspec

import bardo
from bardo.adapters.config.settings import parse_settings
from bardo.catalog.endpoint_choice import dialect_models
from bardo.catalog.forms import builtin_forms
from bardo.catalog.load import builtin
from bardo.catalog.models import ForcedTool, ModelRow, builtin_models
from bardo.catalog.parameters import ParameterRule, builtin_parameters
from bardo.catalog.replay import Reader, builtin_replay
from bardo.catalog.rows import ProviderRow
from bardo.dialects.anthropic_messages.request_in import decode_request
from bardo.dialects.anthropic_messages.wire import REASONS
from bardo.dialects.gemini.wire import REASONS as GEMINI_REASONS
from bardo.dialects.openai_chat.usage import decode_usage
from bardo.dialects.openai_responses.reply_in import LENGTH_WORDS
from bardo.reasoning.control import ControlTarget, fit_parameters, plan_reasoning
from bardo.services.facts.introspect.live import LiveFacts
from bardo.services.facts.introspect.readers import READERS
from bardo.structured.modes import SchemaTarget, rungs_of
from bardo.values.blocks import ReasoningBlock
from bardo.values.events import ThinkChunk
from bardo.values.request import Effort, ReasoningPolicy, Request, Tool
from bardo.values.wire import Arrival
from dialects.openai_chat.chat import events
from dialects.openai_responses.replies import read as read_reply

OFF = ReasoningPolicy(mode="off")


def row(provider: str, model: str) -> ModelRow:
    """Return the row of a model at a provider."""
    owner = builtin_forms().endpoint(provider, "openai_chat").owner or provider
    found = builtin_models().find(owner, model).row
    assert found is not None
    return found


def how(provider: str, model: str) -> str:
    """Return how a row was found."""
    return builtin_models().find(provider, model).how


def provider(name: str) -> ProviderRow:
    """Return a provider's row."""
    found = builtin().provider(name)
    assert found is not None
    return found


def hosts(name: str) -> dict[str, str]:
    """Return the hosts of a provider's places that have one of their own."""
    return dict(provider(name).hosts)


def asked_at(name: str, model: str, address: dict[str, str]) -> str:
    """Return the address at which a preset is asked for a model, with the parts of the address that are each customer's own."""
    scope = ", ".join(f'{key} = "{value}"' for key, value in address.items())
    settings = parse_settings(f'[[providers]]\nid = "{name}"\nscope = {{ {scope} }}')
    body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 99}
    return bardo.explain(body, "anthropic_messages", name, model=model, config=settings).url


def limit(provider: str, model: str) -> int | None:
    """Return the longest output of a model in tokens."""
    return row(provider, model).output_limit


def forced(model: str) -> ForcedTool | None:
    """Return which tools a Claude model can be made to call."""
    return row("anthropic", model).forced_tool


def effort_of(provider: str, dialect: str, model: str, effort: Effort | str) -> dict[str, Any]:
    """Return what is sent for an effort, or for `off`."""
    policy = OFF if effort == "off" else ReasoningPolicy(mode="effort", effort=effort)  # type: ignore[arg-type]
    return plan_reasoning(policy, ControlTarget(provider, dialect, model)).fields


def fragment(model: str, effort: Effort | str) -> Any:
    """Return the model's own fields that Bedrock's Converse is sent for an effort, or for `off`."""
    return effort_of("bedrock", "bedrock_converse", model, effort)["additionalModelRequestFields"]


def tools_off(model: str, effort: Effort | None = None) -> bool:
    """Return whether tools on OpenAI's Chat turn the thinking of a model off."""
    policy = None if effort is None else ReasoningPolicy(mode="effort", effort=effort)
    plan = plan_reasoning(policy, ControlTarget("openai-chat", "openai_chat", model))
    request = Request(model=model, messages=(), reasoning=policy, tools=(Tool(name="look", schema={}),))
    return fit_parameters(request, plan).plan.fields == {"reasoning_effort": "none"}


def rule(name: str) -> ParameterRule:
    """Return a rule of parameters."""
    return next(one for one in builtin_parameters().rule if one.name == name)


def usage_of(raw: dict[str, Any]) -> tuple[int | None, int | None]:
    """Return the tokens read from and written to a cache, of a Chat usage object."""
    usage, _ = decode_usage(raw, excludes_reasoning=None)
    return usage.cached_input_tokens, usage.cache_write_tokens


def system_turns(model: str) -> bool:
    """Return whether a Claude model takes system text between the other messages."""
    return dialect_models("anthropic_messages", model).system_turns


def bound(model: str) -> bool:
    """Return whether a Claude model binds its thinking to the prompt before it."""
    rules = builtin_replay()
    return rules.of(rules.reader("anthropic", provider("anthropic"), model)).binding is not None


def state_why(format_name: str, model: str) -> str:
    """Return why state that a model made at OpenRouter may not go back to OpenRouter's `model`; empty where it may."""
    rules = builtin_replay()
    made_by = {"bedrock-xai-responses-v1": "x-ai/grok-4.6", "bedrock-openai-responses-v1": "openai/gpt-5.6"}[
        format_name
    ]
    made = rules.reader("openrouter", provider("openrouter"), made_by).origin()
    reader: Reader = rules.reader("openrouter", provider("openrouter"), model)
    return rules.refusal(format_name, made, reader)


def ladder_of(provider: str, model: str) -> str:
    """Return the first way in which a model is asked for an answer in a schema."""
    return rungs_of(SchemaTarget(provider=provider, model=model))[0].form


def finish_of(dialect: str, word: str) -> str:
    """Return bardo's word for a reason to end."""
    if dialect == "gemini":
        return GEMINI_REASONS.get(word, "unknown")
    if dialect == "openai_responses":
        return "length" if word in LENGTH_WORDS else "unknown"
    return REASONS.get(word, "unknown")


def fills_the_cache() -> bool:
    """Return whether a Messages request for no output is taken."""
    asked = {"model": "claude-opus-5", "max_tokens": 0, "messages": [{"role": "user", "content": "x"}]}
    return decode_request(msgspec.json.encode(asked), Arrival()).max_output_tokens == 0


def steps_are_read() -> bool:
    """Return whether Perplexity's steps are read as thinking."""
    delta = {"reasoning_steps": [{"thought": "Look it up.", "type": "web_search"}]}
    found = events(
        {"choices": [{"index": 0, "delta": delta}]}, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    )
    return [event.text for event in found if isinstance(event, ThinkChunk)] == ["Look it up.\n\n"]


def live(reader: str, **row: Any) -> LiveFacts:
    """Return what a reader makes of one row of a provider's list of models."""
    return READERS[reader]({"models": {"data": [{"id": "m", **row}]}}, "m")["m"]


def said_by_anthropic(**types: bool) -> LiveFacts:
    """Return what is learned of a Claude model of which the list says which types of thinking it takes."""
    told = {name: {"supported": value} for name, value in types.items()}
    thinking = {"supported": True, "types": told}
    return live("anthropic", capabilities={"thinking": thinking}, max_tokens=128_000, retires_at="2027-01-31T00:00:00Z")


def shared(preset: str, client: str, upstream: str, **fields: Any) -> tuple[str, ...]:
    """Return what of a client's fields a provider does not get."""
    text = f'[[providers]]\nid = "one"\npreset = "{preset}"\ndialect = "{upstream}"\nbase_url = "http://lab/v1"\n'
    said = {"input": "x"} if client == "openai_responses" else {"messages": [{"role": "user", "content": "x"}]}
    asked = {**said, **fields, "model": "one/gpt-4.1", "bardo": {"allow_loss": ["*"]}}
    return tuple(one.what for one in bardo.explain(asked, client, "", config=parse_settings(text)).degraded)


def ciphertext_is_read() -> bool:
    """Return whether the ciphertext of a Responses reply is kept where nobody asked for it."""
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c"}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    (block,) = read_reply(done, {"type": "response.completed", "response": {"output": [item]}}).blocks
    return isinstance(block, ReasoningBlock) and "c" in [one.data for one in block.opaque]


def thoughts_of_agents_are_read() -> bool:
    """Return whether the thoughts of Perplexity's agents are read as thinking."""
    reply = read_reply(
        {"type": "response.reasoning.started", "thought": "Look it up."},
        {"type": "response.reasoning.search_queries", "thought": "One page.", "queries": ["q"]},
        {"type": "response.reasoning.stopped"},
        {"type": "response.completed", "response": {"output": []}},
    )
    return [block.text.strip() for block in reply.blocks if isinstance(block, ReasoningBlock)] == [
        "Look it up.",
        "One page.",
    ]
