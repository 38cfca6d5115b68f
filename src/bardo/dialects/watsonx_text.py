"""IBM watsonx.ai's text generation: `POST /ml/v1/text/generation` and `/text/generation_stream`. No client speaks it.

A prompt goes in as `input` with its `parameters`, and text comes out: there are no roles, no tools and no reasoning in this language. A
reply in the Chat form, which other routes of the same host give, is read by that dialect. A whole reply and each chunk of a stream have
the same form (IBM's reference, 2026-11): `input_token_count` is 0 in all chunks but the first, and `generated_token_count` grows. Each
of the `results` is a choice.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects.openai_chat import DIALECT as CHAT
from bardo.dialects.shared.bounded_json import SLICED_BYTES, has_few_brackets
from bardo.dialects.shared.control_fields import encode_sampling
from bardo.dialects.shared.declaration import Declaration, limitations, sampling_fields
from bardo.dialects.shared.dialect import Dialect, ReplyDecoder
from bardo.dialects.shared.json_values import JsonObject, JsonValue, as_text, decode_leniently, excerpt, kind_of
from bardo.dialects.shared.losses import Losses
from bardo.dialects.shared.spellings import seconds_of
from bardo.dialects.shared.structs import Wire, carried_fields, read_apart
from bardo.dialects.shared.usage import doubted, token_count
from bardo.streams.frames import Frame
from bardo.values.blocks import RefusalBlock, TextBlock, ToolResultBlock
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, BrokenStream, MalformedReply, UpstreamRefused
from bardo.values.events import (
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
    FinishReason,
    ReplyFields,
    ReplyStart,
    UsageUpdate,
)
from bardo.values.request import Request
from bardo.values.usage import Usage

NAME: Final = "watsonx_text"
TITLE: Final = "watsonx text generation"
UNFINISHED: Final = "not_finished"

REASONS: dict[str, FinishReason] = {
    "eos_token": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "token_limit": "length",
    "time_limit": "length",
    "cancelled": "error",
    "error": "error",
}
"""The dialect's stop reasons in our words."""


class Result(Wire, kw_only=True):
    """A piece of one choice. A text or a reason may be of any type, and no count is believed."""

    CARRIED: ClassVar = ("generated_tokens", "input_tokens", "moderations", "seed")
    generated_text: JsonValue = None
    stop_reason: JsonValue = None
    input_token_count: JsonValue = None
    generated_token_count: JsonValue = None
    generated_tokens: JsonValue = None
    input_tokens: JsonValue = None
    moderations: JsonValue = None
    seed: JsonValue = None


class Reply(Wire, kw_only=True):
    """A reply, or a chunk of one; each of the results is a choice."""

    CARRIED: ClassVar = ("model_version", "system")
    model_id: JsonValue = None
    created_at: JsonValue = None
    results: list[Result] | None = None
    errors: JsonValue = None
    model_version: JsonValue = None
    system: JsonValue = None


_VERSION = "2024-05-31"
_SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "repetition_penalty": "repetition_penalty",
    "seed": "random_seed",
    "stop": "stop_sequences",
}
"""The sampling parameters by their names here."""

DECLARATION = Declaration(
    dialect=NAME,
    title=TITLE,
    expresses=frozenset(("tool_result", *sampling_fields(_SAMPLING))),
    lacks={
        **limitations(
            f"{TITLE} has no such field",
            "tools",
            "tool_choice",
            "output_format",
            "choices",
            *sampling_fields(_SAMPLING, others=True),
        ),
        **limitations(f"{TITLE} takes only text", "image", "document", "reasoning_block", "tool_call"),
        **limitations(f"{TITLE} takes only text", "tool_result.is_error"),
    },
)


def request_path(request: Request) -> str:
    """Return the path, which says whether to stream."""
    return f"text/{'generation_stream' if request.stream else 'generation'}?version={_VERSION}"


def encode_control(request: Request, losses: Losses) -> JsonObject:
    """Return nothing: there is no thinking to control."""
    return {}


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> JsonObject:
    """Return the body. `row.scope` names the project or the space that pays, without which the server refuses a request."""
    losses.own_extra(request)
    limit = {} if request.max_output_tokens is None else {"max_new_tokens": request.max_output_tokens}
    parameters = {**limit, **encode_sampling(request.sampling, _SAMPLING)}
    body = {"model_id": request.model, "input": _prompt(request, losses), **row.scope}
    return {**body, **({"parameters": parameters} if parameters else {})}


def _prompt(request: Request, losses: Losses) -> str:
    """Return all texts as one prompt: there are no roles."""
    roles = {message.role for message in request.messages}
    if len(request.messages) > 1:
        losses.lose("messages.role", sorted(roles), "the texts are one prompt, without roles")
    blocks = [block for message in request.messages for block in message.blocks]
    texts = [block.text for block in blocks if isinstance(block, TextBlock | RefusalBlock | ToolResultBlock)]
    return "\n\n".join(text for text in texts if text)


_COUNTS = ("input_token_count", "generated_token_count")
_decode = msgspec.json.Decoder(Reply).decode


def _strictly(data: bytes) -> Reply | None:
    """Return a reply with results that any strict reader can read and that holds only known fields, or None for any other."""
    if len(data) >= SLICED_BYTES:
        return None
    try:
        reply = _decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return reply if reply.results and not reply.errors and has_few_brackets(data) else None


class Decoder:
    """Reads one reply."""

    def __init__(self, row: ProviderRow) -> None:
        self._row = row
        self._chat: ReplyDecoder | None = None
        self._start: ReplyStart | None = None
        self._fields: JsonObject = {}
        self._counts: dict[int, JsonObject] = {}
        self._stop_reasons: dict[int, str] = {}
        self._over = False

    @property
    def over(self) -> bool:
        """Whether nothing more is looked at; text generation has no last event."""
        return self._over if self._chat is None else self._chat.over

    @property
    def complete(self) -> bool:
        """Whether every choice has ended."""
        if self._chat is not None:
            return self._chat.complete
        return bool(self._stop_reasons) and UNFINISHED not in self._stop_reasons.values()

    def feed(self, item: Frame) -> Sequence[Event]:
        """Take one frame. Never raises: what cannot be read ends the reply with Failed."""
        if self._chat is not None:
            return self._chat.feed(item)
        if item.data is None or self._over:
            return ()
        out: list[Event] = []
        try:
            if item.data.strip() not in (b"", b"[DONE]"):
                return self._take(item, item.data, out)
        except ValueError as problem:
            if item.complete:
                self._fail(MalformedReply(str(problem), provider=self._row.id), out)
        return out

    def finish(self) -> Sequence[Event]:
        """Say what was used and how each choice ended; one without an end is broken off."""
        if self._chat is not None:
            return self._chat.finish()
        out: list[Event] = []
        if self._over:
            return out
        self._report(out)
        if not self._stop_reasons or UNFINISHED in self._stop_reasons.values():
            self._fail(BrokenStream("the stream ended before the text did", provider=self._row.id), out)
        else:
            out.extend(
                Finish(REASONS.get(word, "unknown"), word, choice=choice) for choice, word in self._stop_reasons.items()
            )
        self._over = True
        return out

    def _take(self, item: Frame, data: bytes, out: list[Event]) -> Sequence[Event]:
        reply = _strictly(data)
        if reply is not None:
            self._take_results(reply, reply.results or (), out)
            return out
        value = decode_leniently(data, out)
        if not isinstance(value, dict):
            raise ValueError(f"the reply is {kind_of(value)}")
        if value.get("errors"):
            self._report(out)
            self._fail(_refused(value, provider=self._row.id), out)
        elif self._start is None and "results" not in value:
            self._chat = CHAT.open_decoder(self._row)
            return self._chat.feed(item)
        else:
            results = value.pop("results", None)
            self._take_results(read_apart(value, Reply), results if isinstance(results, list) else (), out)
        return out

    def _take_results(self, reply: Reply, results: Sequence[Result | JsonValue], out: list[Event]) -> None:
        if self._start is None:
            self._start = ReplyStart(model=as_text(reply.model_id), created=seconds_of(reply.created_at))
            out.append(self._start)
        # Fields of no known meaning are told when first seen or changed.
        fields = {name: part for name, part in (carried_fields(reply) or {}).items() if self._fields.get(name) != part}
        if fields:
            self._fields |= fields
            out.append(ReplyFields(NAME, fields))
        for choice, result in enumerate(results):
            if isinstance(result, dict):
                result = read_apart(result, Result)
            elif not isinstance(result, Result):
                raise ValueError(f"results[{choice}] is {kind_of(result)}")
            if text := as_text(result.generated_text):
                out.append(ContentChunk(0, text, choice))
            counts = self._counts.setdefault(choice, {})
            for name in _COUNTS:
                if getattr(result, name) or name not in counts:
                    counts[name] = getattr(result, name)
            if beside := carried_fields(result):
                out.append(ReplyFields(NAME, beside, choice))
            self._stop_reasons[choice] = as_text(result.stop_reason) or self._stop_reasons.get(choice, UNFINISHED)

    def _report(self, out: list[Event]) -> None:
        if not self._counts:
            return
        token_count = dict(self._counts[min(self._counts)])
        generated = [counts["generated_token_count"] for counts in self._counts.values()]
        if len(generated) > 1 and all(type(number) is int for number in generated):
            token_count["generated_token_count"] = sum(generated)
        usage, degraded = _decode_usage({name: count for name, count in token_count.items() if count is not None})
        out.extend(Degraded(loss) for loss in degraded)
        out.append(UsageUpdate(usage))

    def _fail(self, error: BardoError, out: list[Event]) -> None:
        self._over = True
        out.append(Failed(error))


def _decode_usage(raw: JsonObject) -> tuple[Usage, tuple[Degradation, ...]]:
    given = [raw.get(name) for name in _COUNTS]
    usage = Usage(input_tokens=token_count(given[0]), output_tokens=token_count(given[1]), raw=raw)
    doubts = [doubt for name, value in zip(_COUNTS, given, strict=True) for doubt in doubted(f"usage.{name}", value)]
    return usage, tuple(doubts)


def decode_error(status: int, body: bytes, headers: dict[str, str], provider: str) -> UpstreamRefused:
    """Decode an error answer; a body that is not the dialect's is quoted, shortened."""
    try:
        value = decode_leniently(body)
    except ValueError:
        value = None
    retry_after = headers.get("retry-after")
    if isinstance(value, dict) and value.get("errors"):
        return _refused(value, provider=provider, status=status, retry_after=retry_after)
    message = excerpt(body) or f"the provider answered {status} without a word"
    return UpstreamRefused(message, provider=provider, status=status, retry_after=retry_after)


def _refused(
    value: JsonObject, *, provider: str, status: int | None = None, retry_after: str | None = None
) -> UpstreamRefused:
    """Return the provider's error object as an error. Without a `status`, the object's own is it."""
    errors = value.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else errors
    fields = first if isinstance(first, dict) else {"message": as_text(first)}
    if status is None:
        own = value.get("status_code")
        status = own if type(own) is int and 400 <= own <= 599 else 502
    return UpstreamRefused(
        as_text(fields.get("message")) or f"the provider answered {status}",
        provider=provider,
        status=status,
        upstream_code=as_text(fields.get("code")) or None,
        retry_after=retry_after,
        detail=value,
        dialect=NAME,
    )


DIALECT = Dialect(
    name=NAME,
    stream_framing="sse",
    declaration=DECLARATION,
    request_path=request_path,
    encode_body=encode_body,
    encode_control=encode_control,
    open_decoder=Decoder,
    decode_error=decode_error,
)
