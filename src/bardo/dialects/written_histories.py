"""What a dialect writes of a conversation that comes again: written for its new messages alone, as long as nothing of it is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from bardo.values.histories import LEAST_MESSAGES, Messages, fold_history

if TYPE_CHECKING:
    from bardo.dialects.losses import Losses

S = TypeVar("S")


def fold_without_loss(
    messages: Messages,
    name: str,
    form: object,
    losses: Losses,
    begin: S,
    extend: Callable[[S, Messages, int], S],
) -> S:
    """Return what is written of a conversation, as `fold_history` does, as far as nothing of it was lost: each call reports what is.

    What is written is shared, and must not be changed.
    """
    if len(messages) < LEAST_MESSAGES:
        return extend(begin, messages, 0)
    written: list[S] = []

    def extend_and_look(found: S | None, messages: Messages, place: int) -> S | None:
        before = losses.notes
        if found is None and written:
            # What is lost of the messages before was reported a moment ago.
            written.append(extend(written[-1], messages, place))
            return None
        written.append(extend(begin, messages, 0) if found is None else extend(found, messages, place))
        return written[-1] if losses.notes == before else None

    start: S | None = begin
    found = fold_history(messages, name, form, start, extend_and_look)
    if found is not None:
        return found
    return written[-1] if written else extend(begin, messages, 0)
