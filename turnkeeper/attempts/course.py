# Who is asked next.
#
# Rule 1: every reason to try another key, another model, or nobody, is here and nowhere else (S3.2 to S3.4a, S3.8).
# Rule 2: nothing here awaits, reads a clock or picks a key: it is told what the pool has (`look`), and answers with a step.
#
# Theory of operation. A course is the list of models that are left, the first of them being tried, with what its tries came
# to. `next_try` looks at it and at the pool of that model: a ready key is asked, a short rest is waited for, else the next
# model takes over. `after` takes the end of an attempt: an error leaves the model to its next key, a timeout does not, for
# another key of a silent model would be silent too. A stream that broke is carried on once on the same model; one that
# breaks twice, or at the text where the one before broke, would do so again: the next model has it (S3.4a). When nobody is
# left, a key whose stream broke gets one more try; else the last failure is the turn's.

"""The decisions of the outer tier, pure."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from turnkeeper.attempts.plan import Planned
from turnkeeper.keys.entry import Key, Rest
from turnkeeper.keys.ring import NoKey, Ready, Resting
from turnkeeper.loop.policy import Finish
from turnkeeper.loop.state import At
from turnkeeper.settings import Settings
from turnkeeper.types.ends import Failed

Look: TypeAlias = Ready | Resting | NoKey


class Course(Struct, frozen=True):
    """Where a turn's attempts stand.

    left: the models that may be tried, the present one first. tried: ids of its keys that had their try.
    breaks: how many of its streams broke. broke_at: the reply as people had it when a stream broke last.
    again: a key whose stream broke, for one more try when nobody else is left.
    resting: the keys of the first model that could not be asked at all.
    extended: the loan of the server's models was decided (S3.8). refusal: why they were not lent, "" where they were.
    """

    left: tuple[Planned, ...]
    tried: frozenset[str] = frozenset()
    breaks: int = 0
    broke_at: tuple[str, ...] | None = None
    again: tuple[Planned, Key] | None = None
    resting: tuple[Planned, Resting] | None = None
    extended: bool = False
    refusal: str = ""

    def at_next_model(self) -> Course:
        """The present model has had its tries."""
        return replace(self, left=self.left[1:], tried=frozenset(), breaks=0)


class Ask(Struct, frozen=True):
    """Make an attempt. last: it is one more try with a key that has had one."""

    planned: Planned
    key: Key
    last: bool = False


class Wait(Struct, frozen=True):
    """Wait so many seconds for the key whose `rest` ends first, and look again."""

    planned: Planned
    seconds: float
    rest: Rest


class NextModel(Struct, frozen=True):
    """The present model can't be asked (any more). resting: because its keys rest."""

    resting: Resting | None = None


class NobodyLeft(Struct, frozen=True):
    """Everybody had a try: the last failure is the turn's."""


Try: TypeAlias = Ask | Wait | NextModel | NobodyLeft


def next_try(
    course: Course, look: Look | None, least: Key | None, settings: Settings, *, now: float, next_s: float | None
) -> Try:
    """The one step that follows.

    look: what the pool of the present model has; None where no model is left. least: a key of it that rests only by our
    preference. now: seconds since the epoch. next_s: how long the next model usually takes to its first token, None where
    that is not known or where there is none.
    """
    match look:
        case None:
            return Ask(*course.again, last=True) if course.again is not None else NobodyLeft()
        case _ if len(course.tried) >= settings.max_key_tries:
            return NextModel()
        case Ready(key=key):
            return Ask(course.left[0], key)
        case Resting(rest=rest):
            wait_s = rest.until - now
            worth_s = settings.max_key_wait if next_s is None else min(settings.max_key_wait, next_s)
            if wait_s <= worth_s:
                return Wait(course.left[0], wait_s, rest)
            if least is not None and len(course.left) == 1:
                return Ask(course.left[0], least)
            return NextModel(look)
        case NoKey():
            return NextModel()
        case _:
            assert_never(look)


def after(course: Course, asked: Ask, finish: Finish, at: At, texts: tuple[str, ...]) -> Course | None:
    """The course after an attempt; None where its end is final.

    at: how the attempt's last pass ended. texts: the reply as people have it.
    """
    if not is_retryable(finish):
        return None
    course = replace(course, tried=course.tried | {asked.key.id}, again=None if asked.last else course.again)
    if _broke(at):
        stuck = course.broke_at == texts
        course = replace(course, breaks=course.breaks + 1, broke_at=texts)
        if stuck or asked.last or course.breaks > 1:  # S3.4a
            return replace(course.at_next_model(), again=None)
        return replace(course, again=(asked.planned, asked.key))
    if finish.end == "timeout" or _is_the_models(finish):  # S3.2
        return course.at_next_model()
    return course


def is_retryable(finish: Finish) -> bool:
    """S3.2: errors and timeouts of a provider; a guard's ceiling would be met again by any model."""
    if finish.end == "error":
        return finish.fault is not None and finish.fault.retryable
    return finish.end == "timeout" and finish.notice is not None and finish.notice.kind == "timed_out"


def _broke(at: At) -> bool:
    """Whether an answer had begun, and its stream broke: by no fault of the key or of what was asked."""
    return isinstance(at, Failed) and not at.undelivered and at.fault.kind in ("network", "server", "overloaded", "timeout")


def _is_the_models(finish: Finish) -> bool:
    """Whether no other key of the model can help: what was asked does not fit it."""
    return finish.fault is not None and finish.fault.kind == "context_length"
