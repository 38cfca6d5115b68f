"""What layers are made from: the settings, whoever runs calls, and where effects are registered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bardo.context.layer import Layer
from bardo.edge.pipeline.effects import Effects
from bardo.edge.settings_pipeline import PipelineSettings
from bardo.engine.prompt_estimates import PromptEstimates
from bardo.values.cost import CallCost
from bardo.values.request import Request
from bardo.values.response import Response

if TYPE_CHECKING:
    import asyncio

    from bardo.edge.affinity import Affinity
    from bardo.edge.directory import ProviderDirectory
    from bardo.edge.health import HealthKeeper
    from bardo.edge.keys import Keyring
    from bardo.edge.model_facts import ModelFacts
    from bardo.edge.price_book import PriceBook
    from bardo.edge.replay_store import ReplayKeeper
    from bardo.edge.settings import Settings
    from bardo.engine.aliases import ThinkingRules


class OpenReply(Protocol):
    """The reply to a call that a layer makes, with its first piece read."""

    request_id: str

    @property
    def cost(self) -> CallCost: ...

    async def read(self) -> bytes: ...

    async def close(self) -> None: ...

    def response(self) -> Response: ...

    def log_cancelled(self, cancelled: asyncio.CancelledError) -> None: ...


class CallRunner(Protocol):
    """What layers need of whoever runs calls. `clock` gives Unix time, and `watch` seconds that never jump."""

    directory: ProviderDirectory
    facts: ModelFacts
    prices: PriceBook
    health: HealthKeeper
    keyring: Keyring
    estimates: PromptEstimates
    replay: ReplayKeeper | None
    affinity: Affinity | None
    clock: Callable[[], float]
    watch: Callable[[], float]

    async def open(self, request: Request, *, may_forward: bool = True, tenant: str = "") -> OpenReply:
        """Send a request, and return its reply. Raises BardoError."""
        ...

    def rules(self, client_key: str) -> Sequence[ThinkingRules]:
        """Return what the configuration says of the calls of a key."""
        ...


class LayerParts(NamedTuple):
    """What layers are made from.

    `settings` is the whole configuration, and `pipeline` its part for layers. `folder` is where bardo keeps its data. A layer that opens
    something appends to `closing` what closes it.
    """

    settings: Settings
    pipeline: PipelineSettings
    runner: CallRunner
    effects: Effects
    estimates: PromptEstimates
    folder: Path
    environment: Mapping[str, str]
    closing: list[Callable[[], Awaitable[None]]]


Builder = Callable[[LayerParts], Layer]
"""Makes a layer."""
