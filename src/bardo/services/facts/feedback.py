"""Take feedback on calls: a score and a comment, for the log and for what learns from it."""

from __future__ import annotations

import asyncio
from typing import Any

from bardo.adapters.stores.log.feedback import FeedbackStore
from bardo.adapters.stores.log.row import Feedback
from bardo.adapters.stores.log.writer import LogWriter
from bardo.dialects.shared.json_values import number, optional, required
from bardo.dialects.shared.options import refuse_unknown
from bardo.values.errors import InvalidRequest, NotStored

LONGEST_COMMENT = 2_000
"""Characters."""
LONGEST_ID = 200
THUMBS = {"up": 1.0, "down": 0.0}
_KEYS = ("request_id", "thumbs", "score", "comment")
# Another worker of the gateway stores its rows twice a second.
_LOOK_AGAIN_SECONDS = 1.0
_FLUSH_SECONDS = 5.0


class FeedbackRecorder:
    """Stores feedback beside the calls of a log."""

    def __init__(self, log: LogWriter, store: FeedbackStore) -> None:
        self._log = log
        self._store = store

    async def take(self, feedback: Feedback, tenant: str) -> None:
        """Store feedback on a call of a tenant. Raises NotStored for a call that is not in the log, or is another's, and LogUnusable."""
        if await asyncio.to_thread(self._add, feedback, tenant):
            return
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        if not await asyncio.to_thread(self._add, feedback, tenant):
            hint = "give the X-Bardo-Request-Id of one of your own calls"
            raise NotStored(f"no call has the id {feedback.request_id!r}", hint=hint)

    def _add(self, feedback: Feedback, tenant: str) -> bool:
        # A call that has just ended may wait to be stored.
        return self._store.add(feedback, tenant) or (
            self._log.flush(_FLUSH_SECONDS) and self._store.add(feedback, tenant)
        )

    def close(self) -> None:
        """Close the database."""
        self._store.close()


def read_feedback(fields: dict[str, Any], now: float) -> Feedback:
    """Return the feedback that a body holds. Raises InvalidRequest naming the mistake."""
    refuse_unknown(fields, _KEYS, "")
    request_id = required(fields, "request_id", str)
    if not request_id or len(request_id) > LONGEST_ID:
        raise InvalidRequest("request_id is not one", hint="give a reply's X-Bardo-Request-Id", param="request_id")
    comment = optional(fields, "comment", str)
    if comment is not None and len(comment) > LONGEST_COMMENT:
        message = f"comment has {len(comment)} characters"
        raise InvalidRequest(message, hint=f"write at most {LONGEST_COMMENT}", param="comment")
    return Feedback(request_id=request_id, given_at=now, score=_score(fields), comment=comment)


def _score(fields: dict[str, Any]) -> float:
    thumbs, score = optional(fields, "thumbs", str), number(fields, "score")
    if (thumbs is None) == (score is None):
        hint = 'give thumbs, "up" or "down", or score, from 0 to 1'
        raise InvalidRequest("feedback has one of thumbs and score", hint=hint, param="thumbs")
    if thumbs is not None:
        if thumbs not in THUMBS:
            raise InvalidRequest(f"thumbs is {thumbs[:100]!r}", hint='use "up" or "down"', param="thumbs")
        return THUMBS[thumbs]
    assert score is not None
    if not 0 <= score <= 1:
        raise InvalidRequest(f"score is {score!r}"[:200], hint="give a number from 0 (bad) to 1 (good)", param="score")
    return float(score)
