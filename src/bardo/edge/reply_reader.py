"""What a reply is read with: the stages its attempt calls for, in their order, and the care of a typed answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from bardo.edge.answering import Answering
from bardo.engine.exchange import Attempt
from bardo.engine.pipeline import ReplyReader
from bardo.engine.receipt import ForeignContent
from bardo.engine.structuring import Take
from bardo.reasoning.replay import Origins
from bardo.streams.stage import Stage
from bardo.values.errors import BardoError
from bardo.values.events import Degraded, Event, ReplyStart
from bardo.values.request import Request
from bardo.values.secrets import Secrets


def open_reader(
    attempt: Attempt,
    request: Request,
    stamp: ReplyStart,
    *,
    streamed: bool,
    further: Sequence[Stage[Event, Event]],
    secrets: Secrets,
    clean: Callable[[BardoError], object],
    most_text: int | None,
) -> ReplyReader:
    """Return the reader of an attempt's reply, which knows already what the attempt gave up.

    `stamp` fills what the provider leaves out; `further` are stages of those who look at the reply on its way. `secrets` are those the
    provider may quote, and `clean` takes all there are out of an error. `most_text` is how many characters of it are held.
    """
    provider = attempt.target.provider
    reader = ReplyReader(
        provider.row,
        streamed=streamed,
        provider=provider.id,
        model=attempt.target.model,
        reading=attempt.reading,
        make_id=_new_call_id,
        omit_reasoning=request.options.omit_reasoning,
        stamp=stamp,
        forward=attempt.forward,
        further=[*_of_translation(attempt, request), *further],
        secrets=secrets,
        clean=clean,
        most_text=most_text,
    )
    for degradation in attempt.degraded:
        reader.fold.feed(Degraded(degradation))
    return reader


def answering_of(attempt: Attempt, request: Request, take: Take | None) -> Answering | None:
    """Return what looks after the answer; None where it has no schema, or nobody but the model looks at it."""
    answer = attempt.answer
    if answer is None or not (answer.judged or take is not None):
        return None
    partials = "partials" in request.options.include and request.stream
    return Answering(attempt, answer, whole=not request.stream, partials=partials, take=take)


def _of_translation(attempt: Attempt, request: Request) -> list[Stage[Event, Event]]:
    """Return the stages of a reply that is written anew for the client: a forwarded one has none."""
    if attempt.forward:
        return []
    stamps = [] if attempt.origin is None else [Origins(attempt.origin)]
    return [ForeignContent(request.dialect), *stamps]


def _new_call_id() -> str:
    """Return an id that no other call has, in this process or another."""
    return f"call_{random.getrandbits(96):024x}"
