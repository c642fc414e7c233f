"""Writes a turn's events into the journal."""

from __future__ import annotations

from collections.abc import Callable

from turnkeeper.delivery.sink import Outgoing
from turnkeeper.journal.events import Delivering, MessageDelivered, NoticeShown, Recorded, TurnEvent
from turnkeeper.journal.journal import Journal
from turnkeeper.types.turn import Delivered, Notice


class Recorder:
    """One turn's pen. clock: the wall clock, seconds since the epoch."""

    __slots__ = ("_channel", "_clock", "_journal", "_turn_id")

    def __init__(self, turn_id: str, channel: str, journal: Journal, clock: Callable[[], float]) -> None:
        self._turn_id = turn_id
        self._channel = channel
        self._journal = journal
        self._clock = clock

    def note(self, event: TurnEvent) -> None:
        """Writes an event down; it is stored soon, in order."""
        self._journal.append(Recorded(self._turn_id, self._channel, self._clock(), event))

    async def stored(self, *, durable: bool = False) -> None:
        """Returns once all that was noted is stored. Raises JournalError."""
        await self._journal.stored(durable=durable)

    # What delivery writes down (delivery.DeliveryRecord)

    def delivering(self, nonce: str, text: str) -> None:
        """A message is about to be sent."""
        self.note(Delivering(nonce, text))

    def delivered(self, reference: str, message: Outgoing, *, confirmed: bool) -> Delivered:
        """A message was sent."""
        done = Delivered(reference, message.text, message.nonce, self._clock(), confirmed)
        self.note(MessageDelivered(done))
        return done

    def noticed(self, notice: Notice) -> None:
        """A notice was shown."""
        self.note(NoticeShown(notice))
