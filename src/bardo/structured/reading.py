"""Read one value of almost-JSON out of a text, from its opening bracket to its end.

It understands what models write instead of JSON: other quotes, comments, missing or doubled commas, Python and JavaScript words, strings
without quotes, quotes inside strings, wrong or missing closers. Where the text is more likely prose than data it gives up (NotData). Every
look ahead is bounded, so reading takes time linear in the text.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from bardo.structured.bounds import MAX_DEPTH
from bardo.structured.extraction import Json
from bardo.structured.lexemes import scalar, unescaped
from bardo.values.once import pattern

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

_GAP = pattern(r"(?:\s|[\u200b\ufeff]|//[^\n]{0,200}(?=\n)|/\*.{0,200}?\*/|#[ \t][^\n]{0,200}(?=\n)){0,50}", re.S)
_KEY = pattern(
    r"(?:\"(?:[^\"\\\n]|\\.){0,200}\"|[\"'“‘«`][^\"'“”‘’«»`\n]{0,200}[\"'”’“‘»`]|[\w$@][\w$@.\-]{0,99})\s{0,20}(?:[:：]|=>|=(?!=))"
)
_ITEM = pattern(r"[\"'“‘«`]|[-+.]?\d|[{\[(]|\.\.\.|…|(?:true|false|null|none|undefined|nan)\b", re.I)
_QUOTE = pattern(r"[\"'“‘«`](?=\S)")
_CLOSERS_AHEAD = pattern(r"(?:[}\])｝］]\s{0,50}){1,100}")
_STRING_GOES_ON = pattern(r"[\"']\s{0,20}[,}\]]")
# ["say "a", "b" now"]: a string that is followed by a word is none.
_NO_ITEM = pattern(r"\"[^\"\n]{0,200}\"\s{0,20}\w|'[^'\n]{0,200}'\s{0,20}\w")


class QuotedText(msgspec.Struct, frozen=True):
    """A string's text from `start` to `stop`; reading goes on at `end`. `cut`: the text ended first. `unsure`: its end was guessed."""

    start: int
    stop: int
    end: int
    cut: bool = False
    unsure: bool = False


def quoted_end(text: str, at: int, role: str, *, depth: int) -> QuotedText:
    """Return where the string whose opening quote stands at `at` ends. `role` says where it stands: key, member, item, argument or root.

    Quotes may stand inside a string without a backslash. A quote ends it where the text behind it goes on as data would: a comma and the
    next key, a closer, a colon behind a key.
    """
    tripled = text[at : at + 3]
    if tripled in ('"""', "'''"):
        end = text.find(tripled, at + 3)
        if end < 0:
            return QuotedText(at + 3, len(text), len(text), cut=True)
        return QuotedText(at + 3, end, end + 3)
    start = at + 1
    possible: int | None = None
    stops = _stops(CLOSERS[text[at]])
    for match in stops.finditer(text, start):
        if len(match.group()) > 1:
            continue
        position = match.start()
        if _ends(text, position + 1, role, depth):
            return QuotedText(start, position, position + 1, unsure=possible is not None)
        if possible is None and _may_end(text, position + 1, role):
            possible = position
    if possible is not None:
        return QuotedText(start, possible, possible + 1, unsure=True)
    return QuotedText(start, len(text), len(text), cut=True)


def _stops(closers: str) -> re.Pattern[str]:
    pattern = _COMPILED.get(closers)
    if pattern is None:
        pattern = _COMPILED[closers] = re.compile(rf"\\.|[{re.escape(closers)}]", re.S)
    return pattern


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


SPACE = pattern(r"[\s\u00a0\u200b-\u200d\u2060\ufeff]*")
_COMMENT = pattern(r"//[^\n]{0,2000}|/\*(?s:.{0,2000}?)\*/|#(?=[ \t!#])[^\n]{0,2000}|<!--(?s:.{0,2000}?)-->")
_ELLIPSIS = pattern(r"\.{3,}|…")
_COMMAS = frozenset(",，、;；")
_COLON = pattern(r"=>|:=|[:：=]")
_BARE_KEY = pattern(r"[\w$@][\w$@.\-]{0,199}")
_PREFIX = pattern(r"(?:[rR][bBfF]?|[bBfF][rR]?|[uU])(?=['\"])")
CALL = pattern(r"(?:new\s+)?[A-Za-z_][\w.]{0,99}\(")
_NAMED = pattern(r"([A-Za-z_]\w{0,99})\s*=(?!=)")
_BARE = pattern(r"[^,，{}\[\]｛｝［］()\n\"“”]{1,1000}")
_BARE_OR_CALL = pattern(r"[^,，{}\[\]｛｝［］\n\"“”]{1,1000}")
_NEXT_KEY = pattern(
    r"[,，]\s{0,200}(?:\"(?:[^\"\\\n]|\\.){0,200}\"|[\"'“‘«`][^\"'“”‘’«»`\n]{0,200}[\"'”’»`]|[\w$@][\w$@.\-]{0,99})\s{0,20}[:：=]"
)
_NEXT_CLOSER = pattern(
    r"[,，]\s{0,200}(?:[}\]),，{\[｝］]|$|\n|//|/\*|#|\.{3}|…|[\"'“‘][^\"'“”\n]{0,200}[\"'”’]?\s{0,20}\Z)"
)
# A number or literal with its end in sight.
_WHOLE = pattern(
    r"(?:[-+]?[\d.][\w.+-]{0,4000}+|true|false|null|none|nil|undefined|-?infinity|nan)"
    r"(?=\s{0,200}+(?:[,，}\])｝］]|//|/\*|\#|$)|\s{1,200}[\"'\n])",
    re.I,
)
_OPENING = {"{": "}", "[": "]", "(": ")", "｛": "}", "［": "]"}
_CLOSING = {"}": "}", "]": "]", ")": ")", "｝": "}", "］": "]"}

Cut = Literal["", "closers", "scalar"]


class NotData(Exception):
    """The text here is not data; `position` is how far it was read."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class ParsedValue(msgspec.Struct, frozen=True):
    """A value and where it stood. `cut`: the text ended inside it: behind a complete value ("closers"), or anywhere else ("scalar").

    `strict`: it was JSON as it stood. `unsure`: closers or string ends had to be guessed. `bare`: an array holds words without quotes.
    """

    value: Json
    start: int
    end: int
    strict: bool = False
    cut: Cut = ""
    unsure: bool = False
    bare: bool = False


class _Missing:
    """Stands for a value the text ended before."""


_ABSENT = _Missing()


def read_value(text: str, start: int) -> ParsedValue:
    """Read the value that begins at `start`: a bracket, a quote or a call. Raises NotData."""
    reader = _Reader(text, start)
    value = reader.value("root")
    if isinstance(value, _Missing):
        raise NotData(reader.at)
    return ParsedValue(value, start, reader.at, cut=reader.cut, unsure=reader.unsure, bare=reader.bare)


Role = Literal["root", "member", "item", "argument"]


class _Reader:
    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.at = start
        self.cut: Cut = ""
        self.unsure = False
        self.bare = False
        self._open: list[str] = []
        # Behind an opening bracket or a comma, where more has to come.
        self._dangling = False

    def value(self, role: Role) -> Json | _Missing:
        self._skip()
        here = self._here()
        if not here:
            return _ABSENT
        if here in _OPENING:
            return self._container(here)
        prefix = _PREFIX.match(self.text, self.at)
        if prefix:
            self.at = prefix.end()
            return self._string(role, raw="r" in prefix.group().lower())
        if here in CLOSERS:
            return self._string(role)
        call = CALL.match(self.text, self.at)
        if call and (role == "root" or here.isalpha()):
            return self._call(call)
        return self._bare_word(role)

    def _container(self, opener: str) -> Json:
        if len(self._open) >= MAX_DEPTH:
            raise NotData(self.at)
        self.at += 1
        self._dangling = True
        self._open.append(_OPENING[opener])
        closer = _OPENING[opener]
        return self._object() if closer == "}" else self._array(closer)

    # Objects

    def _object(self) -> dict[str, Json]:
        members: dict[str, Json] = {}
        while self._more():
            if self._here() in _OPENING:
                # A key cannot begin with a bracket: the closer of this object was forgotten.
                if not members:
                    raise NotData(self.at)
                self.unsure = True
                self._open.pop()
                return members
            key = self._key()
            if key is None:
                break
            value = self.value("member")
            if isinstance(value, _Missing):
                self._note_cut("scalar")
                break
            members[key] = value
        return members

    def _key(self) -> str | None:
        quoted = self._here() in CLOSERS
        if quoted:
            key = self._string("key")
        else:
            bare = _BARE_KEY.match(self.text, self.at)
            if bare is None:
                raise NotData(self.at)
            key, self.at = bare.group(), bare.end()
        self._skip()
        colon = _COLON.match(self.text, self.at)
        if colon:
            self.at = colon.end()
            return str(key)
        if not self._here():
            self._note_cut("scalar")
            return None
        if not quoted or self._here() in _COMMAS or self._here() in _CLOSING:
            raise NotData(self.at)
        self.unsure = True
        return str(key)

    # Arrays and calls

    def _array(self, closer: str) -> list[Json]:
        items: list[Json] = []
        while self._more():
            value = self.value("argument" if closer == ")" else "item")
            if isinstance(value, _Missing):
                break
            items.append(value)
        return items

    def _call(self, call: re.Match[str]) -> Json:
        """Read `Person(name='Ola')` as an object, `ObjectId("5f")` as what it holds, `Point(1, 2)` as an array."""
        self.at = call.end()
        self._dangling = True
        self._open.append(")")
        named: dict[str, Json] = {}
        plain: list[Json] = []
        while self._more():
            name = _NAMED.match(self.text, self.at)
            self.at = name.end() if name else self.at
            value = self.value("argument")
            if isinstance(value, _Missing):
                self._note_cut("scalar")
                break
            if name:
                named[name.group(1)] = value
            else:
                plain.append(value)
        if named and plain:
            raise NotData(self.at)
        if named:
            return named
        return plain[0] if len(plain) == 1 else plain

    def _more(self) -> bool:
        """Move to the next member, item or argument; False behind the closer of this container."""
        while True:
            self._skip()
            here = self._here()
            if not here:
                self._note_cut("scalar" if self._dangling else "closers")
                return False
            if here in _CLOSING:
                self._dangling = False
                return self._at_closer(_CLOSING[here])
            ellipsis = _ELLIPSIS.match(self.text, self.at)
            if here not in _COMMAS and ellipsis is None:
                self._dangling = False
                return True
            self._dangling = True
            self.at = ellipsis.end() if ellipsis else self.at + 1

    def _at_closer(self, closer: str) -> bool:
        expected = self._open.pop()
        if closer == expected:
            self.at += 1
            return False
        self.unsure = True
        if closer not in self._open:
            # The wrong kind of bracket, and none of its kind is open: it was meant for this container.
            self.at += 1
        return False

    # Scalars

    def _string(self, role: Role | Literal["key"], *, raw: bool = False) -> str:
        quoted: QuotedText = quoted_end(self.text, self.at, role, depth=len(self._open))
        content = self.text[quoted.start : quoted.stop]
        self.at = quoted.end
        self.unsure |= quoted.unsure
        if quoted.cut:
            self._note_cut("scalar")
            content = re.sub(r"\\(?:u[0-9a-fA-F]{0,3})?$", "", content) if not raw else content
        return (content if raw else unescaped(content)) + self._concatenated(role)

    def _concatenated(self, role: Role | Literal["key"]) -> str:
        """Return what follows as `+ "more"`, the way programs join strings."""
        rest = re.compile(r"\s*\+\s*(?=[\"'])").match(self.text, self.at)
        if rest is None or role == "key":
            return ""
        self.at = rest.end()
        return self._string(role)

    def _bare_word(self, role: Role) -> Json | _Missing:
        start = self.at
        whole = self._whole(role)
        if whole is not None:
            return scalar(whole)[0]
        if self._here() in _COMMAS or self._here() in _CLOSING:
            # {"a": , "b": 1}: the value was left out.
            self.unsure = True
            return None
        if role == "root":
            raise NotData(self.at)
        self._run(role)
        words = re.split(r"\s(?://|#)|/\*", self.text[start : self.at], maxsplit=1)[0].strip()
        if not words:
            raise NotData(self.at)
        value, is_scalar = scalar(words)
        if self.at >= len(self.text):
            self._note_cut("closers" if is_scalar and not words.endswith(".") else "scalar")
            if not is_scalar:
                return _ABSENT
        if not is_scalar:
            self.bare |= role != "member"
        return value

    def _whole(self, role: Role) -> str | None:
        match = _WHOLE.match(self.text, self.at)
        if match is None or match.end() == len(self.text) or role == "root" or not scalar(match.group())[1]:
            return None
        behind = SPACE.match(self.text, match.end())
        if (
            role == "member"
            and behind
            and self.text[behind.end() : behind.end() + 1] in _COMMAS
            and not self._next(behind.end())
        ):
            # {"n": 1,000}
            return None
        self.at = match.end()
        return match.group()

    def _next(self, at: int) -> bool:
        """Whether the comma at this place ends a member."""
        return bool(_NEXT_KEY.match(self.text, at) or _NEXT_CLOSER.match(self.text, at))

    def _run(self, role: Role) -> None:
        pattern = _BARE if role == "argument" else _BARE_OR_CALL
        while True:
            run = pattern.match(self.text, self.at)
            self.at = run.end() if run else self.at
            here = self._here()
            if here in '"“”[{(' and here:
                raise NotData(self.at)
            if role != "member" or here not in ",，" or not here:
                return
            if self._next(self.at):
                return
            self.at += 1

    # Between

    def _skip(self) -> None:
        while True:
            space = SPACE.match(self.text, self.at)
            self.at = space.end() if space else self.at
            comment = _COMMENT.match(self.text, self.at)
            if comment is None:
                return
            self.at = comment.end()

    def _here(self) -> str:
        return self.text[self.at : self.at + 1]

    def _note_cut(self, how: Cut) -> None:
        self.cut = "scalar" if "scalar" in (how, self.cut) else how
