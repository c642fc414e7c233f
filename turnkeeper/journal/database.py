"""Opens a database for those who keep something in it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from turnkeeper.errors import JournalError


class Database(Struct, frozen=True):
    """A database with all tables of this version. name: for people, without a password."""

    engine: Engine
    name: str


def open_database(url: str) -> Database:
    """Opens the database at a URL, and makes or migrates its tables where needed.

    url: `sqlite:///turns.db` (a relative path), `sqlite:////var/lib/x.db` (an absolute one), or another database's.
    Raises JournalError, naming the file, when that can't be done.
    """
    from turnkeeper.journal.migrate import migrate

    try:
        parsed = make_url(url)
    except ArgumentError:
        raise JournalError(f"The journal's address {url!r} is no database URL; one is `sqlite:///turns.db`.") from None
    name = parsed.database or parsed.render_as_string(hide_password=True)
    try:
        engine = create_engine(parsed)
        if parsed.get_backend_name() == "sqlite":
            event.listen(engine, "connect", _prepare_sqlite)
        migrate(engine)
    except (SQLAlchemyError, OSError, ImportError) as problem:
        raise JournalError(f"The journal {name} can't be opened: {short(problem)}.") from None
    return Database(engine, name)


def short(problem: Exception) -> str:
    """The database's own words, without the statement."""
    origin = getattr(problem, "orig", None)
    return str(origin or problem).splitlines()[0].rstrip(".")


def _prepare_sqlite(connection: Any, _: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA busy_timeout=5000")
    cursor.close()
