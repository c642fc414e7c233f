"""The tables of API keys and of their rests."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Makes the tables."""
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("provider", sa.String(300), nullable=False),
        sa.Column("scope", sa.String(200), nullable=False),
        sa.Column("account", sa.String(200), nullable=False),
        sa.Column("base_url", sa.String(500), nullable=False),
        sa.Column("last_four", sa.String(4), nullable=False),
        sa.Column("added_at", sa.Float, nullable=False),
        sa.Column("master", sa.String(16), nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "key_rests",
        sa.Column("holder", sa.String(500), primary_key=True),
        sa.Column("model", sa.String(300), primary_key=True),
        sa.Column("until", sa.Float, nullable=False),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("said", sa.String(400), nullable=False),
        sa.Column("guesses", sa.Integer, nullable=False),
        sa.Column("named", sa.Boolean, nullable=False),
    )


def downgrade() -> None:
    """Removes the tables."""
    op.drop_table("key_rests")
    op.drop_table("api_keys")
