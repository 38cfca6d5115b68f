"""What can be fuzzed: its seeds, the words of its grammar, and a check that raises where a law is broken."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from fuzzing.inputs import Input
from fuzzing.laws import Laws


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """One reader of input from outside. `words` returns what its grammar is made of for a variant.

    `check` checks as many laws of one input as the `Laws` say. `work` does what is counted for the law of linear work: it takes at most
    `per_byte` steps for each byte, and `beside`.
    """

    name: str
    says: str
    seeds: Callable[[], Sequence[Input]]
    check: Callable[[Input, Laws], None]
    work: Callable[[Input], object]
    words: Callable[[str], Sequence[bytes]] = lambda variant: ()
    per_byte: int = 100
    beside: int = 20_000
