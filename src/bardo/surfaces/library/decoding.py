"""Replies that are already there: a recorded body, or the text of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Any

from bardo.adapters.config.formats import known_formats
from bardo.adapters.config.settings import Settings
from bardo.catalog.features import shows_summaries
from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.planning.text_formats import ExplainedFormats, TextFormats, formats_of_text, text_formats_of
from bardo.reasoning.formats import ReasoningFormat
from bardo.reasoning.registry import FormatChoice
from bardo.reasoning.steps import with_steps
from bardo.replies.reply_reader import ReplyHandling, row_reader
from bardo.streams.stage import Chain
from bardo.values.errors import InternalError, InvalidRequest
from bardo.values.events import ContentChunk, Event, Finish, ReplyStart
from bardo.values.fold import ResponseFold
from bardo.values.request import Tool
from bardo.values.response import Response

Config = str | Path | Settings | None


def decode(
    body: bytes | bytearray | memoryview | Iterable[bytes],
    provider: str,
    *,
    streamed: bool | None = None,
    model: str = "",
) -> Response:
    """Return the Response of a provider's reply body, whole or streamed, as bytes or as an iterable of pieces.

    `provider` is a preset of the catalog or one of its aliases, `model` whose text it is: by default the one that the body names.
    `streamed` None looks at the body. A reply that is an error, or that broke, is a Response with `error` set and what had arrived by
    then. Raises InvalidRequest for an unknown provider, and no bytes make it raise anything but BardoError.
    """
    row = provider_row(provider)
    pieces = [bytes(body)] if isinstance(body, bytes | bytearray | memoryview) else list(body)
    streamed = _is_streamed(row, b"".join(pieces), streamed)
    response = _read(pieces, row, streamed=streamed, model=model)
    named = response.model
    if not model and named and text_formats_of(row, named) != text_formats_of(row, model):
        response = _read(pieces, row, streamed=streamed, model=named)
    return with_steps(response)


def _read(pieces: Sequence[bytes], row: ProviderRow, *, streamed: bool, model: str) -> Response:
    def reply_id() -> bytes:
        return reader.fold.response().id.encode("utf-8", "surrogatepass") or b"".join(pieces)

    handling = ReplyHandling(make_id=_call_ids(reply_id))
    reader = row_reader(row, streamed=streamed, model=model, handling=handling)
    try:
        for piece in pieces:
            reader.feed(piece)
        reader.finish()
        return reader.fold.response()
    except Exception as mistake:
        raise InternalError(f"bardo cannot read this reply of {row.id}: {type(mistake).__name__}") from mistake


def _call_ids(reply: Callable[[], bytes]) -> Callable[[], str]:
    """Return a maker of ids for calls without one: no other reply has them, and they are the same whenever this one is read."""
    numbers = count()
    return lambda: f"call_{blake2b(b'%d/' % next(numbers) + reply(), digest_size=12).hexdigest()}"


def _is_streamed(row: ProviderRow, body: bytes, declared: bool | None) -> bool:
    """Whether the body is cut into frames; what its first bytes rule out is not believed."""
    text = body.lstrip(b"\xef\xbb\xbf \t\r\n")
    if dialect(row.dialect).stream_framing == "ndjson":
        # A stream of lines begins like a whole reply, but its first line is complete.
        return text.split(b"\n", 1)[0].rstrip().endswith(b"}") if declared is None else declared
    # A stream may come as one JSON array, as Gemini's does without `alt=sse`, and an error instead of a stream as an object.
    return declared is not False and text[:1] not in (b"{", b"[")


def provider_row(name: str) -> ProviderRow:
    """Return the catalog's row. Raises InvalidRequest naming the nearest ones."""
    row = builtin().provider(name)
    if row is not None:
        return row
    known = builtin().names()
    near = get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
    raise InvalidRequest(f"no provider is called {name!r}", hint=hint, param="provider")


def parse(
    text: str,
    *,
    model: str = "",
    format: str | ReasoningFormat = "",  # noqa: A002
    starts_inside: bool | None = None,
    prompt: str | None = None,
    toggles: Mapping[str, Any] | None = None,
    tools: Sequence[Tool] = (),
    config: Config = None,
) -> Response:
    """Return the Response of a model's raw text: its thinking, its calls of tools, and its answer.

    The text format is `format`, else the one there is for `model`, else tags at the start of the text. Formats are those of `config` (a
    bardo.toml or its Settings; None: what is found), of installed packages, and the built-in ones. Whether the text begins inside a block
    is what `starts_inside` says, else what the end of the rendered `prompt` shows, else what the text itself shows: an end without a
    beginning. A text that ends no block is the answer, unless the `toggles` (template arguments) turned thinking on. Calls are read in the
    notation of `model`; the `tools` that were declared give types to arguments that are written as text. Raises InvalidRequest for an
    unknown format, ConfigError for a wrong file.
    """
    reading = read_as(
        text,
        model=model,
        format=format,
        starts_inside=starts_inside,
        prompt=prompt,
        toggles=toggles,
        tools=tools,
        config=config,
    )
    return read_text(text, reading.formats, model=model)


def read_as(
    text: str,
    *,
    model: str = "",
    format: str | ReasoningFormat = "",  # noqa: A002
    starts_inside: bool | None = None,
    prompt: str | None = None,
    toggles: Mapping[str, Any] | None = None,
    tools: Sequence[Tool] = (),
    config: Config = None,
) -> ExplainedFormats:
    """Return how `parse` reads a text, and why. Raises what `parse` raises."""
    if isinstance(format, ReasoningFormat):
        choice = FormatChoice(format, "name", format.name)
    else:
        choice = known_formats(config).choose(name=format, model=model or None)
    return formats_of_text(
        text, choice, model=model, starts_inside=starts_inside, prompt=prompt, toggles=toggles, tools=tools
    )


def read_text(text: str, formats: TextFormats, *, model: str = "") -> Response:
    """Return the Response of a text, read by `formats`."""
    chain = Chain(formats.stages(_call_ids(lambda: text.encode("utf-8", "surrogatepass"))))
    fold = ResponseFold(model=model, summarizes=shows_summaries)
    arrived: list[Event] = [ReplyStart(model=model), ContentChunk(0, text), Finish("unknown")]
    for event in [*(given for one in arrived for given in chain.feed(one)), *chain.finish()]:
        fold.feed(event)
    return with_steps(fold.response())
