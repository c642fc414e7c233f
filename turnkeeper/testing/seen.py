"""What the scripted provider saw of a request."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field


class SeenRequest(Struct, kw_only=True):
    """A request for an answer, and how serving it went.

    at: when it had arrived, on the loop's clock. path: with its query. headers: names in lower case.
    body: decoded, None if it is not JSON. raw: the body's bytes. key: "" for none.
    problems: what a strict server would refuse in the request, a sentence each.
    status: the HTTP status that it was answered with, 0 for none. finished: all of the answer was sent, its break-off
    included. closed_early: the client hung up before that.
    """

    at: float
    path: str
    headers: dict[str, str]
    body: Any
    raw: bytes
    key: str
    problems: list[str] = field(default_factory=list[str])
    status: int = 0
    finished: bool = False
    closed_early: bool = False
