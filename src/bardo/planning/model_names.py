"""Names of models that the configuration or a suffix gives a meaning: aliases, and `-thinking`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from bardo.catalog.fragments import merge_fields
from bardo.catalog.load import builtin
from bardo.catalog.matching import matches_any, plain_id
from bardo.catalog.models import builtin_models
from bardo.catalog.rows import ProviderRow
from bardo.planning.route import Provider, provider_before
from bardo.routing.workloads import Workload
from bardo.values.errors import ConfigError
from bardo.values.operations import EmbedRequest
from bardo.values.request import EFFORTS, Effort, ReasoningPolicy, Request

Amount = Effort | Literal["off"]
AMOUNTS: tuple[Amount, ...] = ("off", *EFFORTS)
_LONGEST_CHAIN = 16
MOST_MODELS = 32
"""How many models a name may stand for, those of its aliases' aliases included."""


class ThinkingRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an operator says of thinking, and of the layers that work on a call.

    `effort` holds where the caller asks for none, `forced_effort` always, `max_effort` bounds what is asked. `reasoning` is how thinking is
    shown where the caller does not say, and `pipeline` names the profile whose layers work on the call then; empty: nothing is said.
    """

    effort: Amount | None = None
    forced_effort: Amount | None = None
    max_effort: Amount | None = None
    reasoning: Literal["include", "omit", "tags"] | None = None
    pipeline: str = ""


class Alias(ThinkingRules, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a name stands for: `model`, and `fallbacks`, models that are asked in order where it does not answer.

    `extra_body` are fields that bodies for `model` get below what the client said.
    """

    model: str
    fallbacks: tuple[str, ...] = ()
    extra_body: dict[str, Any] = {}


class ResolvedModel(msgspec.Struct, frozen=True):
    """The model that a name stands for, and the aliases on the way to it, the client's own name first.

    `fallbacks` are the models that are asked in order where this one does not answer. `thinks`: its name turns thinking on, as much as the
    model does by itself, where the caller asks for none. `by_lists`: what the name stands for depends on who lists which
    models. `workload` is the one that the name stands for, or None if it stands for models.
    """

    model: str
    steps: tuple[Alias, ...] = ()
    suffix: Amount | None = None
    fallbacks: tuple[str, ...] = ()
    thinks: bool = False
    by_lists: bool = False
    workload: Workload | None = None


_Waiting = tuple[str, frozenset[str] | None]
"""A name that is still to be followed, and the names that led to it, or None if it is a model's own."""


class Aliases:
    """The aliases of a configuration: exact names go before globs, and globs go in the order of the file."""

    def __init__(self, table: Mapping[str, Alias] | None = None) -> None:
        self._exact = {name: alias for name, alias in (table or {}).items() if "*" not in name}
        self._globs: list[tuple[str, str, Alias]] = []
        for name, alias in (table or {}).items():
            head, star, tail = name.partition("*")
            if star:
                self._globs.append((head, tail, alias))
        for name in table or ():
            self.find(name.replace("*", "x"))

    @property
    def names(self) -> tuple[str, ...]:
        """The names that are no globs."""
        return tuple(self._exact)

    def find(self, model: str) -> ResolvedModel:
        """Return what a name stands for.

        Raises ConfigError for aliases that lead to each other, for fallbacks with efforts of their own, and for too many models.
        """
        meaning, waiting = self._follow(model, frozenset())
        models = [meaning.model]
        waiting.reverse()
        while waiting:
            name, path = waiting.pop()
            # A fallback called like its own alias is the model of that name.
            one, further = (ResolvedModel(name), []) if path is None else self._follow(name, path)
            _check_effort(name, one, model)
            models.append(one.model)
            if len(models) > MOST_MODELS:
                raise ConfigError(f"{model!r} stands for more than {MOST_MODELS} models", hint="give it fewer models")
            waiting += reversed(further)
        others = tuple(dict.fromkeys(name for name in models[1:] if name != meaning.model))
        return msgspec.structs.replace(meaning, fallbacks=others) if others else meaning

    def _follow(self, model: str, path: frozenset[str]) -> tuple[ResolvedModel, list[_Waiting]]:
        """Return the first model that a name stands for, and the fallbacks on the way to it, those of the last alias first.

        `path` are the names that led here.
        """
        steps: list[Alias] = []
        fallbacks: list[_Waiting] = []
        seen = {*path, model}
        if model in path:
            raise _circle(model)
        suffix: Amount | None = None
        while True:
            step = self._step(model)
            if step is None:
                bare, _, behind = model.rpartition(":")
                if suffix is None and bare and behind in AMOUNTS:
                    model, suffix = bare, behind
                    seen.add(model)
                    continue
                return ResolvedModel(model, tuple(steps), suffix), fallbacks
            alias, further = step
            steps.append(alias)
            here = frozenset(seen)
            names = self._fallbacks(alias, model)
            fallbacks[:0] = [(name, None if name == model else here) for name in names]
            if further == model:
                return ResolvedModel(model, tuple(steps), suffix), fallbacks
            if further in seen or len(steps) > _LONGEST_CHAIN:
                raise _circle(model)
            seen.add(further)
            model = further

    def _fallbacks(self, alias: Alias, model: str) -> list[str]:
        """Return the fallbacks of an alias with what its glob matched in the places of their `*`."""
        if not alias.fallbacks:
            return []
        found = None if model in self._exact else self._glob_of(model)
        return [name if found is None else name.replace("*", found[1]) for name in alias.fallbacks]

    def _step(self, model: str) -> tuple[Alias, str] | None:
        alias = self._exact.get(model)
        if alias is not None:
            return alias, alias.model
        found = self._glob_of(model)
        return None if found is None else (found[0], found[0].model.replace("*", found[1]))

    def _glob_of(self, model: str) -> tuple[Alias, str] | None:
        """Return the first glob that a name fits, and what its `*` matched."""
        for head, tail, alias in self._globs:
            if len(model) >= len(head) + len(tail) and model.startswith(head) and model.endswith(tail):
                return alias, model[len(head) : len(model) - len(tail)]
        return None


def _circle(model: str) -> ConfigError:
    return ConfigError(f"the aliases of {model!r} refer to each other", hint="let one of them name a model")


def _check_effort(name: str, meaning: ResolvedModel, asked: str) -> None:
    """Raise ConfigError for a fallback that names an effort: an effort is that of the whole call."""
    efforts = (effort for step in meaning.steps for effort in (step.effort, step.forced_effort, step.max_effort))
    if meaning.suffix is None and not any(efforts):
        return
    hint = 'an alias has one effort for all its models: { model = ["…", "…"], effort = "…" }'
    raise ConfigError(f"the fallback {name!r} of {asked!r} sets an effort of its own", hint=hint)


def with_display(request: Request, meaning: ResolvedModel, rules: Sequence[ThinkingRules] = ()) -> Request:
    """Return the request with how thinking is shown, by `rules` or else by its aliases, where the caller did not say."""
    all_rules = (*rules, *meaning.steps)
    if not all_rules:
        return request
    options = request.options
    shown = next((rule.reasoning for rule in all_rules if rule.reasoning is not None), None)
    if shown is None or options.chose_display or options.omit_reasoning:
        return request
    options = msgspec.structs.replace(
        options, omit_reasoning=shown == "omit", reasoning_tags=shown == "tags", omit_unasked=False
    )
    return msgspec.structs.replace(request, options=options)


Asked = TypeVar("Asked", bound=Request | EmbedRequest)


def with_alias_fields(request: Asked, meaning: ResolvedModel) -> Asked:
    """Return the request with the fields that its aliases add to bodies for their model; the client's own name goes first."""
    fields: Mapping[str, Any] = {}
    for alias in reversed(meaning.steps):
        fields = merge_fields(fields, alias.extra_body)
    if not fields:
        return request
    options = msgspec.structs.replace(request.options, alias_fields=dict(fields), alias_model=meaning.model)
    return msgspec.structs.replace(request, options=options)


def with_effort(request: Request, meaning: ResolvedModel, rules: Sequence[ThinkingRules] = ()) -> Request:
    """Return the request with the effort that its model's name says, its aliases set, or further `rules`; a name says it for one call."""
    all_rules = (*meaning.steps, *rules)
    if not all_rules and meaning.suffix is None and not meaning.thinks:
        return request
    asked = request.options.reasoning or request.reasoning
    amount = meaning.suffix or _amount(asked)
    for alias in all_rules:
        if amount is None and asked is None:
            amount = alias.effort
        if alias.max_effort is not None and (amount is not None or asked is not None):
            # A budget is not compared with an effort: the bound holds in its place.
            amount = alias.max_effort if amount is None else min(amount, alias.max_effort, key=AMOUNTS.index)
        amount = alias.forced_effort or amount
    if amount is None and asked is None and meaning.thinks:
        return msgspec.structs.replace(
            request, options=msgspec.structs.replace(request.options, reasoning=ReasoningPolicy(mode="auto"))
        )
    if amount is None or amount == _amount(asked):
        return request
    policy = ReasoningPolicy(mode="off") if amount == "off" else ReasoningPolicy(mode="effort", effort=amount)
    if asked is not None:
        policy = msgspec.structs.replace(policy, visible=asked.visible)
    return msgspec.structs.replace(request, options=msgspec.structs.replace(request.options, reasoning=policy))


def _amount(policy: ReasoningPolicy | None) -> Amount | None:
    """Return the effort that a policy names; None for a budget or one that leaves it to the model."""
    if policy is None or policy.mode not in ("off", "effort"):
        return None
    return "off" if policy.mode == "off" else policy.effort


_ENDING = "-thinking"
_ON_DEMAND = frozenset(("effort", "budget", "level", "toggle", "adaptive"))


def with_thinking_name(meaning: ResolvedModel, providers: Sequence[Provider]) -> ResolvedModel:
    """Return the model that a name with `-thinking` means, and that it thinks; a name that is a model's own as it is."""
    bare = meaning.model.removesuffix(_ENDING)
    if bare == meaning.model or meaning.suffix is not None:
        return meaning
    meaning = msgspec.structs.replace(meaning, by_lists=True)
    named = provider_before(bare, providers)
    cut = 0 if named is None else bare.index("/") + 1
    if any(one.lists(meaning.model) for one in providers) or (named is not None and named.lists(meaning.model[cut:])):
        return meaning
    # Where nobody is configured, the catalog's providers of such names are meant.
    rows = [named.row] if named is not None else [provider.row for provider in providers] or builtin().providers
    listed = any(provider.lists(bare) for provider in providers) or (named is not None and named.lists(bare[cut:]))
    if _is_own_model(meaning.model[cut:], rows) or not (listed or _thinks_on_demand(bare[cut:], rows)):
        return meaning
    return msgspec.structs.replace(meaning, model=bare, thinks=True)


def _is_own_model(model: str, providers: Sequence[ProviderRow]) -> bool:
    """Whether the catalog has a model with this very ending, at a maker or at a host."""
    spelled = plain_id(builtin_models().spelled(model))
    for owner in ("", *(provider.id for provider in providers)):
        row = builtin_models().find(owner, model).row
        globs = () if row is None else tuple(plain_id(glob) for glob in row.match if "thinking" in glob)
        if matches_any(spelled, globs):
            return True
    return False


def _thinks_on_demand(model: str, providers: Sequence[ProviderRow]) -> bool:
    """Whether a maker's own API serves this model, and thinks only where it is asked to."""
    models = builtin_models()
    for provider in providers:
        source = models.sources.get(provider.id)
        if source is None or source.host or source.runs_weights or not provider.serves(model):
            continue
        row = models.find(provider.id, model).row
        if row is not None and row.omit == "off" and _ON_DEMAND.intersection(row.control or ()):
            return True
    return False
