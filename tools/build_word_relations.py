"""Build the file of English word relations for the guard of the semantic cache: `python tools/build_word_relations.py FOLDER FILE`.

FOLDER has the files of WordNet 3.0 (`data.noun`, `index.noun`, `noun.exc` …), as in Debian's package wordnet-base; their format is that of
the manual page wndb(5). It takes some seconds.
"""

from __future__ import annotations

import sys
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

_FILES = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
_NUMBERS = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
# Only frequent senses make two words replace each other: the first three, and a later one that has this share of the tagged uses.
_FIRST_SENSES, _LEAST_SHARE, _LEAST_TAGGED = 3, 0.04, 2
_PARTICLES = frozenset(("up", "out", "off", "on", "in", "down", "over", "away", "back"))
_PERSON = "18"
_DERIVED, _PERTAINS, _OPPOSITE = "+", "\\", "!"

Sense = tuple[str, int]


class WordNet:
    """The part of the database that the relations are made of."""

    def __init__(self, folder: Path) -> None:
        self.words: dict[Sense, list[str]] = {}
        self.links: dict[Sense, list[tuple[str, Sense, int, int]]] = {}
        self.people: set[Sense] = set()
        self._senses: dict[tuple[str, str], list[Sense]] = {}
        self._tagged: dict[tuple[str, str, int], int] = defaultdict(int)
        for name, part in _FILES.items():
            self._read_data(folder / f"data.{name}", part)
            for fields in _lines(folder / f"index.{name}"):
                self._senses[fields[0], part] = [(part, int(number)) for number in fields[-int(fields[2]) :]]
        for fields in _lines(folder / "cntlist.rev"):
            word, rest = fields[0].split("%")
            self._tagged[word, _NUMBERS[rest[0]], int(fields[1])] += int(fields[2])

    def _read_data(self, path: Path, part: str) -> None:
        for fields in _lines(path):
            count = int(fields[3], 16)
            place = 4 + 2 * count
            words = [fields[4 + 2 * n].split("(")[0] for n in range(count)]
            sense = part, int(fields[0])
            self.words[sense] = words
            self.people |= {sense} if fields[1] == _PERSON else set()
            self.links[sense] = []
            for n in range(int(fields[place])):
                kind, number, other, ends = fields[place + 1 + 4 * n : place + 5 + 4 * n]
                target = "a" if other == "s" else other, int(number)
                self.links[sense].append((kind, target, int(ends[:2], 16), int(ends[2:], 16)))

    def vocabulary(self) -> frozenset[str]:
        """Return the single words in lower case, and the verbs with a particle, as `sum_up`."""
        single = {word for words in self.words.values() for word in words if word.islower() and word.isalpha()}
        verbs = {word for (part, _), words in self.words.items() if part == "v" for word in words}
        phrasal = {word for word in verbs if word.count("_") == 1 and word.partition("_")[2] in _PARTICLES}
        return frozenset(word for word in single | phrasal if word.isascii())

    def senses(self, word: str) -> Iterator[Sense]:
        """Give the frequent senses of a word in lower case."""
        for part in _FILES.values():
            found = self._senses.get((word, part), [])
            total = sum(self._tagged[word, part, rank + 1] for rank in range(len(found)))
            for rank, sense in enumerate(found):
                tagged = self._tagged[word, part, rank + 1]
                if rank < _FIRST_SENSES or (tagged >= _LEAST_TAGGED and tagged >= _LEAST_SHARE * total):
                    yield sense

    def linked(self, word: str, kinds: str) -> Iterator[tuple[Sense, str]]:
        """Give the senses, and their words, that links of these kinds lead to from the frequent senses of `word`."""
        for sense in self.senses(word):
            for kind, target, ours, theirs in self.links[sense]:
                if kind in kinds and ours and self.words[sense][ours - 1].lower() == word:
                    yield target, self.words[target][theirs - 1].lower()


def _lines(path: Path) -> Iterator[list[str]]:
    with path.open(encoding="latin-1") as file:
        for line in file:
            if not line.startswith(" "):
                yield line.split(" | ")[0].split()


def relations(net: WordNet, vocabulary: frozenset[str]) -> dict[str, set[str]]:
    """Return, for each word, those that may replace it: of one synset, or derived from it, or a synonym of these; never an opposite."""
    senses = {word: frozenset(net.senses(word)) for word in vocabulary}
    found: dict[str, set[str]] = {word: set() for word in vocabulary}
    for word in vocabulary:
        # Who does a thing is not the thing: a user is no use.
        links = [link for link in net.linked(word, _DERIVED + _PERTAINS) if not net.people & ({link[0]} | senses[word])]
        derived = {target for target, _ in links}
        near = {
            other for sense in senses[word] | derived for other in net.words[sense] if sense in senses.get(other, ())
        }
        near |= {other for _, other in links if other in vocabulary}
        far = {other for _, other in net.linked(word, _OPPOSITE)}
        for other in near - far - {word}:
            found[word].add(other)
            found[other].add(word)
    return found


def exceptions(folder: Path, vocabulary: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Give irregular forms and their base forms."""
    for name in _FILES:
        for fields in _lines(folder / f"{name}.exc"):
            if fields[1] in vocabulary and fields[0].isalpha():
                yield fields[0], fields[1]


def main() -> None:
    """Write the file: a line for each word with what may replace it, an empty line, and a line for each irregular form."""
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    net = WordNet(folder)
    known = frozenset(word for word in net.vocabulary() if any(net.senses(word)))
    found = relations(net, known)
    lines = [" ".join([word, *sorted(found[word])]) for word in sorted(found)]
    forms = sorted({f"{form} {base}" for form, base in exceptions(folder, known)})
    target.write_bytes(zlib.compress("\n".join([*lines, "", *forms]).encode(), 9))


if __name__ == "__main__":
    main()
