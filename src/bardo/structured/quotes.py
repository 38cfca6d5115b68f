"""Find where a quoted string ends when quotes may stand inside it without a backslash.

A quote ends the string where what follows goes on as data would: a comma and the next key, a closer, a colon behind a key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

CLOSERS: dict[str, str] = {
    '"': '"',
    "'": "'",
    "`": "`´",
    "“": '”“"',
    "”": '”“"',
    "„": '“”"',
    "‘": "’‘'",
    "’": "’‘'",
    "«": "»",
    "»": "«",
    "‹": "›",
    "＂": "＂",
    "「": "」",
}

_GAP = re.compile(r"(?:\s|[\u200b\ufeff]|//[^\n]{0,200}(?=\n)|/\*.{0,200}?\*/|#[ \t][^\n]{0,200}(?=\n)){0,50}", re.S)
_KEY = re.compile(
    r"(?:\"(?:[^\"\\\n]|\\.){0,200}\"|[\"'“‘«`][^\"'“”‘’«»`\n]{0,200}[\"'”’“‘»`]|[\w$@][\w$@.\-]{0,99})\s{0,20}(?:[:：]|=>|=(?!=))"
)
_ITEM = re.compile(r"[\"'“‘«`]|[-+.]?\d|[{\[(]|\.\.\.|…|(?:true|false|null|none|undefined|nan)\b", re.I)
_QUOTE = re.compile(r"[\"'“‘«`](?=\S)")
_CLOSERS_AHEAD = re.compile(r"(?:[}\])｝］]\s{0,50}){1,100}")
_STRING_GOES_ON = re.compile(r"[\"']\s{0,20}[,}\]]")
# ["say "a", "b" now"]: a string that is followed by a word is none.
_NO_ITEM = re.compile(r"\"[^\"\n]{0,200}\"\s{0,20}\w|'[^'\n]{0,200}'\s{0,20}\w")


@dataclass(frozen=True, slots=True)
class QuotedText:
    """A string's text from `start` to `stop`; reading goes on at `end`. `cut`: the text ended first. `unsure`: its end was guessed."""

    start: int
    stop: int
    end: int
    cut: bool = False
    unsure: bool = False


def quoted_end(text: str, at: int, role: str, *, depth: int) -> QuotedText:
    """Return where the string whose opening quote stands at `at` ends. `role` says where it stands: key, member, item, argument or root."""
    tripled = text[at : at + 3]
    if tripled in ('"""', "'''"):
        return _tripled(text, at, tripled)
    start = at + 1
    possible: int | None = None
    stops = _stops(CLOSERS[text[at]])
    for found in stops.finditer(text, start):
        if len(found.group()) > 1:
            continue
        position = found.start()
        if _ends(text, position + 1, role, depth):
            return QuotedText(start, position, position + 1, unsure=possible is not None)
        if possible is None and _may_end(text, position + 1, role):
            possible = position
    if possible is not None:
        return QuotedText(start, possible, possible + 1, unsure=True)
    return QuotedText(start, len(text), len(text), cut=True)


def _tripled(text: str, at: int, quotes: str) -> QuotedText:
    end = text.find(quotes, at + 3)
    if end < 0:
        return QuotedText(at + 3, len(text), len(text), cut=True)
    return QuotedText(at + 3, end, end + 3)


def _stops(closers: str) -> re.Pattern[str]:
    found = _COMPILED.get(closers)
    if found is None:
        found = _COMPILED[closers] = re.compile(rf"\\.|[{re.escape(closers)}]", re.S)
    return found


_COMPILED: dict[str, re.Pattern[str]] = {}


def _ends(text: str, behind: int, role: str, depth: int) -> bool:
    gap = _GAP.match(text, behind)
    at = gap.end() if gap else behind
    here = text[at : at + 1]
    if not here or role == "root":
        return True
    if role == "key":
        return _ends_key(text, behind, here)
    if here in "}])｝］":
        return _closes(text, at, depth)
    if here in ",，":
        return _goes_on(text, at + 1, role)
    if here == "+":
        return bool(re.compile(r"\+\s{0,20}[\"']").match(text, at))
    return at > behind and _without_comma(text, behind, at, role)


def _ends_key(text: str, behind: int, here: str) -> bool:
    if here in ":：" or text.startswith(("=>", "="), behind):
        return True
    # An apostrophe inside a key, or a colon that was left out.
    following = text[behind : behind + 1]
    return not (following.isalnum() and text[behind - 2 : behind - 1].isalnum())


def _closes(text: str, at: int, depth: int) -> bool:
    run = _CLOSERS_AHEAD.match(text, at)
    if run is None:
        return True
    closers = sum(letter in "}])｝］" for letter in run.group())
    following = text[run.end() : run.end() + 1]
    if closers >= depth or not following:
        return _STRING_GOES_ON.match(text, run.end()) is None
    if following in ",，":
        return True
    # x.run({"k": 1}) inside a string goes on at once; data goes on after a space, or with a bracket.
    return run.group()[-1].isspace() or following in "{["


def _goes_on(text: str, at: int, role: str) -> bool:
    gap = _GAP.match(text, at)
    at = gap.end() if gap else at
    here = text[at : at + 1]
    if not here or here in "}]),，{｝］":
        return True
    if role == "member":
        return _KEY.match(text, at) is not None
    if _NO_ITEM.match(text, at):
        return False
    return _ITEM.match(text, at) is not None or (role == "argument" and _KEY.match(text, at) is not None)


def _without_comma(text: str, behind: int, at: int, role: str) -> bool:
    """Whether the next member or item begins here although no comma went before it."""
    if role == "member":
        quoted = text[at] in CLOSERS or "\n" in text[behind:at]
        return quoted and _KEY.match(text, at) is not None
    return text[at] in "{[" or _QUOTE.match(text, at) is not None


def _may_end(text: str, behind: int, role: str) -> bool:
    gap = _GAP.match(text, behind)
    at = gap.end() if gap else behind
    following = text[at : at + 1]
    return following in ",，}])" if role != "key" else following in ":："
