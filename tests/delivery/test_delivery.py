"""What is on record of a send, however it went (S2.5, S5.2, S14.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from turnkeeper.delivery.delivery import Delivery
from turnkeeper.delivery.sink import DeliveryUncertainError, Outgoing
from turnkeeper.redaction import Redactor
from turnkeeper.settings import Settings
from turnkeeper.types.outcomes import Expression
from turnkeeper.types.turn import Delivered, Notice


class Record:
    """Notes what delivery writes down."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def delivering(self, nonce: str, text: str) -> None:
        self.lines.append(f"delivering {text}")

    def delivered(self, reference: str, message: Outgoing, *, confirmed: bool) -> Delivered:
        self.lines.append(f"{'delivered' if confirmed else 'uncertain'} {message.text}")
        return Delivered(reference, message.text, message.nonce, 0.0, confirmed)

    def noticed(self, notice: Notice) -> None:
        self.lines.append(f"noticed {notice.kind}")


class Channel:
    """A sink whose answers to posts are given beforehand: an exception is raised, a number is waited for and then stands."""

    def __init__(self, *answers: Exception | float) -> None:
        self._answers = list(answers)
        self.stands: list[str] = []

    def grow(self, text: str) -> None:
        pass

    def post(self, message: Outgoing) -> Awaitable[str]:
        return self._post(message)

    async def _post(self, message: Outgoing) -> str:
        answer = self._answers.pop(0) if self._answers else 0.0
        if isinstance(answer, Exception):
            raise answer
        await asyncio.sleep(answer)
        self.stands.append(message.text)
        return f"m{len(self.stands)}"

    def express(self, expression: Expression, nonce: str) -> str:
        return "x"

    def notice(self, notice: Notice) -> str:
        return "n"


def delivery(channel: Channel) -> tuple[Delivery, Record]:
    record = Record()
    return Delivery("t1", channel, record, Settings(), Redactor()), record


async def test_a_refused_send_does_not_stand_and_is_told_to_whoever_waits() -> None:
    to_people, record = delivery(Channel(OSError("404 Unknown Channel")))
    to_people.write("One.")
    to_people.end_message()
    with pytest.raises(OSError, match="Unknown Channel"):
        await to_people.flush()
    assert (record.lines, to_people.messages) == (["delivering One."], [])


async def test_after_a_refused_send_the_next_one_goes_out() -> None:
    channel = Channel(OSError("503"))
    to_people, record = delivery(channel)
    to_people.write("One.")
    to_people.end_message()
    with pytest.raises(OSError, match="503"):
        await to_people.flush()
    to_people.write("Two.")
    to_people.end_message()
    await to_people.flush()
    assert channel.stands == ["Two."]
    assert record.lines == ["delivering One.", "delivering Two.", "delivered Two."]


async def test_a_send_whose_answer_was_lost_is_on_record_as_uncertain() -> None:
    to_people, record = delivery(Channel(DeliveryUncertainError()))
    to_people.write("One.")
    to_people.end_message()
    await to_people.flush()
    assert record.lines == ["delivering One.", "uncertain One."]


@pytest.mark.looptime
async def test_a_stop_leaves_the_send_in_flight_alone_and_it_comes_on_record() -> None:
    channel = Channel(3.0)
    to_people, record = delivery(channel)
    to_people.write("One.")
    to_people.end_message()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await to_people.flush()
    assert record.lines == ["delivering One."]
    await to_people.settle(5)
    assert record.lines == ["delivering One.", "delivered One."]


@pytest.mark.looptime
async def test_a_send_that_never_settles_is_given_up_as_uncertain_and_nothing_follows_it() -> None:
    channel = Channel(10_000.0)
    to_people, record = delivery(channel)
    to_people.write("One.")
    to_people.end_message()
    to_people.write("Two.")
    await to_people.finish(2)
    assert (channel.stands, record.lines) == ([], ["delivering One.", "uncertain One."])
