"""The table of events."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Makes the table and its indexes."""
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("turn_id", sa.String(64), nullable=False),
        sa.Column("channel", sa.String(200), nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("events_of_turn", "events", ["turn_id", "id"])
    op.create_index("events_of_channel", "events", ["channel", "kind", "id"])
    op.create_index("events_of_kind", "events", ["kind", "id"])


def downgrade() -> None:
    """Removes the table."""
    op.drop_table("events")
