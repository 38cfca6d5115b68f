"""A simulated provider that can be run: in an event loop, or in a thread of its own."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace

from bardo.simulators.batches import batch_server
from bardo.simulators.delivery import Action, deliver, held
from bardo.simulators.exchange import Exchange
from bardo.simulators.faults import Fault, named_fault
from bardo.simulators.fields import Fields, compact, fields, rows, text
from bardo.simulators.gates import Gate
from bardo.simulators.incoming import Incoming
from bardo.simulators.json_asked import with_json_asked
from bardo.simulators.limits import limit_of, limited
from bardo.simulators.prefix_cache import PrefixCache, prompt_text
from bardo.simulators.presets import PRESETS
from bardo.simulators.provider import Provider
from bardo.simulators.refusal import Refusal
from bardo.simulators.reply import Reply
from bardo.simulators.script import Script
from bardo.simulators.thinking_behaviour import BehaviourKind, ThinkingBehaviour
from bardo.simulators.threads import in_thread
from bardo.simulators.turns import Usage, tokens_of
from bardo.simulators.wire import listening, refusing

LOOPBACK = "127.0.0.1"
_NAMED_IN_PATH = re.compile(r"\+fault:[^/:]*")


@dataclass(frozen=True, slots=True)
class Running:
    """A server that runs.

    `base_url` is what bardo and OpenAI's library are configured with. `root` has only scheme, host and port: what
    Anthropic's and Google's libraries are configured with.
    """

    root: str
    base_url: str
    requests: Sequence[Incoming]


class Simulator:
    """A provider's server, with a script.

    `key` is the only key taken (None: any that is not empty), `models` the only models known (empty: any),
    `delta_size` the characters of a streamed delta, `pace` the seconds between events, `fault` what goes wrong with
    every request, `thinking_behaviour` how the model takes what it is told of its thinking (None: it thinks as scripted).
    `prefix_cache` is what the server keeps of prompts, None: nothing is counted as read from a cache but what the provider's own says.
    `requests` holds what arrived.
    """

    def __init__(
        self,
        preset: str,
        *,
        script: Script | None = None,
        key: str | None = None,
        models: Sequence[str] = (),
        fault: Fault | None = None,
        thinking_behaviour: ThinkingBehaviour | BehaviourKind | None = None,
        delta_size: int = 8,
        pace: float = 0.0,
        prefix_cache: PrefixCache | None = None,
    ) -> None:
        if preset not in PRESETS:
            raise ValueError(f"no simulator is called {preset!r}; there are: {', '.join(sorted(PRESETS))}")
        self.provider: Provider = PRESETS[preset]()
        self._beside = [other() for other in self.provider.beside_it]
        self.requests: list[Incoming] = []
        self._script = script or Script()
        self._key = key
        self._models = tuple(models)
        self._fault = fault
        self._thinking_behaviour = (
            ThinkingBehaviour(thinking_behaviour) if isinstance(thinking_behaviour, str) else thinking_behaviour
        )
        self._gate: Gate | None = None
        self.prefix_cache = prefix_cache
        self._delta_size = max(1, delta_size)
        self._pace = pace
        self._asked = 0
        self._begun = 0
        self._met: dict[Fault, int] = {}
        self.batches = batch_server(preset, self._play_item)
        """The batch API of the provider, None where it has none."""

    @property
    def models(self) -> Sequence[str]:
        """The models it lists."""
        return self._models or self.provider.models

    def play(self, script: Script) -> None:
        """Have the model follow another script from now on, from its beginning."""
        self._script = script
        self._begun = self._asked

    def fail(self, fault: Fault | None) -> None:
        """Have every request meet this fault from now on; None has all go well again."""
        self._fault = fault
        self._met.clear()

    def hold(self, after: int = 0) -> Gate:
        """Have every reply wait at a gate from now on, behind so many events, until that is opened."""
        self._gate = Gate(after)
        return self._gate

    @asynccontextmanager
    async def serve(self, *, host: str = LOOPBACK, port: int = 0) -> AsyncIterator[str]:
        """Serve in the running event loop; gives the base URL. Everything is closed when the block ends."""
        opened = refusing(host, port) if self._refuses() else listening(self.actions, host, port)
        async with opened as address:
            yield self._running(address).base_url

    @contextmanager
    def running(self, *, host: str = LOOPBACK, port: int = 0) -> Iterator[Running]:
        """Serve in a thread of its own, for programs without an event loop."""
        name = f"simulator-{self.provider.name}"
        with in_thread(lambda: self.serve(host=host, port=port), name) as base_url:
            root = base_url.removesuffix(self.provider.base_path)
            yield Running(root, base_url, self.requests)

    def _running(self, address: str) -> Running:
        return Running(address, address + self.provider.base_path, self.requests)

    def _refuses(self) -> bool:
        return self._fault is not None and self._fault.kind == "refused"

    def actions(self, incoming: Incoming) -> Iterator[Action]:
        """Give what happens on the wire for one request. No socket is needed, so a test may ask directly."""
        self.requests.append(incoming)
        provider = self._asked_provider(incoming)
        try:
            reply, fault = self._answer(provider, incoming)
        except Refusal as refusal:
            reply, fault = provider.refuse(refusal), None
        fault = self._due(fault) or self._due(self._fault)
        actions = deliver(reply, fault, provider.troubles(), pace=self._pace)
        return held(actions, self._gate) if self._gate is not None else actions

    def _asked_provider(self, incoming: Incoming) -> Provider:
        """Return the one of the server's dialects at whose path a model is asked."""
        path = incoming.path.rstrip("/")
        for other in self._beside:
            prefix = _prefix(other)
            if path.startswith(f"{prefix}/") and other.answers(incoming, path.removeprefix(prefix)):
                return other
        return self.provider

    def _answer(self, provider: Provider, incoming: Incoming) -> tuple[Reply, Fault | None]:
        described = provider.described(incoming, self.models)
        if described is not None:
            provider.admit(incoming, self._key)
            return described, None
        path = _below_base(provider, incoming)
        batch = self._about_batches(provider, incoming, path)
        if batch is not None:
            return batch, None
        asks = provider.answers(incoming, path)
        listed = provider.catalog(path, self.models)
        plain, fault = _without_fault(incoming)
        beside = listed or provider.beside(plain, _below_base(provider, plain))
        if not asks and beside is None:
            raise provider.unknown_path(incoming)
        if incoming.method != ("GET" if listed is not None else "POST"):
            raise provider.wrong_method(incoming)
        if listed is None or not provider.lists_to_all:
            provider.admit(incoming, self._key)
        if beside is not None and (model := text(plain.fields.get("model"))):
            provider.known(model.removeprefix("models/"), self._models)
        return (beside, fault) if beside is not None else self._play(provider, incoming, path)

    def _about_batches(self, provider: Provider, incoming: Incoming, path: str) -> Reply | None:
        """Answer a request about files or batches; None where it is about neither."""
        if self.batches is None:
            return None
        provider.admit(incoming, self._key)
        return self.batches.answer(incoming, path)

    def _play_item(self, incoming: Incoming, path: str, body: Fields) -> tuple[int, Fields]:
        """Have the model answer one request of a batch."""
        raw = compact(body)
        one = replace(incoming, method="POST", path=f"{_prefix(self.provider)}{path}", query={}, raw=raw, body=body)
        provider = self._asked_provider(one)
        try:
            if body.get("stream"):
                raise Refusal("bad_value", "Streaming is not supported in batches.", parameter="stream")
            reply, fault = self._answer(provider, one)
            if fault is not None and fault.kind == "status":
                reply = provider.troubles().reply(fault.status)
        except Refusal as refusal:
            reply = provider.refuse(refusal)
        return reply.status, fields(json.loads(reply.body))

    def _play(self, provider: Provider, incoming: Incoming, path: str) -> tuple[Reply, Fault | None]:
        """Have the model answer."""
        asked = provider.read(incoming, path)
        model, fault = _named_fault(asked.model)
        provider.known(model, self._models)
        asked = with_json_asked(replace(asked, model=model), incoming.fields)
        turn = self._script.turn(asked, asked=self._asked - self._begun)
        self._asked += 1
        exchange = Exchange(
            body=incoming.fields,
            asked=asked,
            model=model,
            turn=turn,
            usage=turn.counted(asked.characters),
            seed=f"{provider.name}/{self._asked}",
            created=int(time.time()),
            delta_size=self._delta_size,
        )
        exchange = self._as_asked(provider, replace(exchange, turn=limited(turn, limit_of(incoming.fields))))
        if turn.usage is None:
            exchange = replace(exchange, usage=provider.counted(exchange))
        if self.prefix_cache is not None:
            exchange = replace(exchange, usage=_with_cache(exchange, self.prefix_cache))
        reply = provider.stream(exchange) if asked.streamed else provider.whole(exchange)
        return reply, fault or turn.fault

    def _as_asked(self, provider: Provider, exchange: Exchange) -> Exchange:
        """Leave out reasoning that the request switched off, or asked not to be shown."""
        if self._thinking_behaviour is not None:
            exchange = self._thinking_behaviour.applied(exchange, off=provider.reasoning_is_off(exchange))
        turn = exchange.turn
        if self._thinking_behaviour is None and provider.reasoning_is_off(exchange):
            turn = turn.unreasoned()
            return replace(exchange, turn=turn, usage=turn.counted(exchange.asked.characters))
        if provider.reasoning_is_hidden(exchange):
            return replace(exchange, turn=turn.concealed())
        return exchange

    def _due(self, fault: Fault | None) -> Fault | None:
        """Give the fault unless it has struck as often as it may."""
        if fault is None or fault.times is None:
            return fault
        met = self._met.get(fault, 0)
        self._met[fault] = met + 1
        return fault if met < fault.times else None


def _with_cache(exchange: Exchange, cache: PrefixCache) -> Usage:
    """Return what a request used, with what of its prompt came from the server's cache."""
    written = prompt_text(exchange.body)
    cached, tokens = cache.take(written), max(1, tokens_of(len(written)))
    return replace(exchange.usage, input_tokens=tokens, cached_input_tokens=min(cached, tokens - 1))


def _named_fault(model: str) -> tuple[str, Fault | None]:
    """Split a model's name from the fault that it asks for. Raises Refusal where that is not one."""
    try:
        return named_fault(model)
    except ValueError as error:
        raise Refusal("bad_value", str(error), parameter="model") from error


def _without_fault(incoming: Incoming) -> tuple[Incoming, Fault | None]:
    """Split a request from the fault that the model's name asks for, in its body or its path. Raises Refusal where that is not one."""
    body = incoming.fields
    named = text(body.get("model")) or next(iter(_NAMED_IN_PATH.findall(incoming.path)), "")
    _, fault = _named_fault(named)
    if fault is None:
        return incoming, None
    # Gemini's batches name the model in each of their requests, too.
    each = {"requests": [_plain(one) for one in rows(body["requests"])]} if "requests" in body else {}
    held = {**_plain(body), **each} if isinstance(incoming.body, dict) else incoming.body
    return replace(incoming, path=_NAMED_IN_PATH.sub("", incoming.path), body=held), fault


def _plain(body: Fields) -> Fields:
    """Give an object without the fault that its model's name asks for."""
    model = body.get("model")
    return {**body, "model": _named_fault(model)[0]} if isinstance(model, str) else body


def _prefix(provider: Provider) -> str:
    return provider.base_path if provider.prefix is None else provider.prefix


def _below_base(provider: Provider, incoming: Incoming) -> str:
    path, base = incoming.path.rstrip("/"), _prefix(provider)
    if not path.startswith(f"{base}/"):
        raise provider.unknown_path(incoming)
    return path.removeprefix(base)
