"""Runs the layers of a call that is explained and not sent: effects that change something are left out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from bardo.adapters.config.accounts import ClientKeys
from bardo.adapters.config.settings import Settings, data_folder
from bardo.adapters.net.client import HttpTransport
from bardo.adapters.net.keys import Keyring
from bardo.call.runner import Runner
from bardo.context.layer import KeptReply
from bardo.planning.route import Target
from bardo.services.facts.directory import ProviderDirectory
from bardo.services.facts.price_book import PriceBook
from bardo.services.pipeline.call_layers import CallLayers
from bardo.services.pipeline.pipeline import Pipeline
from bardo.values.request import Request
from bardo.wiring import model_facts

Plan = Callable[[Request, Mapping[str, Any], bool], tuple[Request, Sequence[Target]]]
"""Returns who would be asked for a request: by the fields of an intent that layers found, and whether a layer chooses among all servers."""


class DryRun(msgspec.Struct, frozen=True):
    """A request as it would be sent, to whom, and what the layers did."""

    request: Request
    targets: Sequence[Target]
    call: CallLayers


async def run_layers(settings: Settings, request: Request, plan: Plan) -> DryRun | None:
    """Return what layers make of a request; None where it has none. `plan` returns who would be asked for a request.

    Raises BardoError where a layer refuses the call, and what `plan` raises.
    """
    transport, keyring = HttpTransport(settings.http.client), Keyring()
    runner = Runner(
        ProviderDirectory.of(settings, transport, keyring, clock=time.monotonic),
        transport,
        keyring,
        facts=model_facts(settings),
        client_keys=ClientKeys(settings.keys),
        prices=PriceBook(settings.prices),
    )
    pipeline = Pipeline.of(settings, runner, data_folder(settings), os.environ)
    try:
        call = pipeline.of_call(request, dry=True)
        if call is None:
            return None
        request = await pipeline.before_route(call, request, _not_given)
        request, targets = plan(request, call.needs, call.plan.has("affinity"))
        request, cached = await pipeline.after_route(call, request, tuple(targets))
        return DryRun(request, cached, call)
    finally:
        await pipeline.close()
        await transport.close()


async def _not_given(cached: KeptReply, request: Request) -> None:
    """Leave a kept reply where it is: the receipt says that it would have been given."""
