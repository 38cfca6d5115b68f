"""Check digits that more than one kind of number uses, and those of bank cards, accounts and wallets.

A check takes the text of a match, with its separators, and says whether it can be such a number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from functools import cache
from hashlib import sha256
from ipaddress import AddressValueError, IPv4Address, IPv6Address, NetmaskValueError, ip_network

Check = Callable[[str], bool]


def digits_of(text: str) -> list[int]:
    """Return the ASCII digits of a text as numbers."""
    return [ord(char) - 48 for char in text if "0" <= char <= "9"]


def compact(text: str) -> str:
    """Return the ASCII letters and digits of a text, in upper case."""
    return "".join(char for char in text if char.isascii() and char.isalnum()).upper()


def weighted(digits: Sequence[int], weights: Sequence[int]) -> int:
    """Return the sum of products. The longer of the two is cut."""
    return sum(digit * weight for digit, weight in zip(digits, weights, strict=False))


def luhn_sum(digits: Sequence[int]) -> int:
    """Return the sum of ISO/IEC 7812-1, annex B; a number is valid where it is divisible by ten."""
    return sum(
        digit if place % 2 == 0 else (digit * 2 - 9 if digit > 4 else digit * 2)
        for place, digit in enumerate(reversed(digits))
    )


_NO_DIGITS = bytes(set(range(256)) - set(b"0123456789"))
_DOUBLED = bytes.maketrans(b"0123456789", b"0246813579")


def luhn(text: str) -> bool:
    """Whether the last digit is the Luhn digit of the others, and not all digits are 0."""
    digits = text.encode("ascii", "ignore").translate(None, _NO_DIGITS)
    total = sum(digits[-1::-2]) + sum(digits[-2::-2].translate(_DOUBLED))
    return bool(digits.strip(b"0")) and (total - 48 * len(digits)) % 10 == 0


def card(text: str) -> bool:
    """Whether it has the length and the Luhn digit of a payment card."""
    return 12 <= len(digits_of(text)) <= 19 and luhn(text)


def iban(number: str) -> bool:
    """Whether it is an account number of ISO 13616, without gaps: 1 modulo 97, where letters stand for 10 to 35."""
    return int("".join(str(int(char, 36)) for char in number[4:] + number[:4])) % 97 == 1


def aba_routing(text: str) -> bool:
    """Whether it is a routing number of a bank in the USA: weights 3, 7, 1, and a first pair that is given out."""
    digits = digits_of(text)
    district = digits[0] * 10 + digits[1]
    given_out = district <= 12 or 21 <= district <= 32 or 61 <= district <= 72 or district == 80
    return given_out and weighted(digits, (3, 7, 1) * 3) % 10 == 0


_VERHOEFF_STEP = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)


@cache
def _verhoeff_tables() -> tuple[list[list[int]], list[list[int]]]:
    """Return the table of the dihedral group of order ten, and the eight powers of the permutation."""

    def product(left: int, right: int) -> int:
        if left < 5:
            return (left + right) % 5 if right < 5 else 5 + (left + right) % 5
        return 5 + (left - right) % 5 if right < 5 else (left - right) % 5

    powers = [list(range(10))]
    while len(powers) < 8:
        powers.append([_VERHOEFF_STEP[digit] for digit in powers[-1]])
    return [[product(left, right) for right in range(10)] for left in range(10)], powers


def verhoeff(text: str) -> bool:
    """Whether the last digit is the Verhoeff digit of the others."""
    products, powers = _verhoeff_tables()
    check = 0
    for place, digit in enumerate(reversed(digits_of(text))):
        check = products[check][powers[place % 8][digit]]
    return check == 0


def mod_11_10(text: str) -> bool:
    """Whether the last digit is right by ISO/IEC 7064, MOD 11,10."""
    digits = digits_of(text)
    product = 10
    for digit in digits[:-1]:
        product = ((digit + product) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == digits[-1]


_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def wallet(text: str) -> bool:
    """Whether it is an address of Bitcoin: Base58Check, or Bech32 and Bech32m of BIP 173 and 350."""
    if text[:3].lower() == "bc1":
        return _bech32(text)
    if not all(char in _BASE58 for char in text):
        return False
    number = 0
    for char in text:
        number = number * 58 + _BASE58.index(char)
    if number >= 1 << 200:
        return False
    whole = number.to_bytes(25, "big")
    return sha256(sha256(whole[:21]).digest()).digest()[:4] == whole[21:]


def _bech32(text: str) -> bool:
    lower = text.lower()
    if text not in (lower, text.upper()) or not all(char in _BECH32 for char in lower[3:]):
        return False
    values = [
        3,
        3,
        0,
        2,
        3,
        *(_BECH32.index(char) for char in lower[3:]),
    ]  # 3, 3, 0, 2, 3 is the prefix "bc", expanded.
    check = 1
    for value in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for place, part in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            if top >> place & 1:
                check ^= part
    return check in (1, 0x2BC830A3)


def ip_address(text: str) -> bool:
    """Whether it is an IP address, or a network in CIDR form."""
    bare, _, prefix = text.partition("/")
    try:
        if prefix:
            ip_network(text, strict=False)
        else:
            (IPv6Address if ":" in bare else IPv4Address)(bare)
    except (AddressValueError, NetmaskValueError, ValueError):
        return False
    return True


def mac_address(text: str) -> bool:
    """Whether it is the address of a device: neither all zeros nor the broadcast address."""
    number = compact(text)
    return set(number) not in ({"0"}, {"F"})


def uuid(text: str) -> bool:
    """Whether it is neither the nil nor the max UUID of RFC 9562."""
    return set(compact(text)) not in ({"0"}, {"F"})


def is_date(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def date_in(digits: list[int], century: int | None = None) -> bool:
    """Whether the first six digits are year, month and day, in a given century or in any."""
    year, month, day = (digits[place] * 10 + digits[place + 1] for place in (0, 2, 4))
    return any(is_date(base + year, month, day) for base in ((century,) if century is not None else (1900, 2000)))
