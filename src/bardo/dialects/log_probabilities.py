"""Log probabilities of the tokens of an answer: where each dialect has them, and in which form.

OpenAI's entries (`token`, `logprob`, `bytes`, `top_logprobs`) are the form in between, which Chat, Responses and Ollama have as it is.
Gemini has lists of candidates (https://ai.google.dev/api/generate-content#LogprobsResult), Cohere pieces of text with the probabilities of
their tokens (cohere 7.3.1, LogprobItem).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

Entry = dict[str, Any]
_CHOSEN, _TOP = "chosenCandidates", "topCandidates"
_UNDECODABLE = "\ufffd"


class LogprobForm(NamedTuple):
    """A `field` of a block of text, of the choice or of the whole reply, and how it is read and written.

    `read` returns nothing where the value, or a part of it, has another form.
    """

    field: str
    of: Literal["block", "choice", "reply"]
    read: Callable[[Any], Sequence[Entry]]
    write: Callable[[Sequence[Entry]], Any]


def openai_logprobs(field: str, of: Literal["block", "choice", "reply"]) -> LogprobForm:
    """Return the form of a dialect that has OpenAI's entries."""
    return LogprobForm(field, of, _read_entries, list)


def _read_entries(value: Any) -> Sequence[Entry]:
    listed = value if isinstance(value, list) else []
    return listed if all(isinstance(one, dict) and isinstance(one.get("token"), str) for one in listed) else []


def _read_candidates(value: Any) -> Sequence[Entry]:
    chosen = value.get(_CHOSEN) if isinstance(value, dict) else None
    if not isinstance(chosen, list) or not all(map(_is_candidate, chosen)):
        return []
    tops = value.get(_TOP)
    tops = tops if isinstance(tops, list) else []
    return [
        {**_entry(one), "top_logprobs": _alternatives(tops[place] if place < len(tops) else None)}
        for place, one in enumerate(chosen)
    ]


def _is_candidate(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("token", ""), str)


def _entry(candidate: dict[str, Any]) -> Entry:
    """Return one token. A part of a character has no text, so that its bytes are unknown; a probability of 1 is left out by Gemini."""
    token = candidate.get("token", "")
    octets = None if _UNDECODABLE in token else list(token.encode("utf-8", "replace"))
    return {"token": token, "logprob": candidate.get("logProbability", 0.0), "bytes": octets}


def _alternatives(top: Any) -> list[Entry]:
    listed = top.get("candidates") if isinstance(top, dict) else None
    return [_entry(one) for one in listed if _is_candidate(one)] if isinstance(listed, list) else []


def _write_candidates(entries: Sequence[Entry]) -> dict[str, Any]:
    chosen = [_candidate(one) for one in entries]
    alternatives = [one.get("top_logprobs") for one in entries]
    if not any(alternatives):
        return {_CHOSEN: chosen}
    tops = [{"candidates": list(map(_candidate, _read_entries(one)))} for one in alternatives]
    return {_TOP: tops, _CHOSEN: chosen}


def _candidate(entry: Entry) -> dict[str, Any]:
    return {"token": entry["token"], "logProbability": entry.get("logprob")}


GEMINI_LOGPROBS = LogprobForm("logprobsResult", "choice", _read_candidates, _write_candidates)


def _read_pieces(value: Any) -> Sequence[Entry]:
    """Return one entry for each piece of text: what its tokens are is not said, so that their probabilities count together."""
    pieces = value if isinstance(value, list) else []
    return [_whole_piece(one) for one in pieces] if all(map(_is_piece, pieces)) else []


def _is_piece(value: Any) -> bool:
    scores = value.get("logprobs") if isinstance(value, dict) else None
    return isinstance(scores, list) and isinstance(value.get("text"), str) and all(map(_is_number, scores))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole_piece(piece: dict[str, Any]) -> Entry:
    text = piece["text"]
    octets = None if _UNDECODABLE in text else list(text.encode("utf-8", "replace"))
    return {"token": text, "logprob": sum(piece["logprobs"]), "bytes": octets, "top_logprobs": []}


def _write_pieces(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return pieces without the tokens' numbers, which only their model knows."""
    return [{"text": one["token"], "token_ids": [], "logprobs": [one.get("logprob")]} for one in entries]


COHERE_LOGPROBS = LogprobForm("logprobs", "reply", _read_pieces, _write_pieces)
