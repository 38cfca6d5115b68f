"""How certain it is that a piece of text holds instructions: by its words, its hidden text, and a linear probe over its sentences."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from bardo.catalog.layer_rows import OverrideRow, ProbeVocabulary, injection_rows
from bardo.context.effects import Embed, TextVectors
from bardo.context.injection.consequences import places_of
from bardo.context.injection.hidden import HiddenParts, find_hidden
from bardo.context.injection.languages import Group, Match, foreign_matches, groups, heaviest, weighed
from bardo.context.injection.provenance import Span
from bardo.context.layer import Effect, EffectFailed, Pause

LONGEST = 400
"""Characters of a sentence that are looked at."""
LEAST = 8
MOST_SENTENCES = 2_000
"""So many sentences of one text are looked at: of a longer one the first and the last half of them."""
CODE = "<code>"
_BLOCK = re.compile(r"```.{0,20000}?```", re.DOTALL)
_LINES = re.compile(r"[\n\r|]+")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])|(?<=[。！？])")
_WORDS = re.compile(r"[a-z']+")
_ABOUT_ANSWER = re.compile(r"\b(?:your|the|this|each|every|an) (?:\w+ ){0,2}?(\w+)\b")
_YOUR = re.compile(r"\byour (?:\w+ ){0,2}?(\w+)\b")
_MONEY = re.compile(r"[$€£¥]\s?\d")
_ADDRESS = re.compile(r"https?://|www\.|\S@\S")
_HOW = re.compile(r"\b(?:how (?:do|can|to)|steps to|ways to|best|difference between|example|examples)\b")


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text, each with a mark in the place of blocks of code, and cut where it is long."""
    sentences: list[str] = []
    for line in _LINES.split(_BLOCK.sub(f" {CODE} ", text)):
        stripped = line.strip()
        if len(stripped) >= LEAST:
            sentences += [part[:LONGEST].strip() for part in _END.split(stripped) if len(part) >= LEAST]
    if len(sentences) > MOST_SENTENCES:
        half = MOST_SENTENCES // 2
        return sentences[:half] + sentences[-half:]
    return sentences


def features(sentence: str) -> tuple[float, ...]:
    """Return the features of a sentence, each from 0 to 1: how it begins, whom it speaks of, and what it names.

    The weights of the shipped probe belong to these features in this order.
    """
    words = injection_rows().probe
    lower = sentence.lower()
    sentence_words = _WORDS.findall(lower)
    if not sentence_words:
        return (0.0,) * len(FEATURES)
    first = 0
    while first < len(sentence_words) - 1 and sentence_words[first] in words.leading:
        first += 1
    return tuple(map(float, _values(sentence, lower, sentence_words, first, words)))


def _values(
    sentence: str, lower: str, sentence_words: list[str], place: int, words: ProbeVocabulary
) -> Iterator[float]:
    first, second = sentence_words[place], sentence_words[place + 1] if place + 1 < len(sentence_words) else ""
    present = set(sentence_words)
    about = {match[1] for match in _ABOUT_ANSWER.finditer(lower)}
    of_answer = not about.isdisjoint(words.answers)
    yield first in words.verbs
    yield first in words.questions
    yield "please" in sentence_words[:3]
    yield sentence.rstrip().endswith("?")
    yield of_answer
    yield first in ("can", "could", "would", "will") and second == "you"
    yield first == "how"
    yield first in ("what", "who", "which", "when", "where", "why")
    yield first in ("are", "do", "does", "is", "did", "have")
    yield not present.isdisjoint(words.ours)
    yield not present.isdisjoint(words.mine)
    yield "you" in present
    yield "your" in present and not of_answer
    yield any(letter.isdigit() for letter in sentence)
    yield _MONEY.search(sentence) is not None
    yield _ADDRESS.search(sentence) is not None
    yield CODE in sentence
    yield not present.isdisjoint(words.code)
    yield not present.isdisjoint(words.answers)
    yield min(len(sentence_words), 40) / 40
    yield len(sentence_words) < 4
    yield _HOW.search(lower) is not None
    yield sentence[:1].isupper()
    yield first in words.verbs and of_answer
    yield first in words.declarative
    yield any(name in words.answers for name in _YOUR.findall(lower))
    yield first in words.page


FEATURES = (
    "verb_first", "question_first", "please", "question_mark", "about_answer", "can_you", "how", "what", "are", "we", "i", "you",
    "your_other", "digit", "money", "address", "code_block", "code_word", "answer_word", "length", "short", "how_to", "capital",
    "verb_about_answer", "declarative", "your_answer", "page_verb",
)  # fmt: skip
"""The names of the features of a sentence, in order."""


Tier = Literal["words", "static", "onnx", "provider"]
_USUAL_SENTENCES = 12
"""How many sentences the texts have for which `boundary` was set."""
_MAY_BE, _MORE = 1.0, 2.0
"""How far below the boundary a sentence may still be a request, and how fast the boundary rises with their number."""


class ProbeWeights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The weights of one tier. `fingerprint` is that of the embedding, empty for words alone.

    `boundary` is the value above which one of a hundred ordinary texts has a sentence.

    `tools/build_injection_probe.py` fitted them to sentences of BIPIA (MIT) and of our own. A vector counts only where it is of the
    embedding that they were fitted with.
    """

    fingerprint: str
    bias: float
    boundary: float
    features: tuple[float, ...]
    vector: tuple[float, ...] = ()

    def value(self, sentence: str, vector: Sequence[float] = ()) -> float:
        """Return the log-odds, less the boundary, that a sentence asks for something."""
        own = sum([weight * feature for weight, feature in zip(self.features, features(sentence), strict=True)])
        beside = sum([weight * item for weight, item in zip(self.vector, vector, strict=True)]) if self.vector else 0.0
        return self.bias + own + beside - self.boundary


def certainty(values: Sequence[float]) -> float:
    """Return how certain it is, from 0 to 1, that one of a text's sentences asks for something; 0.5 is the boundary.

    Of many sentences one is high by chance: the boundary rises with the logarithm of their number, so that one of a hundred ordinary texts
    is above it whatever their length. It rises further where more than two sentences may be requests: recipes, rules and manuals are made
    of such, and a planted instruction stands among others.
    """
    if not values:
        return 0.0
    more = sum([value > -_MAY_BE for value in values]) - 1
    height = max(values) - math.log(max(1.0, len(values) / _USUAL_SENTENCES)) - _MORE * math.log(max(1, more))
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, height))))


@cache
def probe_weights() -> tuple[ProbeWeights, ...]:
    """Return the weights that come with bardo: those for words alone last."""
    content = files("bardo.context.injection").joinpath("data/probe.json").read_bytes()
    return msgspec.json.decode(content, type=tuple[ProbeWeights, ...])


def weights_for(fingerprint: str) -> ProbeWeights:
    """Return the weights for an embedding: those for words alone where there are none for it."""
    return next((weights for weights in probe_weights() if weights.fingerprint == fingerprint), probe_weights()[-1])


T = TypeVar("T")
Steps = Generator[Effect, Any, T]
"""Work that yields effects and returns a value."""
WeightsFor = Callable[[str], ProbeWeights]
"""The weights of the probe for the fingerprint of an embedding: those for words alone where there are none for it."""
LONGEST_SPAN = 100_000
"""Characters of one piece of text that are looked at: of a longer one its beginning and its end."""
_SIGNS = {"template_tokens": 1.0, "tag_letters": 0.9, "invisible_letters": 0.4, "direction_override": 0.3}
_HIDDEN_INSTRUCTION = 0.4
"""The weight that a hidden instruction adds."""
_NEAR = 4.0
"""A sentence is embedded where its words alone are at most so far below the boundary: few are, and a vector moves it no further."""
_MOST_EMBEDDED = 64
_ENOUGH, _MOST_WEIGHT = 0.5, 1.9
"""A weight of 1 makes it as certain as the boundary of the probe."""
_UNTYPED = frozenset({"tag_letters"})
"""Signs that count in a user's own words too: people do not type letters that have no glyph."""
_BEFORE = 24
"""Characters before a match in which what takes it back is looked for."""
_PART, _OVERLAP, _SENTENCES = 4_096, 1_000, 100
"""Characters and sentences that are looked at before other calls have their turn; what belongs together is shorter than the overlap."""
_APART = 100
"""Characters after a match before which another of the same rule says nothing new."""
_BEFORE_MATCH, _BEHIND_MATCH = 240, 600
"""Characters before and behind what was found in which stands what it asks for."""
_MOST_PASSAGES, _PASSAGE = 64, 0.5
"""How many passages are looked at for what they ask for, and from which weight on."""
_RULES, _SHORT = 2, 1_000
"""Rules that are tried on a part of more than so many characters before other calls have their turn."""
_LIKELY = 0.6
"""How certain the words of a request make it without an address: a request reads the same whoever it is meant for."""
_DOUBTFUL = 0.3
"""The part that counts of a certainty below the boundary."""
_TOOL_ORDERED, _ORDER_BEFORE, _ORDER_BEHIND = 0.55, 100, 40
"""How certain an order to call a tool of the conversation makes it, and in how many characters before and behind its name that stands."""
_MUST_CALL = re.compile(
    r"\b(?:must|need to|needs to|have to|has to|required to|shall|instructed to)\b.{0,40}\b(?:call|invoke|use|run|execute|trigger)\b"
    r"(?: the)?(?: tool| function)?(?: named| called)?[ `\"']{0,3}$"
    r"|(?:musst|müssen|muss|rufe|ruf|verwende|nutze|doit|devez|dois|appelle|appelez|utilise|debes|debe|llama|utiliza|devi|deve|chiama|usa|chame|moet|roep|musisz|wywołaj|"
    r"должен|должна|вызови|вызовите|повинен|виклич|måste|anropa|skal|kald|musíš|zavolej|πρέπει|κάλεσε|trebuie|apelează|kell|hívd|täytyy|kutsu|phải|gọi|harus|panggil)\b.{0,60}$"
    r"|(?:必须|請|请|必ず|まず|조치|먼저|반드시|يجب|استدع|חייב|קרא|ต้อง|เรียก).{0,40}$",
    re.IGNORECASE,
)
# Where the verb stands behind its object.
_CALL_IT = re.compile(
    r"呼び出|実行し|호출|실행하|çağır|çalıştır|कॉल कर|चला|فراخوانی کن|aufrufen|aufzurufen", re.IGNORECASE
)
_TURN = re.compile(r"[.!?\"'\])>(*#:;/-] ?$")
_QUOTATION = re.compile(
    r"\"[^\"\n]{8,400}\"|“[^”\n]{8,400}”|„[^“”\n]{8,400}[“”]|«[^»\n]{8,400}»|「[^」\n]{8,400}」|(?<!\w)'[^'\n]{8,400}'(?!\w)|`[^`\n]{8,400}`"
)
_AROUND = 300
"""Characters around a quotation in which words say that it shows an attack."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one piece of text: how certain it is from 0 to 1, by which rules, and by which tier of the probe.

    `sentences` are the passages that any of the rules or the probe found, with what stands near them: they are for the layer alone, and
    go into no receipt.
    """

    span: Span
    certainty: float
    rules: tuple[str, ...] = ()
    tier: Tier = "words"
    sentences: tuple[str, ...] = ()


def scan(span: Span, weights: WeightsFor = weights_for) -> Steps[Finding]:
    """Return what a piece of text holds. Vectors are asked for of sentences in doubt; other calls have their turn."""
    hidden = yield from _paused(find_hidden(_bounded(span.text)))
    visible = hidden.visible if span.trusted else _without_quoted_attacks(hidden.visible)
    group = yield from _matched(visible, trusted=span.trusted)
    rules = [f"hidden:{sign}" for sign in hidden.rules] + [match.name for match in group.matches]
    weight = group.weight + sum([_SIGNS[sign] for sign in hidden.rules if not span.trusted or sign in _UNTYPED])
    tier: Tier = "words"
    passages = list(group.passages)
    probed = 0.0
    if not span.trusted:
        probed, tier, requests = yield from _probed(sentences_of(visible), weights)
        passages += requests
        for piece in hidden.pieces:
            inner, instructions = yield from _hidden_instruction(piece.text, weights)
            if inner:
                rules.append(f"hidden:{piece.rule}")
                weight += inner + _HIDDEN_INSTRUCTION
                passages += instructions
    if probed >= _ENOUGH:
        rules.append("probe")
    asked = min(_LIKELY, probed) if probed >= _ENOUGH else _DOUBTFUL * probed
    return Finding(
        span=span,
        certainty=1 - (1 - _ENOUGH * min(_MOST_WEIGHT, weight)) * (1 - asked),
        rules=tuple(dict.fromkeys(rules)),
        tier=tier,
        sentences=tuple(dict.fromkeys(passages)),
    )


def _paused(work: Generator[None, None, HiddenParts]) -> Steps[HiddenParts]:
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        yield Pause()


def _hidden_instruction(text: str, weights: WeightsFor) -> Steps[tuple[float, list[str]]]:
    """Return how much it weighs that a hidden text asks for something, and the passages that do; 0 where none does."""
    probed, _, instructions = yield from _probed(sentences_of(text) or [text[:LONGEST]], weights)
    group = heaviest(find_matches(text, trusted=False))
    if probed < _ENOUGH and not group.weight:
        return 0.0, []
    flat = " ".join(text.split())
    passages = [*instructions, *_passages(flat, group.matches)]
    return max(probed, group.weight), passages or [text[:LONGEST]]


class _Found(NamedTuple):
    weight: float
    matches: tuple[Match, ...]
    passages: tuple[str, ...]


def _matched(text: str, *, trusted: bool) -> Steps[_Found]:
    """Return what a text attempts by its heaviest group of matches, looked for in one part of it after the other, and all passages.

    Of what somebody trusted says all matches count together.
    """
    best = Group(0.0, ())
    every: dict[str, Match] = {}
    passages: list[str] = []
    for begin in range(0, len(text) or 1, _PART):
        if begin:
            yield Pause()
        flat, starts = _flat(text[max(0, begin - _OVERLAP) : begin + _PART])
        matches: list[Match] = []
        for step in _matches_in(flat, starts, trusted=trusted):
            if step is not None:
                matches.append(step)
            elif len(flat) > _SHORT:
                yield Pause()
        every |= {match.name: match for match in matches}
        for group in groups(matches):
            best = max(best, group, key=lambda group: group.weight)
            if group.weight >= _PASSAGE and len(passages) < _MOST_PASSAGES:
                passages += _passages(flat, group.matches)
    if trusted:
        best = weighed(list(every.values()))
    return _Found(best.weight, best.matches, tuple(dict.fromkeys(passages)))


def _passages(flat: str, matches: Iterable[Match]) -> list[str]:
    """Return what stands around matches, joined where they overlap."""
    places = sorted((max(0, match.start - _BEFORE_MATCH), match.end + _BEHIND_MATCH) for match in matches)
    joined: list[tuple[int, int]] = []
    for start, end in places:
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return [flat[start:end] for start, end in joined]


def find_matches(text: str, *, trusted: bool) -> list[Match]:
    """Return the matches of all rules in a short text, of those that count where it comes from."""
    flat, starts = _flat(text)
    return [match for match in _matches_in(flat, starts, trusted=trusted) if match is not None]


def _flat(text: str) -> tuple[str, frozenset[int]]:
    """Return a text with single spaces in the place of all white space, and where its lines begin in that."""
    lines, starts, size = [], [], 0
    for line in text.splitlines():
        if words := " ".join(line.split()):
            lines.append(words)
            starts.append(size)
            size += len(words) + 1
    return " ".join(lines), frozenset(starts)


def _matches_in(flat: str, starts: frozenset[int], *, trusted: bool) -> Iterator[Match | None]:
    """Yield the matches of all rules, or None if other calls may have their turn."""
    for place, (row, pattern, unless) in enumerate(_patterns()):
        if trusted and not row.trusted:
            continue
        if place % _RULES == 0:
            yield None
        last = -_APART
        for match in pattern.finditer(flat):
            start = match.start()
            if start < last + _APART or (unless and unless.search(flat[max(0, start - _BEFORE) : start])):
                continue
            if row.line_start and start not in starts and not _TURN.search(flat[max(0, start - 2) : start]):
                continue
            last = start
            yield Match(row.name, row.weight, row.role, start, match.end())
    yield None
    yield from foreign_matches(flat, starts, trusted=trusted)


def _without_quoted_attacks(text: str) -> str:
    """Return a text with spaces in the place of quotations near which words say that they show an attack."""
    about = [match.start() for match in _about_attacks().finditer(text)]
    if not about:
        return text

    def shown(match: re.Match[str]) -> str:
        start, end = match.span()
        before = bisect_left(about, start)
        near = (before and about[before - 1] >= start - _AROUND) or any(
            place < end + _AROUND for place in about[bisect_left(about, end) :][:1]
        )
        return " " * (end - start) if near else match[0]

    return _QUOTATION.sub(shown, text)


@cache
def _about_attacks() -> re.Pattern[str]:
    return re.compile(injection_rows().about_attacks, re.IGNORECASE)


@cache
def _patterns() -> tuple[tuple[OverrideRow, re.Pattern[str], re.Pattern[str] | None], ...]:
    return tuple(
        (
            row,
            re.compile(row.pattern, re.IGNORECASE),
            re.compile(row.unless_after, re.IGNORECASE) if row.unless_after else None,
        )
        for row in injection_rows().overrides
    )


def _probed(sentences: list[str], weights: WeightsFor) -> Steps[tuple[float, Tier, list[str]]]:
    """Return how certain it is that one of the sentences asks for something, by which tier, and which do."""
    words = weights("")
    values: list[float] = []
    for begin in range(0, len(sentences), _SENTENCES):
        if begin:
            yield Pause()
        values += [words.value(sentence) for sentence in sentences[begin : begin + _SENTENCES]]
    near = sorted((place for place, value in enumerate(values) if value > -_NEAR), key=lambda place: -values[place])
    tier: Tier = "words"
    if near:
        chosen = near[:_MOST_EMBEDDED]
        made = yield from _embedded([sentences[place] for place in chosen])
        probe = None if made is None else weights(made.fingerprint)
        if made is not None and probe is not None and probe.fingerprint:
            tier = made.tier
            for place, vector in zip(chosen, made.vectors, strict=True):
                values[place] = probe.value(sentences[place], vector)
    return certainty(values), tier, [sentence for sentence, value in zip(sentences, values, strict=True) if value > 0]


def _embedded(texts: list[str]) -> Steps[TextVectors | None]:
    """Return the vectors of texts, or None if there is no embedding."""
    try:
        made: TextVectors = yield Embed(tuple(texts))
    except EffectFailed:
        return None
    return made


def _bounded(text: str) -> str:
    if len(text) <= LONGEST_SPAN:
        return text
    half = LONGEST_SPAN // 2
    return f"{text[:half]}\n{text[-half:]}"


def with_ordered_tools(finding: Finding, tools: Sequence[str]) -> Finding:
    """Return a finding with the orders to call one of the tools that the conversation has: whoever has it is addressed.

    What a tool's own result says of that tool is no such order.
    """
    span = finding.span
    if span.trusted or not tools:
        return finding
    text = _bounded(span.text)
    passages: list[str] = []
    for tool in tools:
        if tool != span.source and tool in text:
            for place in islice(places_of(tool, text), _MOST_PASSAGES):
                before = " ".join(text[max(0, place - _ORDER_BEFORE) : place].split())
                behind = text[place + len(tool) : place + len(tool) + _ORDER_BEHIND]
                if _MUST_CALL.search(before) or _CALL_IT.search(behind):
                    passages.append(text[max(0, place - _BEFORE_MATCH) : place + _BEHIND_MATCH])
    if not passages:
        return finding
    return msgspec.structs.replace(
        finding,
        certainty=1 - (1 - finding.certainty) * (1 - _TOOL_ORDERED),
        rules=tuple(dict.fromkeys((*finding.rules, "tool_ordered"))),
        sentences=tuple(dict.fromkeys((*finding.sentences, *passages))),
    )
