"""The body that a dialect writes for a request of plain texts, kept as what stands around the texts: other texts are written into it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from bardo.dialects.shared.json_values import write_json
from bardo.dialects.shared.same_bytes import has_plain_form, with_plain_texts
from bardo.values.blocks import TextBlock
from bardo.values.request import Message, Request
from bardo.values.wire import WireRequest

# A dialect that trims, escapes or joins texts does so with this one, and then its bodies are not kept.
_PROBE = ' \n{place}: <a href="b">\u00e9\u2028 & \\n</a> \t '


class WrittenTexts(NamedTuple):
    """A body without its texts: `pieces` are what stands before, between and behind them, `order` which message's text comes where."""

    pieces: tuple[bytes, ...]
    order: tuple[int, ...]

    def body(self, request: Request) -> bytes | None:
        """Return the body of a request with messages of the same roles; None where a text is blank: dialects leave some of these out."""
        parts = [self.pieces[0]]
        for place, behind in zip(self.order, self.pieces[1:], strict=True):
            text = request.messages[place].text
            if not text or text.isspace():
                return None
            parts += (write_json(text), behind)
        return b"".join(parts)


def written_texts(request: Request, wire: WireRequest, write: Callable[[Request], WireRequest]) -> WrittenTexts | None:
    """Return what `write` puts around the texts of a request of plain texts, which it wrote as `wire`.

    None where it does not write each text once and unchanged.
    """
    probes = [_PROBE.format(place=place) for place in range(len(request.messages))]
    probing = [Message(one.role, (TextBlock(probe),)) for one, probe in zip(request.messages, probes, strict=True)]
    body = with_plain_texts(request, probes) if has_plain_form(request) else request.body
    written = write(msgspec.structs.replace(request, messages=tuple(probing), body=body))
    if written.degraded != wire.degraded or written.path != wire.path:
        return None
    return _cut(written.body, [write_json(probe) for probe in probes])


def _cut(body: bytes, texts: Sequence[bytes]) -> WrittenTexts | None:
    """Return what stands around the texts in a body; None where one of them does not stand there once."""
    if any(body.count(text) != 1 for text in texts):
        return None
    order = sorted(range(len(texts)), key=lambda place: body.index(texts[place]))
    pieces = []
    for place in order:
        before, _, body = body.partition(texts[place])
        pieces.append(before)
    return WrittenTexts((*pieces, body), tuple(order))
