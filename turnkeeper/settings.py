# Every limit and switch, with its unit, range and rule on one line.
#
# Rule 1: a number that a user may want to change is declared here and nowhere else; docs/settings.md is made from this file.
# Rule 2: a wrong value stops the start with one sentence that names the setting, what it may be, and what it was (S16.3).
# Units come last in a name, except in the public timeouts, which are seconds.

"""Settings of an engine. All durations are seconds, all sizes bytes unless a name says otherwise."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from turnkeeper.errors import ConfigurationError


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits and switches of an engine; each has a default and a validated range.

    Raises ConfigurationError, naming the setting, when a value is of the wrong type or out of range.
    """

    # S4.2: passes in a turn before it ends `timeout`; 1 to 1,000
    max_passes: Annotated[int, Meta(ge=1, le=1000)] = 100
    # S4.2: tool calls that fail in a row before the turn ends `error`; 1 to 100
    max_tool_errors: Annotated[int, Meta(ge=1, le=100)] = 5
    # S4.2: the pass at which people are told that the turn goes on, and of /kill; 1 to 1,000
    still_working_pass: Annotated[int, Meta(ge=1, le=1000)] = 20
    # S4.2a: the same call with the same result in a row: a sentence is added to the result; 2 to 100
    repeated_call_hint: Annotated[int, Meta(ge=2, le=100)] = 3
    # S4.2a: the same call with the same result in a row: it is refused; 2 to 100
    repeated_call_refusal: Annotated[int, Meta(ge=2, le=100)] = 6
    # S4.2a: the same call with the same result in a row: the turn ends; 2 to 1,000
    repeated_call_end: Annotated[int, Meta(ge=2, le=1000)] = 10
    # S4.5: calls of one pass that are run; further ones are answered by a failure; 1 to 1,000
    max_calls_per_pass: Annotated[int, Meta(ge=1, le=1000)] = 64
    # S4.5: read-only tools of one pass that run at once; 1 to 64
    parallel_tools: Annotated[int, Meta(ge=1, le=64)] = 8
    # S3.1: each turn, one member of the chain, chosen by chance, leads
    random_lead: bool = False
    # S3.3: keys of one model that are tried in one turn; 1 to 100
    max_key_tries: Annotated[int, Meta(ge=1, le=100)] = 5
    # S3.3: how long a channel keeps to the key that it used last, while the provider may hold its prompt; up to 86,400
    prompt_cache_ttl: Annotated[float, Meta(ge=0, le=86400)] = 300.0
    # S3.3: the longest wait for a limited key, where that is quicker than the next model; up to 600
    max_key_wait: Annotated[float, Meta(ge=0, le=600)] = 3.0
    # S3.3c: how long a model that timed out comes after the others; up to 86,400
    silent_model_memory: Annotated[float, Meta(ge=0, le=86400)] = 600.0
    # S3.3c: the first-token budget of such a model, where another one could answer; 1 to 3,600
    silent_first_token_timeout: Annotated[float, Meta(gt=0, le=3600)] = 20.0
    # S3.7: after a fallback, people are told which model answered
    failure_notice: bool = True
    # S3.8: users without a key of their own, or whose keys have failed, may use the server's; false: each brings a key
    lend_models: bool = True
    # S3.8: seconds between two replies lent to one user whose own keys have failed; up to 86,400
    lend_cooldown: Annotated[float, Meta(ge=0, le=86400)] = 0.0
    # S3.8: replies lent to one user in 24 hours whose own keys have failed; 0 for any number, up to 1,000,000
    lend_quota: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    # tokens, read and written, that one turn may use; 0 for any number
    turn_tokens: Annotated[int, Meta(ge=0)] = 0
    # US dollars that one turn may cost; 0 for any amount
    turn_cost: Annotated[float, Meta(ge=0)] = 0.0
    # tokens that one user may use in a day, which begins at 00:00 UTC; 0 for any number; own keys do not count here or below
    user_day_tokens: Annotated[int, Meta(ge=0)] = 0
    # US dollars that one user may cost in a day; 0 for any amount
    user_day_cost: Annotated[float, Meta(ge=0)] = 0.0
    # tokens that may be used in one channel in a day; 0 for any number
    channel_day_tokens: Annotated[int, Meta(ge=0)] = 0
    # US dollars that one channel may cost in a day; 0 for any amount
    channel_day_cost: Annotated[float, Meta(ge=0)] = 0.0
    # tokens that may be used on one server (guild) in a day; 0 for any number
    server_day_tokens: Annotated[int, Meta(ge=0)] = 0
    # US dollars that one server (guild) may cost in a day; 0 for any amount
    server_day_cost: Annotated[float, Meta(ge=0)] = 0.0
    # tokens that all together may use in a day; 0 for any number
    day_tokens: Annotated[int, Meta(ge=0)] = 0
    # US dollars that all together may cost in a day; 0 for any amount
    day_cost: Annotated[float, Meta(ge=0)] = 0.0
    # S5.1: from the request to the first progress; 1 to 3,600
    first_token_timeout: Annotated[float, Meta(gt=0, le=3600)] = 300.0
    # S5.1: the longest gap between two signs of progress; up to 3,600
    idle_timeout: Annotated[float, Meta(gt=0, le=3600)] = 120.0
    # S5.2: how long a send in flight may take to settle after a timeout; up to 60
    settle_timeout: Annotated[float, Meta(ge=0, le=60)] = 5.0
    # S5.4: how often newer messages may interrupt before the channel has been idle; 0 to 100
    max_follow_ups: Annotated[int, Meta(ge=0, le=100)] = 3
    # S6.4: one tool call; a tool's own `timeout` goes before it; up to 86,400
    tool_timeout: Annotated[float, Meta(gt=0, le=86400)] = 300.0
    # S6.4: how long a cancelled tool may take to end before it is abandoned; up to 60
    tool_abandon_timeout: Annotated[float, Meta(ge=0, le=60)] = 5.0
    # S6.2: "all" tools are told of in each turn, or, "deliberate", those that a trigger word or their use exposes
    tool_mode: Literal["all", "deliberate"] = "all"
    # S6.2: in deliberate mode, turns for which a used tool stays exposed; 0 to 100
    exposed_turns: Annotated[int, Meta(ge=0, le=100)] = 3
    # S6.5: a tool's result as the model reads it; 1 KiB to 16 MiB
    max_result_bytes: Annotated[int, Meta(ge=1024, le=16 * 2**20)] = 64 * 1024
    # S9.4: retries of a first pass that came back empty; 0 to 10
    max_empty_retries: Annotated[int, Meta(ge=0, le=10)] = 2
    # S9.4b: how often a text cut by the output limit is carried on; 0 to 20
    max_length_continuations: Annotated[int, Meta(ge=0, le=20)] = 3
    # S2.3: one step of the finaliser; up to 60
    finaliser_timeout: Annotated[float, Meta(gt=0, le=60)] = 5.0
    # S14.1: code points of one message; 50 to 100,000
    message_limit: Annotated[int, Meta(ge=50, le=100_000)] = 2000
    # S14.3: messages of one reply; the operator's limit, reached in silence; 0 for none
    send_message_limit: Annotated[int, Meta(ge=0, le=1000)] = 0
    # S14.3: code points of one reply; the safety limit, reached with a notice; 1,000 to 10,000,000
    flush_limit: Annotated[int, Meta(ge=1000, le=10_000_000)] = 200_000
    # S12: bytes of one server-sent event, and of a whole answer that is no stream; 64 KiB to 256 MiB
    max_event_bytes: Annotated[int, Meta(ge=64 * 1024, le=256 * 2**20)] = 16 * 2**20
    # S12: bytes of one provider answer; 64 KiB to 1 GiB
    max_answer_bytes: Annotated[int, Meta(ge=64 * 1024, le=2**30)] = 128 * 2**20
    # S2.5: code points of one message of a user; 1 to 10,000,000
    max_input_chars: Annotated[int, Meta(ge=1, le=10_000_000)] = 200_000
    # bytes of one file that comes with a message; 1 KiB to 256 MiB
    max_attachment_bytes: Annotated[int, Meta(ge=1024, le=256 * 2**20)] = 8 * 2**20
    # S2.5: earlier turns of a channel that are read as its context; 0 to 10,000
    context_turns: Annotated[int, Meta(ge=0, le=10_000)] = 200
    # S2.2: messages that may wait in one channel; 1 to 10,000
    max_waiting: Annotated[int, Meta(ge=1, le=10_000)] = 50
    # channels whose conversation is kept in memory; 1 to 100,000
    channels_in_memory: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    # S16.2a: secrets are removed from everything that leaves; false is for debugging on your own machine only
    redact: bool = True

    def __post_init__(self) -> None:
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        for name, value in values.items():
            _check(name, value)
        if self.repeated_call_hint > self.repeated_call_refusal or self.repeated_call_refusal > self.repeated_call_end:
            raise ConfigurationError(
                "The settings `repeated_call_hint`, `repeated_call_refusal` and `repeated_call_end` must grow in this order."
            )


def environment() -> dict[str, str]:
    """The environment as it is now. Nothing else reads it."""
    return dict(os.environ)


def read_file(path: Path) -> bytes:
    """A file that a person named. Raises ConfigurationError naming it where it can't be read."""
    try:
        return path.read_bytes()
    except OSError as problem:
        raise ConfigurationError(f"{path} can't be read: {problem.strerror}.") from None


def settings_from(values: dict[str, Any]) -> Settings:
    """Settings from a table of names and values, such as a section of a file.

    Raises ConfigurationError that names an unknown setting and the nearest known one, or a value out of its range.
    """
    known = Settings.__struct_fields__
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            meant = f"; did you mean `{near[0]}`?" if near else "."
            raise ConfigurationError(f"unknown setting `{name}`{meant} All of them: docs/settings.md.")
    return Settings(**values)


def _check(name: str, value: object) -> None:
    for field in msgspec.structs.fields(Settings):
        if field.name == name:
            try:
                msgspec.convert(value, field.type, strict=True)
            except msgspec.ValidationError as problem:
                raise ConfigurationError(f"The setting `{name}` can't be {value!r}: {problem}.") from None
