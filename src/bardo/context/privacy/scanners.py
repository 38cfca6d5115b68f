"""Find values whose beginning no pattern shows: mail addresses, web addresses, addresses of IPv6.

Each looks for a character that all of them have, and reads from there a bounded way back and forth, so that time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from bardo.catalog.layer_rows import iban_rows, top_level_domains
from bardo.context.privacy.checks import compact, iban, ip_address, mac_address
from bardo.context.privacy.long_texts import matches_in_parts

Found = tuple[int, int, float]
"""Where a value begins and ends, and how likely it is one."""

_MOST_LOCAL = 64  # RFC 5321, section 4.5.3.1.1
_LOCAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.!#$%&'*+-/=?^_`{|}~")
_DOMAIN = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}(?:xn--[a-zA-Z0-9-]{2,59}|[^\W\d_]{2,24})(?![\w])")
_PICTURES = ("png", "jpg", "jpeg", "gif", "svg", "webp")
_SCHEME = re.compile(r"(?:https?|ftp|wss?)://", re.IGNORECASE)
_HOST = re.compile(
    r"(?:[^\s/@:\"'<>]{1,64}(?::[^\s/@:\"'<>]{0,64})?@)?"
    r"(?:(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\[[0-9A-Fa-f:.]{2,45}\])(?![\w])"
)
_PATH = re.compile(r"(?::[0-9]{1,5})?(?:[/?#][^\s\"<>`\\]{0,2000})?")
_DOTTED = re.compile(r"(?<![\w@./-])[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}(?![\w@-])")
_AFTER_SENTENCE = ".,;:!?)]}'"
_COLONS = re.compile(r":[0-9A-Fa-f]{0,4}:")
_IPV6 = re.compile(
    r"(?:[0-9A-Fa-f]{0,4}:){2,8}(?:[0-9A-Fa-f]{1,4}|[0-9]{1,3}(?:\.[0-9]{1,3}){3})?"
    r"(?:%[0-9A-Za-z_-]{1,16})?(?:/[0-9]{1,3})?(?![0-9A-Za-z_:]|\.[0-9])"
)
_IBAN = re.compile(r"(?<![0-9A-Za-z_])[A-Za-z]{2}[0-9]{2}(?=[ -]?[0-9A-Za-z]{3})")
_PAIR = re.compile(r"([:-])[0-9A-Fa-f]{2}\1")
_MAC = re.compile(r"[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}(?![0-9A-Za-z_:-])")
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")


def emails(text: str) -> Iterator[Found]:
    """Yield mail addresses: a local part of RFC 5321, and a domain whose last label has no digits."""
    at, read = text.find("@"), 0
    while at >= 0:
        begin = at
        while begin > read and at - begin < _MOST_LOCAL and (text[begin - 1] in _LOCAL or text[begin - 1].isalnum()):
            begin -= 1
        while begin < at and text[begin] in ".'`{|=/!#$%&*?^~+-":
            begin += 1
        found = _DOMAIN.match(text, at + 1) if begin < at and text[at - 1] != "." else None
        if found and not found.group().lower().endswith(_PICTURES):
            yield begin, found.end(), 0.95
        read = found.end() if found else at + 1
        at = text.find("@", read)


def urls(text: str) -> Iterator[Found]:
    """Yield web addresses: with a scheme, or a domain with a known ending."""
    read = 0
    for scheme in matches_in_parts(_SCHEME, text):
        if scheme.start() < read:
            continue
        host = _HOST.match(text, scheme.end())
        if host:
            read = _end_of_path(text, host.end())
            yield scheme.start(), read, 0.6
    for host in matches_in_parts(_DOTTED, text):
        if host.group().rpartition(".")[2].lower() in _endings():
            yield host.start(), _end_of_path(text, host.end()), 0.5


def _end_of_path(text: str, host_end: int) -> int:
    path = _PATH.match(text, host_end)
    end = path.end() if path else host_end
    while end > host_end and text[end - 1] in _AFTER_SENTENCE:
        end -= 1
    return end


@cache
def _endings() -> frozenset[str]:
    return frozenset(top_level_domains())


def ipv6(text: str) -> Iterator[Found]:
    """Yield addresses of IPv6, with a zone or a prefix length. The unspecified address alone is a mark of many languages."""
    read = 0
    for colons in matches_in_parts(_COLONS, text):
        begin = colons.start()
        if begin < read:
            continue
        while begin > colons.start() - 4 and begin > read and text[begin - 1] in _HEXADECIMAL:
            begin -= 1
        if begin and (text[begin - 1].isalnum() or text[begin - 1] in "_:."):
            continue
        found = _IPV6.match(text, begin)
        if found and ip_address(re.sub(r"%[0-9A-Za-z_-]+", "", found.group())):
            read = found.end()
            yield begin, read, 0.1 if found.group().startswith("::") and read - begin == 2 else 0.6


def mac_addresses(text: str) -> Iterator[Found]:
    """Yield addresses of devices in six pairs with one kind of separator. Others have digits first, and are found by a pattern."""
    read = 0
    for pair in matches_in_parts(_PAIR, text):
        start = pair.start() - 2
        if start >= read and (found := _MAC.match(text, start)) and mac_address(found.group()):
            read = found.end()
            if not (start and (text[start - 1].isalnum() or text[start - 1] in "_:-")):
                yield start, read, 0.7


def ibans(text: str) -> Iterator[Found]:
    """Yield account numbers of ISO 13616, in groups or not: country, length and kinds of characters as registered, and the check digits."""
    for beginning in matches_in_parts(_IBAN, text):
        known = _iban_forms().get(beginning.group()[:2].upper())
        whole = known.match(text, beginning.start()) if known else None
        if whole is None:
            continue
        number = compact(whole.group())
        in_one_case = whole.group() in (whole.group().upper(), whole.group().lower())
        if in_one_case and iban(number):
            yield whole.start(), whole.end(), 1.0


@cache
def _iban_forms() -> dict[str, re.Pattern[str]]:
    kinds = {"n": "[0-9]", "a": "[A-Za-z]", "c": "[A-Za-z0-9]"}

    def expression(country: str, form: str) -> re.Pattern[str]:
        each = "".join(f"(?:[ -]?{kinds[kind]}){{{count}}}" for count, kind in re.findall(r"([0-9]{1,3})([nac])", form))
        return re.compile(f"(?i:{country})[0-9]{{2}}{each}(?![0-9A-Za-z_])")

    return {country: expression(country, form) for country, form in iban_rows().items()}


SCANNERS: Mapping[str, Callable[[str], Iterator[Found]]] = {
    "email": emails,
    "url": urls,
    "iban": ibans,
    "ipv6": ipv6,
    "mac": mac_addresses,
}
"""The functions that rows name, except that of phone numbers, which needs a library."""
