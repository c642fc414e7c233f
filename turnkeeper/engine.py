# The engine: wires the rooms together, and is the whole public way in.

"""The public API."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from types import TracebackType

from turnkeeper.attempts.asking import Asking
from turnkeeper.channel.conversation import Conversation
from turnkeeper.channel.lock import ChannelLock
from turnkeeper.channel.turn import Trigger, context_for, note_beginning, run_turn, with_attachments
from turnkeeper.delivery.delivery import Delivery
from turnkeeper.delivery.sink import Collecting, Sink
from turnkeeper.delivery.streaming import Streaming
from turnkeeper.errors import ConfigurationError, JournalError, ReentrantTurnError, TurnkeeperError
from turnkeeper.host import Host as Host
from turnkeeper.journal.events import Admitted, ContextEnded, Ended, Recorded
from turnkeeper.journal.folds import exchanges
from turnkeeper.journal.journal import Journal, MemoryJournal
from turnkeeper.ledger.ledger import Ledger, Payer
from turnkeeper.loop.identity import identity_key
from turnkeeper.loop.recorder import Recorder
from turnkeeper.loop.signals import TurnSignals
from turnkeeper.loop.turn import READ_MORE, ToolServices, Turn
from turnkeeper.providers.learned import Learned
from turnkeeper.providers.model import Model
from turnkeeper.providers.provider import Shared
from turnkeeper.providers.tokens import estimate_tokens
from turnkeeper.providers.transport import Transport
from turnkeeper.redaction import Redactor
from turnkeeper.settings import Settings
from turnkeeper.tools.builtin.read_more import read_more_tool
from turnkeeper.tools.exposure import Exposure
from turnkeeper.tools.results import Results
from turnkeeper.tools.tool import Tool
from turnkeeper.tools.toolbox import Toolbox
from turnkeeper.types.outcomes import Succeeded
from turnkeeper.types.shown import Shown, TurnEnded
from turnkeeper.types.turn import TurnResult

_log = logging.getLogger(__name__)

_held: ContextVar[frozenset[tuple[int, str]]] = ContextVar("turnkeeper_held_channels", default=frozenset())


class Engine:
    """Answers messages: one turn at a time in a channel, channels side by side (S2.2).

    models: in order; the first leads, the rest are its fallbacks.
    tools: functions made tools by `@tool`.
    settings: limits and switches.
    journal: a database URL such as `sqlite:///turns.db`, a Journal, or None to keep it in memory only.
    host: what the application provides.

    Raises ConfigurationError or JournalError, naming what is wrong. Use it as `async with Engine(...) as engine:`, or call
    `aclose` when done. It belongs to the event loop that first uses it.
    """

    def __init__(
        self,
        models: Sequence[Model],
        tools: Iterable[Tool] = (),
        settings: Settings | None = None,
        journal: str | Journal | None = None,
        host: Host | None = None,
    ) -> None:
        if not models:
            raise ConfigurationError("An engine needs at least one model.")
        self._settings = settings or Settings()
        self._host = host or Host()
        secrets = [secret for model in models for secret in [*model.keys, *model.headers.values()]]
        self._redactor = Redactor(secrets)
        self._identity_key = identity_key(secrets)
        self._toolbox = _toolbox(tools)
        self._exposure = Exposure(self._toolbox, self._settings)
        self._services = ToolServices(
            notes=self._host.notes,
            results=Results(),
            folders=tuple(self._host.folders),
            approve=self._host.approve,
        )
        described = "".join(spec.description + spec.parameters.decode() for spec in self._toolbox.specs)
        fixed_tokens = estimate_tokens(self._host.system_prompt + described)
        self._journal = _journal(journal, self._redactor)
        self._ledger = Ledger(self._settings, self._journal, self._host.clock)
        self._transport = Transport()
        shared = Shared(self._transport, self._settings, self._host.clock, Learned())
        self._asking = Asking(models, self._settings, self._host, shared, fixed_tokens)
        self._locks: dict[str, ChannelLock] = {}
        self._conversations: OrderedDict[str, Conversation] = OrderedDict()
        self._running: set[asyncio.Task[object]] = set()
        self._abandoned: set[asyncio.Future[object]] = set()
        self._closed = False

    async def run(
        self,
        text: str,
        *,
        channel: str = "main",
        user: str = "user",
        sink: Sink | None = None,
        attachments: Mapping[str, bytes] | None = None,
    ) -> TurnResult:
        """Answers `text` and returns what came of it: failures of models and tools are in the result, not raised.

        channel: where; turns of one channel run one after another, in the order in which they came.
        user: who wrote; a newer message of the same user asks the turn that runs to make way (S5.4).
        sink: where people read the reply as it grows; None where nobody does.
        attachments: files that came with the message, by name; the model is told their names, and `read_file` reads them.
        Cancelling the call ends the turn. Raises TurnkeeperError where the message can't be taken at all.
        """
        files = dict(attachments or {})
        self._refuse(text, channel, files)
        trigger = Trigger(self._new_id(), channel, user, with_attachments(text, files), files, self._host.server_of(channel))
        signals = TurnSignals()
        lock = self._lock(channel)
        if not await lock.acquire(user, signals):
            return self._never_begun(trigger)
        token = _held.set(_held.get() | {(id(self), channel)})
        task = asyncio.current_task()
        try:
            if task is not None:
                self._running.add(task)
            return await self._answer(trigger, signals, sink or Collecting())
        except BaseException:
            self._conversations.pop(channel, None)  # what is known of a turn that broke off stands in the journal
            raise
        finally:
            if task is not None:
                self._running.discard(task)
            _held.reset(token)
            self._release(channel, lock)

    async def stream(self, text: str, *, channel: str = "main", user: str = "user") -> AsyncIterator[Shown]:
        """Answers `text` and yields what people would see, as it happens; the last event is TurnEnded with the result.

        A reader that stops reading early stops the turn. Raises what `run` raises.
        """
        self._refuse(text, channel, {})
        sink = Streaming()
        task = asyncio.create_task(self.run(text, channel=channel, user=user, sink=sink), name=f"turn in {channel[:40]}")
        task.add_done_callback(lambda _: sink.close())
        try:
            while (event := await sink.next()) is not None:
                yield event
            yield TurnEnded(task.result())
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    async def stop(self, channel: str = "main") -> bool:
        """Stops the turn that runs in `channel` and drops what waits there: /kill (S13.2).

        Returns whether there was anything to stop.
        """
        lock = self._locks.get(channel)
        return lock.stop() if lock is not None else False

    async def new_context(self, channel: str = "main", *, user: str = "user") -> None:
        """Ends the channel's context: later turns read nothing from before this: /new (S2.6)."""
        conversation = self._conversations.get(channel)
        if conversation is not None:
            conversation.clear()
        self._journal.append(Recorded(self._new_id(), channel, self._host.clock(), ContextEnded(user)))
        await self._journal.stored()

    async def has_context(self, channel: str = "main") -> bool:
        """Whether earlier turns of the channel are the context of its next one."""
        return (await self._conversation(channel)).begun

    async def aclose(self) -> None:
        """Stops what runs, waits for its end, and closes connections and journal."""
        if self._closed:
            return
        self._closed = True
        for lock in self._locks.values():
            lock.stop()
        waited = self._running - {asyncio.current_task()}
        if waited:
            await asyncio.wait(waited, timeout=self._settings.settle_timeout + self._settings.tool_abandon_timeout)
        await self._transport.aclose()
        await self._asking.aclose()
        await self._journal.aclose()

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _answer(self, trigger: Trigger, signals: TurnSignals, sink: Sink) -> TurnResult:
        conversation = await self._conversation(trigger.channel)
        recorder = Recorder(trigger.turn_id, trigger.channel, self._journal, self._host.clock)
        exposed = self._exposure.choose(trigger.channel, trigger.text)
        note_beginning(recorder, trigger, conversation, exposed)
        tier = await self._asking.tier(self._redactor)
        plan = self._asking.plan(trigger.user, tier)
        leading = self._asking.leading(plan)
        context = context_for(conversation, trigger, leading, self._asking.measure(leading), self._asking.fixed_tokens)
        await self._ledger.open()
        turn = Turn(
            id=trigger.turn_id,
            channel=trigger.channel,
            user=trigger.user,
            settings=self._settings,
            system=self._host.system_prompt,
            context=context.messages,
            exchanges=context.exchanges,
            toolbox=self._toolbox,
            exposed=exposed.names,
            services=replace(self._services, attachments=trigger.attachments),
            signals=signals,
            sink=sink,
            delivery=Delivery(trigger.turn_id, sink, recorder, self._settings, self._redactor),
            recorder=recorder,
            redactor=self._redactor,
            abandoned=self._abandoned,
            fitted_to=leading,
            identity_key=self._identity_key,
            spending=self._ledger.spending(Payer(trigger.user, trigger.channel, trigger.server)),
        )
        result = await run_turn(turn, trigger, conversation, plan, tier)
        self._asking.observe(leading, result, context.weight)
        self._exposure.used(
            trigger.channel, {entry.call.name for entry in result.history if isinstance(entry.outcome, Succeeded)}
        )
        return result

    async def _conversation(self, channel: str) -> Conversation:
        """The channel's conversation, from memory or else from the journal."""
        known = self._conversations.get(channel)
        if known is None:
            turns = self._settings.context_turns
            known = Conversation(exchanges(await self._earlier(channel, turns)), turns)
            self._conversations[channel] = known
            if len(self._conversations) > self._settings.channels_in_memory:
                self._conversations.popitem(last=False)
        self._conversations.move_to_end(channel)
        return known

    async def _earlier(self, channel: str, turns: int) -> list[Recorded]:
        return await self._journal.channel(channel, turns) if turns else []

    def _never_begun(self, trigger: Trigger) -> TurnResult:
        """A stop dropped the message while it waited: it ends on record, with a reason."""
        recorder = Recorder(trigger.turn_id, trigger.channel, self._journal, self._host.clock)
        recorder.note(Admitted(trigger.channel, trigger.user, trigger.text, trigger.server))
        recorder.note(Ended("stopped_by_user"))
        return TurnResult(trigger.turn_id, "stopped_by_user", "", (), (), (), (), ())

    def _refuse(self, text: str, channel: str, files: Mapping[str, bytes]) -> None:
        """Raises for a message that can't be taken: one clear sentence each."""
        if self._closed:
            raise TurnkeeperError("The engine is closed; make a new one.")
        if not text.strip() and not files:
            raise TurnkeeperError("The message is empty: there is nothing to answer.")
        if len(text) > self._settings.max_input_chars:
            raise TurnkeeperError(
                f"The message has {len(text):,} characters; the most is {self._settings.max_input_chars:,} (`max_input_chars`)."
            )
        for name, data in files.items():
            if len(data) > self._settings.max_attachment_bytes:
                most = self._settings.max_attachment_bytes
                raise TurnkeeperError(
                    f"The file {name!r} has {len(data):,} bytes; the most is {most:,} (`max_attachment_bytes`)."
                )
        if (id(self), channel) in _held.get():  # S13.3a
            raise ReentrantTurnError(
                f"A turn of the channel {channel!r} can't wait for another turn of the same channel: it would wait for itself."
            )
        if self._journal.broken is not None:  # S15.1b
            raise JournalError(f"No new turn is begun, for the journal can't be written: {self._journal.broken}.")

    def _lock(self, channel: str) -> ChannelLock:
        lock = self._locks.get(channel)
        if lock is None:
            lock = ChannelLock(max_waiting=self._settings.max_waiting, max_follow_ups=self._settings.max_follow_ups)
            self._locks[channel] = lock
        return lock

    def _release(self, channel: str, lock: ChannelLock) -> None:
        lock.release()
        if not lock.busy:
            self._locks.pop(channel, None)

    def _new_id(self) -> str:
        """An id that sorts by time: milliseconds, then chance."""
        return f"{int(self._host.clock() * 1000):011x}{self._host.random.getrandbits(36):09x}"


def _toolbox(tools: Iterable[Tool]) -> Toolbox:
    """The tools, and the one that pages through results that were cut; it is offered when there is one (S6.5)."""
    given = list(tools)
    paging = [] if any(getattr(tool, "name", "") == READ_MORE for tool in given) else [read_more_tool()]
    return Toolbox([*given, *paging])


def _journal(journal: str | Journal | None, redactor: Redactor) -> Journal:
    if journal is None:
        return MemoryJournal()
    if not isinstance(journal, str):
        return journal
    from turnkeeper.journal.sql import open_journal

    return open_journal(journal, clean=redactor.json)
