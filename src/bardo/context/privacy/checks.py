"""Check digits and dates of numbers of persons, companies and documents, in Europe, in Turkey and elsewhere, and those of bank cards,
accounts and wallets.

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
    return set(compact(text)) not in ({"0"}, {"F"})


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


def au_abn(text: str) -> bool:
    digits = digits_of(text)
    digits[0] -= 1
    return weighted(digits, (10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19)) % 89 == 0


def au_acn(text: str) -> bool:
    digits = digits_of(text)
    return -weighted(digits, range(8, 0, -1)) % 10 == digits[8]


def au_medicare(text: str) -> bool:
    digits = digits_of(text)
    return weighted(digits, (1, 3, 7, 9) * 2) % 10 == digits[8]


def au_tfn(text: str) -> bool:
    return weighted(digits_of(text), (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0


def br_cnpj(text: str) -> bool:
    return _br_digits(digits_of(text), (6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2))


def br_cpf(text: str) -> bool:
    digits = digits_of(text)
    return len(set(digits)) > 1 and _br_digits(digits, range(11, 1, -1))


def _br_digits(digits: list[int], weights: Sequence[int]) -> bool:
    """Whether both check digits are right; the first is weighted by all weights but the first."""
    first, second = (weighted(digits, part) % 11 for part in (weights[1:], weights))
    return digits[-2:] == [11 - rest if rest > 1 else 0 for rest in (first, second)]


def cn_id(text: str) -> bool:
    number = compact(text)
    digits = digits_of(number[:17])
    return (
        date_in(digits[8:14], digits[6] * 1000 + digits[7] * 100)
        and number[17] == "10X98765432"[weighted(digits, [pow(2, 17 - place, 11) for place in range(17)]) % 11]
    )


def dea(text: str) -> bool:
    """The registration of a prescriber with the Drug Enforcement Administration."""
    digits = digits_of(text)[-7:]
    return weighted(digits, (1, 2, 1, 2, 1, 2)) % 10 == digits[6]


def in_aadhaar(text: str) -> bool:
    digits = digits_of(text)
    return digits != digits[::-1] and verhoeff(text)


def kr_brn(text: str) -> bool:
    digits = digits_of(text)
    return -(weighted(digits, (1, 3, 7, 1, 3, 7, 1, 3, 5)) + digits[8] * 5 // 10) % 10 == digits[9]


def kr_driver(text: str) -> bool:
    digits = digits_of(text)
    region = digits[0] * 10 + digits[1]
    return 11 <= region <= 28 and region != 27


def kr_rrn(text: str) -> bool:
    """Check digits end with the numbers given since October 2020, so that only date and region are looked at."""
    digits = digits_of(text)
    return date_in(digits, 2000 if digits[6] in (3, 4, 7, 8) else 1900) and digits[7] * 10 + digits[8] <= 95


def kr_rrn_checked(text: str) -> bool:
    digits = digits_of(text)
    return kr_rrn(text) and (11 - weighted(digits, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)) % 11) % 10 == digits[12]


def ph_tin(text: str) -> bool:
    digits = digits_of(text)
    return any(digits) and weighted(digits, range(9, 1, -1)) % 11 == digits[8]


def sg_nric(text: str) -> bool:
    number = compact(text)
    total = weighted(digits_of(number), (2, 7, 6, 5, 4, 3, 2)) + {"S": 0, "F": 0, "T": 4, "G": 4, "M": 3}[number[0]]
    letters = {"S": "JZIHGFEDCBA", "F": "XWUTRQPNMLK", "M": "XWUTRQPNJLK"}
    if number[0] == "M":
        return number[8] == letters["M"][10 - total % 11]
    return number[8] == letters["S" if number[0] in "ST" else "F"][total % 11]


_UEN = "ABCDEFGHJKLMNPQRSTUVWX0123456789"


def sg_uen(text: str) -> bool:
    number = compact(text)
    if len(number) == 9:
        return number[8] == "XMKECAWLJDB"[weighted(digits_of(number), (10, 4, 9, 3, 8, 2, 7, 1)) % 11]
    if number[0].isdigit():
        return number[9] == "ZKCMDNERGWH"[weighted(digits_of(number), (10, 8, 6, 4, 9, 7, 5, 3, 1)) % 11]
    values = [_UEN.find(char) for char in number[:9]]
    return min(values) >= 0 and number[9] == _UEN[(weighted(values, (4, 3, 5, 3, 10, 2, 2, 5, 7)) - 5) % 11]


def th_id(text: str) -> bool:
    digits = digits_of(text)
    return (11 - weighted(digits, range(13, 1, -1)) % 11) % 10 == digits[12]


def us_npi(text: str) -> bool:
    """Luhn over the number behind the prefix 80840 of health cards in the USA."""
    return len(set(digits_of(text)[1:])) > 1 and luhn(f"80840{text}")


def us_ssn(text: str) -> bool:
    """Area, group and serial that the Social Security Administration gives out, and none of its well-known examples."""
    number = "".join(char for char in text if char.isdigit())
    area, group, serial = number[:3], number[3:5], number[5:]
    if area in ("000", "666") or group == "00" or serial == "0000" or len(set(number)) == 1:
        return False
    return number not in ("078051120", "219099999", "123456789", "987654321") and not number.startswith("98765432")


def za_id(text: str) -> bool:
    return date_in(digits_of(text)) and luhn(text)


def ch_ahv(text: str) -> bool:
    return weighted(digits_of(text), (1, 3) * 6 + (1,)) % 10 == 0


def de_document(text: str) -> bool:
    """Identity cards and passports: weights 7, 3, 1 over the first eight characters (ICAO 9303)."""
    number = compact(text)
    return weighted([int(char, 36) for char in number[:8]], (7, 3, 1) * 3) % 10 == int(number[8], 36)


def de_kvnr(text: str) -> bool:
    number = compact(text)
    digits = digits_of(f"{ord(number[0]) - 64:02d}{number[1:9]}")
    return sum(sum(divmod(digit * (1 + place % 2), 10)) for place, digit in enumerate(digits)) % 10 == int(number[9])


def de_lanr(text: str) -> bool:
    digits = digits_of(text)
    return any(digits) and -weighted(digits, (4, 9) * 3) % 10 == digits[6]


def de_pension(text: str) -> bool:
    number = compact(text)
    digits = digits_of(f"{number[:8]}{ord(number[8]) - 64:02d}{number[9:11]}")
    weights = (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1)
    return sum(sum(divmod(digit * weight, 10)) for digit, weight in zip(digits, weights, strict=True)) % 10 == int(
        number[11]
    )


def de_tax_id(text: str) -> bool:
    return mod_11_10(text)


_SPANISH = "TRWAGMYFPDXBNJZSQVHLCKE"


def es_letter(text: str) -> bool:
    """The letter of a DNI or NIE: the number modulo 23, where X, Y and Z stand for 0, 1 and 2."""
    number = compact(text)
    first = "XYZ".find(number[0])
    whole = f"{first}{number[1:-1]}" if first >= 0 else number[:-1]
    return number[-1] == _SPANISH[int(whole) % 23]


def fi_hetu(text: str) -> bool:
    number = text.upper()
    century = 1800 if number[6] == "+" else 2000 if number[6] in "ABCDEF" else 1900
    day, month, year = int(number[:2]), int(number[2:4]), int(number[4:6])
    return (
        is_date(century + year, month, day)
        and number[-1] == "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(number[:6] + number[7:10]) % 31]
    )


def fr_nir(text: str) -> bool:
    number = compact(text)
    whole = number[:13].replace("2A", "19").replace("2B", "18")
    return whole.isdigit() and 97 - int(whole) % 97 == int(number[13:])


_FISCAL_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
"""The values of the letters A to Z at odd places of an Italian fiscal code; digits count as the letters A to J."""


def _fiscal_value(char: str) -> int:
    return int(char) if char.isdigit() else ord(char) - 65


def it_fiscal_code(text: str) -> bool:
    number = compact(text)
    total = sum(_FISCAL_ODD[_fiscal_value(char)] for char in number[0:15:2])
    total += sum(_fiscal_value(char) for char in number[1:15:2])
    return number[15] == chr(65 + total % 26)


def nl_bsn(text: str) -> bool:
    digits = digits_of(text)
    return any(digits) and weighted(digits, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def pl_pesel(text: str) -> bool:
    digits = digits_of(text)
    month = digits[2] * 10 + digits[3]
    century = {0: 1900, 1: 2000, 2: 2100, 3: 2200, 4: 1800}[month // 20]
    dated = is_date(century + digits[0] * 10 + digits[1], month % 20, digits[4] * 10 + digits[5])
    return dated and -weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10 == digits[10]


def se_company(text: str) -> bool:
    return digits_of(text)[2] >= 2 and luhn(text)


def se_person(text: str) -> bool:
    """Twelve digits with the century, or ten; the day is 60 more in a coordination number."""
    digits = digits_of(text)
    century = digits[0] * 1000 + digits[1] * 100 if len(digits) == 12 else None
    short = digits[-10:]
    born = [*short[:4], *((short[4] - 6, short[5]) if short[4] >= 6 else short[4:6])]
    return date_in(born, century) and luhn_sum(short) % 10 == 0


def tr_id(text: str) -> bool:
    digits = digits_of(text)
    tenth = (sum(digits[0:9:2]) * 7 - sum(digits[1:8:2])) % 10
    return digits[9] == tenth and digits[10] == sum(digits[:10]) % 10


def uk_nhs(text: str) -> bool:
    digits = digits_of(text)
    return any(digits) and (11 - weighted(digits, range(10, 1, -1)) % 11) % 11 == digits[9]


def uk_plate(text: str) -> bool:
    """The age of a plate since 2001: 02 to 29 from March, 51 to 79 from September."""
    age = int("".join(char for char in text if char.isdigit()))
    return 2 <= age <= 29 or 51 <= age <= 79
