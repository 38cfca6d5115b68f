"""What a span tells of a call beside its row of the log: the request's parameters, the servers that were asked, and the reply's own id."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from bardo.context.sessions import session_name
from bardo.planning.route import Target
from bardo.services.telemetry import names
from bardo.values.operations import Embeddings, EmbedRequest, TokenCount
from bardo.values.request import Request
from bardo.values.response import Response

_LONGEST = 256
_MOST_STOPS = 16
_PORTS = {"http": 80, "https": 443}


class CallDetails:
    """The details of one call, put together while it goes on."""

    def __init__(self, request: Request | EmbedRequest | None = None) -> None:
        self._asked: dict[str, Any] = {}
        self._kept_id = ""
        if isinstance(request, EmbedRequest):
            self._asked = {names.ENCODING_FORMATS: [request.encoding]}
            self._asked |= {} if request.dimensions is None else {names.DIMENSIONS: request.dimensions}
        elif request is not None:
            self._asked = _parameters(request)
            self._kept_id = "" if request.kept_as is None else request.kept_as.id
        self._servers: list[dict[str, Any]] = []
        self._answer: dict[str, Any] = {}

    def sent(self, target: Target) -> None:
        """Note the server of one more attempt."""
        parts = urlsplit(target.provider.base_url)
        try:
            port = parts.port or _PORTS.get(parts.scheme)
        except ValueError:
            port = None
        found = {names.SERVER_ADDRESS: parts.hostname, names.SERVER_PORT: port}
        self._servers.append({name: value for name, value in found.items() if value is not None})

    def answered(self, response: Response) -> None:
        """Note the id of the reply as its client has it, and the model as the reply names it."""
        found = {names.RESPONSE_ID: self._kept_id or response.id, names.RESPONSE_MODEL: response.model}
        self._answer = {name: value[:_LONGEST] for name, value in found.items() if value}

    def counted(self, result: Embeddings | TokenCount) -> None:
        """Note what was made in one piece: the model as its reply names it, and how many numbers a vector has."""
        size = result.dimensions if isinstance(result, Embeddings) else 0
        found = {names.RESPONSE_MODEL: result.model[:_LONGEST], names.DIMENSIONS: size}
        self._answer = {name: value for name, value in found.items() if value}

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the call: its server is the last one that was asked."""
        return {**self._asked, **(self._servers[-1] if self._servers else {}), **self._answer}

    def server(self, place: int) -> dict[str, Any]:
        """Return the attributes of the server of one attempt."""
        return self._servers[place] if place < len(self._servers) else {}


def _parameters(request: Request) -> dict[str, Any]:
    sampling = request.sampling
    kept = request.kept_as
    found = {
        names.MAX_TOKENS: request.max_output_tokens,
        names.CHOICES: request.choices if request.choices != 1 else None,
        names.TEMPERATURE: sampling.temperature,
        names.TOP_P: sampling.top_p,
        names.TOP_K: sampling.top_k,
        names.FREQUENCY_PENALTY: sampling.frequency_penalty,
        names.PRESENCE_PENALTY: sampling.presence_penalty,
        names.SEED: sampling.seed,
        names.STOP: [one[:_LONGEST] for one in sampling.stop[:_MOST_STOPS]] or None,
        names.CONVERSATION_ID: ("" if kept is None else kept.conversation) or session_name(request)[:_LONGEST] or None,
    }
    return {name: value for name, value in found.items() if value is not None}
