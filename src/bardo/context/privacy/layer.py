"""L7: personal data in what is sent is masked, and put back in what comes; or it is only counted, or the call is refused.

First all texts are searched, then every value that was found anywhere is masked everywhere: a number that a word beside it gave away
in one message stands alone in the next. Where anything fails, the call is not sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from bardo.context.layer import LayerFacts, LayerSteps, Passed, Receipt
from bardo.context.privacy.masked_reply import MaskedReply
from bardo.context.privacy.placeholders import Placeholders
from bardo.context.privacy.search import FindPersonalData, Found, FoundValues, find_values
from bardo.context.privacy.texts import TextChanger, unescaped
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, InternalError, InvalidRequest
from bardo.values.request import Request

NAME = "privacy"
Mode = Literal["mask", "report", "block"]


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
            found: Found = (yield FindPersonalData(texts)) if texts else ()
            if self._mode != "mask" or not any(found):
                return self._counted(request, texts, found, skipped)
            values = yield from find_values(texts, found)
            return self._masked(request, values, skipped)
        except BardoError:
            raise
        except Exception as problem:  # noqa: BLE001 - a call that was not searched must not be sent.
            raise InternalError(
                f"the request could not be searched for personal data ({type(problem).__name__}), and is not sent"
            ) from None

    def _counted(self, request: Request, texts: Sequence[str], found: Found, skipped: Counter[str]) -> Passed:
        """Return the request as it is. Raises InvalidRequest where it holds what it must not."""
        values = {
            text[one.start : one.end]: one.entity for text, spans in zip(texts, found, strict=True) for one in spans
        }
        counts = _counts(values)
        if counts and self._mode == "block":
            raise InvalidRequest(
                f"the request holds personal data: {', '.join(f'{name} ({count})' for name, count in counts.items())}",
                hint="leave it out, or have it masked: [inference.pipeline.privacy] mode",
                param="messages",
            )
        did = f"found {_number(len(values))}" if counts else ""
        return Passed(
            request=request, receipt=Receipt(layer=NAME, did=did, saw=counts), degraded=_not_searched(skipped)
        )

    def _masked(self, request: Request, found: FoundValues, skipped: Counter[str]) -> Passed:
        placeholders = Placeholders()
        for text in found.pieces:
            placeholders.avoid(text, self._labels)
        for value, _, label, is_in_word in found.values:
            placeholders.take(value, label, in_word=is_in_word)

        def masked(text: str) -> str:
            pieces = found.pieces.get(text)
            return placeholders.masked(text) if pieces is None else placeholders.in_place(text, pieces)

        values = {one.value: one.entity for one in found.values}
        return Passed(
            request=TextChanger(masked, placeholders.of).request(request),
            receipt=Receipt(layer=NAME, did=f"masked {_number(len(values))}", saw=_counts(values)),
            degraded=_not_searched(skipped),
            reply=MaskedReply(placeholders, typed=request.output_format is not None),
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
