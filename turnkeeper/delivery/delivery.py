# From the model's text to messages that stand.
#
# Rule 1: `write` is on the path of every network read: it does not await, and does no work that grows with the reply.
# Rule 2: what people saw is on record, and nothing else is (S2.5): `shown` is what went to the sink, not what came in.
# Rule 3: messages are sent one after another. A send that has begun is never cancelled by a stop; it settles in its own
# task, which this object owns, and its result is recorded (S5.2).
#
# Theory of operation. Text passes: secrets out (RedactedStream), limits (S14.3), splitter (S14.1). Finished pieces wait in
# `_outbox` until `flush`. A sink that answers at once costs no task.

"""Delivers one turn's text through a sink."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable
from hashlib import blake2b
from typing import Literal, Protocol, TypeAlias

from turnkeeper.delivery.sink import DeliveryUncertainError, Outgoing, Sink
from turnkeeper.delivery.splitter import Splitter
from turnkeeper.redaction import Redactor
from turnkeeper.settings import Settings
from turnkeeper.types.outcomes import Expression
from turnkeeper.types.turn import Delivered, Notice

Limit: TypeAlias = Literal["send_message_limit", "flush_limit"]


class DeliveryRecord(Protocol):
    """What delivery writes down, before and after each send."""

    def delivering(self, nonce: str, text: str) -> None:
        """A send is about to begin."""
        ...

    def delivered(self, reference: str, message: Outgoing, *, confirmed: bool) -> Delivered:
        """A send has ended."""
        ...

    def noticed(self, notice: Notice) -> None:
        """A notice was shown."""
        ...


class Delivery:
    """One turn's way to people.

    turn_id: what nonces are derived from. record: where sends are written down.
    """

    def __init__(self, turn_id: str, sink: Sink, record: DeliveryRecord, settings: Settings, redactor: Redactor) -> None:
        self._turn_id = turn_id
        self._sink = sink
        self._record = record
        self._settings = settings
        self._flush_limit = settings.flush_limit
        self._filter = redactor.stream() if settings.redact else None
        self._redactor = redactor
        self._splitter = Splitter(limit=settings.message_limit)
        self._shown: list[str] = []  # of the pass
        self._begun = False  # the pass has shown something visible
        self._chars = 0  # of the turn
        self._outbox: deque[str] = deque()
        self._sending: asyncio.Task[None] | None = None  # the send in flight; it takes itself away when it has ended
        self._numbered = 0
        self.messages: list[Delivered] = []
        """What stands, in order."""
        self.notices: list[Notice] = []
        """What we told people beside the reply."""
        self.expression: Expression | None = None
        """The one expression that this turn has sent, or tried to (S6.6)."""
        self.limit: Limit | None = None
        """The delivery limit that this reply has reached (S14.3)."""

    @property
    def shown(self) -> str:
        """The visible text of the present pass, as people have it."""
        return "".join(self._shown)

    @property
    def shown_anything(self) -> bool:
        """Whether people have seen any text in this turn."""
        return self._chars > 0

    @property
    def due(self) -> bool:
        """Whether finished messages wait for `flush`."""
        return bool(self._outbox)

    def begin_pass(self, *, carried_on: bool = False) -> None:
        """A new pass's text follows. `carried_on`: it goes on with the text of the pass before (S9.4b)."""
        if not carried_on:
            self._shown.clear()
            self._begun = False

    def write(self, text: str) -> None:
        """Takes text of the present pass. Blank text before the first visible character is dropped (S4.3)."""
        if self._filter is not None:
            text = self._filter.feed(text)
        chars = self._chars + len(text)
        if not text or not self._begun or self.limit is not None or chars > self._flush_limit:
            self._show(text)
            return
        self._chars = chars  # the hot path: what `_show` does, for text that needs no second look
        self._shown.append(text)
        pieces = self._splitter.feed(text)
        if pieces:
            self._queue(pieces)
        self._sink.grow(text)

    def end_text(self) -> None:
        """The pass's text is complete: nothing may be held back any more."""
        if self._filter is not None:
            self._show(self._filter.close())

    def end_message(self) -> None:
        """The message that is being written is complete, and is due."""
        self.end_text()
        self._queue(self._splitter.close())

    async def flush(self) -> None:
        """Sends what is due and waits until it stands. When cancelled, the send in flight goes on; see `settle`."""
        while True:
            if self._sending is not None:
                await asyncio.shield(self._sending)
            if not self._outbox:
                return
            self._send(self._outbox.popleft())

    async def settle(self, limit_s: float) -> None:
        """Waits at most `limit_s` seconds for a send in flight, so that it is on record (S5.2)."""
        if self._sending is not None:
            await asyncio.wait([self._sending], timeout=limit_s)

    async def finish(self, limit_s: float) -> None:
        """Delivers all that is left. A send that does not settle within `limit_s` seconds is given up, with all after it:
        its message is on record as unconfirmed, those after it were not sent."""
        self.end_message()
        try:
            async with asyncio.timeout(limit_s):
                await self.flush()
        except TimeoutError:
            sending = self._sending
            self._outbox.clear()
            if sending is not None:
                sending.cancel()
                await asyncio.wait([sending], timeout=limit_s)

    async def say(self, text: str) -> None:
        """Posts a message of a tool's own into the channel, after what was written before."""
        self.end_message()
        for piece in self._split(self._redactor.text(text)):
            self._outbox.append(piece)
            self._chars += len(piece)
            self._sink.grow(piece)
        await self.flush()

    async def express(self, expression: Expression) -> bool:
        """Shows an expression, after what was written before it. Returns whether the surface confirmed it.

        It counts as this turn's one expression from before the send on, so that an unconfirmed one is never risked twice.
        """
        self.end_message()
        await self.flush()
        self.expression = expression
        self._numbered += 1
        message = Outgoing(str(expression), _nonce(self._turn_id, self._numbered, str(expression)))
        self._record.delivering(message.nonce, message.text)
        try:
            shown = self._sink.express(expression, message.nonce)
            reference = shown if isinstance(shown, str) else await shown
        except DeliveryUncertainError:
            self.messages.append(self._record.delivered("", message, confirmed=False))
            return False
        self.messages.append(self._record.delivered(reference, message, confirmed=True))
        return True

    async def notify(self, notice: Notice) -> None:
        """Tells people something beside the reply."""
        self.end_message()
        await self.flush()
        clean = Notice(notice.kind, self._redactor.text(notice.detail), tuple(map(self._redactor.text, notice.fold)))
        self.notices.append(clean)
        self._record.noticed(clean)
        shown = self._sink.notice(clean)
        if not isinstance(shown, str):
            await shown

    def _show(self, text: str) -> None:
        if not self._begun:
            text = text.lstrip()
            self._begun = bool(text)
        if not text or self.limit is not None:
            return
        room = self._flush_limit - self._chars
        if len(text) > room:
            text = text[:room]
            self.limit = "flush_limit"
        self._chars += len(text)
        self._shown.append(text)
        pieces = self._splitter.feed(text)
        if pieces:
            self._queue(pieces)
        self._sink.grow(text)

    def _queue(self, pieces: list[str]) -> None:
        most = self._settings.send_message_limit
        for piece in pieces:
            if most and len(self.messages) + len(self._outbox) >= most:
                self.limit = "send_message_limit"
                return
            self._outbox.append(piece)
        if most and len(self.messages) + len(self._outbox) >= most:
            self.limit = self.limit or "send_message_limit"

    def _split(self, text: str) -> list[str]:
        splitter = Splitter(limit=self._settings.message_limit)
        return [*splitter.feed(text), *splitter.close()]

    def _send(self, text: str) -> None:
        self._numbered += 1
        message = Outgoing(text, _nonce(self._turn_id, self._numbered, text))
        self._record.delivering(message.nonce, text)
        posted = self._sink.post(message)
        if isinstance(posted, str):
            self.messages.append(self._record.delivered(posted, message, confirmed=True))
        else:
            self._sending = asyncio.ensure_future(self._await_send(message, posted))
            self._sending.set_name(f"send {message.nonce}")

    async def _await_send(self, message: Outgoing, posted: Awaitable[str]) -> None:
        # A refusal (any other exception) means that it does not stand: it is not recorded as delivered, and whoever waits
        # in `flush` gets it.
        try:
            self.messages.append(self._record.delivered(await posted, message, confirmed=True))
        except (DeliveryUncertainError, asyncio.CancelledError) as cut_off:
            self.messages.append(self._record.delivered("", message, confirmed=False))
            if isinstance(cut_off, asyncio.CancelledError):
                raise
        finally:
            self._sending = None
            if inspect.iscoroutine(posted):
                posted.close()


def _nonce(turn_id: str, number: int, text: str) -> str:
    """S14.4: the same for the same piece of the same turn, so that a resume makes the same one; never shared by two texts."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=f"{turn_id}/{number}".encode()[:64])
    return digest.hexdigest()
