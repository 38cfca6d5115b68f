"""Find prompts whose beginning changes with every call, so that no provider can read it from its cache: a clock, a random id.

Of each prompt only digests are kept, of its head as a whole and of pieces of it, and only so many of each.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict

import msgspec

from bardo.values.blocks import TextBlock
from bardo.values.request import Request

SHORTEST = 2000
"""Characters of a system prompt from which on a cache would be worth it: about the fewest tokens that any provider caches."""
MOST_CHARACTERS = 16_384
MOST_USERS = 512
_PIECE = 128
_AFTER = 5
_KEPT = 4


class ChangingHead(msgspec.Struct, frozen=True):
    """One user's prompts to one model begin anew each time: they differ within the piece of the system prompt from this character on."""

    position: int


class _Pieces:
    """Digests of the pieces of one head, counted from its beginning and from its end."""

    __slots__ = ("ahead", "back")

    def __init__(self, head: str) -> None:
        size = len(head)
        self.ahead = array("q", [hash(head[at : at + _PIECE]) for at in range(0, size, _PIECE)])
        self.back = array("q", [hash(head[max(0, at - _PIECE) : at]) for at in range(size, 0, -_PIECE)])

    def alike(self, other: _Pieces) -> int:
        """Return how many pieces two heads have in common: in their places, or before and behind one change that moved the rest."""
        placed = sum(a == b for a, b in zip(self.ahead, other.ahead, strict=False))
        return max(placed, _common(self.ahead, other.ahead) + _common(self.back, other.back))

    def first_difference(self, other: _Pieces) -> int:
        """Return from about which character on two heads differ."""
        return _common(self.ahead, other.ahead) * _PIECE


class _Prompt:
    """One prompt of a user in its versions: the digest and the pieces of the last one, and how many were new in a row."""

    __slots__ = ("digest", "new_in_a_row", "pieces", "position")

    def __init__(self, digest: int, pieces: _Pieces) -> None:
        self.digest = digest
        self.pieces = pieces
        self.new_in_a_row = 1
        self.position = 0

    def renew(self, digest: int, pieces: _Pieces) -> None:
        """Take the next version."""
        self.position = pieces.first_difference(self.pieces)
        self.new_in_a_row += 1
        self.digest, self.pieces = digest, pieces


class PromptHeads:
    """Watches how prompts begin. Prompts of different users and models are never compared."""

    def __init__(self) -> None:
        self._prompts: OrderedDict[tuple[str, str], list[_Prompt]] = OrderedDict()

    def note(self, user: str, request: Request) -> ChangingHead | None:
        """Take a request, and return where its prompt begins to differ, once several in a row were all new.

        Nothing is returned of prompts that differ in their second half only: what comes before is read from the cache.
        """
        head = _head_of(request)
        if len(head) < SHORTEST:
            return None
        prompts, digest = self._of(user, request.model), hash(head)
        for prompt in prompts:
            if prompt.digest == digest:
                prompt.new_in_a_row = 1
                return None
        pieces = _Pieces(head)
        known = max(prompts, key=lambda one: one.pieces.alike(pieces), default=None)
        if known is None or known.pieces.alike(pieces) * 2 < len(pieces.ahead):
            prompts.append(_Prompt(digest, pieces))
            del prompts[:-_KEPT]
            return None
        known.renew(digest, pieces)
        told = known.new_in_a_row >= _AFTER and known.position * 2 < len(head)
        return ChangingHead(known.position) if told else None

    def _of(self, user: str, model: str) -> list[_Prompt]:
        found = self._prompts.get((user, model))
        if found is not None:
            self._prompts.move_to_end((user, model))
            return found
        made = self._prompts[user, model] = []
        if len(self._prompts) > MOST_USERS:
            self._prompts.popitem(last=False)
        return made


def _head_of(request: Request) -> str:
    """Return the system prompt that heads a conversation, as far as it is looked at."""
    if not request.messages or request.messages[0].role != "system":
        return ""
    texts: list[str] = []
    for message in request.messages:
        if message.role != "system":
            break
        texts += [block.text for block in message.blocks if isinstance(block, TextBlock)]
    if len(texts) == 1 and len(texts[0]) <= MOST_CHARACTERS:
        # The text itself, whose digest Python keeps.
        return texts[0]
    return "\n".join(texts)[:MOST_CHARACTERS]


def _common(one: array[int], other: array[int]) -> int:
    """Return how many digests two rows have alike before the first that differs."""
    shorter = min(len(one), len(other))
    return next((place for place in range(shorter) if one[place] != other[place]), shorter)
