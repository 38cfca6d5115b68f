"""Who performs the effects that layers yield, one function for each kind, and what layers need of the gateway for that."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import CoroutineType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from bardo.context.layer import Effect, EffectFailed, Pause

if TYPE_CHECKING:
    from bardo.adapters.config.accounts import ClientKeys
    from bardo.adapters.net.keys import Keyring
    from bardo.adapters.stores.replay_store import ReplayKeeper
    from bardo.planning.route import Target
    from bardo.planning.token_counting import PromptEstimates
    from bardo.services.facts.directory import ProviderDirectory
    from bardo.services.facts.health import HealthKeeper
    from bardo.services.facts.model_facts import ModelFacts
    from bardo.services.facts.price_book import PriceBook
    from bardo.values.operations import Embeddings, EmbedRequest
    from bardo.values.request import Request
    from bardo.values.response import Response
    from bardo.values.usage import CallCost

E = TypeVar("E", bound=Effect)


class EndedCall(Protocol):
    """The end of a call: the target that answered, and the label of its key, or None if none did."""

    answered: tuple[Target, str] | None


class _EffectHandler(NamedTuple):
    perform: Callable[..., Any]
    writes: bool
    of_call: bool = False
    at_once: bool = False
    in_dry: Callable[..., Any] | None = None


class Effects:
    """The functions that perform effects, by the class of the effect. Builders of layers register those that their layer yields."""

    def __init__(self) -> None:
        self._performers: dict[type[Effect], _EffectHandler] = {Pause: _EffectHandler(_pause, writes=False)}

    def register(
        self,
        kind: type[E],
        perform: Callable[[E], Awaitable[Any]],
        *,
        writes: bool = False,
        in_dry: Callable[[E], Awaitable[Any]] | None = None,
    ) -> None:
        """Register `perform` for effects of a class. `writes`: it changes something, and is left out where nothing is sent.

        `in_dry` performs them there instead.
        """
        self._performers[kind] = _EffectHandler(perform, writes, in_dry=in_dry)

    def register_at_once(self, kind: type[E], perform: Callable[[E], Any], *, writes: bool = False) -> None:
        """Register `perform`, which returns its result, or a coroutine of it where it has to wait: a task is not entered for nothing."""
        self._performers[kind] = _EffectHandler(perform, writes, at_once=True)

    def performs(self, kind: type[Effect]) -> bool:
        """Whether somebody performs effects of a class."""
        return kind in self._performers

    def register_of_call(self, kind: type[E], perform: Callable[[E, EndedCall], Awaitable[Any]]) -> None:
        """Register `perform` for effects of a class, with the facts about the call at its end; it is left out where nothing is sent."""
        self._performers[kind] = _EffectHandler(perform, writes=True, of_call=True)

    async def perform(self, effect: Effect, *, dry: bool = False, call: EndedCall | None = None) -> Any:
        """Return the result of an effect of a `call`, or None if it is left out. Raises EffectFailed."""
        result = self.begin(effect, dry=dry, call=call)
        return await result if type(result) is CoroutineType else result

    def begin(self, effect: Effect, *, dry: bool = False, call: EndedCall | None = None) -> Any:
        """Return the result of an effect as `perform` does, or a coroutine of it where it has to be waited for. Raises EffectFailed."""
        performer = self._performers.get(type(effect))
        if performer is None:
            raise EffectFailed(f"nobody performs {type(effect).__name__}")
        perform, writes, of_call, at_once, in_dry = performer
        if dry and writes:
            return None
        if dry and in_dry is not None:
            perform = in_dry
        try:
            result = perform(effect, call) if of_call else perform(effect)
        except EffectFailed:
            raise
        except Exception as problem:
            raise _failure(effect, problem) from problem
        return result if at_once and type(result) is not CoroutineType else _awaited(effect, result)


async def _awaited(effect: Effect, result: Awaitable[Any]) -> Any:
    try:
        return await result
    except EffectFailed:
        raise
    except Exception as problem:
        raise _failure(effect, problem) from problem


def _failure(effect: Effect, problem: Exception) -> EffectFailed:
    return EffectFailed(f"{type(effect).__name__} failed: {type(problem).__name__}")


async def _pause(_: Pause) -> None:
    await asyncio.sleep(0)


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
    """The parts of the gateway that layers need. `clock` gives Unix time, and `watch` seconds that never jump.

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
