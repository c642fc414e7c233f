"""The tables of API keys and of their rests, and every statement on them, each with a sentence."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    and_,
    bindparam,
    delete,
    insert,
    select,
    update,
)

metadata = MetaData()

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("provider", String(300), nullable=False),
    Column("scope", String(200), nullable=False),
    Column("account", String(200), nullable=False),
    Column("base_url", String(500), nullable=False),
    Column("last_four", String(4), nullable=False),
    Column("added_at", Float, nullable=False),
    Column("master", String(16), nullable=False),
    Column("sealed", LargeBinary, nullable=False),
)

key_rests = Table(
    "key_rests",
    metadata,
    Column("holder", String(500), primary_key=True),
    Column("model", String(300), primary_key=True),
    Column("until", Float, nullable=False),
    Column("since", Float, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("said", String(400), nullable=False),
    Column("guesses", Integer, nullable=False),
    Column("named", Boolean, nullable=False),
)

# All keys, in the order in which they were added.
keys = select(api_keys).order_by(api_keys.c.added_at, api_keys.c.id)

# A key is added.
add_key = insert(api_keys)

# A key is removed.
remove_key = delete(api_keys).where(api_keys.c.id == bindparam("key_id"))

# A key is sealed anew, after an edit or with another master key.
seal_key = (
    update(api_keys)
    .where(api_keys.c.id == bindparam("key_id"))
    .values(master=bindparam("new_master"), sealed=bindparam("new_sealed"), last_four=bindparam("new_last_four"))
)

# All rests.
rests = select(key_rests)

# A rest is noted.
add_rest = insert(key_rests)

# A rest is taken away.
remove_rest = delete(key_rests).where(
    and_(key_rests.c.holder == bindparam("rest_holder"), key_rests.c.model == bindparam("rest_model"))
)

# All rests of a holder are taken away.
remove_rests_of = delete(key_rests).where(key_rests.c.holder == bindparam("rest_holder"))
