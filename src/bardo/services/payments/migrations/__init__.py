"""Alembic's scripts for the ledger of payments. `adapters/stores/database/revisions.py` runs them; they need no configuration file."""
