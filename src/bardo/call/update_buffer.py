"""The beginning of a streamed reply, held while another provider could still answer instead."""

from __future__ import annotations

from bardo.replies.forwarding import ReplyUpdate

# Comments before the first event that are forwarded with it; a server that waits long may send any number of them.
_MOST_COMMENT_BYTES = 4096
# The head of a reply in Responses repeats the request twice, with all its instructions and tools.
_MOST_HELD_BYTES = 8 * 1024 * 1024
_MOST_HELD_UPDATES = 10_000


class UpdateBuffer:
    """The updates of a reply of which nothing is to be shown yet."""

    __slots__ = ("_comments", "_size", "updates")

    def __init__(self) -> None:
        self.updates: list[ReplyUpdate] = []
        self._size = self._comments = 0

    @property
    def is_full(self) -> bool:
        """Whether more is held than heads have: the reply is given to its client then."""
        return self._size > _MOST_HELD_BYTES or len(self.updates) > _MOST_HELD_UPDATES

    def add(self, update: ReplyUpdate, *, begun: bool) -> None:
        """Hold an update. `begun`: an event has come. Comments before that are held up to a bound."""
        size = len(update.raw)
        if not begun and not update.events:
            self._comments += size
            if self._comments > _MOST_COMMENT_BYTES:
                return
        if size or update.events:
            self._size += size
            self.updates.append(update)
