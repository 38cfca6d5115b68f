"""Rows of the layers that work on calls: which profile has which, and the words, patterns and figures that each goes by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

import msgspec
import tomli

from bardo.catalog.matching import matches_any, plain_id
from bardo.values.request import Quality


class LiveRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a call is known for which the provider looks into the web: by `fields` of its body, and by globs of `models`."""

    fields: tuple[str, ...]
    models: tuple[str, ...]


class TimeWordsRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words of one language by which a question is about the time at which it is asked, in lower case.

    `words` are whole words, and `phrases` are several words with one space between them. `parts` are found inside other text: they are of
    languages without spaces between words.
    """

    language: str
    words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


class PersonalDataRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of data about persons: a regular expression, and a check of the digits that it finds; an empty `check` is none."""

    name: str
    pattern: str
    check: Literal["", "luhn", "iban"] = ""


class CacheRows(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All rows."""

    live: LiveRow
    time_words: tuple[TimeWordsRow, ...]
    personal_data: tuple[PersonalDataRow, ...]


@cache
def cache_rows() -> CacheRows:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/cache_refusals.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomli.loads(text), CacheRows)


class LanguageRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The words of one language. A text is a list of words with spaces between them.

    `light` words may be in one question and not in the other. So may a verb of `asking` or of `acting` that begins a command, where two
    other words have partners: one of acting only where both questions are commands. So may a verb of `support` before a word that has a
    partner, where both questions are of one kind; and `amounts`, where numbers or units are calculated with.

    A question is answered by yes or no where its first such word is in `yes_no` or `asks_whether`, and by something else where it is in
    `open_question`. It asks for instructions where `how` stands before one of `auxiliaries` and of `asker_words`, or it has a word of
    `manner`. A request to explain (`inform`) is not one to `produce` a text; a `possibility` is not an `obligation`, nor is `past` the same
    as `present`. Both questions speak of the one who answers (`other_words`), or neither does. `negation` words are counted. `articles` are
    looked over where the word before another is asked for. `asker_as_object` are words for the one who asks, behind a verb whose object
    they are.

    Two words that stand on either side of one of `pivots`, or of a word that both questions have, must not change places, unless that word
    is in `converse` on one side; where one of the two has a word of `agent` behind it, they must. A word behind one of `roles` (a line:
    words for one role) does not stand behind another role; one behind the first line stands behind it in both questions, or beside a word
    of `joined` in the other.

    `particles` make one word with a verb before them; after `weak_particles` the verb alone is that word too. `exact` words and `units` (a
    line: the names of one unit) have no synonyms. `numbers` are `word=number`, and `after_number` are words that a number need not have
    behind it. `synonyms` are lines of words that may replace each other, `opposites` lines of words that never may, and `phrases` lines
    `phrase = words that it stands for`.
    `relations`: the file of English word relations holds for the language.
    """

    code: str
    light: str
    yes_no: str = ""
    open_question: str = ""
    asks_whether: str = ""
    asking: str = ""
    acting: str = ""
    support: str = ""
    amounts: str = ""
    inform: str = ""
    produce: str = ""
    possibility: str = ""
    obligation: str = ""
    present: str = ""
    past: str = ""
    other_words: str = ""
    asker_words: str = ""
    asker_as_object: str = ""
    articles: str = ""
    auxiliaries: str = ""
    manner: str = ""
    negation: str
    pivots: str = ""
    converse: str = ""
    roles: list[str] = []
    agent: str = ""
    joined: str = ""
    after_number: str = ""
    particles: str = ""
    weak_particles: str = ""
    exact: str = ""
    numbers: str = ""
    units: list[str] = []
    synonyms: list[str] = []
    opposites: list[str] = []
    phrases: str = ""
    relations: bool = False


@cache
def guard_languages() -> tuple[LanguageRow, ...]:
    """Return the languages that the guard knows."""
    text = files("bardo.catalog").joinpath("data/cache_guard.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert(tomli.loads(text)["language"], list[LanguageRow]))


SizeOf = Literal["text", "conversation", "tools", "code"]


class OmittedText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Text that programs add to a user's message: all from `begin` to `end`."""

    begin: Annotated[str, msgspec.Meta(min_length=1)]
    end: Annotated[str, msgspec.Meta(min_length=1)]


class SignRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words, or up to three in a row, that speak for a label of a question. `weight` counts for each that is met, up to three times."""

    question: str
    label: str
    weight: float
    words: tuple[str, ...]


class PairRow(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"having": "with", "lacking": "without"},
):
    """Two words near each other that speak for a label: one of the list `first`, then within so many words one of the list `second`.

    The text must have one of the list `having`, and none of the list `lacking`; empty names stand for no such condition.
    """

    question: str
    label: str
    weight: float
    first: str
    second: str
    within: Annotated[int, msgspec.Meta(ge=1, le=16)]
    having: str = ""
    lacking: str = ""


class BaseRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A number that is added to the score of a label of every request."""

    question: str
    label: str
    weight: float


class SizeRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The effect of a size on the complexity, from `least` on: characters of the text or of the conversation, tools, or blocks of code."""

    of: SizeOf
    least: int
    scores: dict[str, float]


class NeedRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The needs of a call whose labels are those of `when`, each with at least `probability`. None leaves a field as it is."""

    when: Annotated[dict[str, str], msgspec.Meta(min_length=1)]
    probability: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.6
    quality: Quality | None = None
    cost_sensitivity: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    max_latency_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None
    prefer: tuple[str, ...] = ()


class ClassifyRows(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file. `lists` are the words that pairs name; `default` is the label of a question where no sign is met."""

    omitted: tuple[OmittedText, ...]
    sign: tuple[SignRow, ...]
    lists: dict[str, tuple[str, ...]]
    pair: tuple[PairRow, ...]
    base: tuple[BaseRow, ...]
    size: tuple[SizeRow, ...]
    default: dict[str, str]
    need: tuple[NeedRow, ...]


@cache
def classify_rows() -> ClassifyRows:
    """Return the rows."""
    text = files("bardo.catalog").joinpath("data/classify.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomli.loads(text), ClassifyRows)


NO_HEADERS: Mapping[str, str] = {}
_DIGIT = re.compile(r"\d")


class Volatile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What shows that a part of a system prompt differs from call to call: a regular expression, and what it finds, which has a digit."""

    name: str
    pattern: str


class ProviderCompaction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How providers are asked to shorten a long conversation themselves.

    `fields` are merged into the body, `headers` are sent with it. Nothing is asked where the body has the field `unless` already.
    `when_headers` are headers that the client has to send itself, each a list that has this value: it can read what comes back then.
    `least_trigger` is the lowest number of tokens that the provider takes.
    """

    providers: tuple[str, ...]
    dialects: tuple[str, ...]
    models: tuple[str, ...]
    unless: str
    fields: dict[str, Any]
    headers: dict[str, str] = {}
    when_headers: dict[str, str] = {}
    least_trigger: int = 0

    def filled(self, trigger: int, keep: int) -> dict[str, Any]:
        """Return the fields with the number of tokens from which on the provider acts, and of the calls of tools that stay."""
        numbers = {"$trigger": max(trigger, self.least_trigger), "$keep": keep}
        filled: dict[str, Any] = _filled(self.fields, numbers)
        return filled

    def is_expected(self, headers: Mapping[str, str]) -> bool:
        """Whether a client with these headers can read what the provider answers."""
        return all(
            value in [part.strip() for part in headers.get(name, "").split(",")]
            for name, value in self.when_headers.items()
        )


class CompactedItems(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Providers that compact a conversation where its client asks for it: with an item of its input, or at the path `path`."""

    providers: tuple[str, ...]
    dialects: tuple[str, ...]
    path: str


class Enrichment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The text repeated at the end of a long prompt about a domain."""

    domain: str
    text: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`context.toml`."""

    volatile: tuple[Volatile, ...]
    provider_compaction: tuple[ProviderCompaction, ...]
    compacted_items: tuple[CompactedItems, ...]
    enrichment: tuple[Enrichment, ...]


def volatile_part(text: str) -> str:
    """Return what in a text differs from call to call, as the row names it; empty where nothing is found."""
    if _DIGIT.search(text) is None:
        return ""
    return next((name for name, pattern in _patterns() if pattern.search(text)), "")


def provider_compaction(
    row: str, dialect: str, model: str, headers: Mapping[str, str] = NO_HEADERS
) -> ProviderCompaction | None:
    """Return how a provider, by the id of its row, is asked to shorten conversations itself, or None if it does not.

    `headers` are those of the client's request.
    """
    return next(
        (
            compaction
            for compaction in _file().provider_compaction
            if matches_any(row, compaction.providers)
            and matches_any(dialect, compaction.dialects)
            and matches_any(plain_id(model), compaction.models)
            and compaction.is_expected(headers)
        ),
        None,
    )


def compaction_path(row: str, dialect: str) -> str:
    """Return the path at which a provider, by the id of its row, compacts a conversation for a client; empty where it does not."""
    rows = _file().compacted_items
    return next(
        (entry.path for entry in rows if matches_any(row, entry.providers) and matches_any(dialect, entry.dialects)), ""
    )


def enrichment_of(domain: str) -> str:
    """Return the text repeated about a domain, or an empty one if there is none."""
    return next((row.text for row in _file().enrichment if row.domain == domain), "")


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((row.name, re.compile(row.pattern)) for row in _file().volatile)


@cache
def _file() -> _File:
    text = files("bardo.catalog").joinpath("data/context.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomli.loads(text), _File)


def _filled(value: Any, numbers: dict[str, int]) -> Any:
    match value:
        case dict():
            return {key: _filled(inner, numbers) for key, inner in value.items()}
        case list():
            return [_filled(inner, numbers) for inner in value]
        case str():
            return numbers.get(value, value)
        case _:
            return value


Role = Literal["sign", "addressed", "follows"]
"""What a match says: by itself that there is an instruction, that a program is spoken to, or what it is told to do."""


class ProbeVocabulary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The words that the features of a sentence are made from."""

    verbs: frozenset[str]
    leading: frozenset[str]
    questions: frozenset[str]
    answers: frozenset[str]
    code: frozenset[str]
    declarative: frozenset[str]
    page: frozenset[str]
    ours: frozenset[str]
    mine: frozenset[str]


class QuoteMarks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How people show that text is not their own: the names of tags around it, and lines with which it begins, in lower case."""

    tags: frozenset[str]
    headers: tuple[str, ...]


class OverrideRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pattern of text that would replace the rules of a conversation. Weights add up to at most 1.

    `trusted`: it is looked for in what the user says, too. `unless_after`: a match behind this does not count. `line_start`: it counts at
    the beginning of a line or a sentence alone. `<machine>` in a pattern stands for what a reader that is a program is called.
    """

    name: str
    weight: float
    trusted: bool
    pattern: str
    unless_after: str = ""
    role: Role = "sign"
    line_start: bool = False


class AddressedRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The words of a language with which a program is spoken to, and what it is told: `injection.toml` says where they stand.

    `verb_last`: the verb stands behind its object.
    """

    name: str
    machine: str
    before: str
    after: str
    order: str
    silence: str
    user: str
    spaced: bool = True
    verb_last: bool = False


class InjectionLanguageRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The words of a language with which rules are replaced, a prompt is asked for, or an assistant is spoken to, with spaces between them.

    `_` in a word is a space, `*` any letters. `spaced`: words of this language have spaces between them.
    """

    name: str
    replace: str
    earlier: str
    rules: str
    unless: str = ""
    told: str = ""
    reveal: str = ""
    secret: str = ""
    address: str = ""
    spaced: bool = True


class InjectionRows(msgspec.Struct, frozen=True, kw_only=True):
    """All rows. `template_tokens` are pieces of chat templates, which no document holds by chance.

    `telling` are words that most instructions to an assistant have, by which a text that was changed as a whole is known. `about_attacks`
    is the pattern of words behind which a quotation shows an attack instead of making one.
    """

    probe: ProbeVocabulary
    quoted: QuoteMarks
    template_tokens: tuple[str, ...]
    telling: tuple[str, ...]
    overrides: tuple[OverrideRow, ...]
    languages: tuple[InjectionLanguageRow, ...]
    addressed: tuple[AddressedRow, ...]
    about_attacks: str


@cache
def injection_rows() -> InjectionRows:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/injection.toml").read_text(encoding="utf-8")
    tables: dict[str, Any] = tomli.loads(text)
    quoted = {"tags": tables["quoted"]["tags"].split(), "headers": tables["quoted"]["headers"]}
    return msgspec.convert(
        {
            "probe": {name: words.split() for name, words in tables["probe"].items()},
            "quoted": quoted,
            "template_tokens": tables["template"]["tokens"],
            "telling": tables["disguise"]["telling"].split(),
            "overrides": [
                {**row, "pattern": row["pattern"].replace("<machine>", tables["address"]["machine"])}
                for row in tables["override"]
            ],
            "languages": tables["language"],
            "addressed": tables["addressed"],
            "about_attacks": tables["quotation"]["about_attacks"],
        },
        InjectionRows,
    )


class PiiPattern(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way in which a value is written.

    `match` is a regular expression of bounded length; case does not matter, and no letter or digit stands before or after a value.
    `score`, from 0 to 1, is how likely a match is such a value. `check` names a test of check digits: what fails it is no match, and
    what passes it has `score`. `left` are characters that do not stand before a value besides. `begins`: what every
    match begins with, if that is known; a pattern is not tried elsewhere. `anywhere`: a match need not hold a digit, and may begin at any
    word; such a pattern is an operator's own, and how long it takes depends on how it is written.
    """

    match: str
    score: float
    check: str = ""
    left: str = ""
    begins: Literal["", "digit", "letter"] = ""
    anywhere: bool = False


class PiiEntity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of personal data.

    `label` is the word in its placeholders. `country` is an ISO 3166 code, empty for kinds without one. A word of `context` near a
    value gives it the score `near`. `usual` False: it is looked for only where it is named. `scanner` names a function that finds the
    values instead of patterns.
    """

    name: str
    label: str
    country: str = ""
    near: float = 0.75
    context: tuple[str, ...] = ()
    usual: bool = True
    scanner: str = ""
    patterns: tuple[PiiPattern, ...] = ()


class PhoneNear(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings for phone numbers: the regions whose national numbers are known, unless others are configured."""

    regions: tuple[str, ...]


@cache
def _tables() -> Mapping[str, Any]:
    return tomli.loads(files("bardo.catalog").joinpath("data/pii.toml").read_text(encoding="utf-8"))


@cache
def pii_entities() -> dict[str, PiiEntity]:
    """Return the rows that come with bardo, by name."""
    return {row.name: row for row in msgspec.convert(_tables()["entity"], list[PiiEntity])}


@cache
def iban_rows() -> dict[str, str]:
    """Return the form of the national part of account numbers, by country: counts of n (digits), a (letters) and c (either)."""
    return msgspec.convert(_tables()["iban"], dict[str, str])


@cache
def top_level_domains() -> tuple[str, ...]:
    """Return the endings by which an address without a scheme is known as one."""
    return tuple(msgspec.convert(_tables()["domains"]["endings"], list[str]))


@cache
def phone_regions() -> tuple[str, ...]:
    """Return the regions whose national phone numbers are recognised."""
    return msgspec.convert(_tables()["phones"], PhoneNear).regions


LayerPlace = Literal["before_route", "after_route"]
Level = Annotated[int, msgspec.Meta(ge=1, le=8)]


class LayerRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One layer. `level` is its number in the profiles, `place` whether it works before or after it is known who is asked.

    `reads_session`: it needs to know which calls belong to one conversation.
    """

    name: str
    level: Level
    place: LayerPlace
    purpose: str
    reads_session: bool = False


class ProfileRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One profile: all layers of its levels. Level 4 is routing, which is no layer: it works in every profile."""

    name: str
    levels: tuple[Level, ...]
    purpose: str


class CapRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bounds of some calls: those of `workloads` (globs; none: of all), of an agent whose vitality is below a bound.

    They may ask `models` (globs; none: all), whose prompts cost no more than so many dollars for a million tokens, with prompts of at most
    so many tokens. `why` is told to the caller.
    """

    workloads: tuple[str, ...] = ()
    vitality_below: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    models: tuple[str, ...] = ()
    most_usd_per_million: Annotated[float, msgspec.Meta(ge=0)] | None = None
    most_prompt_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    why: str = ""


class SessionRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where clients say which conversation a call belongs to: in a `header`, or in a `field` of the body, by its path.

    `pattern` finds the id in it, in its first group; empty: all of it is the id.
    """

    header: str = ""
    field: str = ""
    pattern: str = ""


class CallerRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """By which `header` an agent is known: its value holds `pattern`. `agent` is what it is called in the log.

    `sent_on` False: the header is read, and no provider gets it.
    """

    agent: str
    header: str
    pattern: str
    sent_on: bool = True


class RepositoryRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where agents say in which repository they work: JSON in a `header`, or in a `field` of the body, by its path.

    `path` leads through that JSON to the address of the repository; `*` is any name.
    """

    header: str = ""
    field: str = ""
    path: str


class _PipelineFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`pipeline.toml`."""

    layer: tuple[LayerRow, ...]
    profile: tuple[ProfileRow, ...]
    session: tuple[SessionRow, ...] = ()
    caller: tuple[CallerRow, ...] = ()
    repository: tuple[RepositoryRow, ...] = ()


@cache
def layer_rows() -> dict[str, LayerRow]:
    """Return the rows of the layers by their names, in the order in which layers work on a call."""
    return {row.name: row for row in _pipeline_file().layer}


@cache
def profile_rows() -> dict[str, ProfileRow]:
    """Return the profiles by their names."""
    return {row.name: row for row in _pipeline_file().profile}


def session_rows() -> tuple[SessionRow, ...]:
    """Return where clients say which conversation a call belongs to, the surest first."""
    return _pipeline_file().session


def caller_rows() -> tuple[CallerRow, ...]:
    """Return by which headers agents are known, the surest first."""
    return _pipeline_file().caller


@cache
def unsent_headers() -> frozenset[str]:
    """Return the headers of clients that are read here, and that no provider gets."""
    return frozenset(row.header for row in caller_rows() if not row.sent_on)


def repository_rows() -> tuple[RepositoryRow, ...]:
    """Return where agents say in which repository they work, the surest first."""
    return _pipeline_file().repository


def layers_of_profile(name: str) -> tuple[str, ...]:
    """Return the names of the layers of a profile, in order. Raises KeyError."""
    levels = profile_rows()[name].levels
    return tuple(row.name for row in _pipeline_file().layer if row.level in levels)


@cache
def _pipeline_file() -> _PipelineFile:
    text = files("bardo.catalog").joinpath("data/pipeline.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomli.loads(text), _PipelineFile)


FunctionKind = Literal["search", "schema", "execute"]


class Weights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much each comparison of a tool with a text counts.

    `description`, `sentences` and `name` compare vectors, `words` counts common words by BM25, `letters` runs of four letters. `general` is
    what speaks for tools that answer any question, `neighbours` how far the tools found first widen the query, `uses` compares with the
    mean of the texts for which the tool was called before, `centroids` with the nearest of the purposes that these had.
    """

    description: float
    sentences: float
    name: float
    words: float
    letters: float
    general: float
    neighbours: float
    uses: float
    centroids: float


class FunctionRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of the functions that stand for a large list of tools. `{count}` in its description is how many tools there are."""

    id: FunctionKind
    name: str
    description: str
    schema: dict[str, Any]


class LoadsTools(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Providers, by the ids of their rows, and models (globs) that search for tools and load them, where they are asked in `dialect`."""

    dialect: str
    providers: tuple[str, ...]
    models: tuple[str, ...]


class ToolChoiceRows(msgspec.Struct, frozen=True, kw_only=True):
    """All rows of the file. `weights` are by what makes vectors. `loading_fields` and `marks` are fields of tools."""

    stop_words: frozenset[str]
    endings: tuple[str, ...]
    general: tuple[str, ...]
    loading_fields: tuple[str, ...]
    marks: tuple[str, ...]
    own_choices: tuple[str, ...]
    weights: dict[str, Weights]
    functions: dict[FunctionKind, FunctionRow]
    tool_search: tuple[LoadsTools, ...]

    def loads_tools(self, dialect: str, row: str, model: str) -> bool:
        """Whether a provider searches for the tools of a request in a dialect itself, and loads those that it finds."""
        return any(
            rule.dialect == dialect and matches_any(row, rule.providers) and matches_any(plain_id(model), rule.models)
            for rule in self.tool_search
        )


@cache
def tool_choice_rows() -> ToolChoiceRows:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/tool_choice.toml").read_text(encoding="utf-8")
    tables = tomli.loads(text)
    functions = [
        msgspec.convert({**table, "schema": msgspec.json.decode(table["schema"])}, FunctionRow)
        for table in tables["function"]
    ]
    return ToolChoiceRows(
        stop_words=frozenset(tables["stop_words"].split()),
        endings=tuple(tables["endings"]),
        general=tuple(tables["general"]),
        loading_fields=tuple(tables["loading_fields"]),
        marks=tuple(tables["marks"]),
        own_choices=tuple(tables["own_choices"]),
        weights=msgspec.convert(tables["weights"], dict[str, Weights]),
        functions={row.id: row for row in functions},
        tool_search=tuple(msgspec.convert(tables["tool_search"], list[LoadsTools])),
    )
