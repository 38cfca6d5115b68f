"""L7: personal data in what is sent is masked, and put back in what comes; or it is only counted, or the call is refused.

First all texts are searched, then every value that was found anywhere is masked everywhere: a number that a word beside it gave away
in one message stands alone in the next. Where anything fails, the call is not sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from bardo.context.given_time import TooMuchWork
from bardo.context.layer import LayerFacts, LayerSteps, Passed, Receipt, changed
from bardo.context.privacy.known_values import Pieces
from bardo.context.privacy.masked_reply import MaskedReply
from bardo.context.privacy.placeholders import Placeholders
from bardo.context.privacy.search import DetectedValue, DetectedValues, FindPersonalData, Found, find_values
from bardo.context.privacy.texts import TextChanger, unescaped
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, InternalError, InvalidRequest
from bardo.values.request import Request

NAME = "privacy"
Mode = Literal["mask", "report", "block"]


class PrivacyLayer:
    """The layer. `mode`: values are masked and put back, only counted, or refused. `labels` are the words that placeholders may have."""

    name = NAME
    every_operation = True

    def __init__(self, mode: Mode, labels: Iterable[str]) -> None:
        self._mode = mode
        self.masks = mode != "report"
        self._labels = frozenset(labels)

    def steps(self, request: Request, facts: LayerFacts) -> LayerSteps:
        """Search the request.

        Raises InvalidRequest where it is to be refused, InternalError where it could not be searched, and TooMuchWork.
        """
        try:
            texts, skipped = _texts_of(request)
            detected: Found = (yield FindPersonalData(texts)) if texts else ()
            if self._mode != "mask" or not any(detected):
                return self._counted(request, texts, detected, skipped)
            values = yield from find_values(texts, detected)
            return self._masked(request, values, skipped)
        except (BardoError, TooMuchWork):
            raise
        except Exception as problem:  # noqa: BLE001 - a call that was not searched must not be sent.
            raise InternalError(
                f"the request could not be searched for personal data ({type(problem).__name__}), and is not sent"
            ) from None

    @staticmethod
    def part_of(state: bytes) -> MaskedReply:
        """Return the part of a reply that comes later, by what it kept."""
        return MaskedReply.of_kept(state)

    def _counted(self, request: Request, texts: Sequence[str], detected: Found, skipped: Counter[str]) -> Passed:
        """Return the request as it is. Raises InvalidRequest where it holds what it must not."""
        values = {
            text[one.start : one.end]: one.entity for text, spans in zip(texts, detected, strict=True) for one in spans
        }
        counts = _counts(values)
        if counts and self._mode == "block":
            raise InvalidRequest(
                f"the request holds personal data: {', '.join(f'{name} ({count})' for name, count in counts.items())}",
                hint="leave it out, or have it masked: [inference.pipeline.privacy] mode",
                param="messages",
            )
        did = f"found {_number(len(values))}" if counts else ""
        receipt = Receipt(layer=NAME, did=did, saw={"texts": len(texts), **counts})
        return Passed(request=request, receipt=receipt, degraded=_not_searched(skipped))

    def _masked(self, request: Request, detected: DetectedValues, skipped: Counter[str]) -> Passed:
        reply = None
        if request.operation == "embed":
            masked = self._masked_apart(request, detected)
        else:
            placeholders = self._placeholders(detected.pieces, detected.values)
            masked = _changer(placeholders, detected.pieces).request(request)
            reply = MaskedReply(placeholders, typed=request.output_format is not None)
        values = {one.value: one.entity for one in detected.values}
        did = f"masked {_number(len(values))}"
        receipt = Receipt(layer=NAME, did=did, saw={"texts": len(detected.pieces), **_counts(values)})
        return Passed(request=masked, receipt=receipt, degraded=_not_searched(skipped), reply=reply)

    def _masked_apart(self, request: Request, detected: DetectedValues) -> Request:
        """Return a request for vectors with placeholders that count from 1 in each text: its vector depends on no other text."""
        by_value = {one.value: one for one in detected.values}

        def changer(collector: _Collector) -> TextChanger:
            pieces = {text: detected.pieces[text] for text in collector.texts}
            here = [by_value[part] for cut in pieces.values() for part, is_value in cut if is_value]
            return _changer(self._placeholders(pieces, here), pieces)

        messages = []
        for message in request.messages:
            (collector := _Collector()).message(message)
            messages.append(changer(collector).message(message))
        (collector := _Collector()).value(request.extra)
        return changed(request, messages=tuple(messages), extra=changer(collector).value(request.extra))

    def _placeholders(self, texts: Iterable[str], values: Iterable[DetectedValue]) -> Placeholders:
        placeholders = Placeholders()
        for text in texts:
            placeholders.avoid(text, self._labels)
        for one in values:
            placeholders.take(one.value, one.label, in_word=one.in_word)
        return placeholders


def _changer(placeholders: Placeholders, pieces: Mapping[str, Pieces]) -> TextChanger:
    """Return what masks texts, of which many are cut already."""

    def masked(text: str) -> str:
        cut = pieces.get(text)
        return placeholders.masked(text) if cut is None else placeholders.in_place(text, cut)

    return TextChanger(masked, placeholders.of)


def _texts_of(request: Request) -> tuple[tuple[str, ...], Counter[str]]:
    """Return all texts of a request, and what there is besides that cannot be searched."""
    collector = _Collector()
    collector.request(request)
    return tuple(collector.texts), collector.skipped


class _Collector(TextChanger):
    """Notes texts and changes nothing.

    JSON text is searched whole, where the name of a field stands beside its value, and string by string, without escapes.
    """

    def __init__(self) -> None:
        self.texts: dict[str, None] = {}
        super().__init__(self._note)

    def _note(self, text: str) -> str:
        if text:
            self.texts[text] = None
        return text

    def json(self, text: str, nested: int = 0) -> str:
        if nested == 0:
            self._change(unescaped(text))
        if "\\" in text:
            super().json(text, nested)
        return text


def _counts(values: Mapping[str, str]) -> dict[str, int]:
    """Return how many values of each kind there are."""
    return dict(sorted(Counter(values.values()).items()))


def _not_searched(skipped: Counter[str]) -> tuple[Degradation, ...]:
    return tuple(
        Degradation(
            f"{NAME}.{what}", asked=count, why=f"personal data is not looked for in {what}: they are sent as they are"
        )
        for what, count in sorted(skipped.items())
        if count
    )


def _number(count: int) -> str:
    return f"{count} value{'' if count == 1 else 's'}"
