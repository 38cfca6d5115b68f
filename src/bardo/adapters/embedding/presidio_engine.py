"""Personal data found by Presidio, besides bardo's own patterns: names, places and organisations, where a spaCy model is configured.

`presidio-analyzer` comes with the extra `bardo[presidio]`, and is loaded with the layer. It is asked in a thread. Nothing is fetched: a
model must be installed, and mail addresses are judged by the list of domains that comes with it.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any

from bardo.catalog.layer_rows import pii_entities
from bardo.context.privacy.detect import Span, resolved
from bardo.context.privacy.settings import PrivacySettings
from bardo.values.errors import ConfigError
from bardo.values.request import how_to_install

_EXTRA = f'{how_to_install("presidio")}, or set engine = "own"'
_LABELS = {"PERSON": "PERSON", "LOCATION": "PLACE", "ORGANIZATION": "ORGANIZATION", "NRP": "GROUP", "DATE_TIME": "DATE"}
_USUAL = ("PERSON", "LOCATION", "NRP")


class PresidioEngine:
    """Asks Presidio's analyzer. `labels` are the words of its placeholders. Raises ConfigError where it, or its model, is not installed."""

    def __init__(self, settings: PrivacySettings, allowed: Callable[[str], bool] | None) -> None:
        self._analyzer = _analyzer(settings)
        self._language, self._least, self._allowed = settings.language, settings.least_score, allowed
        known = set(self._analyzer.get_supported_entities(language=settings.language))
        wanted = set(settings.entities or _USUAL) | set(settings.also)
        self._entities = sorted(
            (wanted & known) - set(settings.never) - (set() if settings.entities else set(pii_entities()))
        )
        self.labels = frozenset(_label(name) for name in self._entities)

    def find(self, text: str, own: Sequence[Span]) -> list[Span]:
        """Return what Presidio finds and what bardo's patterns found, none within another."""
        results = (
            self._analyzer.analyze(text, language=self._language, entities=self._entities, score_threshold=self._least)
            if self._entities
            else ()
        )
        spans = [Span(one.start, one.end, one.entity_type, _label(one.entity_type), one.score) for one in results]
        if self._allowed is not None:
            spans = [span for span in spans if not self._allowed(text[span.start : span.end])]
        return resolved(sorted([*own, *spans], key=lambda span: (span.start, -span.score, -span.end)))


def _label(entity: str) -> str:
    row = pii_entities().get(entity)
    return row.label if row is not None else _LABELS.get(entity, re.sub(r"[^A-Z]", "", entity.upper())[:14] or "VALUE")


def _analyzer(settings: PrivacySettings) -> Any:
    try:
        presidio = importlib.import_module("presidio_analyzer")
        nlp = importlib.import_module("presidio_analyzer.nlp_engine")
    except ImportError as problem:
        raise ConfigError("presidio-analyzer is not installed", hint=_EXTRA) from problem
    _stay_offline()
    engine = nlp.SpacyNlpEngine(models=[{"lang_code": settings.language, "model_name": "blank"}])
    engine.nlp = {settings.language: _model(settings)}
    registry = presidio.RecognizerRegistry(supported_languages=[settings.language])
    registry.load_predefined_recognizers(languages=[settings.language], nlp_engine=engine)
    return presidio.AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=[settings.language])


def _model(settings: PrivacySettings) -> Any:
    """Return an installed spaCy model; a blank one, which knows no names, where none is configured."""
    spacy = importlib.import_module("spacy")
    try:
        return spacy.load(settings.model) if settings.model else spacy.blank(settings.language)
    except (OSError, ImportError) as problem:
        raise ConfigError(f"the spaCy model {settings.model or settings.language!r} is not installed") from problem


def _stay_offline() -> None:
    """Have the list of domains that comes with tldextract used: it would be fetched with the first mail address."""
    tldextract: Any = importlib.import_module("tldextract")
    extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    tldextract.extract = extract
    tldextract.tldextract.TLD_EXTRACTOR = extract
