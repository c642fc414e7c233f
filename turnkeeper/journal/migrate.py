"""Brings a database to the table layout of this version."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

HEAD = "0003"
"""The newest revision in `migrations/versions`; a test holds the two together."""


def migrate(engine: Engine) -> None:
    """Applies the revisions that `engine`'s database lacks. Alembic is imported only where there are some."""
    if _revision(engine) == HEAD:
        return
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _revision(engine: Engine) -> str | None:
    with engine.connect() as connection:
        if not engine.dialect.has_table(connection, "alembic_version"):
            return None
        try:
            return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        except SQLAlchemyError:
            return None
