"""What layers are made from: the settings, what the gateway has, and where effects are registered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bardo.adapters.config.pipeline import PipelineSettings
from bardo.context.layer import Layer
from bardo.planning.token_counting import PromptEstimates
from bardo.services.pipeline.effects import Effects
from bardo.values.operations import Embeddings, EmbedRequest
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.usage import CallCost

if TYPE_CHECKING:
    import asyncio

    from bardo.adapters.config.accounts import ClientKeys
    from bardo.adapters.config.settings import Settings
    from bardo.adapters.net.keys import Keyring
    from bardo.adapters.stores.replay_store import ReplayKeeper
    from bardo.services.facts.directory import ProviderDirectory
    from bardo.services.facts.health import HealthKeeper
    from bardo.services.facts.model_facts import ModelFacts
    from bardo.services.facts.price_book import PriceBook
    from bardo.services.pipeline.affinity import Affinity


class OpenReply(Protocol):
    """The reply to a call that a layer makes, with its first piece read."""

    request_id: str

    @property
    def cost(self) -> CallCost: ...

    async def read(self) -> bytes: ...

    async def close(self) -> None: ...

    def response(self) -> Response: ...

    def log_cancelled(self, cancelled: asyncio.CancelledError) -> None: ...


class OpenCall(Protocol):
    """Opens calls for layers: `open_call` of the gateway's services."""

    async def __call__(self, request: Request, *, tenant: str = "") -> OpenReply:
        """Send a request, and return its reply. Raises BardoError."""
        ...


class LayerHost(NamedTuple):
    """What layers need of the gateway whose calls they work on. `clock` gives Unix time, and `watch` seconds that never jump.

    `open_call` and `embed` make calls of bardo's own.
    """

    directory: ProviderDirectory
    facts: ModelFacts
    prices: PriceBook
    health: HealthKeeper
    keyring: Keyring
    client_keys: ClientKeys
    estimates: PromptEstimates
    replay: ReplayKeeper | None
    clock: Callable[[], float]
    watch: Callable[[], float]
    open_call: OpenCall
    embed: Callable[[EmbedRequest], Awaitable[Embeddings]]


class LayerParts(NamedTuple):
    """What layers are made from.

    `settings` is the whole configuration, and `pipeline` its part for layers. `folder` is where bardo keeps its data. A layer that opens
    something appends to `closing` what closes it. `affinity` holds what targets probably have cached, once a layer asks for it.
    """

    settings: Settings
    pipeline: PipelineSettings
    host: LayerHost
    effects: Effects
    folder: Path
    environment: Mapping[str, str]
    closing: list[Callable[[], Awaitable[None]]]
    affinity: list[Affinity]


Builder = Callable[[LayerParts], Layer]
"""Makes a layer."""
