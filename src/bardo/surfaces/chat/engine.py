"""Answers of bardo's engine, in this process, for the users of a chat: each has an account with limits, and rows in the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bardo.adapters.config.accounts import Account
from bardo.adapters.config.chat import ChatSettings
from bardo.adapters.config.settings import Settings
from bardo.adapters.net.keys import Keyring
from bardo.services.accounts.call_gate import CallGate
from bardo.services.accounts.opening import open_limits
from bardo.services.facts.model_list import first_model
from bardo.surfaces.library.asking import Options, build_request
from bardo.surfaces.library.stream import AsyncReplyStream
from bardo.values.errors import ConfigError
from bardo.values.request import Message
from bardo.values.response import Response
from bardo.wiring import assemble


class ChatEngine:
    """Asks models for the users of one chat `service`. Use it as a context manager, in one event loop. Raises ConfigError."""

    def __init__(
        self, settings: Settings, chat: ChatSettings, service: str, environment: Mapping[str, str] | None = None
    ) -> None:
        if chat.usd_per_day and not settings.log.enabled:
            hint = "set enabled = true under [log], or usd_per_day = 0 for no budget"
            raise ConfigError(f"[{service}] has a budget, and the log is off: nobody knows what is spent", hint=hint)
        self._chat = chat
        self._service = service
        self._limits = chat.limits
        self._keyring = Keyring(environment)
        self._accounts = open_limits(settings, environment)
        try:
            self._assembly = assemble(settings, environment=environment)
        except BaseException:
            self._accounts.close()
            raise
        runner = self._assembly.runner
        self._accounts.use_log(self._assembly.log)
        runner.gate = CallGate(self._accounts, runner.prices, settings.budgets, clock=runner.clock)
        self.model = chat.model
        """The model that answers where a user chose no other."""

    async def __aenter__(self) -> ChatEngine:
        runner = self._assembly.runner
        self._accounts.start()
        self._assembly.start()
        try:
            if not runner.directory.providers:
                await runner.directory.add_local()
            if not self.model:
                self.model = await first_model(runner.directory, self._keyring)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close connections and the log, and store what calls have taken."""
        await self._assembly.close()
        await self._accounts.stop()

    def stream(
        self, prompt: Sequence[Message | Response], *, user: str, session: str, model: str = ""
    ) -> AsyncReplyStream:
        """Return the reply to a conversation as it arrives. Raises BardoError when entered."""
        options: Options = {"system": self._chat.system, "session": session}
        if self._chat.reasoning:
            options["reasoning"] = self._chat.reasoning
        request = build_request(prompt, model or self.model, options, stream=True)
        return AsyncReplyStream(lambda: self._assembly.runner, request, account=self._account(user))

    def _account(self, user: str) -> Account:
        """Return the account of a user: what the log, limits and budgets know the calls by."""
        name = f"{self._service}:{user}"
        # Every user has a budget, so that models without a price would be refused to all.
        limits = self._limits
        return Account(id=name, name=name, tenant=name, tags=(self._service,), limits=limits, unknown_cost="estimate")
