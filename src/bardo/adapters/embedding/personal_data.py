"""Search texts for personal data as configured: the usual ones on the event loop, long ones and with Presidio in a thread."""

from __future__ import annotations

import asyncio
import importlib
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from fnmatch import translate
from functools import partial
from hashlib import blake2b
from typing import Any

from bardo.adapters.work_budget import CURRENT, run_counted
from bardo.catalog.layer_rows import PiiEntity, PiiPattern, pii_entities
from bardo.context.privacy.detect import Detector, Span, resolved
from bardo.context.privacy.search import FindPersonalData
from bardo.context.privacy.settings import PrivacySettings
from bardo.values.errors import ConfigError
from bardo.values.request import how_to_install

Find = Callable[[str], list[Span]]
_PLACE = "[inference.pipeline.privacy]"
_LONG_CHARS = 30_000
_AT_ONCE_CHARS = 1_000_000
_REMEMBERED_CHARS = 200
_MOST_REMEMBERED = 5_000


class PersonalDataSearch:
    """Searches the texts of calls. What was found in a text is remembered, as places: the same turns come again in each call."""

    def __init__(self, find: Find, *, slow: bool = False) -> None:
        self._find = find
        self._slow = slow
        self._known: OrderedDict[bytes, tuple[Span, ...]] = OrderedDict()

    async def perform(self, effect: FindPersonalData) -> list[tuple[Span, ...]]:
        """Return the personal data in each text. Raises TooMuchWork between long ones where there is no time left for the request."""
        keys = [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in effect.texts]
        spans_known = {key: self._known[key] for key in keys if key in self._known}
        new = {key: text for key, text in zip(keys, effect.texts, strict=True) if key not in spans_known}
        spans = {**spans_known, **await self._search(new)}
        self._remember(new, spans)
        return [spans[key] for key in keys]

    async def _search(self, texts: dict[bytes, str]) -> dict[bytes, tuple[Span, ...]]:
        if not texts:
            return {}
        if not self._slow and sum(map(len, texts.values())) <= _LONG_CHARS:
            return self._all(texts)
        spans: dict[bytes, tuple[Span, ...]] = {}
        left = list(reversed(texts.items()))
        while left:
            if (budget := CURRENT.get()) is not None:
                budget.check()
            part, size = {}, 0
            while left and size <= _AT_ONCE_CHARS:
                key, text = left.pop()
                part[key] = text
                size += len(text)
            spans |= await asyncio.to_thread(run_counted, partial(self._all, part))
        return spans

    def _all(self, texts: dict[bytes, str]) -> dict[bytes, tuple[Span, ...]]:
        return {key: tuple(self._find(text)) for key, text in texts.items()}

    def _remember(self, texts: dict[bytes, str], spans: dict[bytes, tuple[Span, ...]]) -> None:
        for key, text in texts.items():
            if len(text) >= _REMEMBERED_CHARS:
                self._known[key] = spans[key]
        while len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)


def search_of(settings: PrivacySettings) -> tuple[PersonalDataSearch, frozenset[str]]:
    """Return what searches texts, and the words that placeholders may have. Raises ConfigError."""
    entities = chosen_entities(settings)
    allowed = _allowed(settings.allowed)
    detector = Detector(entities, least=settings.least_score, regions=settings.phone_regions, allowed=allowed)
    labels = frozenset(entity.label for entity in entities)
    if settings.engine == "own":
        return PersonalDataSearch(detector.find), labels
    engine = PresidioEngine(settings, allowed)
    return PersonalDataSearch(lambda text: engine.find(text, detector.matches(text)), slow=True), labels | engine.labels


def check_privacy(settings: PrivacySettings) -> None:
    """Raise ConfigError for an unknown kind, and for a pattern that is no regular expression."""
    by_engine = pii_entities()
    Detector([entity for entity in chosen_entities(settings) if entity.name not in by_engine])


def chosen_entities(settings: PrivacySettings) -> list[PiiEntity]:
    """Return the kinds of values that are looked for. Raises ConfigError for an unknown name."""
    rows = pii_entities()
    own = {
        name: _custom_pattern(name, pattern.match, pattern.label, pattern.score, pattern.near)
        for name, pattern in settings.patterns.items()
    }
    wanted = {*settings.entities, *settings.also}
    for name in (*settings.entities, *settings.also, *settings.never):
        choosable = (*rows, *own)
        if name not in choosable and settings.engine == "own":
            near = get_close_matches(name[:100], choosable, n=1)
            hint = f"did you mean {near[0]}?" if near else "the kinds are in docs/how-to/mask-personal-data.md"
            raise ConfigError(f"{_PLACE}: bardo knows no kind of personal data {name[:100]!r}", hint=hint)
    usual = [row for row in rows.values() if (row.usual and not settings.entities) or row.name in wanted]
    countries = {country.upper() for country in settings.countries}
    in_country = [
        row for row in usual if row.name in wanted or not (row.country and countries) or row.country in countries
    ]
    return [row for row in (*in_country, *own.values()) if row.name not in settings.never]


def _custom_pattern(name: str, match: str, label: str, score: float, near: tuple[str, ...]) -> PiiEntity:
    if name in pii_entities():
        raise ConfigError(f"{_PLACE} patterns: {name} is a kind that bardo knows", hint="give yours another name")
    pattern = PiiPattern(match=match, score=score, anywhere=True)
    return PiiEntity(name=name, label=label, context=near, near=1.0, patterns=(pattern,))


def _allowed(globs: Iterable[str]) -> Callable[[str], bool] | None:
    expressions = [translate(glob.lower()) for glob in globs]
    if not expressions:
        return None
    pattern = re.compile("|".join(expressions))
    return lambda value: pattern.match(value.lower()) is not None


_EXTRA = f'{how_to_install("presidio")}, or set engine = "own"'
_LABELS = {"PERSON": "PERSON", "LOCATION": "PLACE", "ORGANIZATION": "ORGANIZATION", "NRP": "GROUP", "DATE_TIME": "DATE"}
_USUAL = ("PERSON", "LOCATION", "NRP")


class PresidioEngine:
    """Asks Presidio's analyzer. `labels` are the words of its placeholders. Raises ConfigError where it, or its model, is not installed."""

    def __init__(self, settings: PrivacySettings, allowed: Callable[[str], bool] | None) -> None:
        self._analyzer = _analyzer(settings)
        self._language, self._least, self._allowed = settings.language, settings.least_score, allowed
        supported = set(self._analyzer.get_supported_entities(language=settings.language))
        wanted = set(settings.entities or _USUAL) | set(settings.also)
        self._entities = sorted(
            (wanted & supported) - set(settings.never) - (set() if settings.entities else set(pii_entities()))
        )
        self.labels = frozenset(_label(name) for name in self._entities)

    def find(self, text: str, own: Sequence[Span]) -> list[Span]:
        """Return what Presidio finds and what bardo's patterns found, none within another."""
        results = (
            self._analyzer.analyze(text, language=self._language, entities=self._entities, score_threshold=self._least)
            if self._entities
            else ()
        )
        spans = [Span(hit.start, hit.end, hit.entity_type, _label(hit.entity_type), hit.score) for hit in results]
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
    # Have the list of domains that comes with tldextract used: it would be fetched with the first mail address.
    tldextract: Any = importlib.import_module("tldextract")
    extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    tldextract.extract = extract
    tldextract.tldextract.TLD_EXTRACTOR = extract
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
