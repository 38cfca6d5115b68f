"""Replies that are already there: a recorded body, or the text of a model."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.engine.pipeline import ReplyReader
from bardo.reasoning.formats import find_format, format_for_model
from bardo.reasoning.inline import InlineReasoning
from bardo.reasoning.machines import lacks_opener
from bardo.values.errors import InvalidRequest
from bardo.values.events import ContentChunk, Finish, ReplyStart
from bardo.values.fold import ResponseFold
from bardo.values.response import Response


def decode(
    body: bytes | bytearray | memoryview | Iterable[bytes],
    provider: str,
    *,
    streamed: bool | None = None,
    model: str = "",
) -> Response:
    """Return the Response of a provider's reply body, whole or streamed, as bytes or as an iterable of pieces.

    `provider` is a preset of the catalog or one of its aliases. `streamed` None looks at the body. A reply that is an error, or that
    broke, is a Response with `error` set and what had arrived by then. Raises InvalidRequest for an unknown provider.
    """
    row = provider_row(provider)
    pieces = [bytes(body)] if isinstance(body, bytes | bytearray | memoryview) else list(body)
    reader = ReplyReader(row, streamed=_arrived_as_stream(row, b"".join(pieces), streamed), model=model)
    for piece in pieces:
        reader.feed(piece)
    reader.finish()
    return reader.fold.response()


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


def parse(text: str, *, model: str = "", format: str = "") -> Response:  # noqa: A002
    """Return the Response of a model's raw text: its thinking separated from its answer.

    The text format is `format`, else the one the catalog has for `model`, else tags at the start of the text. A text whose thinking has
    an end and no beginning (the prompt held it) is read as one that began inside. Raises InvalidRequest for an unknown format.
    """
    row = find_format(format) if format else format_for_model(model) if model else find_format("think")
    stage = InlineReasoning(row, starts_inside=lacks_opener(text, row) or None)
    fold = ResponseFold(model=model)
    for event in (ReplyStart(model=model), ContentChunk(0, text), Finish("unknown")):
        for given in stage.feed(event):
            fold.feed(given)
    for given in stage.finish():
        fold.feed(given)
    return fold.response()
