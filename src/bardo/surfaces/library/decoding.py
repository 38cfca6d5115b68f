"""Replies that are already there: a recorded body, or the text of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.edge.formats import known_formats
from bardo.edge.settings import Settings
from bardo.engine.pipeline import ReplyReader
from bardo.engine.reading import reading_of as text_reading
from bardo.reasoning.formats import ReasoningFormat
from bardo.reasoning.inline import InlineReasoning
from bardo.reasoning.machines import lacks_opener
from bardo.reasoning.registry import FormatChoice
from bardo.reasoning.starting import Start, explain_start, toggles_thinking
from bardo.reasoning.steps import with_steps
from bardo.reasoning.undecided import can_be_undecided
from bardo.streams.stage import Chain, Stage
from bardo.tools.formats import ToolCallFormat, tool_call_format_for_model
from bardo.tools.stage import InlineToolCalls
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
    streamed = _arrived_as_stream(row, b"".join(pieces), streamed)
    response = _read(pieces, row, streamed=streamed, model=model)
    named = response.model
    if not model and named and text_reading(row, named) != text_reading(row, model):
        response = _read(pieces, row, streamed=streamed, model=named)
    return with_steps(response)


def _read(pieces: Sequence[bytes], row: ProviderRow, *, streamed: bool, model: str) -> Response:
    def reply_id() -> bytes:
        return reader.fold.response().id.encode("utf-8", "surrogatepass") or b"".join(pieces)

    reader = ReplyReader(row, streamed=streamed, model=model, make_id=_call_ids(reply_id))
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


def _arrived_as_stream(row: ProviderRow, body: bytes, said: bool | None) -> bool:
    """Whether the body is cut into frames; what its first bytes rule out is not believed."""
    text = body.lstrip(b"\xef\xbb\xbf \t\r\n")
    if dialect(row.dialect).stream_framing == "ndjson":
        # A stream of lines begins like a whole reply, but its first line is complete.
        return text.split(b"\n", 1)[0].rstrip().endswith(b"}") if said is None else said
    # A stream may come as one JSON array, as Gemini's does without `alt=sse`, and an error instead of a stream as an object.
    return said is not False and text[:1] not in (b"{", b"[")


def provider_row(name: str) -> ProviderRow:
    """Return the catalog's row. Raises InvalidRequest naming the nearest ones."""
    row = builtin().provider(name)
    if row is not None:
        return row
    known = builtin().names()
    near = get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
    raise InvalidRequest(f"no provider is called {name!r}", hint=hint, param="provider")


class Reading(msgspec.Struct, frozen=True):
    """How a text is read: its format, whether it begins inside a block, each with the reason, and how calls of tools stand in it."""

    choice: FormatChoice
    starts_inside: bool
    because: str
    calls: ToolCallFormat | None = None
    tools: tuple[Tool, ...] = ()


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
    reading = reading_of(
        text,
        model=model,
        format=format,
        starts_inside=starts_inside,
        prompt=prompt,
        toggles=toggles,
        tools=tools,
        config=config,
    )
    return read_text(text, reading, model=model)


def reading_of(
    text: str,
    *,
    model: str = "",
    format: str | ReasoningFormat = "",  # noqa: A002
    starts_inside: bool | None = None,
    prompt: str | None = None,
    toggles: Mapping[str, Any] | None = None,
    tools: Sequence[Tool] = (),
    config: Config = None,
) -> Reading:
    """Return how `parse` reads a text. Raises what `parse` raises."""
    if isinstance(format, ReasoningFormat):
        choice = FormatChoice(format, "name", format.name)
    else:
        choice = known_formats(config).choose(name=format, model=model or None)
    row = choice.format
    start = explain_start(row, starts_inside=starts_inside, prompt=prompt, toggles=toggles)
    calls, declared = _calls_of(model, tools), tuple(tools)
    if start.because in ("row", "toggles") and can_be_undecided(row):
        if lacks_opener(text, row):
            return Reading(choice, True, "the text closes a block that it never opened", calls, declared)
        guessed = start.inside and toggles_thinking(toggles or {}) is not True
        if guessed and not any(end in text for end in row.implicit_ends) and not text.lstrip().startswith(row.starts):
            return Reading(choice, False, "the text closes no block, so that it is the answer", calls, declared)
    return Reading(choice, start.inside, _why(start, row), calls, declared)


_SAID = {
    "asked": "the caller said so",
    "prompt": "the prompt ends so",
    "toggles": "the template arguments, or their defaults, say so",
}
_ROW_SAYS: Mapping[bool | str, str] = {
    True: "the prompts of this format's models end inside",
    False: "replies in this format begin so",
    "prompt": "nothing was said of the prompt, which decides in this format",
}


def _why(start: Start, row: ReasoningFormat) -> str:
    return _ROW_SAYS[row.starts_inside] if start.because == "row" else _SAID[start.because]


def read_text(text: str, reading: Reading, *, model: str = "") -> Response:
    """Return the Response of a text, read as `reading` says."""
    stages: list[Stage[Event, Event]] = [InlineReasoning(reading.choice.format, starts_inside=reading.starts_inside)]
    if reading.calls is not None:
        stages.append(
            InlineToolCalls(
                reading.calls, tools=reading.tools, make_id=_call_ids(lambda: text.encode("utf-8", "surrogatepass"))
            )
        )
    chain, fold = Chain(stages), ResponseFold(model=model)
    said: list[Event] = [ReplyStart(model=model), ContentChunk(0, text), Finish("unknown")]
    for event in [*(given for one in said for given in chain.feed(one)), *chain.finish()]:
        fold.feed(event)
    return with_steps(fold.response())


def _calls_of(model: str, tools: Sequence[Tool]) -> ToolCallFormat | None:
    """Return how the model writes calls. Without tools, JSON that nothing announces is an answer."""
    found = tool_call_format_for_model(model) if model else None
    return None if found is None or (found.bare and not tools) else found
