"""Rewrite a caller's JSON Schema into what a target takes, with an entry for each change and the inverse for the answer.

`build.py` walks the schema once; `settle.py` brings each place to one type, `objects.py` and `arrays.py` write what has parts.
"""

from bardo.structured.rewrite.build import RewrittenSchema, rewrite
from bardo.structured.rewrite.place import Effect, Inexpressible, Rewrite

__all__ = ["Effect", "Inexpressible", "Rewrite", "RewrittenSchema", "rewrite"]
