"""What `bardo doctor` checks of providers and models: that each server answers, its key, its models, and how they are told to think.

No key is shown: only the name of the variable that holds it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Literal

import msgspec

from bardo.adapters.config.secrets import how_to_remove, secrets_of
from bardo.adapters.config.settings import Settings, provider_of
from bardo.adapters.net.client import Call, Deadlines, HttpTransport, Reply, Transport
from bardo.adapters.net.keys import Keyring
from bardo.planning.route import Provider, Target
from bardo.services.facts.directory import ProviderDirectory, with_keys
from bardo.services.facts.introspect import Introspector, MergedModel, merge
from bardo.services.facts.list_models import KEY_REFUSED, list_models
from bardo.services.facts.model_facts import ModelFacts
from bardo.surfaces.render.facts import TITLES, conflicts_text, facts_line
from bardo.values.errors import BardoError, MalformedReply, MissingKey, ProviderError
from bardo.values.secrets import shown_url

_ASKING = Deadlines(connect=2.0, first_byte=4.0, idle=4.0)
_LONGEST_SECONDS = 8.0

Status = Literal["ok", "warning", "problem"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at. `fix` says what to do where it is not `ok`."""

    area: str
    status: Status
    found: str
    fix: str = ""


async def check_providers(settings: Settings, keyring: Keyring) -> list[Finding]:
    """Ask every provider for its models, all at once."""
    configured = [provider_of(entry, settings.source) for entry in settings.providers]
    asked = configured or with_keys(keyring)
    transport = HttpTransport()
    try:
        directory = ProviderDirectory((), transport, keyring, clock=time.monotonic)
        servers_asked = [server for provider in asked for server in provider.servers]
        questions = asyncio.gather(*(_provider(server, transport, keyring) for server in servers_asked))
        by_key = asyncio.gather(*(_keys(provider, transport, keyring) for provider in asked))
        local, found, keys = await asyncio.gather(directory.add_local(), questions, by_key)
        found += [finding for findings in keys for finding in findings]
        models = await check_models(asked, transport, keyring, own=ModelFacts(settings.models))
    finally:
        await transport.close()
    known = {url for provider in asked for url in provider.base_urls}
    servers = [_local_finding(server) for server in local if server.base_url not in known]
    return [*found, *servers, *models, *_secrets(settings)] or [_no_provider_finding()]


def _secrets(settings: Settings) -> list[Finding]:
    """Return a warning for each provider whose table holds a secret, by its name and never by its value."""
    return [
        Finding(
            area=f"provider {entry.id}",
            status="warning",
            found=f"a secret stands in {settings.source}: {', '.join(found)}",
            fix=how_to_remove(entry, found, provider_of(entry, settings.source).row.key_variables),
        )
        for entry in settings.providers
        if (found := secrets_of(entry))
    ]


async def _provider(provider: Provider, transport: Transport, keyring: Keyring) -> Finding:
    area = f"provider {provider.place}"
    if provider.row.auth == "client":
        found = f"{shown_url(provider.base_url)} is asked with each client's own login, and was not asked now"
        fix = (
            ""
            if provider.configured_models
            else "name its models in bardo.toml: without a login nobody can ask for its list"
        )
        return Finding(area=area, status="warning" if fix else "ok", found=found, fix=fix)
    recorder = StatusRecorder(transport)
    started = time.monotonic()
    try:
        async with asyncio.timeout(_LONGEST_SECONDS):
            models = await list_models(provider, recorder, keyring, _ASKING)
    except TimeoutError:
        found = f"{shown_url(provider.base_url)} sends its list of models too slowly"
        return Finding(area=area, status="problem", found=found, fix="check the server, and the network to it")
    except MissingKey as problem:
        return Finding(area=area, status="problem", found=problem.message, fix=problem.hint)
    except ProviderError as problem:
        return _unlisted_finding(provider, problem, recorder.status)
    except BardoError as problem:
        return Finding(area=area, status="problem", found=problem.message, fix=problem.hint)
    listed = (
        f"{shown_url(provider.base_url)} answers in {time.monotonic() - started:.2f} s, {plural(len(models), 'model')}"
    )
    unknown = [model for model in provider.models if model not in models] if provider.configured_models else []
    if unknown:
        fix = "name models it lists, or leave `models` out"
        return Finding(area=area, status="warning", found=f"{listed}; it does not list {', '.join(unknown)}", fix=fix)
    return Finding(area=area, status="ok", found=f"{listed}, {_key(provider, keyring)}")


def _unlisted_finding(provider: Provider, problem: ProviderError, status: int | None) -> Finding:
    """Return the finding for a missing list: no server, a refused key, or a server without a list."""
    area = f"provider {provider.place}"
    if status is None or not isinstance(problem, MalformedReply):
        fix = problem.hint or "check base_url, and that the server runs"
        return Finding(area=area, status="problem", found=problem.message, fix=fix)
    if status in KEY_REFUSED:
        variables = " or ".join((*provider.row.key_variables, *provider.row.header_variables.values()))
        fix = f"check the key in {variables}" if variables else "set api_key_env to the variable that holds its key"
        return Finding(
            area=area, status="problem", found=f"{shown_url(provider.base_url)} refuses the key ({status})", fix=fix
        )
    found = f"{shown_url(provider.base_url)} answers, but {problem.message}"
    if provider.configured_models and status < 500:
        return Finding(area=area, status="ok", found=found)
    fix = "check base_url; where the server has no list, name its models in bardo.toml"
    return Finding(area=area, status="problem" if status >= 500 else "warning", found=found, fix=fix)


async def _keys(provider: Provider, transport: Transport, keyring: Keyring) -> list[Finding]:
    """Return a finding for each of several keys, by the variable that holds it: whether it is set, and taken."""
    if not provider.row.several_keys:
        return []
    there = keyring.labels(provider)
    asked = await asyncio.gather(*(_one_key(provider, label, transport, keyring) for label in there))
    missing = [name for name in provider.row.key_variables if name not in there]
    fix = "set it where bardo runs, or leave it out of api_key_env"
    area = f"keys of {provider.id}"
    return [*asked, *(Finding(area=area, status="warning", found=f"{name} is not set", fix=fix) for name in missing)]


async def _one_key(provider: Provider, label: str, transport: Transport, keyring: Keyring) -> Finding:
    area, recorder = f"keys of {provider.id}", StatusRecorder(transport)
    try:
        async with asyncio.timeout(_LONGEST_SECONDS):
            await list_models(provider, recorder, keyring, _ASKING, key=label)
    except (TimeoutError, BardoError):
        if recorder.status in KEY_REFUSED:
            found = f"the key in {label} is refused ({recorder.status})"
            return Finding(area=area, status="problem", found=found, fix=f"check the key in {label}")
        return Finding(area=area, status="ok", found=f"the key in {label} is set; there is no list to try it with")
    return Finding(area=area, status="ok", found=f"the key in {label} is taken")


def _key(provider: Provider, keyring: Keyring) -> str:
    variables = " or ".join(provider.row.key_variables)
    if keyring.has(provider.row):
        return f"key in {variables}"
    return "no key needed"


def _local_finding(server: Provider) -> Finding:
    found = f"{server.row.name} runs at {shown_url(server.base_url)}, {plural(len(server.models), 'model')}"
    return Finding(area="local server", status="ok", found=found)


def _no_provider_finding() -> Finding:
    fix = "set a provider's key, start a local server, write a bardo.toml, or try `bardo simulate`"
    return Finding(area="providers", status="warning", found="none configured, no key set, none local", fix=fix)


def plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class StatusRecorder:
    """A transport that records the status of its last reply: a server that answers at all is reachable."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.status: int | None = None

    async def send(self, call: Call, deadlines: Deadlines) -> Reply:
        reply = await self._transport.send(call, deadlines)
        self.status = reply.status
        return reply

    async def close(self) -> None:
        await self._transport.close()


MOST_MODELS = 8
"""Of each provider; a longer list is for `bardo catalog show`."""


async def check_models(
    providers: Sequence[Provider], transport: Transport, keyring: Keyring, *, own: ModelFacts
) -> list[Finding]:
    """Return a finding for each configured model, and ask the servers that can say something of it. `own` is the operator's word."""
    introspector = Introspector(transport, keyring)
    named = [
        Target(provider=provider, model=model)
        for provider in providers
        for model in (provider.models[:MOST_MODELS] if provider.configured_models else ())
    ]
    try:
        learned = await asyncio.gather(*(introspector.learn(one.provider, one.model) for one in named))
    finally:
        await introspector.close()
    merged = (
        merge(one.provider, one.model, said, own=own.of(one).layers) for one, said in zip(named, learned, strict=True)
    )
    return [_finding(one) for one in merged]


def _finding(merged: MergedModel) -> Finding:
    area = f"model {merged.provider}/{merged.model}"
    if merged["shutdown"] is not None:
        fix = "name another model in bardo.toml before that day"
        return Finding(
            area=area, status="warning", found=f"shuts down on {merged['shutdown']}; {facts_line(merged)}", fix=fix
        )
    if not merged.disagreements:
        return Finding(area=area, status="ok", found=facts_line(merged))
    said = "; ".join(f"{TITLES[fact.field]}: {conflicts_text(fact)}" for fact in merged.disagreements)
    fix = f"`bardo probe {merged.model} --provider {merged.provider}` finds out who is right"
    return Finding(area=area, status="warning", found=f"{facts_line(merged)}. Layers disagree: {said}", fix=fix)
