"""L7: personal data in what is sent is masked, and put back in what comes; or it is only counted, or the call is refused.

First all texts are searched, then every value that was found anywhere is masked everywhere: a number that a word beside it gave away
in one message stands alone in the next. Where anything fails, the call is not sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import msgspec

from bardo.context.layer import Effect, KeptReply, LayerFacts, LayerSteps, Passed, Receipt
from bardo.context.privacy.detect import Span
from bardo.context.privacy.placeholders import Placeholders, in_word
from bardo.context.privacy.restore import Restoring
from bardo.context.privacy.restore_stage import RestoreStage
from bardo.context.privacy.texts import TextChanger, unescaped
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, InternalError, InvalidRequest
from bardo.values.request import Message, Request
from bardo.values.response import Response

NAME = "privacy"
Mode = Literal["mask", "report", "block"]


class FindPersonalData(Effect, frozen=True):
    """Have texts searched for personal data; the result is a list of spans for each of them, in order."""

    texts: tuple[str, ...]


class PrivacyLayer:
    """The layer. `mode`: values are masked and put back, only counted, or refused. `labels` are the words that placeholders may have."""

    name = NAME

    def __init__(self, mode: Mode, labels: Iterable[str]) -> None:
        self._mode = mode
        self.masks = mode != "report"
        self._labels = frozenset(labels)

    def steps(self, request: Request, facts: LayerFacts) -> LayerSteps:
        """Search the request. Raises InvalidRequest where it is to be refused, InternalError where it could not be searched."""
        try:
            texts, skipped = _texts_of(request)
            found: Sequence[Sequence[Span]] = (yield FindPersonalData(texts)) if texts else ()
            return self._outcome(request, texts, found, skipped)
        except BardoError:
            raise
        except Exception as problem:  # noqa: BLE001 - a call that was not searched must not be sent.
            raise InternalError(
                f"the request could not be searched for personal data ({type(problem).__name__}), and is not sent"
            ) from None

    def _outcome(
        self, request: Request, texts: Sequence[str], found: Sequence[Sequence[Span]], skipped: Counter[str]
    ) -> Passed:
        places = [(text, span) for text, spans in zip(texts, found, strict=True) for span in spans]
        values = {text[span.start : span.end]: span for text, span in places}
        counts = dict(sorted(Counter(span.entity for span in values.values()).items()))
        if counts and self._mode == "block":
            raise InvalidRequest(
                f"the request holds personal data: {', '.join(f'{name} ({count})' for name, count in counts.items())}",
                hint="leave it out, or have it masked: [inference.pipeline.privacy] mode",
                param="messages",
            )
        degraded = tuple(_not_searched(what, count) for what, count in sorted(skipped.items()) if count)
        if not counts or self._mode == "report":
            did = f"found {_values(len(values))}" if counts else ""
            return Passed(request=request, receipt=Receipt(layer=NAME, did=did, saw=counts), degraded=degraded)
        placeholders = self._placeholders(texts, places)
        masked = TextChanger(placeholders.masked, placeholders.of).request(request)
        part = MaskedReply(placeholders, typed=request.output_format is not None)
        receipt = Receipt(layer=NAME, did=f"masked {_values(len(values))}", saw=counts)
        return Passed(request=masked, receipt=receipt, degraded=degraded, reply=part)

    def _placeholders(self, texts: Sequence[str], places: Sequence[tuple[str, Span]]) -> Placeholders:
        placeholders = Placeholders()
        for text in texts:
            placeholders.avoid(text, self._labels)
        for text, span in places:
            value = text[span.start : span.end]
            placeholders.take(value, span.label, in_word=in_word(text, span.start, span.end))
        return placeholders


class MaskedReply:
    """What is done with the reply to a masked call."""

    most_bytes = 0

    def __init__(self, placeholders: Placeholders, *, typed: bool) -> None:
        self._placeholders = placeholders
        self._restoring = Restoring(placeholders)
        self._typed = typed

    def stage(self) -> RestoreStage:
        """Return what puts the values back into one reply."""
        return RestoreStage(self._restoring, typed=self._typed)

    def masked(self, response: Response) -> Response:
        """Return a reply as its provider said it, for what is kept of it: the log, and what later turns need."""
        return _with_blocks(response, self._changer().block)

    def masked_turn(self, turn: Message) -> Message:
        """Return a further turn of the call with the same placeholders."""
        return self._changer().message(turn)

    def _changer(self) -> TextChanger:
        return TextChanger(self._placeholders.masked, self._placeholders.of)

    def shown(self, response: Response) -> Response:
        """Return a reply as its client gets it."""
        return _with_blocks(response, self._restoring.block)

    def ended(self, request: Request, response: Response, kept: KeptReply | None) -> Iterable[Effect]:
        """Nothing is to be done."""
        return ()

    def failed(self) -> Iterable[Effect]:
        """Nothing is to be done."""
        return ()


def _with_blocks(response: Response, change: Callable[[Any], Any]) -> Response:
    others = tuple([_with_blocks(one, change) for one in response.alternatives])
    return msgspec.structs.replace(
        response, blocks=tuple([change(one) for one in response.blocks]), alternatives=others
    )


def _texts_of(request: Request) -> tuple[tuple[str, ...], Counter[str]]:
    """Return all texts of a request, and what there is besides that cannot be searched.

    JSON text is searched whole, where the name of a field stands beside its value, and string by string, without escapes.
    """
    texts: dict[str, None] = {}

    def note(text: str) -> str:
        if text:
            texts[text] = None
        return text

    changer = _Collector(note)
    changer.request(request)
    return tuple(texts), changer.skipped


class _Collector(TextChanger):
    """Notes texts and changes nothing."""

    def json(self, text: str, nested: int = 0) -> str:
        if nested == 0:
            self._change(unescaped(text))
        if "\\" in text:
            super().json(text, nested)
        return text


def _not_searched(what: str, count: int) -> Degradation:
    return Degradation(
        f"{NAME}.{what}", asked=count, why=f"personal data is not looked for in {what}: they are sent as they are"
    )


def _values(count: int) -> str:
    return f"{count} value{'' if count == 1 else 's'}"
