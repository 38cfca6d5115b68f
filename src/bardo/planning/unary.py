"""Operations that are answered in one piece, vectors, counts of tokens and compacted conversations: the attempts of a call, as values.

Such a call goes from one provider to the next as a call for a reply does. Whoever runs it sends the requests of each attempt and reports
what became of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from bardo.catalog.layer_rows import compaction_path
from bardo.catalog.rows import EmbedEndpoint
from bardo.dialects import dialect
from bardo.dialects.openai_responses.compaction import compaction_wire, read_compacted
from bardo.dialects.shared.dialect import EmbeddingForm, decode_body
from bardo.dialects.shared.json_values import WrongShape
from bardo.planning.default_fields import refused_default, required_default, with_default_fields
from bardo.planning.exchange import first_attempt
from bardo.planning.knowledge import Knowledge
from bardo.planning.refusals import ProviderWords, moves_on, refused_field
from bardo.planning.route import Target, target_names
from bardo.values.degradation import Degradation, distinct
from bardo.values.errors import BardoError, MalformedReply, Unsupported, UpstreamRefused
from bardo.values.operations import CompactedConversation, Embeddings, EmbedRequest, base64_of
from bardo.values.request import Request
from bardo.values.usage import Usage, estimate_tokens
from bardo.values.wire import WireRequest

Result = TypeVar("Result")


class WholeReply(msgspec.Struct, frozen=True):
    """The body of a provider's whole reply, and its headers with names in lower case."""

    body: bytes
    headers: Mapping[str, str]

    def fields(self) -> dict[str, Any]:
        """Return the JSON object of the body. Raises WrongShape."""
        return decode_body(self.body)


class UnaryAttempt(msgspec.Struct, Generic[Result], frozen=True, kw_only=True):
    """One try at one target.

    `wires` are sent one after the other; where there are none, bardo knows the answer itself. `decode` makes the result of the replies, and
    raises WrongShape for what is none. `dialect` is the one that is spoken, and whose errors come back. `fallback` returns another attempt
    at the same target after an error, or None.
    """

    target: Target
    wires: tuple[WireRequest, ...]
    decode: Callable[[Sequence[WholeReply]], Result]
    dialect: str
    degraded: tuple[Degradation, ...] = ()
    fallback: Callable[[BardoError], UnaryAttempt[Result] | None] = lambda _: None

    def result(self, replies: Sequence[WholeReply]) -> Result:
        """Return what the replies say. Raises MalformedReply."""
        try:
            return self.decode(replies)
        except WrongShape as problem:
            provider = self.target.provider.id
            raise MalformedReply(f"the reply of {provider} is not one: {problem}", provider=provider) from problem


Plan: TypeAlias = Callable[[Target], UnaryAttempt[Result]]
Try: TypeAlias = tuple[UnaryAttempt[Result], tuple[Degradation, ...]]
"""An attempt, and the providers that failed before it."""
Course: TypeAlias = Generator[Try[Result], BardoError | None, None]
"""Yields attempts, to be answered with their errors or None."""


def unary_attempts(targets: Sequence[Target], plan: Plan[Result]) -> Course[Result]:
    """Yield attempts until one is answered with None, or with an error that another provider cannot mend.

    Raises Unsupported where no target can express what is asked.
    """
    failed: tuple[tuple[str, str], ...] = ()
    for target, own in zip(targets, target_names(targets), strict=True):
        lost = tuple(Degradation("provider", asked=asked, sent=own, why=why) for asked, why in failed)
        try:
            attempt = plan(target)
        except Unsupported as problem:
            if target is targets[-1]:
                raise
            failed = (*failed, (own, problem.message))
            continue
        failure = yield attempt, lost
        try:
            again = None if failure is None else attempt.fallback(failure)
        except Unsupported as problem:
            if target is targets[-1]:
                raise
            failed = (*failed, (own, problem.message))
            continue
        if again is not None:
            failure = yield again, lost
        if failure is None or not moves_on(failure):
            return
        failed = (*failed, (own, failure.message))


def embed_attempt(request: EmbedRequest, target: Target) -> UnaryAttempt[Embeddings]:
    """Return the request to one target for a request. Raises Unsupported where the target cannot express it."""
    endpoint, form = _endpoint(target)
    asked = msgspec.structs.replace(request, model=target.model)
    asked, lost = _with_dimensions_it_takes(asked, endpoint, target)
    batches = _batches(asked, endpoint)
    made = [
        with_default_fields(form.encode_request(batch, endpoint), target, request.options, for_vectors=True)
        for batch in batches
    ]
    wires, defaults = tuple([wire for wire, _ in made]), made[0][1]
    degraded = distinct((*lost, *(one for wire in wires for one in wire.degraded), *defaults))

    def decode(replies: Sequence[WholeReply]) -> Embeddings:
        parts = [_part(form, reply, batch, target) for reply, batch in zip(replies, batches, strict=True)]
        return _joined(parts, asked, target, degraded)

    def refused(failure: BardoError) -> None:
        """Raise RequiredFieldRefused where it is a field of the operator's that the target refuses."""
        if defaults and isinstance(failure, UpstreamRefused):
            field = refused_field(ProviderWords(failure, wires[0].body), failure)
            if field is not None and (leaf := required_default(field.path, defaults, target, request.options)):
                raise refused_default(leaf, target)

    return UnaryAttempt(
        target=target, wires=wires, decode=decode, dialect=endpoint.dialect, degraded=degraded, fallback=refused
    )


def _endpoint(target: Target) -> tuple[EmbedEndpoint, EmbeddingForm]:
    row = target.provider.row
    endpoint = row.embeds(target.model)
    form = None if endpoint is None else dialect(endpoint.dialect).embeddings
    if endpoint is None or form is None:
        listed = [glob for embedding in row.embeddings for glob in embedding.models]
        hint = f"its models for vectors are called {', '.join(listed)}" if listed else "ask another provider"
        raise Unsupported(f"{target.provider.id} makes no vectors with {target.model!r}", hint=hint, param="model")
    return endpoint, form


def _with_dimensions_it_takes(
    request: EmbedRequest, endpoint: EmbedEndpoint, target: Target
) -> tuple[EmbedRequest, tuple[Degradation, ...]]:
    """Return the request without a length of vectors that cannot be chosen. Raises Unsupported unless the caller allows that."""
    asked = request.dimensions
    if asked is None or not endpoint.fixes_dimensions(target.model):
        return request, ()
    why = f"the vectors of {target.model} have one length only"
    if not {"dimensions", "*"} & set(request.options.allow_loss):
        hint = 'leave it out; or allow the loss with "bardo": {"allow_loss": ["dimensions"]}'
        raise Unsupported(why, hint=hint, param="dimensions", details={"unsupported": ["dimensions"]})
    return msgspec.structs.replace(request, dimensions=None), (Degradation("dimensions", asked, why=why),)


def _batches(request: EmbedRequest, endpoint: EmbedEndpoint) -> list[EmbedRequest]:
    """Return the request cut into as many as the endpoint needs."""
    most = endpoint.most_inputs
    if not most or len(request.inputs) <= most:
        return [request]
    inputs = request.inputs
    return [
        msgspec.structs.replace(request, inputs=inputs[begin : begin + most], part_of=begin)
        for begin in range(0, len(inputs), most)
    ]


def _part(form: EmbeddingForm, reply: WholeReply, batch: EmbedRequest, target: Target) -> Embeddings:
    part = form.decode_reply(reply.fields(), reply.headers)
    if len(part.vectors) != len(batch.inputs):
        raise WrongShape(f"it holds {len(part.vectors)} vectors for {len(batch.inputs)} inputs")
    if batch.encoding == "base64":
        try:
            for vector in part.vectors:
                base64_of(vector)
        except ValueError as problem:
            raise WrongShape(str(problem)) from None
    return part


def _joined(
    parts: Sequence[Embeddings], request: EmbedRequest, target: Target, degraded: tuple[Degradation, ...]
) -> Embeddings:
    """Return the vectors of all replies as one, with what they differ in from what was asked."""
    first = parts[0]
    joined = Embeddings(
        vectors=tuple(vector for part in parts for vector in part.vectors),
        model=first.model or target.model,
        provider=target.provider.id,
        usage=first.usage if len(parts) == 1 else _sum([part.usage for part in parts]),
        degraded=degraded,
    )
    asked, made = request.dimensions, joined.dimensions
    if asked is None or asked == made:
        return joined
    why = "the provider made vectors of another length"
    return msgspec.structs.replace(joined, degraded=(*degraded, Degradation("dimensions", asked, made, why)))


def _sum(usages: Sequence[Usage]) -> Usage:
    counts = [usage.input_tokens for usage in usages]
    known = [count for count in counts if count is not None]
    total = sum(known) if len(known) == len(counts) else None
    return Usage(input_tokens=total, raw=[usage.raw for usage in usages])


def compact_attempt(request: Request, target: Target, knowledge: Knowledge) -> UnaryAttempt[CompactedConversation]:
    """Return how a target is asked to compact a conversation. Raises Unsupported where it cannot be sent the request."""
    row = target.provider.row
    path = compaction_path(row.id, row.dialect)
    if not path:
        raise Unsupported(f"{target.provider.id} compacts no conversations", hint="ask another provider", param="model")
    planned = first_attempt(msgspec.structs.replace(request, stream=False), (target,), knowledge=knowledge)

    def decode(replies: Sequence[WholeReply]) -> CompactedConversation:
        usage = read_compacted(replies[0].fields())
        return CompactedConversation(body=replies[0].body, model=target.model, usage=usage, degraded=planned.degraded)

    return UnaryAttempt(
        target=target,
        wires=(compaction_wire(planned.wire, path),),
        decode=decode,
        dialect=row.dialect,
        degraded=planned.degraded,
    )


def may_forward(request: EmbedRequest, attempt: UnaryAttempt[Embeddings], reply: Embeddings) -> bool:
    """Return whether a client can be given the provider's reply as it came: it speaks its dialect, and got what it asked for."""
    kind = str if request.encoding == "base64" else list
    return (
        attempt.dialect == request.dialect
        and len(attempt.wires) == 1
        and request.body is not None
        and not request.options.include
        and all(type(vector) is kind for vector in reply.vectors)
    )


def with_estimated_usage(reply: Embeddings, request: EmbedRequest) -> Embeddings:
    """Return the vectors with an estimate of the tokens, reported as one, for a dialect that must say how many there were."""
    if reply.usage.input_tokens is not None:
        return reply
    count = sum(estimate_tokens(given) if isinstance(given, str) else 0 for given in request.inputs)
    count += sum(len(given) for given in request.inputs if isinstance(given, tuple))
    why = "the provider counted no tokens: estimated from the text"
    return msgspec.structs.replace(
        reply,
        usage=msgspec.structs.replace(reply.usage, input_tokens=count),
        degraded=(*reply.degraded, Degradation("usage.input_tokens", sent=count, why=why)),
    )
