"""What is done with the reply to a masked call, now or hours later: its values are put back, and what is kept of it has none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from bardo.context.layer import Effect, KeptReply
from bardo.context.privacy.placeholders import Placeholders
from bardo.context.privacy.restore import RestorePlan
from bardo.context.privacy.restore_stage import RestoreStage
from bardo.context.privacy.texts import TextChanger
from bardo.values.request import Message, Request
from bardo.values.response import Response


class _PendingPlaceholders(msgspec.Struct, frozen=True):
    """The placeholders of a call whose reply comes later: of each value its placeholder, and whether it is masked in words too."""

    values: tuple[tuple[str, str, bool], ...]
    typed: bool


class MaskedReply:
    """What is done with the reply to a masked call."""

    most_bytes = 0

    def __init__(self, placeholders: Placeholders, *, typed: bool) -> None:
        self._placeholders = placeholders
        self._restoring = RestorePlan(placeholders)
        self._typed = typed

    @classmethod
    def of_kept(cls, state: bytes) -> MaskedReply:
        """Return what `state` was made from. Raises msgspec.DecodeError for anything else."""
        found = msgspec.msgpack.decode(state, type=_PendingPlaceholders)
        return cls(Placeholders.of_kept(found.values), typed=found.typed)

    def kept(self) -> bytes:
        """Return what a reply that comes later needs, with all values: it is kept where the request itself is, and as long."""
        return msgspec.msgpack.encode(_PendingPlaceholders(self._placeholders.kept(), self._typed))

    def stage(self) -> RestoreStage:
        """Return what puts the values back into one reply."""
        return RestoreStage(self._restoring, typed=self._typed)

    def masked(self, response: Response) -> Response:
        """Return a reply as its provider said it, for what is kept of it: the log, and what later turns need."""
        return _with_blocks(response, self._changer().block)

    def masked_request(self, request: Request) -> Request:
        """Return the request of the call as its provider got it."""
        return self._changer().request(request)

    def masked_turn(self, turn: Message) -> Message:
        """Return a further turn of the call with the same placeholders."""
        return self._changer().message(turn)

    def _changer(self) -> TextChanger:
        return TextChanger(self._placeholders.masked, self._placeholders.of)

    def shown(self, response: Response) -> Response:
        """Return a reply as its client gets it."""
        return _with_blocks(response, self._restoring.block)

    def ended(self, request: Request, response: Response, state: KeptReply | None) -> Iterable[Effect]:
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
