"""How the tables of keys came to their form, for Alembic."""
