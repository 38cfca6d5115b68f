"""What Alembic runs for every command: migrate over the connection, and in the transaction, that the caller opened."""

from alembic import context

from bardo.adapters.stores.memory.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    # SQLite changes a column by copying its table.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
