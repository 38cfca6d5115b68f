"""The base of every simulated provider: paths, authentication, a list of models, and error messages.

A dialect's class reads requests and writes replies; a provider's class, in `providers/`, sets the few things its
real counterpart does differently.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from bardo.simulators.delivery import ErrorForms
from bardo.simulators.demands import Demands
from bardo.simulators.exchange import Exchange, Incoming, Refusal, Reply, trouble
from bardo.simulators.fields import at
from bardo.simulators.turns import Conversation, Usage


class Provider(ABC):
    """One provider as its clients see it."""

    name: ClassVar[str]
    """The preset's name."""
    dialect: ClassVar[str]
    """The name of bardo's dialect that speaks to it."""
    catalog_name: ClassVar[str]
    """The name of bardo's catalog row for the real one."""
    base_path: ClassVar[str] = "/v1"
    """The path of the base URL in bardo's configuration."""
    prefix: ClassVar[str | None] = None
    """The prefix of the paths below, if that is not the base path."""
    needs_key: ClassVar[bool] = True
    """False for local servers: they check a key only where they were given one."""
    lists_without_key: ClassVar[bool] = False
    """Whether the list of models needs no key."""
    has_tools: ClassVar[bool] = True
    """Whether a request can offer tools at all."""
    models: ClassVar[tuple[str, ...]]
    """The models that are listed by default."""
    keep_alive: ClassVar[bytes] = b": keep-alive\n\n"
    """The keep-alive bytes of a stream before the first event; empty where the provider sends none."""
    other_dialects: ClassVar[tuple[type[Provider], ...]] = ()
    """Other dialects that the same server speaks, each at its own paths; their `name` is only for their ids."""
    off_switches: ClassVar[tuple[tuple[str, object], ...]] = ()
    """Request fields, with the value that switches reasoning off."""
    hiding_switches: ClassVar[tuple[tuple[str, object], ...]] = ()
    """Request fields, with the value that hides reasoning which still happens."""

    def check_key(self, incoming: Incoming, key: str | None) -> None:
        """Raise Refusal for a request without a key, or with another than `key` where the server requires one."""
        request_key = self.key_of(incoming)
        if not request_key and (self.needs_key or key is not None):
            raise self.missing_key()
        if key is not None and request_key != key:
            raise self.wrong_key(request_key)

    def key_of(self, incoming: Incoming) -> str:
        """Return the API key of the request."""
        return incoming.bearer

    def missing_key(self) -> Refusal:
        """Build the error for a request without a key."""
        return Refusal("missing_key", "You didn't provide an API key.")

    def wrong_key(self, key: str) -> Refusal:
        """Build the error for a wrong key."""
        return Refusal("wrong_key", f"Incorrect API key provided: {masked(key)}.")

    def estimate_usage(self, exchange: Exchange) -> Usage:
        """Return the usage of a reply whose turn declares none, including the tokens that this provider caches."""
        return exchange.usage

    def reasoning_is_off(self, exchange: Exchange) -> bool:
        """Whether the request switched reasoning off in this provider's own way."""
        return _switched(exchange, self.off_switches)

    def reasoning_is_hidden(self, exchange: Exchange) -> bool:
        """Whether the request asked not to be shown the reasoning."""
        return _switched(exchange, self.hiding_switches)

    @abstractmethod
    def is_generation_path(self, incoming: Incoming, path: str) -> bool:
        """Whether this path, relative to the prefix, generates a reply."""

    @abstractmethod
    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        """Decode the request. Raises Refusal where the real provider refuses it."""

    def demands(self, model: str) -> Demands:
        """Return what a model demands of the shape of a request beside what `decode_request` looks at."""
        return Demands()

    @abstractmethod
    def encode_reply(self, exchange: Exchange) -> Reply:
        """Encode the reply as one body."""

    @abstractmethod
    def encode_stream(self, exchange: Exchange) -> Reply:
        """Encode the reply as a stream of events."""

    @abstractmethod
    def encode_refusal(self, refusal: Refusal) -> Reply:
        """Encode an error as the provider words it."""

    @abstractmethod
    def error_events(self) -> Sequence[bytes]:
        """Encode an error in the middle of a stream."""

    @abstractmethod
    def list_models(self, path: str, models: Sequence[str]) -> Reply | None:
        """Answer a request for the list of models, or for one of them, or None if `path` asks for neither."""

    def answer_other_path(self, incoming: Incoming, path: str) -> Reply | None:
        """Answer a path that neither generates nor lists models, such as counting tokens; None for an unknown path."""
        return None

    def describe_server(self, incoming: Incoming, models: Sequence[str]) -> Reply | None:
        """Answer an introspection request at its full path, such as `/props`; None for any other request."""
        return None

    def check_model(self, model: str, models: Sequence[str]) -> None:
        """Raise Refusal for a model that is not in `models`; an empty list allows all."""
        if models and model not in models:
            raise self.unknown_model(model)

    def unknown_model(self, model: str) -> Refusal:
        """Build the error for an unknown model."""
        return Refusal("unknown_model", f"The model `{model}` does not exist or you do not have access to it.")

    def error_forms(self) -> ErrorForms:
        """Return this provider's forms of the errors that faults ask for."""
        return ErrorForms(
            reply=lambda status: self.encode_refusal(trouble(status)), events=self.error_events, alive=self.keep_alive
        )

    def unknown_path(self, incoming: Incoming) -> Refusal:
        """Build the error for a path that does not exist."""
        return Refusal("unknown_path", f"Invalid URL ({incoming.method} {incoming.path})")

    def wrong_method(self, incoming: Incoming) -> Refusal:
        """Build the error for a path asked with the wrong method."""
        return Refusal("wrong_method", f"Not allowed to {incoming.method} on {incoming.path}.")


def masked(key: str) -> str:
    """Return a key with all but its ends replaced, as providers show it."""
    return f"{key[:2]}***{key[-2:]}" if len(key) > 8 else "***"


def _switched(exchange: Exchange, switches: Sequence[tuple[str, object]]) -> bool:
    return any(_same(at(exchange.body, path), value) for path, value in switches)


def _same(given: object, value: object) -> bool:
    """Compare values of the same type only: 0 is not False."""
    return type(given) is type(value) and given == value
