"""Target `settings`: `bardo.toml`, right or wrong, gives Settings or a ConfigError."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from bardo.adapters.config.settings import Settings, parse_settings
from bardo.values.errors import ConfigError
from fuzzing.inputs import ROOT, Input, corpus_of
from fuzzing.laws import hold
from fuzzing.target import Target


@cache
def _seeds() -> Sequence[Input]:
    """Return the corpus, and every example of a configuration in the documentation."""
    found = [one for _, one in corpus_of("settings")]
    for page in sorted((ROOT / "docs").rglob("*.md")):
        parts = page.read_text(encoding="utf-8").split("```toml\n")[1:]
        found += [Input("toml", part.split("```")[0].encode()) for part in parts]
    return tuple(one for one in found if len(one.body) < 4_000)


@cache
def _words(_: str) -> Sequence[bytes]:
    lines = {line.strip() + b"\n" for one in _seeds() for line in one.body.splitlines() if line.strip()}
    values = (
        b"true",
        b"0",
        b"-1",
        b"1e400",
        b"nan",
        b"inf",
        b'""',
        b"[]",
        b"{}",
        b"'x'",
        b'"""',
        b"1979-05-27",
        b"0x1F",
        b"[[",
        b"]]\n",
        b"=",
        b".",
        b"#",
    )
    return (*sorted(lines), *values)


def _read(one: Input) -> Settings | None:
    try:
        return parse_settings(one.body.decode("utf-8", "replace"))
    except ConfigError as problem:
        hold(bool(problem.message), "a mistake is explained")
        return None


TARGET = Target(
    name="settings",
    says="bardo.toml",
    seeds=_seeds,
    check=lambda one, _: (_read(one), None)[1],
    work=_read,
    words=_words,
    per_byte=400,
    beside=400_000,
)
