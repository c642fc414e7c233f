"""What Alembic runs: the connection comes from `journal.migrate`."""

from alembic import context

from turnkeeper.journal.statements import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
