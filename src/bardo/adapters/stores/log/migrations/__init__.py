"""Alembic's scripts for the log. `revisions.py` runs them; they need no configuration file."""
