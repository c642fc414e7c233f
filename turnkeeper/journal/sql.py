# The journal in a database.
#
# One writer thread owns the writing connection. The loop's thread only appends to a list; the list is handed over at most
# every `_LINGER_S`, or at once when somebody waits for it, so that a turn's events share a commit and a chunk costs no
# thread switch. A waiter is told through the loop. What could not be written is kept, in order, and tried again with the
# next batch: a full disc that is emptied again loses nothing (S15.1b). Readers use connections of their own, in threads.

"""The journal as a table, in SQLite or any database that SQLAlchemy speaks to."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, Engine, Row
from sqlalchemy.exc import SQLAlchemyError

from turnkeeper.errors import JournalError
from turnkeeper.journal import statements
from turnkeeper.journal.database import open_database, short
from turnkeeper.journal.events import Recorded, TurnEvent, kind_of

_log = logging.getLogger(__name__)
_LINGER_S = 0.02  # how long events wait for company
_WAITED_S = 0.002  # how long they do where somebody waits for them
_KEPT = 100_000  # events kept while the store can't be written
_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[TurnEvent] = msgspec.json.Decoder(TurnEvent)

Durability: TypeAlias = Literal["FULL", "NORMAL"]


class _Waiter(Struct):
    """Somebody who wants to know that what was appended so far is stored."""

    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[None]
    durability: Durability


class _Batch(Struct):
    events: list[Recorded]
    waiters: list[_Waiter]
    last: bool = False


class SqlJournal:
    """A journal at a database URL such as `sqlite:///turns.db`. Made by `open_journal`.

    clean: takes secrets out of an event's JSON before it is stored (S16.2a).
    """

    def __init__(self, engine: Engine, name: str, *, clean: Callable[[bytes], bytes] = bytes) -> None:
        self._engine = engine
        self._name = name
        self._clean = clean
        self._waiting: list[Recorded] = []
        self._waiters: list[_Waiter] = []
        self._channels: set[str] | None = None  # those with something on record; None until it is known
        self._timer: asyncio.TimerHandle | None = None
        self._queue: queue.SimpleQueue[_Batch] = queue.SimpleQueue()
        self._broken: str | None = None
        self._durability: Durability | None = None  # what the writer's connection is set to
        self._closed = False
        self._thread = threading.Thread(target=self._write_all, name="journal writer", daemon=True)
        self._thread.start()

    def append(self, recorded: Recorded) -> None:
        """Adds an event; it is handed to the writer within 20 ms, or when somebody waits for it."""
        self._waiting.append(recorded)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LINGER_S, self._hand_over)

    async def stored(self, *, durable: bool = False) -> None:
        """Returns once all that was appended is committed. Raises JournalError."""
        loop = asyncio.get_running_loop()
        waiter = _Waiter(loop, loop.create_future(), "FULL" if durable else "NORMAL")
        self._waiters.append(waiter)
        if durable:
            self._hand_over()
        elif len(self._waiters) == 1:  # others may end in the same moment, and share the commit
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_later(_WAITED_S, self._hand_over)
        await waiter.future

    @property
    def broken(self) -> str | None:
        """Why the last write failed, None while writing works."""
        return self._broken

    async def turn(self, turn_id: str) -> list[Recorded]:
        """A turn's events. Raises JournalError when the id is unknown or not unique."""
        return await asyncio.to_thread(self._read, lambda connection: _turn(connection, turn_id))

    async def channel(self, channel: str, turns: int) -> list[Recorded]:
        """The events of the channel's last turns; a channel of which nothing is on record costs no look at the disk."""
        if self._channels is None:
            self._channels = await asyncio.to_thread(self._known_channels)
        if channel not in self._channels:
            self._channels.add(channel)  # it will have something soon
            return []
        await self.stored()
        return await asyncio.to_thread(self._read, lambda connection: _channel(connection, channel, turns))

    async def latest(self, limit: int) -> list[Recorded]:
        """The `Admitted` and `Ended` events of the last turns, newest turn first."""
        return await asyncio.to_thread(self._read, lambda connection: _latest(connection, limit))

    async def since(self, at: float, kinds: Sequence[str]) -> list[Recorded]:
        """The events of some kinds from `at` on, in order."""
        return await asyncio.to_thread(self._read, lambda connection: _since(connection, at, list(kinds)))

    async def aclose(self) -> None:
        """Stores what is left, ends the writer and closes the database."""
        if self._closed:
            return
        self._closed = True
        self._hand_over(last=True)
        await asyncio.to_thread(self._thread.join)
        self._engine.dispose()

    def _hand_over(self, *, last: bool = False) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch = _Batch(self._waiting, self._waiters, last)
        self._waiting, self._waiters = [], []
        self._queue.put(batch)

    def _known_channels(self) -> set[str]:
        try:
            with self._engine.connect() as connection:
                return set(connection.execute(statements.channels).scalars().all())
        except SQLAlchemyError as problem:
            raise JournalError(f"The journal {self._name} can't be read: {short(problem)}.") from None

    def _read(self, work: Callable[[Connection], list[Recorded]]) -> list[Recorded]:
        try:
            with self._engine.connect() as connection:
                return work(connection)
        except SQLAlchemyError as problem:
            raise JournalError(f"The journal {self._name} can't be read: {short(problem)}.") from None

    # The writer thread

    def _write_all(self) -> None:
        kept: list[Recorded] = []
        last = False
        with self._engine.connect() as connection:
            while not last:
                batches = [self._queue.get()]
                while not self._queue.empty():
                    batches.append(self._queue.get())
                last = any(batch.last for batch in batches)
                kept += [one for batch in batches for one in batch.events]
                del kept[:-_KEPT]
                waiters = [waiter for batch in batches for waiter in batch.waiters]
                if self._write(connection, kept, waiters):
                    kept.clear()
                self._tell(waiters)

    def _write(self, connection: Connection, events: list[Recorded], waiters: list[_Waiter]) -> bool:
        if not events and self._broken is None:
            return True
        durability: Durability = "FULL" if any(waiter.durability == "FULL" for waiter in waiters) else "NORMAL"
        try:
            if connection.dialect.name == "sqlite" and durability != self._durability:
                connection.exec_driver_sql(f"PRAGMA synchronous={durability}")
                connection.commit()
                self._durability = durability
            if events:
                connection.execute(statements.append, [self._row(one) for one in events])
            connection.commit()
        except (SQLAlchemyError, OSError) as problem:
            connection.rollback()
            if self._broken is None:
                _log.error("The journal %s can't be written: %s.", self._name, short(problem))
            self._broken = short(problem)
            return False
        self._broken = None
        return True

    def _row(self, one: Recorded) -> dict[str, Any]:
        return {
            "turn_id": one.turn_id,
            "channel": one.channel,
            "at": one.at,
            "kind": kind_of(one.event),
            "body": self._clean(_encoder.encode(one.event)),
        }

    def _tell(self, waiters: list[_Waiter]) -> None:
        error = self._broken and JournalError(f"The journal {self._name} can't be written: {self._broken}.")
        for waiter in waiters:
            try:
                waiter.loop.call_soon_threadsafe(_settle, waiter.future, error)
            except RuntimeError:  # its loop is closed: nobody waits any more
                continue


def open_journal(url: str, *, clean: Callable[[bytes], bytes] = bytes) -> SqlJournal:
    """Opens the journal at a database URL, and makes or migrates its table where needed.

    url: `sqlite:///turns.db` (a relative path), `sqlite:////var/lib/x.db` (an absolute one), or another database's.
    clean: takes secrets out of an event's JSON before it is stored.
    Raises JournalError, naming the file, when that can't be done.
    """
    database = open_database(url)
    return SqlJournal(database.engine, database.name, clean=clean)


def _turn(connection: Connection, turn_id: str) -> list[Recorded]:
    ids = connection.execute(statements.turns_like, {"prefix": turn_id}).scalars().all()
    if len(ids) > 1:
        raise JournalError(f"More than one turn begins with {turn_id!r}; write more of its id.")
    if not ids:
        raise JournalError(f"There is no turn {turn_id!r}; `turnkeeper turns` lists them.")
    return _decode(connection.execute(statements.of_turn, {"turn_id": ids[0]}).all())


def _channel(connection: Connection, channel: str, turns: int) -> list[Recorded]:
    ids = connection.execute(statements.turns_of_channel, {"channel": channel, "turns": turns}).scalars().all()
    return _decode(connection.execute(statements.of_turns, {"turn_ids": list(ids)}).all()) if ids else []


def _latest(connection: Connection, limit: int) -> list[Recorded]:
    ids = list(connection.execute(statements.latest_turns, {"turns": limit}).scalars().all())
    found = _decode(connection.execute(statements.of_turns, {"turn_ids": ids}).all()) if ids else []
    wanted = [one for one in found if kind_of(one.event) in ("Admitted", "Ended")]
    return sorted(wanted, key=lambda one: ids.index(one.turn_id))


def _since(connection: Connection, at: float, kinds: list[str]) -> list[Recorded]:
    return _decode(connection.execute(statements.since, {"at": at, "kinds": kinds}).all())


def _decode(rows: Sequence[Row[Any]]) -> list[Recorded]:
    """The events in `rows`; one that is damaged is left out and named in the log (S15.1a)."""
    found: list[Recorded] = []
    for row in rows:
        try:
            found.append(Recorded(row.turn_id, row.channel, row.at, _decoder.decode(row.body)))
        except msgspec.DecodeError as problem:
            _log.warning("Event %s of turn %s is damaged and left out: %s", row.id, row.turn_id, problem)
    return found


def _settle(future: asyncio.Future[None], error: JournalError | str | None) -> None:
    if future.done():
        return
    if isinstance(error, JournalError):
        future.set_exception(error)
    else:
        future.set_result(None)
