"""Databases of bardo, SQLite or PostgreSQL: opened, and brought to the form that this version of bardo uses."""
