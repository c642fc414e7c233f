"""What people are told of models that failed (S3.6, S3.7)."""

from __future__ import annotations

from collections.abc import Sequence

from turnkeeper.attempts.course import Course
from turnkeeper.keys.entry import UNTIL_EDITED, Rest
from turnkeeper.loop.policy import Finish
from turnkeeper.types.faults import Fault, advice, span
from turnkeeper.types.turn import AttemptRecord, Notice


def failure_notice(records: Sequence[AttemptRecord]) -> Notice | None:
    """After a fallback: which model answered, and what the others failed of; None where the first model answered itself."""
    answered = records[-1].model
    failed = [record for record in records[:-1] if record.model != answered]
    return Notice("answered_by", answered, tuple(line_of(record) for record in records[:-1])) if failed else None


def line_of(record: AttemptRecord) -> str:
    """A failed try in one line."""
    key = f" (key …{record.key})" if record.key else ""
    return f"{record.model}{key}: {record.fault if record.fault is not None else 'no answer in time'}"


def all_resting(course: Course, now: float, *, lends: bool) -> Finish:
    """The end of a turn that nobody could be asked for: every key rests, or there is none.

    lends: the server lends its models; where not, each user brings a key (S3.8).
    """
    if course.resting is None:
        said = "There is no key for any model." if lends else "This bot lends no models: add an API key of your own first."
        return Finish("error", Notice("failed", said), Fault("auth", "key", said=said))
    planned, resting = course.resting
    rest, name = resting.rest, planned.model.name
    keys = f"All {resting.keys} keys of {name} rest" if resting.keys > 1 else f"The key of {name} rests"
    said = f" The server said: {rest.said.rstrip('.')}." if rest.said else ""
    when, seconds = _when(rest, now)
    fault = Fault(rest.kind, "key", rest.said, retry_after_s=seconds, rests="pair" if rest.model else "key")
    return Finish("error", Notice("failed", f"{keys} ({_reason(rest)}), {when}.{said}"), fault)


def _reason(rest: Rest) -> str:
    return rest.kind.replace("_", " ")


def _when(rest: Rest, now: float) -> tuple[str, float | None]:
    if rest.until == UNTIL_EDITED:
        return f"until it is mended: {advice(rest.kind).rstrip('.')}", None
    left_s = max(0.0, rest.until - now)
    return f"the first is tried again in {span(left_s)}", left_s
