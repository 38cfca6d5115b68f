"""What the keys of `[inference.pipeline.privacy]` mean, and the kinds of personal data that rows know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from bardo.catalog.layer_rows import PiiEntity, pii_entities
from bardo.context.privacy.settings import PrivacySettings

PRIVACY_TABLES: dict[str, type[msgspec.Struct]] = {"inference.pipeline.privacy": PrivacySettings}
PRIVACY_MEANINGS = {
    "inference.pipeline.privacy": "`privacy`, which [masks personal data](mask-personal-data.md): the keys below",
    "inference.pipeline.privacy.mode": "`mask` replaces values by placeholders and restores them in the reply, `report` only "
    "counts them, and `block` refuses the call",
    "inference.pipeline.privacy.entities": "the kinds to search for; empty: the default kinds",
    "inference.pipeline.privacy.also": 'further kinds to search for: `["URL", "DATE_TIME"]`',
    "inference.pipeline.privacy.never": "kinds that are not searched for",
    "inference.pipeline.privacy.countries": 'the countries whose national kinds are searched for: `["US", "GB"]`; empty: all',
    "inference.pipeline.privacy.least_score": "the least score of a value, from 0 to 1",
    "inference.pipeline.privacy.allowed": 'values that are not masked, as globs: `["*@example.com"]`',
    "inference.pipeline.privacy.phone_regions": "regions whose phone numbers are known without a country code; empty: sixteen of them",
    "inference.pipeline.privacy.patterns": "kinds of your own, by name: "
    """`{ EMPLOYEE = { match = 'E-[0-9]{6}', label = "EMPLOYEE", near = ["staff"] } }`""",
    "inference.pipeline.privacy.engine": "`own`, or `presidio` for its recognisers besides bardo's own (`bardo[presidio]`)",
    "inference.pipeline.privacy.language": "the language of the texts, for Presidio",
    "inference.pipeline.privacy.model": "the spaCy model by which Presidio finds names and places; empty: none",
}


def personal_data() -> tuple[Sequence[str], Iterator[Sequence[str]]]:
    """Return every kind of personal data, by country."""
    rows = sorted(pii_entities().values(), key=lambda row: (row.country, row.name))
    columns = ("kind", "country", "placeholder", "check digits", "found")
    return columns, (
        (f"`{row.name}`", row.country, f"`<{row.label}_1>`", "yes" if _checked(row) else "", _when(row)) for row in rows
    )


def _checked(row: PiiEntity) -> bool:
    return row.scanner == "iban" or any(pattern.check for pattern in row.patterns)


def _when(row: PiiEntity) -> str:
    if not row.usual:
        return "where it is named"
    alone = row.scanner or any(pattern.score >= 0.5 for pattern in row.patterns)
    return "by itself" if alone else f"beside a word: *{row.context[0]}* …"
