"""Live introspection: what servers themselves say of their models' thinking (layer L1), asked before the first call of each, and kept.

A later call does not wait, unless the server may be another one: after a connection that failed, and now and then at servers of weights,
which are started anew with other models. A server that could not tell is asked once more after it has
answered a call (a router loads a model for the first one), and else after a rest.

Nothing here fails a start or a call: a server that is not there, or says something else, leaves the word to the next layer, with one
warning in the log.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence

from bardo.adapters.net.client import Transport
from bardo.adapters.net.keys import Keyring
from bardo.adapters.net.problems import origin
from bardo.planning.route import Provider, Target
from bardo.reasoning.control import Layer
from bardo.services.facts.introspect.adapters import Adapter, Question, ask, builtin_adapters, why_not
from bardo.services.facts.introspect.answer_values import NotAnAnswer
from bardo.services.facts.introspect.layers import LayerValue, MergedFact, MergedModel, layers_of, log_override, merge
from bardo.services.facts.introspect.live import FactsAnswer, LiveFacts
from bardo.services.facts.introspect.readers import READERS, Reader
from bardo.values.error_cleaning import cleaned_text

__all__ = [
    "READERS",
    "Adapter",
    "FactsAnswer",
    "Introspector",
    "LayerValue",
    "LiveFacts",
    "MergedFact",
    "MergedModel",
    "NotAnAnswer",
    "Question",
    "Reader",
    "builtin_adapters",
    "layers_of",
    "log_override",
    "merge",
]

SECONDS = 5.0
"""How long one server may take to answer all questions."""
RESTS_SECONDS = 300.0
"""After how long a server that did not answer is asked again."""
REFRESH_SECONDS = 30.0
"""After how long the facts of a server that may have been started anew are asked for again."""
REFRESH_WAITS_SECONDS = 1.0
"""How long a call waits for them before it goes on with the old ones."""

_log = logging.getLogger("bardo.introspection")
Key = tuple[str, str]
_MOST_KEPT = 1024
_LONGEST_REASON = 500


class _Introspection:
    """The result of asking one server: facts by model, or a problem and when it was met, by both clocks."""

    __slots__ = ("adapter", "at", "due", "facts", "lost", "problem", "retried", "watched_at")

    def __init__(
        self, adapter: str, at: float, facts: dict[str, LiveFacts], problem: str = "", *, watched_at: float
    ) -> None:
        self.adapter = adapter
        self.at = at
        self.watched_at = watched_at
        self.facts = facts
        self.problem = problem
        self.lost = False
        """Whether the server was seen to be gone since."""
        self.due = False
        """Whether it is to be asked again without a rest."""
        self.retried = False
        """Whether it was asked again without a rest."""


class Introspector:
    """Asks servers what they know of their models' thinking. It belongs to the event loop that it is first used in.

    `clock` gives Unix time, `watch` measures how long a server rests. Close it before its transport.
    """

    def __init__(
        self,
        transport: Transport,
        keyring: Keyring,
        *,
        clock: Callable[[], float] = time.time,
        watch: Callable[[], float] = time.monotonic,
        seconds: float = SECONDS,
        adapters: Mapping[str, Adapter] | None = None,
    ) -> None:
        self._transport = transport
        self._keyring = keyring
        self._clock = clock
        self._watch = watch
        self._seconds = seconds
        self._adapters = builtin_adapters() if adapters is None else adapters
        self._asked: dict[Key, _Introspection] = {}
        self._asking: dict[Key, asyncio.Task[_Introspection]] = {}
        self._outdated: set[Key] = set()
        """The keys under way whose answer may come from a server that is gone since."""
        self._revisions: dict[str, int] = {}

    def facts(self, provider: Provider, model: str) -> LiveFacts | None:
        """Return the facts known now, and begin to ask if there are none: the call at hand goes on without."""
        adapter = self._adapter(provider)
        if adapter is None:
            return None
        key = _key(adapter, provider, model)
        asked = self._asked.get(key)
        if (asked is None or self._is_due(asked, adapter)) and _in_a_loop():
            self._begin(key, adapter, provider, model)
        return None if asked is None or asked.lost else asked.facts.get(model)

    def asks(self, provider: Provider) -> bool:
        """Whether the servers of a provider can be asked."""
        return self._adapter(provider) is not None

    def known(self, provider: Provider, model: str) -> LiveFacts | None:
        """Return the facts known now; a server that must be asked for each model is not asked."""
        adapter = self._adapter(provider)
        if adapter is None or not adapter.per_model:
            return self.facts(provider, model)
        asked = self._asked.get(_key(adapter, provider, model))
        return None if asked is None or asked.lost else asked.facts.get(model)

    def kept(self, provider: Provider, model: str) -> FactsAnswer | None:
        """Return what the server last said, without asking it, or None if it was not asked."""
        asked = self._of(Target(provider=provider, model=model))
        if asked is None:
            return None
        if asked.lost:
            return FactsAnswer(at=asked.at, adapter=asked.adapter, problem="it was gone since it was asked")
        return _facts_or_problem(asked, asked.facts.get(model))

    def revision(self, provider: Provider) -> int:
        """Return how often a provider's server has said something: values made from its answers hold as long as this is the same."""
        return sum([self._revisions.get(url, 0) for url in provider.base_urls])

    async def ask_before(self, targets: Sequence[Target]) -> None:
        """Ask the servers of `targets` of which nothing holds, or not for sure any more; wait for the first, no longer than it may take."""
        first = None
        for target in targets:
            provider = target.provider
            adapter = self._adapter(provider)
            if adapter is None or adapter.background or len(provider.servers) > 1:
                # Of several servers the one is asked that gets the call.
                continue
            key = _key(adapter, provider, target.model)
            asked = self._asked.get(key)
            if asked is not None and not self._is_due(asked, adapter):
                continue
            old = asked is not None and not asked.lost and not asked.due
            task = self._begin(key, adapter, provider, target.model)
            if target is targets[0]:
                first = task, REFRESH_WAITS_SECONDS if old else None
        if first is not None:
            task, patience = first
            await asyncio.wait({task}, timeout=patience)

    def note_answer(self, target: Target) -> None:
        """Note that a server took a call: one that could not tell anything of the model before is asked once more."""
        asked = self._of(target)
        if asked is not None and asked.problem and not asked.retried:
            asked.due = True

    def note_loss(self, provider: Provider) -> None:
        """Note that a server was not there: what it said holds no longer, for it may come back as another one."""
        for (address, _), asked in self._asked.items():
            if address in provider.base_urls and not asked.problem:
                asked.lost = True
        self._outdated.update(key for key in self._asking if key[0] in provider.base_urls)

    def _adapter(self, provider: Provider) -> Adapter | None:
        """Return what asks a provider's servers, or None if nothing does, or only clients have a credential for it."""
        return None if provider.row.auth == "client" else self._adapters.get(provider.row.id)

    def _of(self, target: Target) -> _Introspection | None:
        adapter = self._adapter(target.provider)
        return None if adapter is None else self._asked.get(_key(adapter, target.provider, target.model))

    def layers(self, target: Target) -> tuple[Layer, ...]:
        """Return the facts known now as layers of control, from memory: the same values each time, so that they can be compared."""
        return layers_of(self.facts(target.provider, target.model))

    async def learn(self, provider: Provider, model: str) -> FactsAnswer:
        """Return what the server says, waiting for it; never raises for anything the server does."""
        adapter = self._adapter(provider)
        if adapter is None:
            return FactsAnswer(at=self._clock(), problem="its servers say nothing of thinking")
        key = _key(adapter, provider, model)
        asked = self._asked.get(key)
        if asked is None or self._is_due(asked, adapter):
            # Whoever waits here may be cancelled; the question goes on for the others.
            asked = await asyncio.shield(self._begin(key, adapter, provider, model))
        return _facts_or_problem(asked, asked.facts.get(model))

    async def settle(self) -> None:
        """Wait until nothing is being asked."""
        while self._asking:
            await asyncio.gather(*self._asking.values(), return_exceptions=True)
            # Since Python 3.12 questions that have ended are not waited for: what notes them has its turn here.
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Stop asking."""
        for task in self._asking.values():
            task.cancel()
        await self.settle()

    def _is_due(self, asked: _Introspection, adapter: Adapter) -> bool:
        if asked.lost or asked.due:
            return True
        age = self._watch() - asked.watched_at
        return age > RESTS_SECONDS if asked.problem else adapter.restarts and age > REFRESH_SECONDS

    def _begin(self, key: Key, adapter: Adapter, provider: Provider, model: str) -> asyncio.Task[_Introspection]:
        task = self._asking.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._ask(adapter, provider, model))
            self._asking[key] = task
            before = self._asked.get(key)
            retries = before is not None and before.due
            task.add_done_callback(lambda done: self._note(key, done, retries=retries))
        return task

    def _note(self, key: Key, task: asyncio.Task[_Introspection], *, retries: bool) -> None:
        is_outdated = key in self._outdated
        self._outdated.discard(key)
        del self._asking[key]
        if task.cancelled():
            return
        # Names come from callers: a server that knows any name must not fill the memory.
        if len(self._asked) >= _MOST_KEPT:
            del self._asked[next(iter(self._asked))]
        answer = task.result()
        answer.retried, answer.lost = retries, is_outdated and not answer.problem
        self._asked[key] = answer
        self._revisions[key[0]] = self._revisions.get(key[0], 0) + 1

    async def _ask(self, adapter: Adapter, provider: Provider, model: str) -> _Introspection:
        try:
            facts = await ask(
                adapter, provider, model, transport=self._transport, keyring=self._keyring, seconds=self._seconds
            )
        except Exception as problem:  # noqa: BLE001 - a call must never fail for a question beside it
            why = cleaned_text(why_not(problem), self._keyring.secrets([provider]), _LONGEST_REASON)
            self._warn(adapter, provider, model, why)
            return _Introspection(adapter.name, self._clock(), {}, why, watched_at=self._watch())
        return _Introspection(adapter.name, self._clock(), facts, watched_at=self._watch())

    def _warn(self, adapter: Adapter, provider: Provider, model: str, why: str) -> None:
        about = {
            "provider": provider.id,
            "address": origin(provider.base_url),
            "model": model if adapter.per_model else "",
            "adapter": adapter.name,
            "why": why,
            "layer": "L2",
        }
        _log.warning("no live facts from %s: %s; the catalog decides", provider.id, why, extra=about)


def _facts_or_problem(asked: _Introspection, facts: LiveFacts | None) -> FactsAnswer:
    problem = asked.problem or ("" if facts is not None else "it does not list this model")
    return FactsAnswer(facts=facts, at=asked.at, adapter=asked.adapter, problem=problem)


def _key(adapter: Adapter, provider: Provider, model: str) -> Key:
    return provider.base_url, model if adapter.per_model else ""


def _in_a_loop() -> bool:
    """Whether a question can run beside the caller; who explains a request without a loop goes on without it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
