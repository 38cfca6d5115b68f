"""Numbers and texts as words: what is not known is said to be unknown, and no text can play with the terminal."""

from __future__ import annotations

import math
import time

from bardo.values.degradation import Degradation
from bardo.values.error_cleaning import PrintableText as PrintableText
from bardo.values.error_cleaning import printable as printable

NOT_REPORTED = "–"
# Python refuses to read longer numbers, and no model takes such a budget.
_MOST_DIGITS = 18


def count(number: int | None, *, estimated: bool = False) -> str:
    """Write a count: `1,161`, `~29` for an estimate, `–` where nobody reported one."""
    if number is None:
        return NOT_REPORTED
    return f"~{number:,}" if estimated else f"{number:,}"


def seconds(duration: float) -> str:
    """Write how long something took: `0.34 s`, `12.3 s`, `2m 05s`."""
    if duration < 10:
        return f"{duration:.2f} s"
    if round(duration, 1) < 60:
        return f"{duration:.1f} s"
    whole = round(duration)
    return f"{whole // 60}m {whole % 60:02}s"


def dollars(amount: float | None, *, estimated: bool = False) -> str:
    """Write an amount of US dollars, `~$1.20` for an estimate; a price that is not known is `unknown`, never 0."""
    if amount is None:
        return "unknown"
    if estimated:
        return f"~{dollars(amount)}"
    if not 0 < abs(amount) < 1:
        return f"${amount:,.2f}"
    # Two digits that say something, however small.
    return f"${amount:.{max(2, 1 - math.floor(math.log10(abs(amount))))}f}"


def moment(unix_time: float, now: float) -> str:
    """Write a time of day in the local zone, with the date where it is not today's."""
    then, today = time.localtime(unix_time), time.localtime(now)
    same_day = then[:3] == today[:3]
    return time.strftime("%H:%M:%S" if same_day else "%Y-%m-%d %H:%M", then)


def short_dialect(name: str) -> str:
    """Shorten a dialect's name for a narrow column: `openai_chat` to `chat`."""
    return name.rpartition("_")[2] or NOT_REPORTED


def excerpt(text: str, length: int) -> str:
    """Return the beginning of a text, on one line."""
    line = printable(" ".join(text[: 2 * length + 100].split()))
    return line if len(line) <= length else f"{line[: length - 1]}…"


def one_line(text: str) -> str:
    """Return a whole text on one line, its line breaks written as \\n."""
    return printable(text.replace("\n", "\\n"))


def difference(degradation: Degradation) -> str:
    """Write what was changed: `reasoning_effort: asked high, sent medium (highest this model offers)`."""
    said = [
        f"{word} {excerpt(str(value), 60)}"
        for word, value in (("asked", degradation.asked), ("sent", degradation.sent))
        if value is not None
    ]
    why = f" ({degradation.why})" if said and degradation.why else degradation.why
    return f"{degradation.what}: {', '.join(said)}{why}" if said or why else degradation.what


def policy_of(written: str) -> int | str:
    """Return what somebody wrote of thinking: a budget in tokens, or a word, which is checked where the request is built."""
    return int(written) if written.isdecimal() and len(written) <= _MOST_DIGITS else written
