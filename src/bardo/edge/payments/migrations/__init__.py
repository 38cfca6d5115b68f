"""Alembic's scripts for the ledger of payments. `edge/database/revisions.py` runs them; they need no configuration file."""
