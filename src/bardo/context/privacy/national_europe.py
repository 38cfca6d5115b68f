"""Check digits and dates of national numbers in Europe and Turkey: of persons, companies and documents."""

from __future__ import annotations

from bardo.context.privacy.checks import compact, date_in, digits_of, is_date, luhn, luhn_sum, mod_11_10, weighted


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
"""What the letters A to Z count at odd places of an Italian fiscal code; digits count as the letters A to J."""


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
    digits = digits_of(text)
    return digits[2] >= 2 and luhn(text)


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
