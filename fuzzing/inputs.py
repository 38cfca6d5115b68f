"""What is fed to a target: bytes, and which variant of the target reads them. Seeds are the replies of the tests and the corpus."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[1]
REPLIES = ROOT / "tests" / "fixtures" / "replies"
CORPUS = Path(__file__).with_name("corpus")
MOST_BYTES = 20_000
"""A longer input is cut: what is broken by it is also broken by a shorter one, and the shorter one is read sooner."""
SHORT_BYTES = 1_000
"""Most inputs are no longer than this: they are read many times faster, and have the structure of the long ones."""


class Input(msgspec.Struct, frozen=True):
    """One input. `variant` is a word that the target knows: a provider's row, a format, a dialect."""

    variant: str
    body: bytes

    @property
    def name(self) -> str:
        """A short name that only this input has."""
        return hashlib.blake2b(self.written(), digest_size=6).hexdigest()

    def written(self) -> bytes:
        """Return the input as a file of the corpus holds it: the variant in the first line, then the body."""
        return self.variant.encode() + b"\n" + self.body

    @classmethod
    def read(cls, data: bytes) -> Input:
        """Return the input of a file of the corpus."""
        variant, _, body = data.partition(b"\n")
        return cls(variant.decode(), body)


class KeptReply(msgspec.Struct, frozen=True):
    """One reply of the tests: its folder names the provider."""

    provider: str
    framing: str
    body: bytes
    request: dict[str, Any]


@cache
def kept_replies() -> tuple[KeptReply, ...]:
    """Return the replies that the repository's tests are run over."""
    lines = (REPLIES / "index.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(_kept(json.loads(line)) for line in lines if line.strip())


def _kept(meta: dict[str, Any]) -> KeptReply:
    return KeptReply(
        provider=meta["file"].partition("/")[0],
        framing=meta["framing"],
        body=(REPLIES / meta["file"]).read_bytes(),
        request=meta.get("request_body") or {},
    )


def shortened(body: bytes) -> bytes:
    """Return an input of the same structure in at most SHORT_BYTES: shorter texts and lists, and fewer events of a stream."""
    if len(body) <= SHORT_BYTES:
        return body
    try:
        return json.dumps(_smaller(json.loads(body))).encode()[:SHORT_BYTES]
    except (ValueError, RecursionError):
        return _fewer_frames(body)[:SHORT_BYTES]


def _smaller(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _smaller(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_smaller(inner) for inner in (value if len(value) <= 2 else [value[0], value[-1]])]
    return value[:24] if isinstance(value, str) else value


def _fewer_frames(body: bytes) -> bytes:
    """Leave frames out of the middle until the rest is short: the beginning and the end of a stream differ most from others."""
    mark = b"\n\n" if b"\n\n" in body else b"\n"
    frames = body.split(mark)
    while len(frames) > 4 and sum(map(len, frames)) + len(mark) * len(frames) > SHORT_BYTES:
        del frames[len(frames) // 2]
    return mark.join(frames)


def corpus_of(target: str) -> Iterator[tuple[Path, Input]]:
    """Yield the files of the corpus that belong to a target, in order."""
    for path in sorted((CORPUS / target).glob("*")):
        yield path, Input.read(path.read_bytes())


def keep(target: str, one: Input) -> Path:
    """Write an input to the corpus and return its file."""
    path = CORPUS / target / one.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(one.written())
    return path
