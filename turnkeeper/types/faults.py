"""What went wrong at a provider, as data: its kind, whose fault it is, and what a person can do (S12.4)."""

from __future__ import annotations

from typing import Literal, TypeAlias, assert_never

from msgspec import Struct

ErrorKind: TypeAlias = Literal[
    "auth",
    "permission",
    "rate_limit",
    "quota_exhausted",
    "credit_ceiling",
    "context_length",
    "content_blocked",
    "model_unavailable",
    "overloaded",
    "bad_request",
    "network",
    "timeout",
    "server",
    "protocol",
]
"""The classes of S12.4. Retry, blame and advice follow from the class, never from the text of a message."""

Blame: TypeAlias = Literal["key", "model", "request", "network"]
"""What has to rest, or to change, before the same thing can work (S3.3a)."""


Rests: TypeAlias = Literal["pair", "key", "provider", "nothing"]
"""What a refusal keeps from being asked for a while: this key with this model, the key with all models, the provider with
all keys, or nothing (S3.3a, S3.3b)."""


class Fault(Struct, frozen=True, tag=True):
    """One failure of a provider.

    kind: its class (S12.4).
    blame: what has to rest or change.
    said: what the server said, in one line, at most 300 characters, without secrets.
    where: the host and path that answered, without query.
    status: the HTTP status, or the one that an error inside a stream names; None when there is none.
    retry_after_s: seconds that the server asked us to wait, or None (S3.3a).
    rests: what is not asked again until then: a limit rests the pair, spent credit the key, a region the provider.
    picture: the server refused a picture; without it the request may pass (S3.10a).
    prefill: the server refused an unfinished reply as the last message; an instruction may pass (S3.4b).
    """

    kind: ErrorKind
    blame: Blame
    said: str = ""
    where: str = ""
    status: int | None = None
    retry_after_s: float | None = None
    rests: Rests = "nothing"
    picture: bool = False
    prefill: bool = False

    @property
    def advice(self) -> str:
        """What a person can do about it, as one sentence (S3.6)."""
        if self.rests == "provider":
            return "The provider does not serve the place that this server is in; choose another provider."
        if self.kind == "auth" and self.blame == "network":
            return "A proxy stands before the server and wants its own login; check base URL and proxy, not the key."
        if self.kind == "permission" and self.blame == "model":
            return "This key may not use this model: have it enabled with the provider, or choose another model."
        if self.picture:
            return "The server did not take a picture; try a smaller one, another format, or a model that sees."
        if self.kind == "rate_limit" and self.retry_after_s:
            return f"Try again in {span(self.retry_after_s)}, add another key, or name a fallback model."
        if self.kind == "quota_exhausted" and self.retry_after_s:
            return f"{advice(self.kind)} It is full again in {span(self.retry_after_s)}."
        return advice(self.kind)

    @property
    def retryable(self) -> bool:
        """Whether another key or model may succeed where this one failed (S3.2, S12.4)."""
        return self.kind not in ("content_blocked", "bad_request")

    def __str__(self) -> str:
        """One sentence for people: what failed, where, and what the server said."""
        place = f" at {self.where}" if self.where else ""
        status = f" (HTTP {self.status})" if self.status is not None else ""
        said = f": {self.said}" if self.said else ""
        return f"{_title(self.kind)}{place}{status}{said}"


def span(seconds: float) -> str:
    """A length of time in words, as exact as a person wants it: `2 s`, `10 min`, `2 h 42 min`, `5 days`."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"
    return f"{round(minutes / 1440)} days"


def advice(kind: ErrorKind) -> str:
    """What a person can do about a failure of this class, as one sentence (S3.6)."""
    match kind:
        case "auth":
            return "Check the key: it may be mistyped, revoked, or meant for another server."
        case "permission":
            return "The key is valid but may not use this; ask the owner of the account for access."
        case "rate_limit":
            return "Wait a moment, add another key, or name a fallback model."
        case "quota_exhausted":
            return "The account's quota is used up: add credit, raise its limit, or add a key of another account."
        case "credit_ceiling":
            return "The account is out of credit: add credit with the provider."
        case "context_length":
            return (
                "The conversation is too long for this model: start a new one with /new or choose a model with a larger window."
            )
        case "content_blocked":
            return "The provider's filter refused this content; another wording or another provider may pass."
        case "model_unavailable":
            return "Check the model's name with the provider, or choose another model."
        case "overloaded":
            return "The provider is overloaded; try again shortly or name a fallback model."
        case "bad_request":
            return "The server did not accept the request; check base URL, family and model options."
        case "network":
            return "Check the base URL and the connection; the server may be down."
        case "timeout":
            return "The model did not answer in time; try again or choose a faster model."
        case "server":
            return "The provider had an error of its own; try again shortly."
        case "protocol":
            return "The address answers, but not as this family of API does; check base URL and family."
        case _:
            assert_never(kind)


def _title(kind: ErrorKind) -> str:
    match kind:
        case "auth":
            return "The key was refused"
        case "permission":
            return "The key is not allowed to do this"
        case "rate_limit":
            return "Rate limit reached"
        case "quota_exhausted":
            return "The quota is used up"
        case "credit_ceiling":
            return "The account is out of credit"
        case "context_length":
            return "The conversation does not fit the model's window"
        case "content_blocked":
            return "The content was refused by the provider"
        case "model_unavailable":
            return "The model is not available"
        case "overloaded":
            return "The provider is overloaded"
        case "bad_request":
            return "The server did not accept the request"
        case "network":
            return "The connection failed"
        case "timeout":
            return "No answer in time"
        case "server":
            return "The provider had an error"
        case "protocol":
            return "The answer was not understood"
        case _:
            assert_never(kind)
