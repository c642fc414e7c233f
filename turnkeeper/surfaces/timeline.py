"""A turn as people read it: one line an event, with times and tokens (S15.1)."""

from __future__ import annotations

from typing import assert_never

from turnkeeper.delivery.notices import words
from turnkeeper.journal.events import (
    Admitted,
    AttemptStarted,
    ContextEnded,
    Delivering,
    Ended,
    MessageDelivered,
    NoticeShown,
    PassEnded,
    PassStarted,
    Recorded,
    Restarted,
    Thought,
    ToolFinished,
    ToolStarted,
    TurnEvent,
)
from turnkeeper.types.usage import Usage

_TEXT_CHARS = 100


def timeline(events: list[Recorded]) -> list[str]:
    """The lines of a turn's timeline; times are seconds from its beginning."""
    if not events:
        return []
    begin = events[0].at
    lines = [f"{one.at - begin:8.3f}  {line}" for one in events if (line := _line(one.event))]
    return [*lines, *_totals([one.event for one in events])]


def _line(event: TurnEvent) -> str:
    match event:
        case Admitted(channel=channel, user=user, text=text):
            return f"{user} in {channel}: {_short(text)}"
        case AttemptStarted(number=number, model=model, key=key, scope=scope):
            whose = f" of {scope}" if scope else ""
            return f"attempt {number}: {model}{f', key …{key}{whose}' if key else ''}"
        case PassStarted(number=number, purpose=purpose, request_bytes=size):
            return f"pass {number} ({purpose.replace('_', ' ')}), {size:,} bytes sent"
        case PassEnded():
            return _pass(event)
        case ToolStarted(name=name):
            return f"tool {name} begins"
        case ToolFinished(name=name, ran_by=attempt, content=content) if attempt:
            return f"tool {name} not run again: attempt {attempt} had run it: {_short(content)}"
        case ToolFinished(name=name, outcome=outcome, kind=kind, took_s=took, content=content):
            ended = f"{outcome.lower()}{f' ({kind})' if kind else ''}"
            return f"tool {name or '(no name)'} {ended} in {took:.3f} s: {_short(content)}"
        case Restarted(name=name, item=item):
            return f"context from {name}, the pass begins again: {_short(item.text)}"
        case Delivering():
            return ""  # the line of its delivery says it
        case MessageDelivered(message=message):
            return f"shown{'' if message.confirmed else ' (not confirmed)'}: {_short(message.text)}"
        case NoticeShown(notice=notice):
            return f"notice: {words(notice)}"
        case Thought(line=line):
            return f"noted: {_short(line)}"
        case Ended(end=end):
            return f"ended: {end}"
        case ContextEnded(user=user):
            return f"{user} began a new conversation"
        case _:
            assert_never(event)


def _pass(event: PassEnded) -> str:
    words_ = [f"pass {event.number} ended: {event.end}"]
    if event.first_progress_s is not None:
        words_.append(f"first token after {event.first_progress_s:.3f} s")
    if event.usage is not None:
        words_.append(tokens(event.usage))
    if event.asked:
        words_.append("asks for " + ", ".join(f"{one.name}({_short(one.arguments)})" for one in event.asked))
    if event.fault is not None:
        words_.append(str(event.fault))
    return "; ".join(words_)


def tokens(usage: Usage) -> str:
    """A pass's tokens, in words."""
    parts = [f"{usage.prompt:,} in"]
    if usage.cache_read:
        parts.append(f"{usage.cache_read:,} of them from cache")
    parts.append(f"{usage.output:,} out")
    if usage.reasoning:
        parts.append(f"{usage.reasoning:,} of them reasoning")
    return ", ".join(parts) + (" (estimated)" if usage.estimated else "")


def _totals(events: list[TurnEvent]) -> list[str]:
    usages = [event.usage for event in events if isinstance(event, PassEnded) and event.usage is not None]
    if not usages:
        return []
    total = Usage(
        input=sum(one.input for one in usages),
        cache_read=sum(one.cache_read for one in usages),
        cache_write=sum(one.cache_write for one in usages),
        output=sum(one.output for one in usages),
        reasoning=sum(one.reasoning for one in usages),
        estimated=any(one.estimated for one in usages),
    )
    return [f"   total  {len(usages)} passes, {tokens(total)}"]


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _TEXT_CHARS else text[: _TEXT_CHARS - 1] + "…"
