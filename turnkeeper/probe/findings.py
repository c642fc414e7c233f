"""What the probe found out, and what follows for the configuration. Pure."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from turnkeeper.providers.catalogue import Traits, traits

Verdict: TypeAlias = Literal["yes", "no", "partly", "unknown"]
"""yes: it works. no: it does not. partly: it does, with a catch. unknown: it could not be told."""

ROWS = (
    ("models", "lists its models"),
    ("streams", "streams"),
    ("ends", "says why an answer ended"),
    ("usage", "reports tokens"),
    ("tools", "native tool calls"),
    ("parallel", "several calls at once"),
    ("forced", "forced call"),
    ("verbatim", "calls in text"),
    ("leaks", "call markup leaks into text"),
    ("prefill", "goes on after a prefill"),
    ("reasoning", "reasoning"),
    ("window", "context window"),
    ("errors", "error answers"),
    ("speed", "speed"),
)
"""The rows of the report, in order: name, and what it is about."""


class Finding(Struct, frozen=True):
    """What was found out about one row, in a short sentence."""

    verdict: Verdict
    said: str


class Found(Struct):
    """All that is known so far.

    window: tokens, where the endpoint said or showed it. usage_refused: it refuses to be asked for the token counts.
    """

    rows: dict[str, Finding] = field(default_factory=dict[str, Finding])
    window: int = 0
    usage_refused: bool = False

    def put(self, row: str, verdict: Verdict, said: str) -> None:
        """Notes a finding."""
        self.rows[row] = Finding(verdict, said)

    def is_(self, row: str, *verdicts: Verdict) -> bool:
        """Whether a row has one of these verdicts."""
        return row in self.rows and self.rows[row].verdict in verdicts


class Place(Struct, frozen=True):
    """What was probed. key_env: the environment variable that holds the key, "" for none."""

    family: str
    base_url: str
    model: str
    key_env: str = ""


def table(found: Found) -> list[str]:
    """The report, a line a row; rows that were not asked say so."""
    width = max(len(about) for _, about in ROWS)
    lines: list[str] = []
    for name, about in ROWS:
        finding = found.rows.get(name, Finding("unknown", "not asked"))
        lines.append(f"{finding.verdict:<8} {about:<{width}}  {finding.said}".rstrip())
    return lines


def quirks_of(found: Found, known: Traits) -> dict[str, Any]:
    """The quirks that this endpoint needs beyond what the catalogue knows of it."""
    quirks: dict[str, Any] = {}
    if found.is_("tools", "yes", "partly"):
        tools = "native"
    elif found.is_("verbatim", "yes"):
        tools = "verbatim"
    elif found.is_("tools", "no") and found.is_("verbatim", "no"):
        tools = "none"
    else:
        tools = known.tools
    if tools != known.tools:
        quirks["tools"] = tools
    if found.is_("prefill", "yes") != known.prefill and found.is_("prefill", "yes", "no"):
        quirks["prefill"] = not known.prefill
    if found.is_("ends", "no") and not known.ends_unmarked:
        quirks["ends_unmarked"] = True
    if found.usage_refused and known.stream_usage:
        quirks["stream_usage"] = False
    if found.window and found.window != known.context_window:
        quirks["context_window"] = found.window
    return quirks


def config_lines(found: Found, place: Place) -> list[str]:
    """What may be pasted into turnkeeper.toml."""
    name = "".join(c if c.isalnum() or c in "_-" else "-" for c in place.model.rpartition("/")[2]) or "model"
    lines = [f"[models.{name}]", f"family = {_toml(place.family)}", f"name = {_toml(place.model)}"]
    lines.append(f"base_url = {_toml(place.base_url)}")
    if place.key_env:
        lines.append(f"key_env = {_toml(place.key_env)}")
    quirks = quirks_of(found, traits(place.base_url, place.model))
    if quirks:
        lines.append(f"quirks = {{ {', '.join(f'{key} = {_toml(value)}' for key, value in quirks.items())} }}")
    return lines


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
