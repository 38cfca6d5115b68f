"""How good the answers of models are, by class, from `catalog/data/model_quality.toml`, for choosing between them."""

from __future__ import annotations

import tomllib
from functools import cache, lru_cache
from importlib.resources import files

import msgspec

from bardo.catalog.matching import matches_any, plain_id, specificity
from bardo.values.intent import Quality


class ModelQuality(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The class of some models' answers, by globs of ids as the catalog spells them."""

    match: tuple[str, ...]
    quality: Quality


class ModelQualities:
    """All rows. The most specific glob decides."""

    def __init__(self, rows: tuple[ModelQuality, ...]) -> None:
        self.rows = rows
        self._plain = tuple(
            msgspec.structs.replace(row, match=tuple(plain_id(glob) for glob in row.match)) for row in rows
        )
        self.find = lru_cache(maxsize=4096)(self._find)

    def _find(self, model: str) -> Quality | None:
        """Return the class of a model's plain id; None where nobody knows."""
        fitting = [row for row in self._plain if matches_any(model, row.match)]
        found = max(fitting, key=lambda row: _specificity(model, row), default=None)
        return None if found is None else found.quality


def _specificity(model: str, row: ModelQuality) -> tuple[bool, int, int]:
    return max(specificity(glob) for glob in row.match if matches_any(model, (glob,)))


@cache
def model_qualities() -> ModelQualities:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/model_quality.toml").read_text(encoding="utf-8")
    return ModelQualities(msgspec.convert(tomllib.loads(text)["model"], tuple[ModelQuality, ...]))
