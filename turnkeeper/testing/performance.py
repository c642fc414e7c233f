"""Plays an answer: its steps in order, on the loop's clock."""

from __future__ import annotations

import asyncio
import json
from typing import assert_never

from msgspec import UNSET, Struct

from turnkeeper.testing.body import Body, LimitError
from turnkeeper.testing.framing import Framer
from turnkeeper.testing.steps import (
    Answer,
    Close,
    Cut,
    Fail,
    Framing,
    Hang,
    Keepalive,
    NeverStart,
    Raw,
    Spoken,
    Step,
    Wait,
    Whole,
)
from turnkeeper.testing.wire import Family, Voice


class Performance(Struct, frozen=True, kw_only=True):
    """One answer, who words it, and the connection on which it is given. whole: as a document."""

    answer: Answer
    family: Family
    voice: Voice
    framer: Framer
    body: Body
    whole: bool

    async def play(self) -> None:
        """Returns when the last byte is out. Cancelled, or ConnectionError, when the client leaves before that."""
        try:
            for step in self.answer.steps:
                await self._step(step)
            await self._end()
        except LimitError:
            await self.body.cut(reset=not isinstance(self.answer.end, Cut) or self.answer.end.reset)

    async def _step(self, step: Step) -> None:
        match step:
            case Wait():
                if not step.before_head:
                    await self._open()
                await asyncio.sleep(step.seconds)
            case Keepalive():
                await self._keep_alive(step)
            case Raw():
                await self._open(early=True)
                await self.body.write(self.framer.raw(step.data))
            case Fail() | Cut() | Close() | Hang() | NeverStart() | Whole() | Framing():
                pass  # about the end, or about the whole answer
            case _:
                await self._say(step)

    async def _say(self, step: Spoken) -> None:
        if self.whole:
            return
        await self._open()
        for event in self.voice.say(step):
            await self.body.write(self.framer.event(event))

    async def _keep_alive(self, step: Keepalive) -> None:
        await self._open()
        for _ in range(step.times):
            if not self.whole:
                await self.body.write(self.framer.comment(step.text))
            await asyncio.sleep(step.every_s)

    async def _end(self) -> None:
        match self.answer.end:
            case None:
                await self._end_well()
            case Fail() as fail:
                await self._fail(fail)
            case Cut() as cut:
                await self._cut(cut)
            case Close():
                await self._open()
                await self.body.close()
            case Hang():
                await self._open()
                await _forever()
            case NeverStart():
                await _forever()
            case _ as never:
                assert_never(never)

    async def _end_well(self) -> None:
        await self._open(early=True)
        if self.whole and not self._only_raw:
            await self._write_document()
        elif not self.whole and not self.answer.ends_itself:
            for event in self.voice.end():
                await self.body.write(self.framer.event(event))
        await self.body.close()

    async def _fail(self, fail: Fail) -> None:
        content_type, data = _failure(fail, self.family)
        await self.body.open(content_type, status=fail.status, headers=fail.headers)
        await self.body.write(self.framer.raw(data))
        await self.body.close()

    async def _cut(self, cut: Cut) -> None:
        await self._open(early=cut.after_bytes is not None)
        if self.whole and cut.after_bytes is not None:
            await self._write_document()
        await self.body.cut(reset=cut.reset)

    async def _write_document(self) -> None:
        await self.body.write(self.framer.raw(json.dumps(self.voice.whole()).encode()))

    @property
    def _only_raw(self) -> bool:
        return self.answer.ends_itself and any(isinstance(step, Raw) for step in self.answer.steps)

    async def _open(self, *, early: bool = False) -> None:
        """Sends the head, if this answer has one. A document's head comes with its body: early."""
        if self.answer.says_nothing or (self.whole and not early):
            return
        usual = "application/json" if self.whole else "text/event-stream; charset=utf-8"
        asked = self.answer.framing.content_type
        await self.body.open(usual if asked is UNSET else asked)


def _failure(fail: Fail, family: Family) -> tuple[str, bytes]:
    """Content type and bytes of an error answer."""
    match fail.body:
        case None:
            return "application/json", json.dumps(family.error(fail.status, fail.message, fail.code)).encode()
        case dict():
            return "application/json", json.dumps(fail.body, ensure_ascii=False).encode()
        case str():
            kind = "text/html" if fail.body.lstrip().startswith("<") else "text/plain"
            return f"{kind}; charset=utf-8", fail.body.encode()
        case bytes():
            return "application/octet-stream", fail.body
        case _:
            assert_never(fail.body)


async def _forever() -> None:
    await asyncio.get_running_loop().create_future()
