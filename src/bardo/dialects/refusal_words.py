"""Which words of a provider's refusal a client is shown: those of its own dialect, and no type or code of another."""

from __future__ import annotations

import re
from collections.abc import Callable

from bardo.values.context_overflow import Overflow
from bardo.values.errors import BardoError, ContextOverflow, UpstreamRefused


def own_refusal(error: BardoError, *dialects: str) -> UpstreamRefused | None:
    """Return a provider's refusal that came in one of these dialects; one without a dialect is taken for one."""
    own = isinstance(error, UpstreamRefused) and (not error.dialect or error.dialect in dialects)
    return error if own and isinstance(error, UpstreamRefused) else None


def message_in(
    words: Callable[[Overflow], str], error: BardoError, *dialects: str, known: re.Pattern[str] | None = None
) -> str:
    """Return an error's message. Of a prompt that is too long a client reads its own API's words first.

    A provider that speaks one of these dialects keeps its message where it holds words that clients know (`known`; None for any words:
    they look at a code).
    """
    overflow = overflow_of(error)
    if overflow is None:
        return str(error)
    if own_refusal(error, *dialects) is not None and (known is None or known.search(str(error))):
        return str(error)
    whose = "the provider said: " if isinstance(error, UpstreamRefused) else ""
    return f"{words(overflow)} ({whose}{error})"


def overflow_of(error: BardoError) -> Overflow | None:
    """Return what a refusal says of a prompt that is too long; None where the error is about something else."""
    return error.overflow if isinstance(error, UpstreamRefused | ContextOverflow) else None
