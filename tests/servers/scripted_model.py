"""A language model whose every word is known beforehand, small enough to be written by a test.

A token is followed by one token: a chain. What the user's message names (`[[think]]`, `[[empty]]`, …) chooses between chains: the one
attention head looks at nothing else. The model has 128 dimensions: a constant, the mark of a name, one for each script, and one for each
token that has a successor. It thinks by default.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import msgspec

WIDTH = 128
CONTEXT = 8192
END = "<|im_end|>"
PARAGRAPH = "\n\n"
THINKING = ("First", " I", " multiply", " both", " numbers", " carefully")
ANSWER = ("The", " answer", " is", " one", " hundred", " and", " two", ".")
VALUE = ('{"', "who", '":"', "bob", '","', "amount", '":', "1", "2", "}")
CALL = ("<tool_call>", '\n{"name": "weather", ', '"arguments": ', '{"city": "Paris"}', "}\n", "</tool_call>")
CLOSERS = {"": "</think>", "_mistral": "[/THINK]", "_seed": "</seed:think>"}


def _scripts() -> dict[str, tuple[str, ...]]:
    scripts: dict[str, tuple[str, ...]] = {
        "open": ("<think>", *THINKING, "</think>", PARAGRAPH, *ANSWER),
        "plain": ANSWER,
        "json": VALUE,
        "call": CALL,
        "unclosed": THINKING,
        "empty_json": ("</think>", PARAGRAPH, *VALUE),
        "think_call": (*THINKING, "</think>", PARAGRAPH, *CALL),
        "think_json": (*THINKING, "</think>", PARAGRAPH, *VALUE),
    }
    for name, closer in CLOSERS.items():
        scripts[f"think{name}"] = (*THINKING, closer, PARAGRAPH, *ANSWER)
        scripts[f"empty{name}"] = (closer, PARAGRAPH, *ANSWER)
    return {name: (*words, END) for name, words in scripts.items()}


SCRIPTS: Mapping[str, tuple[str, ...]] = _scripts()
"""What the model writes, token by token, by the name that the user's message says."""

# Weights of one step, in logits. A script's first word holds against all but a chain; its choice between two successors decides there.
_STEP, _FIRST, _CHOICE = 130.0, 90.0, 20.0
# A script that opens the thinking itself begins with a token that ends prompts too: after it, other scripts begin as they do.
_OPENER_STEP, _OPENER_FIRST = 75.0, 60.0
# What a grammar leaves where it allows none of the chain's words: the value first, then its end.
_PREFERRED = {'{"': 8.0, **dict.fromkeys(VALUE[1:], 3.0), "}": 5.0, END: 1.0}


class ScriptedModel(msgspec.Struct, frozen=True):
    """The vocabulary and the weights. Matrices have a row for each output."""

    tokens: tuple[str, ...]
    """As byte-level BPE spells them."""
    special: Mapping[str, bool]
    """Tokens that are found in text as they stand, and whether they are control tokens, which no reply shows."""
    embedding: Sequence[Sequence[float]]
    output: Sequence[Sequence[float]]
    query: Sequence[Sequence[float]]
    key: Sequence[Sequence[float]]
    value: Sequence[Sequence[float]]


def scripted_model() -> ScriptedModel:
    """Return the model: the same weights each time."""
    names = {f"[[{name}]]": True for name in SCRIPTS}
    markers = {"<|endoftext|>": True, "<|im_start|>": True, END: True}
    shown = ("<think>", "<tool_call>", "</tool_call>", "[THINK]", "<seed:think>", *CLOSERS.values())
    special = {**markers, **dict.fromkeys(shown, False), **dict.fromkeys(names, False)}
    words = dict.fromkeys(word for script in SCRIPTS.values() for word in script if word not in special)
    plain = dict.fromkeys([*_BYTES.values(), *(spelled(word) for word in words)])
    tokens = (*plain, *special)
    ids = {token: number for number, token in enumerate(tokens)}
    codes = _codes()
    embedding = [[0.0] * WIDTH for _ in tokens]
    for row in embedding:
        row[_CONSTANT] = 1.0
    for number, name in enumerate(SCRIPTS):
        row = embedding[ids[f"[[{name}]]"]]
        row[_NAMED] = row[_SCRIPT + number] = 1.0
    for word, code in codes.items():
        embedding[ids[_as_token(word, special)]][code] = 1.0
    # A query looks for the mark of a name alone, and the value is which one it is: normalised, each of its three numbers is √(WIDTH/3).
    size = (WIDTH / 3) ** 0.5
    return ScriptedModel(
        tokens=tokens,
        special=special,
        embedding=embedding,
        output=_output(ids, codes, special, 1 / size),
        query=_single({(_LOOK, _CONSTANT): 4.0}),
        key=_single({(_LOOK, _NAMED): 4.0}),
        value=_single({(_SCRIPT + number, _SCRIPT + number): 1 / size for number in range(len(SCRIPTS))}),
    )


def spelled(word: str) -> str:
    """Return a word as byte-level BPE spells it."""
    return "".join(_BYTES[byte] for byte in word.encode())


def reply_of(script: str) -> str:
    """Return the raw text of a script."""
    return "".join(SCRIPTS[script][:-1])


_CONSTANT, _NAMED, _SCRIPT = 0, 1, 2
_LOOK = WIDTH // 2 - 1
"""The dimension of a head that the slowest rotation turns: at no position does it turn enough to matter."""


def _bytes() -> dict[int, str]:
    """Return the letter that byte-level BPE writes for each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + place) for place, byte in enumerate(others)}


_BYTES = _bytes()


def _as_token(word: str, special: Mapping[str, bool]) -> str:
    return word if word in special else spelled(word)


def _steps() -> dict[str, dict[str, list[str]]]:
    """Return the successors of each word, each with the scripts that take it."""
    steps: dict[str, dict[str, list[str]]] = {}
    for name, words in SCRIPTS.items():
        for word, following in itertools.pairwise(words):
            steps.setdefault(word, {}).setdefault(following, []).append(name)
    return steps


def _codes() -> dict[str, int]:
    begin = _SCRIPT + len(SCRIPTS)
    codes = {word: begin + number for number, word in enumerate(_steps())}
    assert max(codes.values()) < WIDTH, "too many words for the model's width"
    return codes


def _output(
    ids: Mapping[str, int], codes: Mapping[str, int], special: Mapping[str, bool], scale: float
) -> list[list[float]]:
    output = [[0.0] * WIDTH for _ in ids]
    scripts = {name: _SCRIPT + number for number, name in enumerate(SCRIPTS)}

    def add(word: str, column: int, weight: float) -> None:
        output[ids[_as_token(word, special)]][column] += weight * scale

    for word, weight in _PREFERRED.items():
        add(word, _CONSTANT, weight)
    for word, successors in _steps().items():
        for following, names in successors.items():
            add(following, codes[word], _OPENER_STEP if word == "<think>" else _STEP)
            for name in names if len(successors) > 1 else ():
                add(following, scripts[name], _CHOICE)
    add(THINKING[0], _CONSTANT, _FIRST)
    for name, words in SCRIPTS.items():
        add(THINKING[0], scripts[name], -_FIRST)
        add(words[0], scripts[name], _OPENER_FIRST if name == "open" else _FIRST)
    return output


def _single(cells: Mapping[tuple[int, int], float]) -> list[list[float]]:
    matrix = [[0.0] * WIDTH for _ in range(WIDTH)]
    for (row, column), weight in cells.items():
        matrix[row][column] = weight
    return matrix
