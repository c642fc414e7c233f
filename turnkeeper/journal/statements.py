"""The journal's table and every statement on it, each with a name and a sentence."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    bindparam,
    insert,
    select,
)

metadata = MetaData()

events = Table(
    "events",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("turn_id", String(64), nullable=False),
    Column("channel", String(200), nullable=False),
    Column("at", Float, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("events_of_turn", "turn_id", "id"),
    Index("events_of_channel", "channel", "kind", "id"),
    Index("events_of_kind", "kind", "id"),
    Index("events_of_kind_by_time", "kind", "at"),
)

# One event is added.
append = insert(events)

# A turn's events, oldest first.
of_turn = select(events).where(events.c.turn_id == bindparam("turn_id")).order_by(events.c.id)

# The ids of turns that begin with a prefix, two at most: more than one means that the prefix is not unique.
turns_like = (
    select(events.c.turn_id)
    .where(events.c.kind == "Admitted", events.c.turn_id.startswith(bindparam("prefix", type_=String)))
    .distinct()
    .limit(2)
)

# The latest turns of a channel, newest first.
turns_of_channel = (
    select(events.c.turn_id)
    .where(events.c.channel == bindparam("channel"), events.c.kind.in_(("Admitted", "ContextEnded")))
    .order_by(events.c.id.desc())
    .limit(bindparam("turns", type_=Integer))
)

# The channels of which something is on record.
channels = select(events.c.channel).distinct()

# All events of some turns, oldest first.
of_turns = select(events).where(events.c.turn_id.in_(bindparam("turn_ids", expanding=True))).order_by(events.c.id)

# The latest turns, newest first.
latest_turns = (
    select(events.c.turn_id)
    .where(events.c.kind == "Admitted")
    .order_by(events.c.id.desc())
    .limit(bindparam("turns", type_=Integer))
)

# The events of some kinds from a time on, oldest first.
since = (
    select(events)
    .where(events.c.kind.in_(bindparam("kinds", expanding=True)), events.c.at >= bindparam("at", type_=Float))
    .order_by(events.c.id)
)
