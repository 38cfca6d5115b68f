"""The one shape of everything incremental."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)


class Stage(Protocol[In, Out]):
    """Takes items, gives items, and at the end gives back whatever it still held.

    One whose class says `passes_text = True` gives a further piece of a block of text as it is, and need not be asked about it. One with
    `passes_run` is given further pieces of a block together, and says whether they pass as they are; where not, they are fed. One whose
    class names the types that it `acts_on` gives a whole reply that has no event of these types as it is, and need not see it. One whose
    class names the types that it `touches` gives items of other types as they are at any time, and need not see them.
    """

    def feed(self, item: In) -> Sequence[Out]: ...

    def finish(self) -> Sequence[Out]: ...


Item = TypeVar("Item")


class Chain(Generic[Item]):
    """Stages over one kind of item, one after the other, as one stage."""

    def __init__(self, stages: Sequence[Stage[Item, Item]]) -> None:
        self._stages = stages

    def feed(self, item: Item) -> Sequence[Item]:
        """Send one item through all stages."""
        return self._through([item], self._stages)

    def finish(self) -> Sequence[Item]:
        """Close the stages in order; what one held still passes those after it."""
        out: list[Item] = []
        for position, stage in enumerate(self._stages):
            out.extend(self._through(stage.finish(), self._stages[position + 1 :]))
        return out

    @staticmethod
    def _through(items: Sequence[Item], stages: Sequence[Stage[Item, Item]]) -> Sequence[Item]:
        for stage in stages:
            items = [given for item in items for given in stage.feed(item)]
        return items
