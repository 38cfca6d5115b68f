"""What layers are made from: the settings, whoever runs calls, and where effects are registered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bardo.adapters.config.pipeline import PipelineSettings
from bardo.context.layer import Layer
from bardo.planning.token_counting import PromptEstimates
from bardo.services.pipeline.effects import Effects
from bardo.values.cost import CallCost
from bardo.values.operations import Embeddings, EmbedRequest
from bardo.values.request import Request
from bardo.values.response import Response

if TYPE_CHECKING:
    import asyncio

    from bardo.adapters.config.settings import Settings
    from bardo.adapters.net.keys import Keyring
    from bardo.adapters.stores.replay_store import ReplayKeeper
    from bardo.planning.aliases import ThinkingRules
    from bardo.services.facts.directory import ProviderDirectory
    from bardo.services.facts.health import HealthKeeper
    from bardo.services.facts.model_facts import ModelFacts
    from bardo.services.facts.price_book import PriceBook
    from bardo.services.pipeline.affinity import Affinity


class VectorReply(Protocol):
    """The reply to a call for vectors."""

    @property
    def result(self) -> Embeddings: ...


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

    async def embed(self, request: EmbedRequest) -> VectorReply: ...

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
