"""What every simulated provider has: its paths, its door (keys), its list of models and its words for refusals.

A dialect's class reads requests and writes replies; a provider's class, in `providers/`, sets the few things its
real counterpart does differently.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from bardo.simulators.conversation import Conversation
from bardo.simulators.delivery import ErrorForms
from bardo.simulators.exchange import Exchange
from bardo.simulators.fields import at
from bardo.simulators.incoming import Incoming
from bardo.simulators.refusal import Refusal, trouble
from bardo.simulators.reply import Reply
from bardo.simulators.turns import Usage


class Provider(ABC):
    """One provider as its clients see it."""

    name: ClassVar[str]
    """The preset's name."""
    dialect: ClassVar[str]
    """The name of bardo's dialect that speaks to it."""
    catalog_name: ClassVar[str]
    """The name of bardo's catalog row for the real one."""
    base_path: ClassVar[str] = "/v1"
    """What a base URL ends with in bardo's configuration."""
    prefix: ClassVar[str | None] = None
    """What the paths below are relative to, where that is not the base path."""
    needs_key: ClassVar[bool] = True
    """Servers on one's own machine take any request unless they were given a key."""
    lists_to_all: ClassVar[bool] = False
    """Whether the list of models is given without a key too."""
    has_tools: ClassVar[bool] = True
    """Whether a request can offer tools at all."""
    models: ClassVar[tuple[str, ...]]
    """The models listed where the server was given none."""
    sign_of_life: ClassVar[bytes] = b": keep-alive\n\n"
    """What a stream sends while its model has not begun; empty where it sends nothing."""
    beside_it: ClassVar[tuple[type[Provider], ...]] = ()
    """Other dialects that the same server speaks, each at its own paths; their `name` is only for their ids."""
    off_switches: ClassVar[tuple[tuple[str, object], ...]] = ()
    """Request fields, with the value that switches reasoning off."""
    hiding_switches: ClassVar[tuple[tuple[str, object], ...]] = ()
    """Request fields, with the value that hides reasoning which still happens."""

    def admit(self, incoming: Incoming, key: str | None) -> None:
        """Refuse a request without a key, or with one that is not `key` where the server was given one."""
        given = self.given_key(incoming)
        if not given and (self.needs_key or key is not None):
            raise self.missing_key()
        if key is not None and given != key:
            raise self.wrong_key(given)

    def given_key(self, incoming: Incoming) -> str:
        """Give the key the request carries."""
        return incoming.bearer

    def missing_key(self) -> Refusal:
        """Word the refusal of a request without a key."""
        return Refusal("missing_key", "You didn't provide an API key.")

    def wrong_key(self, given: str) -> Refusal:
        """Word the refusal of a wrong key."""
        return Refusal("wrong_key", f"Incorrect API key provided: {masked(given)}.")

    def counted(self, exchange: Exchange) -> Usage:
        """Give the tokens of a reply whose usage nobody wrote down, with those that this provider caches."""
        return exchange.usage

    def reasoning_is_off(self, exchange: Exchange) -> bool:
        """Whether the request switched reasoning off in this provider's own way."""
        return _switched(exchange, self.off_switches)

    def reasoning_is_hidden(self, exchange: Exchange) -> bool:
        """Whether the request asked not to be shown the reasoning."""
        return _switched(exchange, self.hiding_switches)

    @abstractmethod
    def answers(self, incoming: Incoming, path: str) -> bool:
        """Whether a model is asked at this path, which is relative to the prefix."""

    @abstractmethod
    def read(self, incoming: Incoming, path: str) -> Conversation:
        """Read the request, or refuse it as the real provider does."""

    @abstractmethod
    def whole(self, exchange: Exchange) -> Reply:
        """Write the reply in one piece."""

    @abstractmethod
    def stream(self, exchange: Exchange) -> Reply:
        """Write the reply event by event."""

    @abstractmethod
    def refuse(self, refusal: Refusal) -> Reply:
        """Word a refusal."""

    @abstractmethod
    def error_events(self) -> Sequence[bytes]:
        """Word an error that befalls a stream which began well."""

    @abstractmethod
    def catalog(self, path: str, models: Sequence[str]) -> Reply | None:
        """Answer a request for the list of models, or for one of them; None where `path` asks for neither."""

    def beside(self, incoming: Incoming, path: str) -> Reply | None:
        """Answer a path that asks no model and lists none, such as counting tokens."""
        return None

    def described(self, incoming: Incoming, models: Sequence[str]) -> Reply | None:
        """Answer, at its full path, what the server tells of itself or of how its models think; None where `incoming` does not ask that."""
        return None

    def known(self, model: str, models: Sequence[str]) -> None:
        """Refuse a model that is not on the list, where there is one."""
        if models and model not in models:
            raise self.unknown_model(model)

    def unknown_model(self, model: str) -> Refusal:
        """Word the refusal of an unknown model."""
        return Refusal("unknown_model", f"The model `{model}` does not exist or you do not have access to it.")

    def troubles(self) -> ErrorForms:
        """Give this provider's words for errors that faults ask for."""
        return ErrorForms(
            reply=lambda status: self.refuse(trouble(status)), events=self.error_events, alive=self.sign_of_life
        )

    def unknown_path(self, incoming: Incoming) -> Refusal:
        """Word the refusal of a path that does not exist."""
        return Refusal("unknown_path", f"Invalid URL ({incoming.method} {incoming.path})")

    def wrong_method(self, incoming: Incoming) -> Refusal:
        """Word the refusal of a path asked with the wrong method."""
        return Refusal("wrong_method", f"Not allowed to {incoming.method} on {incoming.path}.")


def masked(key: str) -> str:
    """Show only the ends of a key, as providers do."""
    return f"{key[:2]}***{key[-2:]}" if len(key) > 8 else "***"


def _switched(exchange: Exchange, switches: Sequence[tuple[str, object]]) -> bool:
    return any(_same(at(exchange.body, path), value) for path, value in switches)


def _same(given: object, value: object) -> bool:
    """Compare without taking 0 for false."""
    return type(given) is type(value) and given == value
