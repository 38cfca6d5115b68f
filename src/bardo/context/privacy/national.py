"""Check digits and dates of national numbers outside Europe: of persons, companies and documents."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.context.privacy.checks import compact, date_in, digits_of, luhn, verhoeff, weighted


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
    weights = (6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)
    return _br_digits(digits_of(text), weights)


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
    digits = digits_of(text)
    return date_in(digits) and luhn(text)
