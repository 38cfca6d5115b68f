"""How the tables of every store came to their form: one tree of Alembic's, with a branch of revisions for each store.

A database may hold one store, some or all of them. Its table `bardo_revisions` has a row for each, which names the revision of that store.
To change a store's tables, add a file to `versions` and name its revision here; a test compares the two.
"""

from __future__ import annotations

from typing import NamedTuple

VERSIONS = "bardo_revisions"
"""Where Alembic keeps the revision of each store. A fleet's PostgreSQL may hold another program's `alembic_version`."""


class Branch(NamedTuple):
    """The revisions of one store, whose ids begin with its name; `newest` is the form of tables that this version of bardo uses.

    `earlier_table` is where bardo kept the revision before there was one tree. `tree` is a folder of Alembic's, or `package:folder`.
    """

    name: str
    newest: str
    earlier_table: str
    tree: str = "bardo.adapters.stores:migrations"

    def owns(self, revision: str) -> bool:
        """Return whether a revision, of this bardo or of a newer one, is of this store."""
        return revision.startswith(f"{self.name}_")


LOG_BRANCH = Branch("log", "log_0011", "inference_log_version")
MEMORY_BRANCH = Branch("memory", "memory_0001", "reasoning_memory_version")
KEYS_BRANCH = Branch("keys", "keys_0001", "access_keys_version")
PAYMENTS_BRANCH = Branch("payments", "payments_0001", "payments_version")
BATCHES_BRANCH = Branch("batches", "batches_0002", "batches_version")
BRANCHES = (LOG_BRANCH, MEMORY_BRANCH, KEYS_BRANCH, PAYMENTS_BRANCH, BATCHES_BRANCH)
LEDGER_TABLES = frozenset((VERSIONS, *(branch.earlier_table for branch in BRANCHES)))
"""Tables of which a database that cannot be made anew has at least one."""
