"""What planning a call draws on beside the request: settings, and the facts about each target's model. All of it is values.

Routing knows of a target its features, price and rating, from the catalog and from the server's own words.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bardo.accounting.cost import Price
from bardo.catalog.features import Fact, features
from bardo.catalog.matching import plain_id
from bardo.catalog.models import model_qualities
from bardo.catalog.profile_fields import profile_fields
from bardo.catalog.routing_rows import routing_rows
from bardo.planning.hosted_search import SearchPolicy
from bardo.planning.profiles import apply_profile, form_at
from bardo.planning.refusals import RefusedField
from bardo.planning.route import Provider, Target, endpoints_of
from bardo.planning.text_formats import SeenStart
from bardo.planning.workloads import PRIVACY
from bardo.reasoning.control import PORTABLE, ControlTarget, Layer, PortableBudgets, ResolvedFacts, RouteFact, know
from bardo.reasoning.registry import FormatRegistry
from bardo.reasoning.starting import SWITCHES, toggles_thinking
from bardo.reuse import Memory
from bardo.routing.candidates import Candidate, Prices, spelled
from bardo.structured import StructuredSettings
from bardo.structured.modes import Form, SchemaTarget, rungs_of
from bardo.tools import tool_call_format_for_model
from bardo.values.request import Request
from bardo.values.usage import usd

PlaceName = tuple[str, str, str]
"""The id of a provider in the configuration, the dialect of its endpoint, and a model there."""


class RenderedPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the prompt that a server renders opens the thinking: by default, and with thinking turned on or off by the `switch`.

    None: the server did not show it. `switch` is the template argument that the server knows, empty where it did not say.
    """

    switch: str = ""
    opens: bool | None = None
    opens_on: bool | None = None
    opens_off: bool | None = None

    def opens_thinking(self, toggles: Mapping[str, Any]) -> bool | None:
        """Return whether the prompt of a request with these template arguments opens the thinking, or None if it was not seen."""
        if not toggles:
            return self.opens
        understood = (self.switch,) if self.switch else SWITCHES
        thinks = toggles_thinking(toggles)
        if thinks is None or not all(name in understood for name in toggles):
            return None
        return self.opens_on if thinks else self.opens_off


class TargetFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one target.

    `known` is all that is known of its model's control, and `layers` what of it an operator and live servers say. `prompt` is None if
    no server showed its prompts. `seen_start` is how earlier replies began, `seen_start_off` how those to requests without thinking did.
    `refused_forms` are the ways to ask for an answer in a schema that the target refused, `refused_fields` the fields. `missing`: the
    server has no such endpoint. `features` is what the server says of features (`features.toml`), by their names. `context` is how many
    tokens a prompt and its answer may have together, or None if it is not stated.
    """

    known: ResolvedFacts
    layers: tuple[Layer, ...] = ()
    prompt: RenderedPrompt | None = None
    seen_start: SeenStart | None = None
    seen_start_off: SeenStart | None = None
    refused_forms: frozenset[Form] = frozenset()
    missing: bool = False
    refused_fields: tuple[RefusedField, ...] = ()
    features: Mapping[str, bool] = {}
    context: int | None = None

    def opens_thinking(self, toggles: Mapping[str, Any]) -> bool | None:
        """Return whether the server's prompt for a request with these template arguments opens the thinking, or None if it is unknown."""
        return None if self.prompt is None else self.prompt.opens_thinking(toggles)

    def start_of_replies(self, *, off: bool) -> SeenStart | None:
        """Return how earlier replies began, to requests that asked for no thinking (`off`) or to others."""
        return self.seen_start_off if off else self.seen_start


class CachingPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Which hints all prompts get: keys, which are those of one `tenant` alone, and `markers`."""

    tenant: str = ""
    markers: bool = True


def no_searches(provider: str) -> int:
    """Return that a provider was asked to search in no call of today."""
    return 0


def no_money(key: str) -> int:
    """Return that no searches cost anything."""
    return 0


class Knowledge(msgspec.Struct, frozen=True, kw_only=True):
    """What the plans of one call are made from: read once, when the call begins.

    `formats` None stands for the formats that come with bardo. `budgets` is the one table between levels and tokens. With
    `prompt_words` models without a control of their thinking are told in the system prompt. `kept_budgets` are the words that a model
    thinks last where the gateway keeps the budgets that servers cannot; None: it keeps none. `structured` is how answers in a schema are
    asked for, `search` when the gateway searches the web for a model, None for never. `caching` is how providers are told
    what to cache of every prompt, or None if only workloads say so. `today` dates what a refusal teaches. `facts` holds the targets of
    which more is known than the catalog says. `plans` are those that were made with these settings before, each with what it was
    made from.
    `repair_history`: histories that a target would refuse are mended, not refused. `tenant` is whose calls they are.
    `searches_today` tells of a provider in how many calls of today it was asked to search the web, and `searches_cost` how many
    nano-dollars the searches of a limit's key have cost.
    """

    formats: FormatRegistry | None = None
    budgets: PortableBudgets = PORTABLE
    prompt_words: bool = False
    kept_budgets: str | None = None
    repair_history: bool = True
    tenant: str = ""
    structured: StructuredSettings = StructuredSettings()
    search: SearchPolicy | None = None
    caching: CachingPolicy | None = None
    today: datetime.date = datetime.date.min
    facts: Mapping[PlaceName, TargetFacts] = {}
    plans: Memory[tuple[object, object, Any]] = msgspec.field(default_factory=Memory)
    searches_today: Callable[[str], int] = no_searches
    searches_cost: Callable[[str], int] = no_money

    def of(self, target: Target) -> TargetFacts:
        """Return the facts about a target; of one that nobody resolved, what the catalog says."""
        provider = target.provider
        known = self.facts.get((provider.place, provider.row.dialect, target.model))
        return known or _catalog_facts(control_target(target))


@lru_cache(maxsize=1024)
def _catalog_facts(target: ControlTarget) -> TargetFacts:
    """Return what the catalog says of a target: the same object for the same target, by which plans are kept."""
    return TargetFacts(known=know(target))


BUILTIN = Knowledge()


class RefusedForm(msgspec.Struct, frozen=True):
    """A way to ask for an answer in a schema that a target refused, whatever the schema is, and the provider's words."""

    target: Target
    form: Form
    words: str = ""


class MissingEndpoint(msgspec.Struct, frozen=True):
    """An endpoint that a provider's server does not have: that of the target's dialect; and the provider's words."""

    target: Target
    words: str = ""


class RejectedField(msgspec.Struct, frozen=True):
    """A field that a target refuses whatever its value is, and the provider's words."""

    target: Target
    field: RefusedField
    words: str = ""


class RefusedThinking(msgspec.Struct, frozen=True):
    """What a refusal said of how a model is told to think, which word of it was refused, and the provider's words."""

    target: Target
    fact: RouteFact
    emitted: str
    words: str = ""


Lesson = RefusedThinking | RefusedForm | MissingEndpoint | RejectedField
"""What a provider's refusal taught. It holds once the same request was answered without that, and for later calls of one caller."""


def request_shape(request: Request) -> str:
    """Return the shape of a request in words: what else it asks for may be why a field was refused."""
    request = apply_profile(request)
    asked = request.options.reasoning or request.reasoning
    words = ["streamed" if request.stream else "whole"]
    words += ["with tools"] if request.tools else []
    words += [f"with tool choice {request.tool_choice.mode}"] if request.tool_choice is not None else []
    words += (
        [] if asked is None else ["thinking off"] if asked.mode == "off" or asked.budget == 0 else ["with thinking"]
    )
    words += [] if request.output_format is None else ["with an answer in a schema"]
    return ", ".join(words)


def control_target(target: Target) -> ControlTarget:
    """Return a target as reasoning control knows it."""
    row = target.provider.row
    return ControlTarget(row.id, row.dialect, target.model)


def place_name(target: Target) -> PlaceName:
    """Return the key of a target in `Knowledge.facts`."""
    return target.provider.place, target.provider.row.dialect, target.model


_FREE = Prices(input=0.0, output=0.0)
_LITTLE = ("minimal", "low")


def candidate_of(
    target: Target, facts: TargetFacts | None = None, *, private: bool = False, price: Price | None = None
) -> Candidate:
    """Return a target as routing compares it, at a price, or None if that is not known.

    `facts` None: nothing is known beside the catalog. `private`: the operator lists the provider among those that keep nothing of a call.
    What the operator says goes before what the server says, and that before the rows and what the provider's address suggests.
    """
    provider, row = target.provider, target.provider.row
    known = know(control_target(target)) if facts is None else facts.known
    name, names = spelled(target.model), _names(target.model)
    said = {} if facts is None else dict(facts.features)
    if private or provider.private is False:
        said[PRIVACY] = private
    quality = model_qualities().find(name)
    has = features().of(row.id, names, set(_facts(target, known)), said)
    return Candidate(
        provider=provider.id,
        model=target.model,
        features=has,
        prices=_prices(price, runs_here=PRIVACY in has and bool(row.base_url) and on_own_machine(provider)),
        rating=None if quality is None else routing_rows().quality[quality],
        payments=row.payment,
    )


def chat_models(provider: Provider) -> list[str]:
    """Return the models of a provider's list that answer conversations, as far as is known."""
    return [model for model in provider.models if features().answers_chats(_names(model))]


def _names(model: str) -> set[str]:
    """Return the plain ids that a model goes by."""
    return {spelled(model), plain_id(model.rpartition("/")[2])}


def _prices(price: Price | None, *, runs_here: bool) -> Prices | None:
    """Return what a model costs; of one without a price nothing is known, unless a server of this machine runs it."""
    rates = None if price is None else price.schedule.rates
    if rates is None or rates.input is None or rates.output is None:
        return _FREE if runs_here else None
    return Prices(input=usd(rates.input), output=usd(rates.output))


def on_own_machine(provider: Provider) -> bool:
    """Whether all addresses of the provider are on this machine, and its preset is a server that people run there.

    A hosted provider that is reached by an address of this machine stands behind a relay or a tunnel.
    """
    row = provider.row
    return row.at_users_address and not row.hands_on and all(map(_is_loopback, provider.base_urls))


@lru_cache(maxsize=1024)
def _is_loopback(base_url: str) -> bool:
    host = (urlsplit(base_url).hostname or "").rstrip(".")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _facts(target: Target, known: ResolvedFacts) -> Iterator[Fact]:
    """Yield what holds of a target by what other rows and its server say; a mere assumption by its provider's kind says nothing."""
    if known.row is not None or known.classified:
        if set(known.control) - {"none"} or known.facts.omit == "on":
            yield "thinks"
        if "adaptive" in known.control:
            yield "adaptive"
        if known.takes_budget or (known.takes_level and known.levels[0] in _LITTLE):
            yield "low_effort"
    if any(_holds_to_schemas(at) for at in endpoints_of(target)):
        yield "schema"
    if tool_call_format_for_model(target.model) is not None:
        yield "tool_format"
    if _takes("web_search", target):
        yield "field:web_search"
    if _takes("predicted_output", target):
        yield "field:predicted_output"
    if target.provider.row.private or on_own_machine(target.provider):
        yield "private"


def _holds_to_schemas(at: Target) -> bool:
    row = at.provider.row
    rungs = rungs_of(SchemaTarget(provider=row.id, model=at.model.lower(), dialect=row.dialect, id=at.provider.id))
    return rungs[0].form == "json_schema" and not rungs[0].advertised


def _takes(field: str, target: Target) -> bool:
    """Whether a field of a profile can be sent at one of the target's endpoints."""
    return any(form_at(row, at) for row in profile_fields() if row.name == field for at in endpoints_of(target))
