"""Which providers may serve a model, in order.

A client names a bare model id or `provider/model`. Who lists exactly that name goes before what `provider/` leads to, and before who serves
such names by its catalog row alone; within each, the order of the configuration holds. A name without a tag and one with Ollama's `latest`
are the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property, lru_cache
from heapq import nlargest
from typing import Any
from urllib.parse import urljoin, urlsplit

import msgspec

from bardo.catalog.load import builtin
from bardo.catalog.matching import plain_id
from bardo.catalog.models import builtin_models
from bardo.catalog.rows import ProviderRow
from bardo.routing.fallback_route import RouteStep
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest, UnknownModel
from bardo.values.wire import WireRequest

MAX_MODEL_NAME = 256
"""Characters; the longest known ids, ARNs of inference profiles, have about 150."""
# The tag that Ollama's clients add to a name without one, and that Ollama lists.
_LATEST = ":latest"
_MOST_PREFIXES = 4
_MOST_COMPARED = 64
_MOST_LIKELY = 40
_SAME_WORD = 0.8
_SNAPSHOT = re.compile(r"20\d{6}$")


class Provider(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A provider as configured. `models` is what it is known to serve: from the configuration, or discovered.

    `addresses` are the base URLs of all its servers where it has several: `base_url` is the first of them then, or in one of `servers` that
    server's, which `address` names without what may be secret of it. `account` is a digest of whose account it is asked with, which two
    entries may share; empty where that is not known. `private` is whether it keeps nothing of a call by the operator's word, None if
    the operator says nothing. `drain_cancelled`: whether replies of clients that have left are read to their end, or None if `[gateway]`
    says so. `extra_body` are fields that bodies for it get below what the client said, and `model_extra_body` those of its models, by
    globs. `required_body` are the dotted paths of those without which it is not asked where it refuses them; None: those of the catalog.
    """

    id: str
    row: ProviderRow
    base_url: str
    models: tuple[str, ...] = ()
    configured_models: bool = False
    addresses: tuple[str, ...] = ()
    address: str = ""
    account: str = ""
    private: bool | None = None
    drain_cancelled: bool | None = None
    extra_body: dict[str, Any] = {}
    model_extra_body: tuple[tuple[str, dict[str, Any]], ...] = ()
    required_body: tuple[str, ...] | None = None

    @cached_property
    def servers(self) -> tuple[Provider, ...]:
        """The provider at each of its addresses; itself where it has one."""
        if self.address or len(self.addresses) < 2:
            return (self,)
        named = zip(self.addresses, address_names(self.addresses), strict=True)
        return tuple([msgspec.structs.replace(self, base_url=url, address=name) for url, name in named])

    @cached_property
    def place(self) -> str:
        """What its health and its facts are kept by: its id, with the address where it is one of several servers."""
        return f"{self.id} at {self.address}" if self.address else self.id

    @property
    def base_urls(self) -> tuple[str, ...]:
        """The base URLs of all its servers."""
        return self.addresses or (self.base_url,)

    @cached_property
    def endpoints(self) -> tuple[Provider, ...]:
        """The provider at each of its endpoints, this one first: with another dialect, and maybe another address.

        An endpoint with an address of its own is left out where the configuration names another server: where it is there, nobody knows.
        """
        usual = self.row.base_url
        at_usual = self.base_url.rstrip("/") == usual.rstrip("/")
        others = [row for row in self.row.at_endpoints[1:] if at_usual or row.base_url == usual]
        return (self, *(self._at(row, row.base_url if at_usual else self.base_url) for row in others))

    def _at(self, row: ProviderRow, base_url: str) -> Provider:
        return msgspec.structs.replace(self, row=row, base_url=base_url)

    def lists(self, model: str) -> bool:
        """Whether the provider is known to serve exactly this model id."""
        return model in self._listed

    @cached_property
    def _listed(self) -> frozenset[str]:
        return frozenset(self.models)

    def headers(self, wire: WireRequest) -> dict[str, str]:
        """Return the headers of a request to the provider, without those that prove who pays."""
        return {"content-type": "application/json", **self.row.headers, **wire.headers}

    def url(self, path: str) -> str:
        """Return the address of `path` at the provider: under the base URL, above it (`../props`), or at its host (`/props`).

        A query of the base URL (`?api-version=…`) goes along.
        """
        return _address(self.base_url, path)


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """One provider, and the name of the model there."""

    provider: Provider
    model: str


class RouteRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How the targets of a call that says what it needs were found: `fields` as they are shown, and what is lost at each target.

    `degraded` and `efforts`, the steps of a workload's route that ask for an effort of their own, are by the id of the provider and the
    model there.
    """

    fields: dict[str, Any]
    degraded: dict[tuple[str, str], tuple[Degradation, ...]] = {}
    efforts: dict[tuple[str, str], RouteStep] = {}

    def degraded_at(self, target: Target) -> tuple[Degradation, ...]:
        """Return what was wanted and a target does not have."""
        return self.degraded.get((target.provider.id, target.model), ())


@lru_cache(maxsize=256)
def _address(base_url: str, path: str) -> str:
    base, _, query = base_url.partition("?")
    # Two slashes would begin another host.
    path = f"/{path.lstrip('/')}" if path.startswith("//") else path
    address = urljoin(f"{base.rstrip('/')}/", path) if path.startswith(("/", ".")) else f"{base.rstrip('/')}/{path}"
    return f"{address}{'&' if '?' in path else '?'}{query}" if query else address


def address_names(base_urls: Sequence[str]) -> list[str]:
    """Return what each address of a provider is called: its host and port, and its path too where these are not enough.

    Users, passwords and queries, which may be secret, are in no name.
    """
    parts = [urlsplit(url) for url in base_urls]
    hosts = [part.netloc.rpartition("@")[2] for part in parts]
    return [
        host if hosts.count(host) == 1 else f"{host}{one.path.rstrip('/')}"
        for host, one in zip(hosts, parts, strict=True)
    ]


def endpoints_of(target: Target) -> list[Target]:
    """Return the target at each endpoint of its provider, itself first."""
    others = target.provider.endpoints[1:]
    return [target, *[msgspec.structs.replace(target, provider=one) for one in others]] if others else [target]


def target_names(targets: Sequence[Target]) -> list[str]:
    """Return what each target is called in a report: its provider, and the model there where these differ."""
    if len({target.model for target in targets}) == 1:
        return [one.provider.place for one in targets]
    return [f"{one.provider.place}/{one.model}" for one in targets]


def resolve(model: str, providers: Sequence[Provider]) -> list[Target]:
    """Return the targets for a model name, best first. Raises UnknownModel, and InvalidRequest for what cannot be a name."""
    check_model_name(model)
    if model.endswith(_LATEST) and not any(provider.lists(model) for provider in providers):
        model = model.removesuffix(_LATEST)
    listing = [provider for provider in providers if provider.lists(model)]
    named = None if listing else _named(model, providers)
    if named is not None:
        return [named]
    fitting = [provider for provider in providers if provider not in listing and may_serve(provider, model)]
    targets = [Target(provider=provider, model=model) for provider in (*listing, *fitting)]
    tagged = model + _LATEST
    targets = targets or [Target(provider=one, model=tagged) for one in providers if one.lists(tagged)]
    targets = targets or _of_same_model(model, providers)
    if not targets:
        raise unknown_model(model, providers)
    return targets


def may_serve(provider: Provider, model: str) -> bool:
    """Return whether a provider without configured models serves such names by its row; a name of Vertex AI's is none of others."""
    is_vertex = "@" in model and bool(builtin_models().ids_at_maker(model))
    return not provider.configured_models and not is_vertex and provider.row.serves(model)


def _of_same_model(model: str, providers: Sequence[Provider]) -> list[Target]:
    """Return the targets of a model that a cloud calls so, under the ids that its providers have for it.

    Another snapshot is another model; a name without a day is any, and the newest where none is without. Behind a name that is no
    provider's here, it is nobody's: that may be mistyped.
    """
    spelled = builtin_models().ids_at_maker
    spellings = spelled(model)
    if not spellings or ("/" in model and not model.startswith("arn:")):
        return []
    day, targets = _SNAPSHOT.search(spellings[0]), []
    for provider in providers:
        # Lists may be long: only ids that hold the name are spelled.
        same = [
            one for one in provider.models if spellings[-1] in plain_id(one) and spelled(one)[-1:] == spellings[-1:]
        ]
        days = {one: its[0] if (its := _SNAPSHOT.search(spelled(one)[0])) else "" for one in same}
        fitting = [one for one, its in days.items() if not (day and its and day[0] != its)]
        if fitting:
            nearest = max(fitting, key=lambda one: (bool(days[one]) == bool(day), days[one]))
            targets.append(Target(provider=provider, model=nearest))
        elif not provider.configured_models and provider.row.serves(spellings[0]):
            targets.append(Target(provider=provider, model=spellings[0]))
    return targets


def check_model_name(model: str) -> None:
    """Raise InvalidRequest for a name over MAX_MODEL_NAME characters, or with a character that cannot be shown."""
    if len(model) > MAX_MODEL_NAME:
        message = f"the model name has {len(model)} characters, and may have {MAX_MODEL_NAME}"
        raise InvalidRequest(message, hint="name a model, as listed at /v1/models", param="model")
    if not model.isprintable():
        message = "the model name holds a control character, or another that cannot be shown"
        raise InvalidRequest(message, hint="name a model, as listed at /v1/models", param="model")


def _named(model: str, providers: Sequence[Provider]) -> Target | None:
    """Return the target of `provider/model`."""
    provider = provider_before(model, providers)
    return None if provider is None else target_at(provider, model)


def provider_before(model: str, providers: Sequence[Provider]) -> Provider | None:
    """Return the provider that a name like `provider/model` begins with: its own id goes before what its catalog row is called."""
    prefix, _, rest = model.partition("/")
    if not rest:
        return None
    by_id = (provider for provider in providers if provider.id == prefix)
    by_row = (provider for provider in providers if prefix in (provider.row.id, *provider.row.aliases))
    return next(by_id, None) or next(by_row, None)


def target_at(provider: Provider, model: str) -> Target:
    """Return the target of a model at a given provider, whose own name may stand before the model's: `anthropic/claude-opus-5`."""
    prefix, _, rest = model.partition("/")
    own = rest and prefix in (provider.id, provider.row.id, *provider.row.aliases)
    # Some models' own names begin like that: `openrouter/auto`.
    whole = provider.lists(model) or (provider.row.serves_path(model) and not provider.row.serves(rest))
    if not own or whole:
        return Target(provider=provider, model=model)
    # Where another provider lists `openai/gpt-5`, the one called `openai` has its own under `openai/openai/gpt-5`.
    inner = rest
    while not provider.lists(inner) and inner.startswith(f"{prefix}/"):
        inner = inner.partition("/")[2]
    return Target(provider=provider, model=inner if provider.lists(inner) else rest)


def names_of_listed(providers: Sequence[Provider]) -> list[tuple[str, Target]]:
    """Return every listed model with a name that leads to it: its own, with the provider's before it, or with that several times.

    A model that has none of them, or whose name cannot be asked for, is left out.
    """
    listing: dict[str, Provider] = {}
    for provider in providers:
        for model in provider.models:
            listing.setdefault(model, provider)
    names: list[tuple[str, Target]] = []
    for provider in providers:
        for model in dict.fromkeys(provider.models):
            target = Target(provider=provider, model=model)
            named = (f"{provider.id}/" * count + model for count in range(_MOST_PREFIXES + 1))
            name = next((name for name in named if _leads_to(name, target, listing, providers)), "")
            if name and name.isprintable() and len(name) <= MAX_MODEL_NAME:
                names.append((name, target))
    return names


def _leads_to(name: str, target: Target, listing: Mapping[str, Provider], providers: Sequence[Provider]) -> bool:
    """Return whether a name leads to a target, as `resolve` finds it."""
    if name in listing:
        return listing[name] is target.provider and name == target.model
    return (
        provider_before(name, providers) is target.provider and target_at(target.provider, name).model == target.model
    )


def unknown_model(model: str, providers: Sequence[Provider]) -> UnknownModel:
    """Return the error for a name that leads nowhere, with the nearest names that do."""
    if not providers:
        return UnknownModel(f"no provider serves {model!r}", hint=_hint_without_providers(model))
    near = near_names(model, providers)
    ids = ", ".join(provider.id for provider in providers)
    hint = f"did you mean {' or '.join(near)}?" if near else f"use provider/model with one of {ids}"
    return UnknownModel(f"no provider here serves {model!r}", hint=hint)


def _hint_without_providers(model: str) -> str:
    """Return what to do where no provider is configured: the variable of the key of the provider that is named, or was meant."""
    prefix, slash, rest = model.partition("/")
    presets = builtin()
    row = presets.provider(prefix) if slash else None
    near = [] if row is not None or not slash else nearest_names(prefix.lower(), presets.names(), cutoff=_SAME_WORD)[:1]
    meant = f"did you mean {near[0]}/{rest}? " if near else ""
    row = row or (presets.provider(near[0]) if near else None)
    variables = " or ".join(row.key_variables) if row is not None else ""
    key = f"{variables} (the key of {row.id})" if row is not None and variables else "a provider's key"
    return f"{meant}no provider is configured: set {key} in the environment, or write a bardo.toml"


def near_names(model: str, providers: Sequence[Provider]) -> list[str]:
    """Return up to three names that a name may have been meant for, of the models that are listed; of one provider where it names one.

    A name that is listed was not mistaken.
    """
    every = sorted({name for provider in providers for name in provider.models})
    prefix, _, rest = model.partition("/")
    named = provider_before(model, providers)
    if named is None:
        ids = [provider.id for provider in providers]
        meant = nearest_names(prefix, ids, cutoff=_SAME_WORD)[:1] if rest else []
        named = next((provider for provider in providers if provider.id in meant), None)
        if named is None:
            return nearest_names(model, every)
        prefix = named.id
        if not named.models or rest in named.models:
            return [f"{prefix}/{rest}"]
    return [f"{prefix}/{name}" for name in nearest_names(rest, sorted(set(named.models)))] or nearest_names(
        model, every
    )


def nearest_names(wanted: str, names: Sequence[str], *, cutoff: float = 0.5) -> list[str]:
    """Return up to three known names that are near to one, which is not known itself."""
    if wanted in names:
        return []
    folded = wanted.strip().casefold()
    same = [name for name in names if name.casefold() == folded]
    if same:
        return same[:3]
    # Comparing is slow: only names that share most pieces are compared, so that thousands of them take milliseconds.
    pieces = {wanted[at : at + 2].lower() for at in range(min(len(wanted), _MOST_COMPARED) - 1)}
    shared = {name: sum(piece in name.lower() for piece in pieces) for name in names}
    few = len(names) <= _MOST_LIKELY
    likely = names if few else nlargest(_MOST_LIKELY, (name for name in names if shared[name]), key=shared.__getitem__)
    by_lower = {name.lower(): name for name in reversed(likely)}
    return [by_lower[name] for name in get_close_matches(wanted[:_MOST_COMPARED].lower(), by_lower, n=3, cutoff=cutoff)]
