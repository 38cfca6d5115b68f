"""One request's life as a generator of attempts.

Whoever runs it sends each attempt and answers with what became of it; the generator decides whether there is another. It knows no
socket, no clock and no secret, so every path through it is tested with plain values.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import msgspec

from bardo.catalog.replay import Binding, builtin_replay
from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.engine.controlling import Controlled, control, dialects_of, repaired
from bardo.engine.knowledge import BUILTIN, Knowledge
from bardo.engine.losses import refuse_losses
from bardo.engine.reading import PLAIN, Beginning, Reading, reading_of
from bardo.engine.route import Target
from bardo.engine.structuring import AnswerPlan, answer_plan, refused_for_good, refused_forms
from bardo.reasoning.control import ControlPlan
from bardo.reasoning.replay import NOTHING, Recalled, amended, prefix_of, restore
from bardo.reasoning.starting import toggles_thinking
from bardo.structured.modes import Form
from bardo.values.blocks import Origin
from bardo.values.degradation import Degradation, distinct
from bardo.values.errors import BardoError, Unsupported, UpstreamRefused
from bardo.values.request import Message, Request
from bardo.values.wire import WireRequest


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One try at one target.

    `reading` is how the reply's text is read, `off` whether no thinking was asked for, `control` how the model was told to think.
    `forward`: the reply needs no translation, and its frames go to the client as they came. `withhold_usage`: bardo asked for usage the
    client did not ask for, so the frame that holds nothing else stays here. `sent` is the request with the history that the provider gets,
    `origin` the stamp of what it makes, `ask` what it is asked by to leave out thinking that does not hold. `answer` is how an answer in a
    schema is asked for.
    """

    target: Target
    wire: WireRequest
    reading: Reading = PLAIN
    off: bool = False
    control: ControlPlan | None = None
    forward: bool = False
    withhold_usage: bool = False
    sent: Request | None = None
    origin: Origin | None = None
    ask: Binding | None = None
    answer: AnswerPlan | None = None
    degraded: tuple[Degradation, ...] = ()

    @property
    def url(self) -> str:
        """The provider's base URL and the dialect's path, joined."""
        return self.target.provider.url(self.wire.path)


def attempts(
    request: Request,
    targets: Sequence[Target],
    *,
    knowledge: Knowledge = BUILTIN,
    recalled: Recalled = NOTHING,
    may_forward: bool = True,
) -> Generator[Attempt, BardoError | None, None]:
    """Yield one attempt for each target until one is answered with None, or with an error another provider cannot mend.

    `recalled` is what is known of the replies in the request's history.
    """
    failed: tuple[tuple[str, str], ...] = ()
    for target in targets:
        own = target.provider.id
        lost = tuple(Degradation("provider", asked=asked, sent=own, why=why) for asked, why in failed)
        try:
            attempt, lost = _with_history(request, target, lost, knowledge, recalled, may_forward=may_forward)
        except Unsupported as problem:
            if target is targets[-1]:
                raise
            failed = (*failed, (own, problem.message))
            continue
        failure = yield attempt
        again = _repaired(attempt, failure, lost, knowledge) or _reshaped(attempt, failure, lost, knowledge)
        if again is not None:
            failure = yield msgspec.structs.replace(again, wire=amended(again.wire, attempt.ask), ask=attempt.ask)
        if failure is None or not failure.retryable:
            return
        failed = (*failed, (own, failure.message))


def _with_history(
    request: Request,
    target: Target,
    lost: tuple[Degradation, ...],
    knowledge: Knowledge,
    recalled: Recalled,
    *,
    may_forward: bool,
) -> tuple[Attempt, tuple[Degradation, ...]]:
    """Plan a request with the reasoning that the target takes back; a history that had to change is not forwarded.

    The second value is `lost` with what the history lost.
    """
    rules = recalled.rules or builtin_replay()
    reader = rules.reader(target.provider.id, target.provider.row, target.model)
    back = restore(request, reader, recalled)
    prefix = prefix_of(back.request).whole if rules.binding(reader) is not None else ""
    lost = (*lost, *back.degraded)
    may_forward = may_forward and not back.altered
    attempt = plan(back.request, target, lost, knowledge=knowledge, may_forward=may_forward)
    wire, origin = amended(attempt.wire, back.ask), reader.origin(prefix)
    return msgspec.structs.replace(attempt, wire=wire, sent=back.request, origin=origin, ask=back.ask), lost


def plan(
    request: Request,
    target: Target,
    lost: tuple[Degradation, ...] = (),
    *,
    knowledge: Knowledge = BUILTIN,
    may_forward: bool = True,
    refused: frozenset[Form] = frozenset(),
) -> Attempt:
    """Return what is sent to one target, and how its reply is treated.

    `may_forward`: the client takes a stream in the framing providers are asked for. `refused` are ways to ask for an answer in a schema
    that are not to be tried.
    """
    asked = msgspec.structs.replace(request, model=target.model)
    done = control(asked, target, knowledge)
    if asked.output_format is None:
        return _written(asked, target, done, lost, knowledge, may_forward=may_forward)
    refused |= knowledge.refused_forms(target)
    answer = answer_plan(asked, asked.output_format, target, done.plan, settings=knowledge.structured, refused=refused)
    if answer is None:
        return _written(asked, target, done, lost, knowledge, may_forward=may_forward)
    if not answer.as_asked:
        done = control(answer.request, target, knowledge)
    return _written(answer.request, target, done, lost, knowledge, may_forward=may_forward, answer=answer)


def asked_again(attempt: Attempt, turns: Sequence[Message], knowledge: Knowledge) -> Attempt:
    """Return the attempt with further turns at the end: what the model answered, and what was wrong with it."""
    assert attempt.answer is not None
    before = attempt.answer.request
    asked = msgspec.structs.replace(before, messages=(*before.messages, *turns), body=None)
    done = control(asked, attempt.target, knowledge)
    again = _written(asked, attempt.target, done, (), knowledge, may_forward=False, answer=attempt.answer)
    return msgspec.structs.replace(again, sent=attempt.sent, origin=attempt.origin)


def _written(
    asked: Request,
    target: Target,
    done: Controlled,
    lost: tuple[Degradation, ...],
    knowledge: Knowledge,
    *,
    may_forward: bool,
    answer: AnswerPlan | None = None,
) -> Attempt:
    row = target.provider.row
    if answer is not None:
        may_forward &= answer.as_asked
        lost = (*lost, *answer.degraded)
    beginning = _beginning(asked, target, done, knowledge)
    reading = reading_of(row, target.model, formats=knowledge.formats, beginning=beginning, tools=asked.tools)
    speaks_same = asked.dialect == row.dialect and asked.body is not None
    forward = may_forward and speaks_same and row.quirks.plain and reading == PLAIN and not _transforms(asked)
    withhold = forward and asked.stream and not asked.stream_usage and row.quirks.stream_usage
    wire = _as_it_came(done, row, asks_usage=withhold) if forward else None
    wire = wire or dialect(row.dialect).encode_request(done.request, row)
    reported = (*done.degraded, *wire.degraded)
    if reported or asked.extra:
        refuse_losses(asked, row.id, dialects_of(target, knowledge), reported)
    return Attempt(
        target=target,
        wire=_with_own_headers(wire, asked, row.dialect),
        reading=reading,
        off=_asks_for_none(done),
        control=done.plan,
        forward=forward,
        withhold_usage=withhold,
        answer=answer,
        degraded=distinct((*lost, *done.degraded, *wire.degraded)),
    )


def _repaired(
    attempt: Attempt, failure: BardoError | None, lost: tuple[Degradation, ...], knowledge: Knowledge
) -> Attempt | None:
    """Return the attempt once more with what a refusal taught of the model's thinking; None where it taught nothing."""
    if not isinstance(failure, UpstreamRefused) or attempt.control is None or attempt.sent is None:
        return None
    shaped = attempt.answer.request if attempt.answer is not None else attempt.sent
    asked = msgspec.structs.replace(shaped, model=attempt.target.model)
    done = repaired(attempt.control, failure, asked, attempt.target, knowledge)
    if done is None:
        return None
    again = _written(asked, attempt.target, done, lost, knowledge, may_forward=attempt.forward, answer=attempt.answer)
    return msgspec.structs.replace(again, sent=attempt.sent, origin=attempt.origin)


def _reshaped(
    attempt: Attempt, failure: BardoError | None, lost: tuple[Degradation, ...], knowledge: Knowledge
) -> Attempt | None:
    """Return the attempt once more in a weaker mode, where a refusal is about how the answer was asked for; else None."""
    forms = frozenset() if attempt.answer is None else refused_forms(attempt.answer, failure)
    if not forms or failure is None or attempt.sent is None:
        return None
    for form in forms if refused_for_good(failure) else ():
        knowledge.learn_form(attempt.target, form)
    again = plan(
        attempt.sent,
        attempt.target,
        lost,
        knowledge=knowledge,
        may_forward=attempt.forward,
        refused=forms,
    )
    return msgspec.structs.replace(again, sent=attempt.sent, origin=attempt.origin)


def _beginning(asked: Request, target: Target, done: Controlled, knowledge: Knowledge) -> Beginning:
    """Return what is known of where the reply begins, beside the format of its text."""
    if not target.provider.row.quirks.inline_reasoning:
        return Beginning(streamed=asked.stream)
    toggles, off = _toggles(done), _asks_for_none(done)
    return Beginning(
        streamed=asked.stream,
        toggles=toggles,
        off=off and not done.plan.floored,
        schema=asked.output_format is not None,
        rendered=knowledge.rendered(target, toggles),
        seen=knowledge.seen_start(target, off),
    )


def _asks_for_none(done: Controlled) -> bool:
    return done.plan.asks_for_none or done.plan.said == "off" or toggles_thinking(_toggles(done)) is False


def _toggles(done: Controlled) -> dict[str, Any]:
    """Return the arguments of the chat template that are sent."""
    given, ours = done.request.extra.get("chat_template_kwargs"), done.plan.fields.get("chat_template_kwargs")
    return {**(given if isinstance(given, dict) else {}), **(ours or {})}


def _transforms(request: Request) -> bool:
    """Whether the reply has to differ from what the provider sends."""
    return request.options.omit_reasoning or bool(request.options.include)


def _as_it_came(done: Controlled, row: ProviderRow, *, asks_usage: bool) -> WireRequest | None:
    """Return the client's own body, but for the model's name and the usage that bardo wants to know; None where it must change."""
    request = done.request
    shape = dialect(row.dialect).encode_request(msgspec.structs.replace(request, messages=(), tools=()), row)
    if shape.degraded or not done.says(request.body or {}, shape.body):
        return None
    body = dict(request.body or {})
    body.pop("bardo", None)
    if "model" in body:
        body["model"] = request.model
    if asks_usage and row.dialect == "openai_chat":
        body["stream_options"] = {**(body.get("stream_options") or {}), "include_usage": True}
    return WireRequest(path=shape.path, body=msgspec.json.encode(body), headers=shape.headers)


def _with_own_headers(wire: WireRequest, request: Request, spoken: str) -> WireRequest:
    """Return the wire request with the client's dialect headers, where the provider speaks that dialect."""
    if not request.headers or request.dialect != spoken:
        return wire
    return msgspec.structs.replace(wire, headers={**wire.headers, **request.headers})
