"""The values of the reasoning memory: the draft of a call that has ended, its words, its vector, and what a search selects.

A vector takes few bytes: a signature of signs finds what may be similar, eight bits for each component say how similar. A search reads the
signatures of all episodes that it may find, and the vectors of the nearest only: 100,000 are searched in a fraction of a second by plain
Python.
"""

from __future__ import annotations

import math
import re
import threading
import unicodedata
from array import array
from collections.abc import Iterator, Sequence
from operator import mul
from typing import Any, NamedTuple

import msgspec

from bardo.adapters.embedding.embeddings import TextEmbedding, embedding_at
from bardo.adapters.stores.log.row import LogRow, mended_text
from bardo.embedding.static_embedding import shortened
from bardo.reasoning.steps import chain_fields
from bardo.values.blocks import TextBlock
from bardo.values.episodes import Episode
from bardo.values.reasoning import ReasoningChain, ReasoningCost, ReasoningVisibility
from bardo.values.request import Request
from bardo.values.response import Response

LONGEST_QUESTION = 20_000
LONGEST_THINKING = 60_000
LONGEST_ANSWER = 20_000
"""Characters. A longer text keeps its beginning, with a mark that says how much is missing."""
LONGEST_WORD = 64
MOST_PHRASES = 32
LONGEST_QUERY = 2_000
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_RUN = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_MARKS = re.compile("[\u0300-\u036f]+")
_PART = re.compile(r'"([^"]*)"|(\S+)')
_LARGEST = 127


class EpisodeDraft(msgspec.Struct, frozen=True, kw_only=True):
    """The stored parts of a call, before its vector is made. `row` is the call's row without content.

    Its texts have bounded length, so that many drafts may wait to be stored.
    """

    row: LogRow
    session: str = ""
    question: str
    thinking: str
    answer: str
    chain: ReasoningChain
    schema_ok: bool | None = None

    @property
    def request_id(self) -> str:
        """The call's."""
        return self.row.request_id


def draft_of(
    row: LogRow, request: Request, response: Response, *, session: str = "", schema_ok: bool | None = None
) -> EpisodeDraft | None:
    """Return the draft of a call, or None if the model did not think. `response` has all the reasoning that may be kept."""
    chain = response.reasoning
    if chain.visibility is ReasoningVisibility.NONE:
        return None
    return EpisodeDraft(
        row=msgspec.structs.replace(
            row, request_content=None, reply_content=None, sent_content=None, usage_raw=None, receipt=None
        ),
        session=session,
        question=mended_text(question_of(request), LONGEST_QUESTION),
        # Blocks are what layers mask; the chain of the client's reply holds values that were put back.
        thinking=mended_text(
            "\n\n".join(filter(None, (block.readable for block in response.reasoning_blocks))), LONGEST_THINKING
        ),
        answer=mended_text(response.text, LONGEST_ANSWER),
        # Blocks hold signatures and other states that only a provider can read.
        chain=msgspec.structs.replace(chain, content=None, blocks=(), control=None, cost=ReasoningCost()),
        schema_ok=schema_ok,
    )


def question_of(request: Request) -> str:
    """Return what the user said last: a turn of tool results alone is part of an answer to what was asked before it."""
    for message in reversed(request.messages):
        if message.role == "user" and any(type(block) is TextBlock and block.text for block in message.blocks):
            return message.paragraphs
    return ""


def episode_id(request_id: str) -> str:
    """Return the id of a call's episode."""
    return f"ep_{request_id.removeprefix('req_')}"


def episode_fields(episode: Episode) -> dict[str, Any]:
    """Return everything of an episode as plain values for JSON, its reasoning steps found."""
    chain = chain_fields(episode.reasoning)
    names = ("visibility", "content", "reasoning_tokens", "reported", "tokens_approx", "interleaved", "steps")
    return {**msgspec.to_builtins(episode), "reasoning": {name: chain[name] for name in names}}


class Phrase(msgspec.Struct, frozen=True):
    """Words that have to stand side by side. `prefix`: the last one may go on."""

    words: tuple[str, ...]
    prefix: bool = False


def folded(text: str) -> str:
    """Return a text without case and accents."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFC", _MARKS.sub("", plain))


def words_of(text: str) -> list[str]:
    """Return the words of a text, in order.

    Words are runs of letters and digits, without case and accents, the same for both database engines. Scripts without spaces between words
    are cut into overlapping pairs of characters. What a person types never reaches a database's own query language: only such words do.
    """
    return [word for run in _RUN.findall(folded(text)) for word in _words_of_run(run)]


def phrases_of(query: str) -> tuple[Phrase, ...]:
    """Return what a person looks for: `"several words"` between quotes and `foot-ball` are one phrase each, `foot*` is a beginning."""
    phrases: dict[Phrase, None] = {}
    for quoted, plain in _PART.findall(query[:LONGEST_QUERY]):
        phrase = _phrase(quoted or plain, begins=plain.endswith("*"))
        if phrase is not None:
            phrases[phrase] = None
    return tuple(phrases)[:MOST_PHRASES]


def excerpt_of(text: str, phrases: tuple[Phrase, ...], longest: int = 240) -> str:
    """Return a part of a text around the first of the words that stands in it; its beginning where none does."""
    # Folding may change how long a text is; where it does, the place is near enough.
    plain = folded(text)
    places = (plain.find(word) for phrase in phrases for word in phrase.words)
    first = min((place for place in places if place >= 0), default=0)
    begin = max(0, min(first - longest // 3, len(text) - longest))
    part = " ".join(text[begin : begin + longest].split())
    return f"{'… ' if begin else ''}{part}{' …' if begin + longest < len(text) else ''}"


def _phrase(part: str, *, begins: bool) -> Phrase | None:
    runs = _RUN.findall(folded(part))
    words = [word for run in runs for word in _words_of_run(run)]
    if not words:
        return None
    last = runs[-1]
    if _IS_UNSPACED.match(last):
        if len(last) > 1:
            words.pop()  # The last character alone: in a longer text another may follow it.
        else:
            begins = True
    cut = len(words[-1]) == LONGEST_WORD
    return Phrase(tuple(words), prefix=begins or cut)


def _words_of_run(run: str) -> Iterator[str]:
    if not _IS_UNSPACED.match(run):
        yield run[:LONGEST_WORD]
        return
    for place in range(len(run) - 1):
        yield run[place : place + 2]
    yield run[-1]


class StoredVector(NamedTuple):
    """A vector as the memory keeps it, and the fingerprint of the embedding that made it."""

    embedding: str
    signature: bytes
    vector: bytes


class EpisodeVectors:
    """Makes vectors, with one embedding that is loaded when it is first needed. Any thread may call."""

    def __init__(self, folder: str) -> None:
        """`folder` holds a model in ONNX; empty: the table that ships with bardo."""
        self._folder = folder
        self._embedding: TextEmbedding | None = None
        self._lock = threading.Lock()

    def of_text(self, text: str) -> tuple[str, tuple[float, ...]] | None:
        """Return the embedding's fingerprint and a vector, or None if it knows nothing of the text. Raises ConfigError."""
        with self._lock:
            if self._embedding is None:
                self._embedding = embedding_at(self._folder)
            vector = self._embedding.embed(text)
            return (self._embedding.fingerprint, vector) if any(vector) else None

    def of_episode(self, question: str, thinking: str) -> StoredVector | None:
        """Return the vector of an episode: that of its question, since the vectors of long texts are all alike."""
        made = self.of_text(shortened(question.strip() or thinking))
        return None if made is None else StoredVector(made[0], signature_of(made[1]), packed(made[1]))


def signature_of(vector: Sequence[float]) -> bytes:
    """Return one bit for each component: whether it is above 0."""
    bits = sum(1 << place for place, value in enumerate(vector) if value > 0)
    return bits.to_bytes((len(vector) + 7) // 8, "little")


def packed(vector: Sequence[float]) -> bytes:
    """Return a vector with eight bits for each component; its length is lost, which no similarity needs."""
    scale = _LARGEST / (max(map(abs, vector)) or 1.0)
    return array("b", [round(value * scale) for value in vector]).tobytes()


def cosine(vector: Sequence[float], stored: bytes) -> float:
    """Return how similar a vector of length 1 is to one that was packed; 0 where they differ in size."""
    values = array("b")
    values.frombytes(stored)
    if len(values) != len(vector):
        return 0.0
    length = math.sqrt(sum(map(mul, values, values))) or 1.0
    return float(sum(map(mul, vector, values)) / length)


def differing_bits(signature: bytes, asked: int) -> int:
    """Return in how many components two vectors differ in sign."""
    return (int.from_bytes(signature, "little") ^ asked).bit_count()


class EpisodeSelection(msgspec.Struct, frozen=True, kw_only=True):
    """Which episodes are meant: those that fit all that is given. `since` and `before` are Unix times.

    `session` is a conversation as an episode names it, or as its client named it.
    """

    id: str | None = None
    tenant: str | None = None
    key: str | None = None
    session: str | None = None
    subsystem: str | None = None
    model: str | None = None
    since: float | None = None
    before: float | None = None


EVERYTHING = EpisodeSelection()
