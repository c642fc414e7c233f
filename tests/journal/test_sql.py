"""The journal in a database (S15.1, S15.1b), with real files."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest

from turnkeeper.errors import JournalError
from turnkeeper.journal import migrate
from turnkeeper.journal.events import Admitted, ContextEnded, Ended, Recorded, Thought
from turnkeeper.journal.folds import summaries
from turnkeeper.journal.sql import SqlJournal, open_journal


def recorded(turn: str, event: object, channel: str = "c", at: float = 1.0) -> Recorded:
    return Recorded(turn, channel, at, event)  # type: ignore[arg-type]


@pytest.fixture
async def journal(tmp_path: Path) -> SqlJournal:
    return open_journal(f"sqlite:///{tmp_path / 'turns.db'}")


async def test_events_come_back_in_order(journal: SqlJournal) -> None:
    for n in range(50):
        journal.append(recorded("t1", Thought(f"line {n}")))
    journal.append(recorded("t1", Admitted("c", "u", "hi")))
    await journal.stored()
    found = await journal.turn("t1")
    assert [one.event.line for one in found if isinstance(one.event, Thought)] == [f"line {n}" for n in range(50)]
    await journal.aclose()


async def test_events_survive_the_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'turns.db'}"
    first = open_journal(url)
    first.append(recorded("t1", Admitted("c", "u", "hi")))
    await first.aclose()
    second = open_journal(url)
    assert [type(one.event).__name__ for one in await second.turn("t1")] == ["Admitted"]
    await second.aclose()


async def test_waiters_share_a_commit_and_all_are_told(journal: SqlJournal) -> None:
    async def one(n: int) -> None:
        journal.append(recorded(f"t{n}", Admitted("c", "u", "hi")))
        await journal.stored(durable=n % 2 == 0)

    await asyncio.gather(*[one(n) for n in range(40)])
    assert len(summaries(await journal.latest(100))) == 40
    await journal.aclose()


async def test_lists_are_of_the_latest_turns_and_prefixes_must_be_unique(journal: SqlJournal) -> None:
    for n in range(12):
        journal.append(recorded(f"turn{n:02}", Admitted("c", "u", f"m{n}"), at=float(n)))
        if n != 5:
            journal.append(recorded(f"turn{n:02}", Ended("completed"), at=n + 0.5))
    await journal.stored()
    found = summaries(await journal.latest(8))
    assert [(one.turn_id, one.end) for one in found][:2] == [("turn11", "completed"), ("turn10", "completed")]
    assert {one.turn_id: one.end for one in found}["turn05"] is None
    assert found[0].took_s == 0.5
    with pytest.raises(JournalError, match="More than one"):
        await journal.turn("turn1")
    with pytest.raises(JournalError, match="There is no turn"):
        await journal.turn("nope")
    await journal.aclose()


async def test_a_channel_is_read_back_with_its_last_turns_only(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'turns.db'}"
    first = open_journal(url)
    for n in range(6):
        first.append(recorded(f"t{n}", Admitted("a" if n % 2 else "b", "u", f"m{n}"), channel="a" if n % 2 else "b"))
    first.append(recorded("t9", ContextEnded("u"), channel="a"))
    await first.aclose()
    second = open_journal(url)
    assert [one.turn_id for one in await second.channel("a", 3)] == ["t3", "t5", "t9"]
    assert await second.channel("never seen", 3) == []
    await second.aclose()


async def test_secrets_are_removed_before_an_event_is_stored(tmp_path: Path) -> None:
    """S16.2a"""
    path = tmp_path / "turns.db"
    journal = open_journal(f"sqlite:///{path}", clean=lambda data: data.replace(b"sesame", b"[redacted]"))
    journal.append(recorded("t1", Admitted("c", "u", "open sesame")))
    await journal.aclose()
    assert b"sesame" not in path.read_bytes()


async def test_a_journal_that_can_not_be_written_says_so_and_loses_nothing_when_it_can_again(tmp_path: Path) -> None:
    """S15.1b"""
    path = tmp_path / "turns.db"
    journal = open_journal(f"sqlite:///{path}")
    journal.append(recorded("t1", Admitted("c", "u", "one")))
    await journal.stored()
    blocker = sqlite3.connect(path)
    blocker.execute("ALTER TABLE events RENAME TO hidden")
    blocker.commit()
    journal.append(recorded("t2", Admitted("c", "u", "two")))
    with pytest.raises(JournalError, match=r"turns\.db can't be written"):
        await journal.stored()
    assert journal.broken is not None
    blocker.execute("ALTER TABLE hidden RENAME TO events")
    blocker.commit()
    blocker.close()
    journal.append(recorded("t3", Admitted("c", "u", "three")))
    await journal.stored()
    assert journal.broken is None
    assert [one.turn_id for one in reversed(summaries(await journal.latest(9)))] == ["t1", "t2", "t3"]
    await journal.aclose()


async def test_a_damaged_event_is_left_out_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """S15.1a"""
    path = tmp_path / "turns.db"
    journal = open_journal(f"sqlite:///{path}")
    for n in range(3):
        journal.append(recorded("t1", Admitted("c", "u", f"m{n}")))
    await journal.stored()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE events SET body = ? WHERE id = 2", (b'{"type": "Adm',))
    connection.close()
    assert len(await journal.turn("t1")) == 2
    assert "is damaged" in caplog.text
    await journal.aclose()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense", "no database URL"),
        ("sqlite:////proc/nothing/x.db", "can't be opened"),
        ("mysql+nothing://h/x", "can't be opened"),
    ],
)
def test_an_address_that_can_not_be_opened_is_one_sentence(url: str, said: str) -> None:
    with pytest.raises(JournalError, match=said):
        open_journal(url)


def test_a_file_that_is_no_database_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "turns.db"
    path.write_bytes(b"this is not a database" * 100)
    with pytest.raises(JournalError, match="can't be opened"):
        open_journal(f"sqlite:///{path}")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_can_not_be_written_is_one_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(JournalError, match="can't be opened"):
        open_journal(f"sqlite:///{tmp_path / 'turns.db'}")


def test_the_newest_revision_is_the_one_that_the_code_expects() -> None:
    versions = Path(migrate.__file__).parent / "migrations" / "versions"
    assert max(path.name[:4] for path in versions.glob("0*.py")) == migrate.HEAD


async def test_statements_of_an_engine_with_a_full_disc_still_give_the_reply(tmp_path: Path) -> None:
    """S15.1b: text already made is delivered; new turns are refused with a reason."""
    from tests.harness import Bench
    from turnkeeper.testing import ScriptedProvider, say

    path = tmp_path / "turns.db"
    async with ScriptedProvider(models=("gpt-x",)) as provider:
        provider.play(say("One."), say("Two."))
        bench = Bench(provider)
        engine = bench.engine(journal=f"sqlite:///{path}")
        await engine.run("warm up")
        with sqlite3.connect(path) as connection:
            connection.execute("ALTER TABLE events RENAME TO hidden")
        connection.close()
        result = await engine.run("go")
        assert (result.end, result.text) == ("completed", "Two.")
        with pytest.raises(JournalError, match="No new turn is begun"):
            await engine.run("more")
        await bench.aclose()
