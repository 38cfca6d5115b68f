"""How the tables of the reasoning memory came to their form, for Alembic."""
