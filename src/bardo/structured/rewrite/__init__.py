"""Bring a caller's JSON Schema into what a target takes, with an entry for each change and the way back for the answer.

`build.py` walks the schema once; each rewrite has a file of its own.
"""

from bardo.structured.rewrite.entries import Effect, Inexpressible, Rewrite
from bardo.structured.rewrite.whole import Rewritten, rewrite

__all__ = ["Effect", "Inexpressible", "Rewrite", "Rewritten", "rewrite"]
