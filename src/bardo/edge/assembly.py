"""Puts the parts together: from settings to a running engine. The gateway, the library and the command line start here."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bardo.edge.call_context import Limits
from bardo.edge.call_routing import CallRouting
from bardo.edge.client_keys import ClientKeys
from bardo.edge.directory import Directory
from bardo.edge.feedback import FeedbackTaker
from bardo.edge.formats import formats_of
from bardo.edge.http import Deadlines, HttpTransport, Transport
from bardo.edge.introspect import Introspector
from bardo.edge.keys import Keyring
from bardo.edge.log.feedback import FeedbackStore
from bardo.edge.model_facts import ModelFacts
from bardo.edge.replay_store import ReplayKeeper, open_keeper
from bardo.edge.response_store import ResponseStore, open_responses
from bardo.edge.runner import Runner
from bardo.edge.settings import Settings, default_log_path
from bardo.engine.knowledge import Knowledge

if TYPE_CHECKING:
    from bardo.edge.learned_routing import LearnedRouting
    from bardo.edge.log import LogWriter

_log = logging.getLogger("bardo.control")


class Assembly:
    """A runner and what has to be closed after it."""

    def __init__(
        self,
        runner: Runner,
        *,
        transport: Transport | None,
        log: LogWriter | None,
        replay: ReplayKeeper | None = None,
        introspector: Introspector | None = None,
        responses: ResponseStore | None = None,
        feedback: FeedbackTaker | None = None,
        learned: LearnedRouting | None = None,
    ) -> None:
        self.runner = runner
        self.feedback = feedback
        self.responses = responses
        self._introspector = introspector
        self._transport = transport
        self._log = log
        self._replay = replay
        self._learned = learned

    async def close(self) -> None:
        """Close connections, then the log: nothing that was to be written is lost."""
        if self._introspector is not None:
            await self._introspector.close()
        if self._transport is not None:
            await self._transport.close()
        if self._replay is not None:
            self._replay.close()
        if self.responses is not None:
            self.responses.close()
        if self.feedback is not None:
            self.feedback.close()
        if self._learned is not None:
            self._learned.close()
        if self._log is not None:
            self._log.close()


def assemble(
    settings: Settings,
    *,
    transport: Transport | None = None,
    environment: Mapping[str, str] | None = None,
) -> Assembly:
    """Return the engine that `settings` describe. A `transport` that is given stays the caller's to close."""
    own = HttpTransport(settings.http.client) if transport is None else None
    used: Transport = own if own is not None else transport  # type: ignore[assignment]
    keyring = Keyring(environment)
    directory = Directory.of(settings, used, keyring, clock=time.monotonic)
    for lost in settings.unheeded:
        _log.warning("%s of the configuration is not honoured: %s", lost.what, lost.why, extra={"field": lost.what})
    introspector = Introspector(used, keyring) if settings.reasoning.introspect else None
    learned = _learned(settings)
    # Last, because it starts a thread: nothing is left behind where the configuration was wrong.
    log = open_log(settings, environment)
    replay = None
    try:
        replay = open_keeper(settings.replay)
        responses = open_responses(settings.responses)
    except BaseException:
        for opened in (log, replay):
            if opened is not None:
                opened.close()
        raise
    facts = model_facts(settings, introspector)
    chosen_by = settings.routing
    runner = Runner(
        directory,
        used,
        keyring,
        limits=_limits(settings),
        facts=facts,
        routing=CallRouting(
            directory, facts, strategy=chosen_by.strategy, private=chosen_by.private_providers, learned=learned
        ),
        log=log,
        journal=log,
        replay=replay,
        servers=introspector,
        client_keys=ClientKeys(settings.keys, environment),
    )
    feedback = None if log is None else FeedbackTaker(log, FeedbackStore(log_path(settings, environment)))
    return Assembly(
        runner,
        transport=own,
        log=log,
        replay=replay,
        introspector=introspector,
        responses=responses,
        feedback=feedback,
        learned=learned,
    )


def _learned(settings: Settings) -> LearnedRouting | None:
    """Return what routing has learned, for the strategy that needs it: without it nothing of this is loaded."""
    if settings.routing.strategy != "learned":
        return None
    from bardo.edge.learned_routing import LearnedRouting

    return LearnedRouting.of(settings)


def _limits(settings: Settings) -> Limits:
    timeouts = settings.timeouts
    return Limits(
        deadlines=Deadlines(
            connect=timeouts.connect, first_byte=timeouts.first_byte, idle=timeouts.idle, total=timeouts.total
        ),
        max_reply_bytes=settings.gateway.max_reply_bytes,
        max_stream_bytes=settings.gateway.max_stream_bytes,
        keep_content=settings.log.content,
    )


def model_facts(settings: Settings, introspector: Introspector | None = None) -> ModelFacts:
    """Return what a call of these settings draws on. Without an `introspector` no server is asked."""
    planning = Knowledge(
        formats=formats_of(settings),
        budgets=settings.reasoning.budgets,
        prompt_words=settings.reasoning.prompt_words,
        structured=settings.inference.structured_outputs,
    )
    return ModelFacts(settings.models, settings=planning, introspector=introspector)


def log_path(settings: Settings, environment: Mapping[str, str] | None = None) -> Path | str:
    """Return where the inference log stands: a file, or the address of a database."""
    named = settings.log.path
    if "://" in named:
        return named
    return Path(named).expanduser() if named else default_log_path(environment)


def open_log(settings: Settings, environment: Mapping[str, str] | None = None) -> LogWriter | None:
    """Return the log's writer, or None where the log is off."""
    if not settings.log.enabled:
        return None
    from bardo.edge.log import LogWriter

    return LogWriter(log_path(settings, environment), keep_content=settings.log.content)
