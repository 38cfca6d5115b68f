"""A simulated provider that can be run, in an event loop or, for programs without one, in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace

from bardo.simulators.batches import batch_server
from bardo.simulators.delivery import Action, deliver, wait_at_gate
from bardo.simulators.demands import seen_shape
from bardo.simulators.exchange import Exchange, Incoming, Refusal, Reply
from bardo.simulators.faults import Fault, split_fault
from bardo.simulators.fields import Fields, at, compact, fields, rows, text
from bardo.simulators.gates import Gate
from bardo.simulators.presets import PRESETS
from bardo.simulators.prompt_cache import PrefixCache, prompt_text
from bardo.simulators.provider import Provider
from bardo.simulators.script import Script
from bardo.simulators.thinking_behaviour import BehaviourKind, ThinkingBehaviour
from bardo.simulators.turns import Conversation, Turn, tokens_of
from bardo.simulators.wire import listening, refusing

Started = Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, str]]


@contextmanager
def in_thread(serve: Callable[[], AbstractAsyncContextManager[str]], name: str) -> Iterator[str]:
    """Serve in a thread; gives the address. Everything is closed when the block ends."""
    started: Started = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_until_stopped(serve, started)), name=name)
    thread.start()
    try:
        loop, stop, address = started.result()
        try:
            yield address
        finally:
            loop.call_soon_threadsafe(stop.set)
    finally:
        thread.join()


async def _until_stopped(serve: Callable[[], AbstractAsyncContextManager[str]], started: Started) -> None:
    stop = asyncio.Event()
    try:
        async with serve() as address:
            started.set_result((asyncio.get_running_loop(), stop, address))
            await stop.wait()
    except OSError as error:
        if started.done():
            raise
        started.set_exception(error)


_GUIDANCE = re.compile(r"\bJSON [Ss]chema:\s*(?:```json\s*)?(?=\{)")
_ANY_OBJECT: Fields = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
_JSON_MODES = (
    ("response_format.type", "json_object"),
    ("text.format.type", "json_object"),
    ("format", "json"),
    ("generationConfig.responseMimeType", "application/json"),
    ("generation_config.response_mime_type", "application/json"),
)


def with_requested_json(asked: Conversation, body: Fields) -> Conversation:
    """Return the request with the schema that its answer is to follow, where only its prompt or its mode tells that.

    A real model follows a schema that its prompt holds, so a simulated one does too.
    """
    if asked.schema is not None:
        return asked
    guided = _schema_in_prompt(body)
    if guided is not None:
        match = _GUIDANCE.search(asked.question)
        before_guidance = (
            asked.question if match is None else asked.question[: asked.question.rfind("\n", 0, match.start()) + 1]
        )
        return replace(asked, schema=guided, question=before_guidance)
    mode = any(at(body, path) == value for path, value in _JSON_MODES)
    return replace(asked, schema=_ANY_OBJECT) if mode else asked


def _schema_in_prompt(body: Fields) -> Fields | None:
    """Return the last schema that the prompt holds."""
    places = [(prompt, match.end()) for prompt in _texts(body) for match in _GUIDANCE.finditer(prompt)]
    if not places:
        return None
    prompt, start = places[-1]
    try:
        schema, _ = json.JSONDecoder().raw_decode(prompt, start)
    except (ValueError, RecursionError):
        return None
    return schema if isinstance(schema, dict) else None


def _texts(value: object) -> Iterator[str]:
    """Yield all texts of a JSON value, in order."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            yield node
        elif isinstance(node, dict):
            waiting.extend(reversed(node.values()))
        elif isinstance(node, list):
            waiting.extend(reversed(node))


_NAMES = (
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "maxOutputTokens",
    "maxTokens",
    "num_predict",
    "max_new_tokens",
)
_HOLDERS = ("generationConfig", "inferenceConfig", "generation_config", "options", "parameters")
_LETTERS = 4


def limit_of(body: Fields) -> int | None:
    """Return the most tokens that an answer may have, or None if the request sets no limit."""
    for holder in (body, *(inner for name in _HOLDERS if isinstance(inner := body.get(name), dict))):
        for name in _NAMES:
            value = holder.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None


def truncated_turn(turn: Turn, limit: int | None) -> Turn:
    """Return a turn cut at the token limit, which includes its thinking. Tool calls, and turns with a declared usage, stay whole."""
    if limit is None or turn.tool_calls or turn.finish or turn.usage:
        return turn
    left = limit - tokens_of(len(turn.reasoning))
    if tokens_of(len(turn.text)) <= left:
        return turn
    return replace(turn, text=turn.text[: max(0, left) * _LETTERS], finish="length")


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

    `key` is the only key taken (None: any that is not empty), `models` the only models known (None: those that its preset lists; empty:
    any), `delta_size` the characters of a streamed delta, `pace` the seconds between events, `fault` what goes wrong with every request,
    `thinking_behaviour` how the model takes what it is told of its thinking (None: it thinks as scripted).
    `prefix_cache` is what the server keeps of prompts, None: nothing is counted as read from a cache but what the provider's own says.
    `requests` holds what arrived, unless `keep_requests` is False: a server that runs for days must not keep them all.
    """

    def __init__(
        self,
        preset: str,
        *,
        script: Script | None = None,
        key: str | None = None,
        models: Sequence[str] | None = None,
        fault: Fault | None = None,
        thinking_behaviour: ThinkingBehaviour | BehaviourKind | None = None,
        delta_size: int = 8,
        pace: float = 0.0,
        prefix_cache: PrefixCache | None = None,
        keep_requests: bool = True,
    ) -> None:
        if preset not in PRESETS:
            raise ValueError(f"no simulator is called {preset!r}; there are: {', '.join(sorted(PRESETS))}")
        self.provider: Provider = PRESETS[preset]()
        self._other_dialects = [other() for other in self.provider.other_dialects]
        self.requests: list[Incoming] = []
        self._keep_requests = keep_requests
        self._script = script or Script()
        self._key = key
        self._models = self.provider.models if models is None else tuple(models)
        self._fault = fault
        self._thinking_behaviour = (
            ThinkingBehaviour(thinking_behaviour) if isinstance(thinking_behaviour, str) else thinking_behaviour
        )
        self._gate: Gate | None = None
        self.prefix_cache = prefix_cache
        self._delta_size = max(1, delta_size)
        self._pace = pace
        self._request_count = 0
        self._script_start = 0
        self._fault_counts: dict[Fault, int] = {}
        self.batches = batch_server(preset, self._play_item)
        """The batch API of the provider, or None if it has none."""

    @property
    def models(self) -> Sequence[str]:
        """The models it lists."""
        return self._models or self.provider.models

    def play(self, script: Script) -> None:
        """Replace the model's script; the new one starts at its beginning."""
        self._script = script
        self._script_start = self._request_count

    def fail(self, fault: Fault | None) -> None:
        """Apply this fault to every request from now on; None removes it."""
        self._fault = fault
        self._fault_counts.clear()

    def hold(self, after: int = 0) -> Gate:
        """Hold every later reply at the returned gate, after `after` events, until the gate is opened."""
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
        """Return what happens on the wire for one request. No socket is needed, so a test may ask directly."""
        if self._keep_requests:
            self.requests.append(incoming)
        provider = self._dialect_for(incoming)
        try:
            reply, fault = self._answer(provider, incoming)
        except Refusal as refusal:
            reply, fault = provider.encode_refusal(refusal), None
        fault = self._active_fault(fault) or self._active_fault(self._fault)
        actions = deliver(reply, fault, provider.error_forms(), pace=self._pace)
        return wait_at_gate(actions, self._gate) if self._gate is not None else actions

    def _dialect_for(self, incoming: Incoming) -> Provider:
        """Return the one of the server's dialects at whose path a model is asked."""
        path = incoming.path.rstrip("/")
        for other in self._other_dialects:
            prefix = _prefix(other)
            if path.startswith(f"{prefix}/") and other.is_generation_path(incoming, path.removeprefix(prefix)):
                return other
        return self.provider

    def _answer(self, provider: Provider, incoming: Incoming) -> tuple[Reply, Fault | None]:
        described = provider.describe_server(incoming, self.models)
        if described is not None:
            provider.check_key(incoming, self._key)
            return described, None
        path = _relative_path(provider, incoming)
        batch = self._answer_batches(provider, incoming, path)
        if batch is not None:
            return batch, None
        is_generation = provider.is_generation_path(incoming, path)
        listed = provider.list_models(path, self.models)
        plain, fault = _without_fault(incoming)
        other = listed or provider.answer_other_path(plain, _relative_path(provider, plain))
        if not is_generation and other is None:
            raise provider.unknown_path(incoming)
        if incoming.method != ("GET" if listed is not None else "POST"):
            raise provider.wrong_method(incoming)
        if listed is None or not provider.lists_without_key:
            provider.check_key(incoming, self._key)
        if other is not None and (model := text(plain.fields.get("model"))):
            provider.check_model(model.removeprefix("models/"), self._models)
        return (other, fault) if other is not None else self._play(provider, incoming, path)

    def _answer_batches(self, provider: Provider, incoming: Incoming, path: str) -> Reply | None:
        """Answer a request about files or batches, or None if it is about neither."""
        if self.batches is None:
            return None
        provider.check_key(incoming, self._key)
        return self.batches.answer(incoming, path)

    def _play_item(self, incoming: Incoming, path: str, body: Fields) -> tuple[int, Fields]:
        """Answer one request of a batch."""
        raw = compact(body)
        request = replace(incoming, method="POST", path=f"{_prefix(self.provider)}{path}", query={}, raw=raw, body=body)
        provider = self._dialect_for(request)
        try:
            if body.get("stream"):
                raise Refusal("bad_value", "Streaming is not supported in batches.", parameter="stream")
            reply, fault = self._answer(provider, request)
            if fault is not None and fault.kind == "status":
                reply = provider.error_forms().reply(fault.status)
        except Refusal as refusal:
            reply = provider.encode_refusal(refusal)
        return reply.status, fields(json.loads(reply.body))

    def _play(self, provider: Provider, incoming: Incoming, path: str) -> tuple[Reply, Fault | None]:
        """Answer a generation request by the script."""
        conversation = provider.decode_request(incoming, path)
        model, fault = _named_fault(conversation.model)
        provider.demands(model).check(seen_shape(provider.dialect, incoming.fields))
        provider.check_model(model, self._models)
        conversation = with_requested_json(replace(conversation, model=model), incoming.fields)
        turn = self._script.turn(conversation, asked=self._request_count - self._script_start)
        self._request_count += 1
        exchange = Exchange(
            body=incoming.fields,
            conversation=conversation,
            model=model,
            turn=turn,
            usage=turn.count_usage(conversation.characters),
            seed=f"{provider.name}/{self._request_count}",
            created=int(time.time()),
            delta_size=self._delta_size,
        )
        exchange = self._with_requested_reasoning(
            provider, replace(exchange, turn=truncated_turn(turn, limit_of(incoming.fields)))
        )
        if turn.usage is None:
            exchange = replace(exchange, usage=provider.estimate_usage(exchange))
        if self.prefix_cache is not None:
            written = prompt_text(exchange.body)
            cached, tokens = self.prefix_cache.take(written), max(1, tokens_of(len(written)))
            exchange = replace(
                exchange,
                usage=replace(exchange.usage, input_tokens=tokens, cached_input_tokens=min(cached, tokens - 1)),
            )
        reply = provider.encode_stream(exchange) if conversation.streamed else provider.encode_reply(exchange)
        return reply, fault or turn.fault

    def _with_requested_reasoning(self, provider: Provider, exchange: Exchange) -> Exchange:
        """Leave out reasoning that the request switched off, or asked not to be shown."""
        if self._thinking_behaviour is not None:
            exchange = self._thinking_behaviour.apply(exchange, off=provider.reasoning_is_off(exchange))
        turn = exchange.turn
        if self._thinking_behaviour is None and provider.reasoning_is_off(exchange):
            turn = turn.without_reasoning()
            return replace(exchange, turn=turn, usage=turn.count_usage(exchange.conversation.characters))
        if provider.reasoning_is_hidden(exchange):
            return replace(exchange, turn=turn.with_hidden_reasoning())
        return exchange

    def _active_fault(self, fault: Fault | None) -> Fault | None:
        """Return the fault unless it has struck as often as it may."""
        if fault is None or fault.times is None:
            return fault
        count = self._fault_counts.get(fault, 0)
        self._fault_counts[fault] = count + 1
        return fault if count < fault.times else None


def _named_fault(model: str) -> tuple[str, Fault | None]:
    """Split a model's name from the fault that it asks for. Raises Refusal where that is not one."""
    try:
        return split_fault(model)
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
    requests = {"requests": [_strip_fault(request) for request in rows(body["requests"])]} if "requests" in body else {}
    plain_body = {**_strip_fault(body), **requests} if isinstance(incoming.body, dict) else incoming.body
    return replace(incoming, path=_NAMED_IN_PATH.sub("", incoming.path), body=plain_body), fault


def _strip_fault(body: Fields) -> Fields:
    """Return an object without the fault that its model's name asks for."""
    model = body.get("model")
    return {**body, "model": _named_fault(model)[0]} if isinstance(model, str) else body


def _prefix(provider: Provider) -> str:
    return provider.base_path if provider.prefix is None else provider.prefix


def _relative_path(provider: Provider, incoming: Incoming) -> str:
    path, base = incoming.path.rstrip("/"), _prefix(provider)
    if not path.startswith(f"{base}/"):
        raise provider.unknown_path(incoming)
    return path.removeprefix(base)
