"""The probe of instructions, fitted: a logistic regression over the features and vectors of sentences. numpy must be there."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from bardo.context.injection.scan import FEATURES, ProbeWeights, features, sentences_of

OWN = Path(__file__).parent.parent / "tools" / "injection_sentences.toml"
PLANTED, ORDINARY = "instruction-to-embed", "benign-email-context"
FOLDS = 5
_STRENGTH = 1.0
"""How strongly weights are held small."""
_ROUNDS = 60
_MOST_MAILS, _MOST_HARD = 0.01, 0.15
"""Shares that may be above the boundary: of ordinary mails, and of our own ordinary sentences, which were chosen because they are hard."""


class ProbeText(NamedTuple):
    """A text in sentences, and whether it is an instruction. `hard`: one of our own ordinary sentences."""

    sentences: list[str]
    planted: bool
    hard: bool = False


def texts_of(rows: Sequence[dict[str, Any]]) -> list[ProbeText]:
    """Return the texts that are fitted to: those of the rows, and our own."""
    own = tomllib.loads(OWN.read_text(encoding="utf-8"))
    found = [
        ProbeText([" ".join(sentences_of(row["text"]) or [row["text"]])], True)
        for row in rows
        if row["kind"] == PLANTED
    ]
    found += [ProbeText(sentences_of(row["text"]), False) for row in rows if row["kind"] == ORDINARY]
    found += [ProbeText([one], True) for one in own["planted"]]
    return found + [ProbeText([one], False, hard=True) for one in own["ordinary"]]


def fit(texts: Sequence[ProbeText], embedding: Any | None) -> ProbeWeights:
    """Return the weights for an embedding, or for words alone; the boundary is set by texts that each was not fitted to."""
    np = import_module("numpy")
    held_out = [0.0] * len(texts)
    for fold in range(FOLDS):
        weights = _regression(np, [one for place, one in enumerate(texts) if place % FOLDS != fold], embedding)
        for place in range(fold, len(texts), FOLDS):
            held_out[place] = max(float(_row(np, one, embedding) @ weights) for one in texts[place].sentences)
    bounds = []
    for hard, most in ((False, _MOST_MAILS), (True, _MOST_HARD)):
        values = [value for one, value in zip(texts, held_out, strict=True) if not one.planted and one.hard is hard]
        bounds.append(float(np.quantile(values, 1 - most, method="higher")))
    weights, size = _regression(np, texts, embedding), len(FEATURES)
    return ProbeWeights(
        fingerprint="" if embedding is None else embedding.fingerprint,
        bias=round(float(weights[-1]), 4),
        boundary=round(max(bounds), 4),
        features=tuple(round(float(one), 4) for one in weights[:size]),
        vector=tuple(round(float(one), 4) for one in weights[size:-1]),
    )


def _row(np: Any, sentence: str, embedding: Any | None) -> Any:
    return np.array([*features(sentence), *(() if embedding is None else embedding.embed(sentence)), 1.0])


def _regression(np: Any, texts: Sequence[ProbeText], embedding: Any | None) -> Any:
    """Return the weights of a logistic regression, by Newton's method; the last is the bias, which is not held small."""
    pairs = [(_row(np, sentence, embedding), one.planted) for one in texts for sentence in one.sentences]
    rows, labels = np.array([row for row, _ in pairs]), np.array([float(label) for _, label in pairs])
    weights, held = np.zeros(rows.shape[1]), np.r_[np.full(rows.shape[1] - 1, _STRENGTH), 1e-6]
    for _ in range(_ROUNDS):
        chance = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (chance - labels) + held * weights
        curve = (rows * (chance * (1 - chance))[:, None]).T @ rows + np.diag(held)
        step = np.linalg.solve(curve, slope)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return weights
