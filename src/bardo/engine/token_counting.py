"""Count the tokens of a request: by the provider that would be sent it, where it counts any, else by an estimate that says it is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bardo.dialects import dialect
from bardo.dialects.shared.dialect import CountForm
from bardo.engine.exchange import first_attempt
from bardo.engine.knowledge import Knowledge
from bardo.engine.route import Target
from bardo.engine.unary import UnaryAttempt, WholeReply
from bardo.values.blocks import DocumentBlock, ImageBlock, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, UpstreamRefused
from bardo.values.operations import TokenCount
from bardo.values.request import Request
from bardo.values.usage import estimate_tokens

_NO_ENDPOINT = (404, 405, 501)
"""How servers answer at a path they do not have: those that speak a dialect need not count as its maker's do."""
_IMAGE_TOKENS = 1_000
_DOCUMENT_TOKENS = 2_000
"""About what a picture has: providers count between 260 and 1,600 for one of usual size."""


def count_attempt(request: Request, target: Target, knowledge: Knowledge) -> UnaryAttempt[TokenCount]:
    """Return how the tokens of a request are counted for one target. Raises Unsupported where the target cannot be sent the request."""
    row = target.provider.row
    form = dialect(row.dialect).token_count if row.counts_tokens else None
    if form is None:
        return _estimated(request, target, f"{target.provider.id} counts no tokens")
    planned = first_attempt(request, (target,), knowledge=knowledge)
    wire = form.encode_request(planned.wire, target.model)

    def decode(replies: Sequence[WholeReply]) -> TokenCount:
        return _counted(form, replies[0], target, planned.degraded)

    return UnaryAttempt(
        target=target,
        wires=(wire,),
        decode=decode,
        dialect=row.dialect,
        degraded=planned.degraded,
        fallback=lambda failure: _without_endpoint(request, target, failure),
    )


def _counted(form: CountForm, reply: WholeReply, target: Target, degraded: tuple[Degradation, ...]) -> TokenCount:
    fields = reply.fields()
    return TokenCount(
        input_tokens=form.decode_reply(fields),
        provider=target.provider.id,
        model=target.model,
        raw=fields,
        degraded=degraded,
    )


def _without_endpoint(request: Request, target: Target, failure: BardoError) -> UnaryAttempt[TokenCount] | None:
    if not isinstance(failure, UpstreamRefused) or failure.status not in _NO_ENDPOINT:
        return None
    return _estimated(request, target, f"{target.provider.id} answered with status {failure.status}")


def _estimated(request: Request, target: Target, why: str) -> UnaryAttempt[TokenCount]:
    """Return an attempt without requests: bardo knows the answer as well as anybody it could ask."""
    count = estimate_request(request)
    degraded = (Degradation("input_tokens", sent=count, why=f"estimated from the text: {why}"),)
    result = TokenCount(
        input_tokens=count, approx=True, provider=target.provider.id, model=target.model, degraded=degraded
    )
    return UnaryAttempt(
        target=target,
        wires=(),
        decode=lambda _: result,
        dialect=target.provider.row.dialect,
        degraded=degraded,
    )


def estimate_request(request: Request, count_text: Callable[[str], int] = estimate_tokens) -> int:
    """Estimate the input tokens of a request: its text, its tools, and four for each message. `count_text` counts those of a text."""
    count = 0
    for message in request.messages:
        count += 4
        for block in message.blocks:
            if type(block) is TextBlock:
                count += count_text(block.text)
                continue
            match block:
                case ToolCallBlock(name=name, arguments=arguments):
                    count += count_text(name + arguments)
                case ToolResultBlock():
                    count += count_text(block.text)
                case ReasoningBlock():
                    count += count_text(block.readable)
                case ImageBlock():
                    count += _IMAGE_TOKENS
                case DocumentBlock(text=text):
                    count += count_text(text) or _DOCUMENT_TOKENS
    for tool in request.tools:
        count += count_text(f"{tool.name}{tool.description}{tool.schema}")
    return count
