"""The Messages API's usage objects in our disjoint parts (S15.2; cases.md, "Usage")."""

from __future__ import annotations

from typing import Any

from turnkeeper.providers.counts import count, table_of
from turnkeeper.types.usage import Usage

_FIELDS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


class UsageReport:
    """Collects the reports of one answer: the last of each field counts, nothing is added up.

    The number of output tokens that opens a stream is a placeholder and no report.
    """

    def __init__(self) -> None:
        self.said: dict[str, Any] = {}
        """The counts as the server words them, the last of each."""
        self._closing = False
        self._total: int | None = None  # of the prompt, where the server states one beside its parts
        self._long = 0
        self._searches = 0

    def opening(self, usage: object) -> None:
        """Takes the report of `message_start`."""
        self._take(table_of(usage))

    def closing(self, usage: object) -> None:
        """Takes a report of `message_delta`, or of a whole answer."""
        said = table_of(usage)
        before = dict(self.said)
        self._take(said)
        if count(said, "output_tokens") is not None:
            self._closing = True
        # A server that told the whole prompt at first, and its cached part at the end, without telling the rest anew.
        cached = (count(said, "cache_read_input_tokens") or 0) + (count(said, "cache_creation_input_tokens") or 0)
        new = not before.get("cache_read_input_tokens") and not before.get("cache_creation_input_tokens")
        if cached and new and count(said, "input_tokens") is None and self._total is None:
            self._total = count(before, "input_tokens")

    def usage(self) -> Usage | None:
        """Our reading, None where nothing was reported that counts."""
        if not self.said:
            return None
        read, written = self.said.get("cache_read_input_tokens", 0), self.said.get("cache_creation_input_tokens", 0)
        fresh = self.said.get("input_tokens", 0)
        if self._total is not None and fresh + read + written > self._total:  # the parts were told as if they were one
            read = min(read, self._total)
            written = min(written, self._total - read)
            fresh = self._total - read - written
        return Usage(
            input=fresh,
            cache_read=read,
            cache_write=written,
            cache_write_long=min(self._long, written),
            output=self.said.get("output_tokens", 0) if self._closing else 0,
            searches=self._searches,
        )

    def _take(self, usage: dict[str, Any]) -> None:
        for name in _FIELDS:
            number = count(usage, name)
            if number is not None:
                self.said[name] = number
        stated = count(usage, "prompt_tokens")
        self._total = stated if stated is not None else self._total
        long = count(table_of(usage.get("cache_creation")), "ephemeral_1h_input_tokens")
        self._long = long if long is not None else self._long
        searches = count(table_of(usage.get("server_tool_use")), "web_search_requests")
        self._searches = searches if searches is not None else self._searches
