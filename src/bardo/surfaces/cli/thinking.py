"""What `bardo doctor` says of the models that are configured: how they are told to think, and where layers disagree."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bardo.edge.http import Transport
from bardo.edge.introspect import Introspector, Merged, merge
from bardo.edge.keys import Keyring
from bardo.edge.knowing import Knowing
from bardo.engine.route import Provider, Target
from bardo.surfaces.cli.findings import Finding
from bardo.surfaces.render.facts import TITLES, against_text, facts_line

MOST_MODELS = 8
"""Of each provider; a longer list is for `bardo catalog show`."""


async def thinking(
    providers: Sequence[Provider], transport: Transport, keyring: Keyring, *, own: Knowing
) -> list[Finding]:
    """Return a finding for each configured model, and ask the servers that can say something of it. `own` is the operator's word."""
    introspector = Introspector(transport, keyring)
    named = [Target(provider=provider, model=model) for provider in providers for model in _configured(provider)]
    try:
        learned = await asyncio.gather(*(introspector.learn(one.provider, one.model) for one in named))
    finally:
        await introspector.close()
    merged = (
        merge(one.provider, one.model, said, own=own.layers(one)) for one, said in zip(named, learned, strict=True)
    )
    return [_finding(one) for one in merged]


def _configured(provider: Provider) -> tuple[str, ...]:
    return provider.models[:MOST_MODELS] if provider.configured_models else ()


def _finding(merged: Merged) -> Finding:
    area = f"model {merged.provider}/{merged.model}"
    if not merged.disagreements:
        return Finding(area=area, status="ok", found=facts_line(merged))
    said = "; ".join(f"{TITLES[fact.field]}: {against_text(fact)}" for fact in merged.disagreements)
    fix = f"`bardo probe {merged.model} --provider {merged.provider}` finds out who is right"
    return Finding(area=area, status="warning", found=f"{facts_line(merged)}. Layers disagree: {said}", fix=fix)
