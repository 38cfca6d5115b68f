"""The directory of providers and of the models that each serves: from the configuration, from keys in the environment, and by asking.

A provider whose models are not configured is asked for its list, once, when a name cannot be placed without it. Nothing here fails a start:
a provider that does not answer serves the models of its catalog row.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import lru_cache
from hashlib import pbkdf2_hmac
from typing import Any, TypeVar

import msgspec

from bardo.adapters.config.routing import workloads_of
from bardo.adapters.config.settings import Settings, provider_of
from bardo.adapters.net import aws
from bardo.adapters.net.client import Deadlines, Transport
from bardo.adapters.net.keys import Keyring
from bardo.catalog.agent_rows import picker
from bardo.catalog.load import builtin
from bardo.catalog.models import builtin_models
from bardo.catalog.replay import builtin_replay
from bardo.planning.model_names import AMOUNTS, Aliases, ResolvedModel, with_thinking_name
from bardo.planning.refusals import is_about_model
from bardo.planning.route import (
    MAX_MODEL_NAME,
    Provider,
    RouteRecord,
    Target,
    may_serve,
    near_names,
    provider_before,
    resolve,
    target_at,
)
from bardo.routing.workloads import PREFIX, Workload, Workloads, builtin_workloads, unknown_workload
from bardo.services.facts.list_models import ASKING, list_models_of
from bardo.services.facts.listings import Listings
from bardo.values.degradation import Degradation
from bardo.values.error_cleaning import clean_error
from bardo.values.errors import BardoError, UnknownModel, Unreachable, UpstreamRefused

_ROUNDS = 4096
"""Clients see the digest in sealed state: a short key must not be found by trying all of them."""
_BYTES = 9
# Where an account's models run says nothing of whose it is.
_PLACES = ("location", "region")


def with_account(provider: Provider, keyring: Keyring, named: str | None = None) -> Provider:
    """Return the provider with a digest of whose account it is asked with, which may be `named` in its entry.

    Ciphertexts and signatures are bound to an account, besides the platform that made them. A key stands for the account it belongs to, so
    that two entries with one key are one account. Keys that take turns in one entry are one account too, named by the first that is set.
    Access tokens that change by the hour name none: there the project does, or this machine's credentials.
    """
    owner = _owner(provider, keyring) if named is None else ("named", named)
    return msgspec.structs.replace(provider, account=_digest(*owner))


@lru_cache(maxsize=512)
def _digest(*owner: str) -> str:
    return pbkdf2_hmac("sha256", "\0".join(owner).encode(), b"bardo account", _ROUNDS, _BYTES).hex()


def _owner(provider: Provider, keyring: Keyring) -> tuple[str, ...]:
    row = provider.row
    if row.auth == "google":
        project = [f"{name}={value}" for name, value in sorted(row.scope.items()) if name not in _PLACES]
        return ("project", *(project or [provider.base_url]))
    if row.auth == "aws" and aws.BEARER in row.key_variables:
        return ("credentials of this machine",)
    key = keyring.key_of(provider)
    organisation = [
        f"{name}={value}" for name, value in keyring.headers_of(row) if name in builtin_replay().account_headers
    ]
    return ("key", key, *organisation) if key else ("address", provider.base_url, *organisation)


_PROBING = Deadlines(connect=0.3, first_byte=1.0, idle=1.0, total=2.0)
ANSWER_SECONDS = 1.5
"""How long who asks for a list waits for the providers' own: Claude Code gives up after three seconds."""
LISTING_SECONDS = 2.5
"""How long a command that lists models waits for the providers' lists."""
PLACING_SECONDS = 6.0
"""How long a call for a model without a known provider waits for the providers' lists."""
_LOCAL = "local"
_KEPT_SECONDS = 300.0
_MOST_REASONS = 5
# Clients choose the names.
_MOST_NAMES = 512

_log = logging.getLogger("bardo.directory")

T = TypeVar("T")


class Placement(msgspec.Struct, frozen=True):
    """The targets of a name, best first, and those of its models that no provider serves: as errors, and as they are reported.

    `route` is how they were found for a request that says what it needs, None for one that names a model. `meant` is the name that the
    one asked for is another name of, empty where it is none.
    """

    targets: tuple[Target, ...]
    problems: tuple[UnknownModel, ...] = ()
    skipped: tuple[Degradation, ...] = ()
    route: RouteRecord | None = None
    meant: str = ""

    @property
    def has_servers(self) -> bool:
        """Whether one of the targets has several addresses of which none was chosen yet."""
        for target in self.targets:  # noqa: SIM110 - asked for every call, where a loop costs half of what `any` does.
            if target.provider.addresses and not target.provider.address:
                return True
        return False


class ProviderDirectory:
    """The providers in order, with the models each is known to serve.

    `seeks_local`: servers on this machine are looked for too, when a name cannot be placed without them. `aliases` are names of the
    operator's own, `workloads` names for kinds of work. `listings` are lists that were kept: they hold where a provider does not answer.
    """

    def __init__(
        self,
        providers: Sequence[Provider],
        transport: Transport,
        keyring: Keyring,
        *,
        clock: Callable[[], float],
        seeks_local: bool = False,
        aliases: Aliases | None = None,
        workloads: Workloads | None = None,
        listings: Listings | None = None,
    ) -> None:
        self.aliases = aliases or Aliases()
        self.workloads = builtin_workloads() if workloads is None else workloads
        self._providers = list(providers)
        self._transport = transport
        self._keyring = keyring
        self._clock = clock
        self._seeks_local = seeks_local
        self._listings = listings
        self._asked: dict[str, float] = {}
        self._unlisted: dict[str, str] = {}
        self._coming: dict[str, asyncio.Task[None]] = {}
        # What names stand for and who serves them, as long as nothing changes.
        self._names: dict[str, ResolvedModel] = {}
        self._resolved: dict[str, list[Target]] = {}
        self._placements: dict[str, Placement] = {}

    @classmethod
    def of(
        cls,
        settings: Settings,
        transport: Transport,
        keyring: Keyring,
        *,
        clock: Callable[[], float],
        listings: Listings | None = None,
    ) -> ProviderDirectory:
        """Return the directory of a configuration; one without providers takes those whose keys are set."""
        configured = [
            with_account(provider_of(entry, settings.source), keyring, entry.account) for entry in settings.providers
        ]
        providers = configured or with_keys(keyring)
        return cls(
            providers,
            transport,
            keyring,
            clock=clock,
            seeks_local=not configured,
            aliases=Aliases(settings.aliases),
            workloads=workloads_of(settings.workloads),
            listings=listings,
        )

    @property
    def providers(self) -> list[Provider]:
        """The providers in order."""
        return list(self._providers)

    @property
    def unlisted(self) -> dict[str, str]:
        """Why there is no list of models of a provider that was asked for one, by its id."""
        return dict(self._unlisted)

    @property
    def late(self) -> dict[str, str]:
        """Why a provider that was asked for its models shows none, by its id."""
        ids = (provider.id for provider in self._providers if not provider.models)
        return {name: self._unlisted[name] for name in ids if name in self._unlisted}

    async def targets(self, model: str) -> list[Target]:
        """Return who may serve `model`, or what it is an alias of, best first. Raises UnknownModel."""
        return list((await self.placement(model)).targets)

    async def placement(self, *models: str, asks: bool = True) -> Placement:
        """Return who may serve some models, or those that they are aliases of, best first. Raises UnknownModel if no provider does.

        Without `asks` no provider is asked for its list.
        """
        cached = self._placements.get(models[0]) if len(models) == 1 else None
        if cached is not None:
            return cached
        names = self._names_behind(models)
        if asks and any(self._may_be_listed_elsewhere(name) for name in names):
            await self.discover()
            names = self._names_behind(models)
        placement = self._place_all(names)
        if placement.problems and asks:
            await self.discover(seconds=PLACING_SECONDS)
            placement = self._place_all(self._names_behind(models))
        if len(models) == 1 and (meant := self.meant(models[0])) != models[0]:
            placement = msgspec.structs.replace(placement, meant=meant)
        if not placement.targets:
            problem = placement.problems[0]
            raise self._explained(problem) from problem
        if len(models) == 1 and not placement.problems and asks:
            _remember(self._placements, models[0], placement)
        return placement

    def _names_behind(self, models: Sequence[str]) -> tuple[str, ...]:
        every = [self.meaning_of(model) for model in models]
        return tuple(dict.fromkeys(name for meaning in every for name in (meaning.model, *meaning.fallbacks)))

    def _may_be_listed_elsewhere(self, name: str) -> bool:
        """Whether a name that begins with a provider may be of another's list that was not asked for: `openai/gpt-oss-120b` is Groq's."""
        named = provider_before(name, self._providers)
        if named is None or any(provider.lists(name) for provider in self._providers):
            return False
        return any(
            provider is not named
            and provider.id not in self._asked
            and self._due(provider)
            and (not provider.row.models or provider.row.serves_path(name))
            for provider in self._providers
        )

    def _place_all(self, names: Sequence[str]) -> Placement:
        targets: list[Target] = []
        problems: list[UnknownModel] = []
        skipped: list[Degradation] = []
        for name in names:
            try:
                targets += [target for target in self._place(name) if target not in targets]
            except UnknownModel as problem:
                problems.append(problem)
                skipped.append(Degradation("model", asked=name, why=problem.message))
        return Placement(tuple(targets), tuple(problems), tuple(skipped))

    def meaning_of(self, model: str) -> ResolvedModel:
        """Return what a name stands for; one that a provider lists stands for itself, whatever its ending."""
        cached = self._names.get(model)
        if cached is not None:
            return cached
        meant = self.meant(model)
        meaning = self.aliases.find(meant)
        listed = meaning.suffix is not None and any(provider.lists(meant) for provider in self._providers)
        meaning = ResolvedModel(meant) if listed else with_thinking_name(meaning, self._providers)
        workload = self.workloads.find(meaning.model)
        meaning = meaning if workload is None else msgspec.structs.replace(meaning, workload=workload)
        return _remember(self._names, model, meaning)

    def meant(self, model: str) -> str:
        """Return the name that a client means by one that leads nowhere by itself.

        It may be `anthropic/` before any name, by which agents that keep Claude's names alone find it in a list, an ARN of AWS that holds a
        name, or a cloud's spelling of a model of Claude for which there is an alias under another.
        """
        inner = model.partition("/")[2] if model.startswith("arn:") else model
        other, models = inner.removeprefix(picker().prefix), builtin_models()
        if (other == model and not models.may_be_of_cloud(model)) or len(model) > MAX_MODEL_NAME:
            return model
        routed = (name for name in (model, inner, other) if self._has_route(name) or self._leads(name))
        spelled = (name for name in models.ids_at_maker(other) if self._has_route(name))
        return next(routed, None) or next(spelled, None) or (other if models.may_be_of_cloud(other) else model)

    def _has_route(self, name: str) -> bool:
        return bool(self.aliases.find(name).steps) or self.workloads.find(name) is not None

    def _leads(self, name: str) -> bool:
        """Return whether a name leads to a provider that is known to serve it, or may."""
        if any(provider.lists(name) for provider in self._providers):
            return True
        bare, _, behind = name.rpartition(":")
        if bare and behind in AMOUNTS:
            return self._leads(bare)
        named = provider_before(name, self._providers)
        if named is not None:
            rest = target_at(named, name).model
            return named.lists(rest) or named.row.serves(rest) or not (named.models or named.row.models)
        return any(may_serve(provider, name) for provider in self._providers)

    async def listed_meaning_of(self, model: str) -> ResolvedModel:
        """Return what a name stands for; if that depends on who lists it, providers that were not asked yet are asked for their lists."""
        meaning = self.meaning_of(model)
        if meaning.by_lists and any(map(self._due, self._providers)):
            await self.discover(seconds=PLACING_SECONDS)
            meaning = self.meaning_of(model)
        return meaning

    def workload(self, model: str) -> Workload | None:
        """Return the workload that a model's name stands for, or None if it stands for models."""
        return self.meaning_of(model).workload

    def _place(self, model: str) -> list[Target]:
        placed = self._resolved.get(model)
        if placed is None:
            if model.startswith(PREFIX) and not self._has_provider(model):
                raise unknown_workload(model.removeprefix(PREFIX), self.workloads)
            placed = _remember(self._resolved, model, resolve(model, self._providers))
        return [*placed]

    def _has_provider(self, model: str) -> bool:
        """Whether a name like a workload's is a model of somebody's: of a provider so called, or of one that lists it."""
        return any(provider.lists(model) or provider.id == PREFIX.rstrip("/") for provider in self._providers)

    def _forget(self) -> None:
        """Forget what followed from the providers, which have changed."""
        self._names.clear()
        self._resolved.clear()
        self._placements.clear()

    def _explained(self, problem: UnknownModel) -> UnknownModel:
        """Return the error with whose models are not known, and why: the model may be one of these."""
        if not self._unlisted:
            return problem
        told = "; ".join(f"{name}: {why}" for name, why in list(self._unlisted.items())[:_MOST_REASONS])
        more = len(self._unlisted) - _MOST_REASONS
        rest = f"; and {more} more" if more > 0 else ""
        hint = f"mend that, or ask for provider/model; {problem.hint}" if problem.hint else ""
        return UnknownModel(
            f"{problem.message}, as far as is known: there is no list of models of {told}{rest}", hint=hint
        )

    async def suggest(self, problem: BardoError, model: str) -> None:
        """Add the names that are near to a provider's refusal of a model. A provider that was not asked for its models yet is asked."""
        if not isinstance(problem, UpstreamRefused) or problem.hint or not is_about_model(problem):
            return
        await self.discover()
        near = near_names(self.meaning_of(model).model, self._providers)
        if near:
            problem.hint = f"did you mean {' or '.join(near)}?"

    async def models(self, *, seconds: float | None = None) -> list[Provider]:
        """Return the providers with all models they are known to serve, asked where need be, after so many seconds at most."""
        await self.discover(seconds=seconds)
        return self.providers

    async def discover(self, *, seconds: float | None = None) -> None:
        """Ask every provider that may serve more than is known, and wait for them, but no longer than so many seconds.

        A list that comes later is taken then.
        """
        seconds = ANSWER_SECONDS if seconds is None else seconds
        if self._seeks_local and self._is_due(_LOCAL):
            self._asked[_LOCAL] = self._clock()
            self._begin(_LOCAL, self._seek_local())
        for provider in self._providers:
            if self._due(provider):
                self._asked[provider.id] = self._clock()
                self._begin(provider.id, self._ask_and_take(provider))
        if self._coming:
            await asyncio.wait(self._coming.values(), timeout=seconds)
        for name in self._coming:
            if name != _LOCAL and name not in self._unlisted:
                self._unlisted[name] = "it has not answered yet"
                _log.warning("no model list from %s within %g s: it is shown when it comes", name, seconds)

    def _begin(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._coming[name] = task
        task.add_done_callback(lambda done: self._end(name, done))

    def _end(self, name: str, task: asyncio.Task[None]) -> None:
        self._coming.pop(name, None)
        if not task.cancelled() and (problem := task.exception()) is not None:
            _log.error("a mistake in bardo, while the models of %s were asked for", name, exc_info=problem)

    async def close(self) -> None:
        """Wait for no list any more."""
        coming = list(self._coming.values())
        for task in coming:
            task.cancel()
        await asyncio.gather(*coming, return_exceptions=True)

    async def _ask_and_take(self, provider: Provider) -> None:
        models = await self._ask(provider)
        if models is None:
            return
        for place, held in enumerate(self._providers):
            if held.id == provider.id:
                self._providers[place] = msgspec.structs.replace(held, models=models)
        self._forget()

    async def add_local(self) -> list[Provider]:
        """Look for servers on their usual ports, and take in those that answer."""
        before = {provider.id for provider in self._providers}
        if _LOCAL not in self._coming:
            self._asked[_LOCAL] = self._clock()
            self._begin(_LOCAL, self._seek_local())
        await asyncio.wait((self._coming[_LOCAL],))
        return [provider for provider in self._providers if provider.id not in before]

    async def _seek_local(self) -> None:
        rows = [row for row in builtin().local() if all(held.row.id != row.id for held in self._providers)]
        providers = [with_account(Provider(id=row.id, row=row, base_url=row.base_url), self._keyring) for row in rows]
        answers = await asyncio.gather(*(self._ask(provider, _PROBING, quiet=True) for provider in providers))
        self._providers += [
            msgspec.structs.replace(provider, models=models)
            for provider, models in zip(providers, answers, strict=True)
            if models is not None
        ]
        self._forget()

    def _due(self, provider: Provider) -> bool:
        asks = bool(provider.row.model_list) and not provider.configured_models and provider.row.auth != "client"
        return asks and self._is_due(provider.id)

    def _is_due(self, name: str) -> bool:
        asked = self._asked.get(name)
        return asked is None or self._clock() - asked > _KEPT_SECONDS

    async def _ask(
        self, provider: Provider, deadlines: Deadlines | None = None, *, quiet: bool = False
    ) -> tuple[str, ...] | None:
        deadlines = deadlines or ASKING
        self._asked[provider.id] = self._clock()
        try:
            async with asyncio.timeout(deadlines.total):
                models = await list_models_of(provider, self._transport, self._keyring, deadlines)
        except (BardoError, TimeoutError) as failure:
            why = f"its list of models did not come within {deadlines.total:g} s"
            problem = failure if isinstance(failure, BardoError) else Unreachable(why, provider=provider.id)
            if not quiet:
                clean_error(problem, self._keyring.secrets([provider]))
                self._unlisted[provider.id] = problem.message
                _log.warning("no model list from %s: %s", provider.id, problem.message)
            return self._kept_list(provider)
        self._unlisted.pop(provider.id, None)
        return models

    def _kept_list(self, provider: Provider) -> tuple[str, ...] | None:
        """Return the models of the last list that was kept of a provider, which does not answer now, or None if there is none."""
        listing = None if self._listings is None else self._listings.of(provider)
        return None if listing is None else tuple(listing.models)


def _remember(memory: dict[str, T], name: str, value: T) -> T:
    """Keep what was found of a name, unless it is too long to be one, and return it."""
    if len(name) <= MAX_MODEL_NAME:
        if len(memory) >= _MOST_NAMES:
            memory.clear()
        memory[name] = value
    return value


def with_keys(keyring: Keyring) -> list[Provider]:
    """Return the hosted providers whose keys are set, one for each address; not those that may be asked without a key."""
    providers: list[Provider] = []
    for row in builtin().providers:
        taken = any(held.base_url == row.base_url for held in providers)
        if row.base_url and not row.local and row.auth != "none" and not taken and keyring.has(row):
            providers.append(with_account(Provider(id=row.id, row=row, base_url=row.base_url), keyring))
    return providers
