"""Plan the items of a batch: which provider's batch API gets each, and the body that it gets there.

The planner is that of single calls. An item whose model no batch API takes is refused, or sent by bardo itself if that is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bardo.batches.item_requests import EmbedItem, GenerateItem, ItemRequest, knowledge_of, settled_request, with_rules
from bardo.batches.records import BatchRecord
from bardo.call.services import Services
from bardo.catalog.batch_rows import BatchRow, batch_providers, batch_row
from bardo.planning.exchange import first_attempt
from bardo.planning.planner import plan
from bardo.planning.profiles import apply_profile
from bardo.planning.route import RouteRecord, Target, endpoints_of
from bardo.planning.unary import embed_attempt
from bardo.services.accounts.call_facts import CallFacts
from bardo.services.accounts.call_gate import permitted
from bardo.services.facts.directory import Placement
from bardo.services.pipeline.sent_texts import run_on_inputs, run_on_request
from bardo.values.errors import Unsupported
from bardo.values.operations import EmbedRequest
from bardo.values.request import Request
from bardo.values.wire import WireRequest


class NoBatchApi(Unsupported):
    """No provider of a model takes requests in batches."""


class PlannedItem(msgspec.Struct, frozen=True, kw_only=True):
    """Where an item goes: the provider, the model there, the dialect and the path of its endpoint, and the body.

    `nanos` is what it may cost in nano-dollars, 0 if unknown or not needed. `layers` is what they need when the reply comes.
    """

    provider: str
    model: str
    dialect: str
    row: BatchRow
    wire: WireRequest
    nanos: int = 0
    layers: bytes | None = None

    @property
    def job_key(self) -> tuple[str, str, str, str, tuple[tuple[str, str], ...]]:
        """The values that all requests of one job share."""
        return self.provider, self.model, self.dialect, self.wire.path, tuple(sorted(self.wire.headers.items()))


class ItemPlanner:
    """Plans items for the gateway's providers. `runs_alone`: an item that no batch API takes is sent by bardo."""

    def __init__(self, services: Services, *, runs_alone: bool) -> None:
        self._services = services
        self._runs_alone = runs_alone

    async def plan(self, item: ItemRequest, batch: BatchRecord) -> PlannedItem | None:
        """Return where an item goes, or None if bardo sends it by itself. Raises BardoError where it goes nowhere."""
        if self._services.provider_ids is not None:
            await self._services.provider_ids.check(item.request, batch.tenant)
        if isinstance(item, EmbedItem):
            return await self._plan_vectors(item.request, batch)
        return await self._plan_reply(item, batch)

    async def _plan_reply(self, item: GenerateItem, batch: BatchRecord) -> PlannedItem | None:
        _, request = settled_request(item.request, self._services.directory, batch)
        request, placement = await self._services.routing.find(request)
        placement = self._permitted(batch, item.request, placement)
        request, layers = await self._through_layers(request, placement, batch)
        taking = [target for target in placement.targets if batch_row(target.provider.row) is not None]
        refused: list[Unsupported] = []
        for target in taking:
            try:
                planned = self._at(target, request, placement.route)
            except Unsupported as problem:
                refused.append(problem)
                continue
            if planned is not None:
                planned = msgspec.structs.replace(planned, layers=layers)
                return self._priced(planned, batch, request, target)
        self._refuse_unless_alone(item.request.model, placement.targets, refused)
        return None

    async def _through_layers(
        self, request: Request, placement: Placement, batch: BatchRecord
    ) -> tuple[Request, bytes | None]:
        """Return a request with what the layers make of it that work on whatever is sent, and what these need when its reply comes.

        Raises BardoError where the request must not be sent.
        """
        pipeline = self._services.pipeline
        layers = None if pipeline is None else await pipeline.of_operation(request, tenant=batch.tenant)
        if pipeline is None or layers is None:
            return request, None
        after = await run_on_request(pipeline, layers, request, placement.targets)
        return after, layers.kept(after.degraded[len(request.degraded) :])

    def _at(self, target: Target, request: Request, route: RouteRecord | None) -> PlannedItem | None:
        """Return an item as one target gets it, or None if none of its endpoints takes batches."""
        row = batch_row(target.provider.row)
        assert row is not None
        knowledge = knowledge_of(self._services, target)
        attempt = first_attempt(request, [target], knowledge=knowledge, may_forward=False, route=route)
        others = [
            place for place in endpoints_of(target) if place.provider.row.dialect != attempt.target.provider.row.dialect
        ]
        while not row.takes(attempt.wire.path):
            if not others:
                return None
            attempt = plan(apply_profile(request), others.pop(0), knowledge=knowledge, may_forward=False)
        target = attempt.target
        return PlannedItem(
            provider=target.provider.id,
            model=target.model,
            dialect=target.provider.row.dialect,
            row=row,
            wire=attempt.wire,
        )

    def _permitted(self, batch: BatchRecord, request: Request | EmbedRequest, placement: Placement) -> Placement:
        """Return who may be asked with the key of a batch. Raises Forbidden."""
        account, gate = batch.account, self._services.gate
        if account is None:
            return placement
        placement = permitted(account, request.model, placement)
        return placement if gate is None else gate.priced(account, request.model, placement)

    def _priced(
        self, planned: PlannedItem, batch: BatchRecord, request: Request | EmbedRequest, target: Target
    ) -> PlannedItem:
        """Return an item with what it may cost, where its key has a budget."""
        gate, account = self._services.gate, batch.account
        if gate is None or account is None or not account.has_budget:
            return planned
        nanos = gate.facts(account, request, [target], CallFacts(request_id=batch.id)).nanos
        return msgspec.structs.replace(planned, nanos=round((nanos or 0) * planned.row.price_factor))

    async def _plan_vectors(self, request: EmbedRequest, batch: BatchRecord) -> PlannedItem | None:
        request = with_rules(request, batch)
        placement = self._permitted(batch, request, await self._services.routing.placement(request.model))
        pipeline, states = self._services.pipeline, None
        layers = None if pipeline is None else await pipeline.of_operation(request, tenant=batch.tenant)
        if pipeline is not None and layers is not None:
            request, lost = await run_on_inputs(pipeline, layers, request, placement.targets)
            states = layers.kept(lost)
        for target in placement.targets:
            row = batch_row(target.provider.row)
            if row is None or target.provider.row.embeds(target.model) is None:
                continue
            attempt = embed_attempt(request, target)
            if len(attempt.wires) == 1 and row.takes(attempt.wires[0].path):
                wire, provider = attempt.wires[0], target.provider.id
                planned = PlannedItem(
                    provider=provider, model=target.model, dialect=attempt.dialect, row=row, wire=wire, layers=states
                )
                return self._priced(planned, batch, request, target)
        self._refuse_unless_alone(request.model, placement.targets, [])
        return None

    def _refuse_unless_alone(self, model: str, targets: Sequence[Target], refused: Sequence[Unsupported]) -> None:
        """Raise Unsupported for an item that no batch API takes, unless bardo sends it by itself."""
        if self._runs_alone:
            return
        if refused:
            raise refused[0]
        request = ", ".join(dict.fromkeys(target.provider.id for target in targets)) or "nobody"
        able = sorted({host.id for host in self._services.directory.providers if batch_row(host.row) is not None})
        here = f"of those configured here {', '.join(able)} can" if able else "none that is configured here can"
        raise NoBatchApi(
            f"{model!r} is served by {request}, without a batch API for such requests: {here}",
            hint=f"ask a model of {', '.join(batch_providers())}; or allow single calls with run_without_api = true under [batches]",
            param="model",
        )
