"""An index for what happened since a time: what was used today is read back by it."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Makes the index."""
    op.create_index("events_of_kind_by_time", "events", ["kind", "at"])


def downgrade() -> None:
    """Removes the index."""
    op.drop_index("events_of_kind_by_time", "events")
