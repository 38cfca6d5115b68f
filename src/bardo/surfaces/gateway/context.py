"""What every operation of the gateway is given: the runner, and the limits of a request."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from bardo.edge.feedback import FeedbackTaker
from bardo.edge.response_store import ResponseStore
from bardo.edge.runner import Runner
from bardo.engine.prompt_estimates import PromptEstimates
from bardo.surfaces.gateway.access import require_json
from bardo.surfaces.gateway.answer import Answer
from bardo.surfaces.gateway.http import Receive, Scope, read_body
from bardo.surfaces.gateway.routes import Route
from bardo.values.errors import InternalError

_log = logging.getLogger("bardo.gateway")


class GatewayContext:
    """The runner of a gateway, the limits of a request and a stream, and whether unasked thinking is shown.

    `responses` is where responses are kept, `feedback` takes what clients think of answers; None where neither is done.
    """

    def __init__(
        self,
        runner: Runner,
        *,
        max_body: int,
        keep_alive_seconds: float,
        unasked_thinking: bool = False,
        responses: ResponseStore | None = None,
        feedback: FeedbackTaker | None = None,
    ) -> None:
        self.runner = runner
        self.feedback = feedback
        self.responses = responses
        self.prompt_estimates = PromptEstimates()
        self.keep_alive_seconds = keep_alive_seconds
        self.unasked_thinking = unasked_thinking
        self.max_body = max_body

    async def body(self, scope: Scope, receive: Receive) -> bytes:
        """Return the body of a request. Raises UnsupportedMediaType or TooLarge, ClientGone where the client left."""
        require_json(scope)
        return await read_body(scope, receive, self.max_body)


ServeOperation: TypeAlias = Callable[[GatewayContext, Route, Scope, Receive, Answer], Awaitable[None]]
"""Answers one request of one endpoint. It may raise BardoError, as long as the answer has not begun."""


def mistake(where: str) -> InternalError:
    """Log the exception at hand, which is a mistake in bardo, and return the error that the client gets."""
    _log.exception("a mistake in bardo, at %s", where)
    return InternalError("bardo failed", hint="the gateway's log says where")
