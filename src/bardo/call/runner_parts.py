"""What a runner is given: where calls are noted, what is known of servers, and how a caller wants a call run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bardo.adapters.config.accounts import Account
from bardo.adapters.stores.log.row import LogRow, PendingCall
from bardo.planning.route import Provider, Target
from bardo.planning.token_counting import PromptEstimates
from bardo.planning.typed_answer import AnswerValidator
from bardo.planning.verification import Judge
from bardo.replies.written_tokens import OutputEstimates
from bardo.services.facts.cache_health import PromptTracker
from bardo.services.facts.event_feed import EventBus
from bardo.values.errors import BardoError

if TYPE_CHECKING:
    from bardo.services.accounts.agent_calls import LocalAnswer


class LogSink(Protocol):
    """Where finished calls are noted."""

    def write(self, row: LogRow) -> None: ...


class CallJournal(Protocol):
    """Where calls are noted before they are sent: the journal of the log, as a rule."""

    def begin(self, call: PendingCall) -> None: ...


class ServerFacts(Protocol):
    """What servers say of their models, and what calls tell of the servers."""

    async def ask_before(self, targets: Sequence[Target]) -> None: ...

    def note_answer(self, target: Target) -> None: ...

    def note_loss(self, provider: Provider) -> None: ...


class CallMemory:
    """What calls leave for later ones in this process: who listens to events, what texts were estimated at, and how prompts began."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.events = EventBus(clock)
        self.estimates = PromptEstimates()
        self.outputs = OutputEstimates()
        self.prompts = PromptTracker()


class CallOptions(NamedTuple):
    """How a caller wants a call run, as `Runner.open` takes it."""

    tenant: str
    validator: AnswerValidator | None
    client_key: str
    most_text: int | None
    may_forward: bool
    account: Account | None = None
    judge: Judge | None = None
    """Who is asked whether the answer is right; None where nobody is."""
    judges: bool = False
    """Whether this is the call by which a judge is asked: it is no further request of the client."""

    local: LocalAnswer | None = None
    """The answer of an agent's tick that needs no model; None where one is asked."""
    refused: BardoError | None = None
    """Why nothing is sent; None where the call may go on."""

    def of_judge(self) -> CallOptions:
        """Return how the judge is asked: by a call of the same client."""
        return self._replace(validator=None, most_text=None, may_forward=False, judge=None, judges=True)
