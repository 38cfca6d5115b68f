"""The script that Alembic runs for every command: migrate over the connection, and in the transaction, that the caller opened."""

from alembic import context

from bardo.adapters.stores.migrations import VERSIONS

context.configure(connection=context.config.attributes["connection"], version_table=VERSIONS)
with context.begin_transaction():
    context.run_migrations()
