"""What is known of servers and models: window, quirks, and which environment variable holds a server's key."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct


class Traits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one model on one server wants to be spoken to. The comments in catalogue.toml say what each field means."""

    context_window: int
    max_output: int
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"]
    vision: bool
    tools: Literal["native", "none"]
    prefill: bool
    reasoning_field: str
    alternate: bool
    stream_usage: bool
    ends_unmarked: bool
    signed_calls: bool


class KnownServer(Struct, frozen=True):
    """A hosted server whose key may stand in the environment variable `key_env`."""

    name: str
    host: str
    base_url: str
    key_env: str
    default_model: str


def traits(base_url: str, model: str, overrides: dict[str, Any] | None = None) -> Traits:
    """What the catalogue says of `model` at `base_url`, with the user's own `overrides` on top.

    Raises msgspec.ValidationError when an override has an unknown name or a value of the wrong type.
    """
    table = _table()
    found: dict[str, Any] = dict(table["default"])
    host = (urlsplit(base_url).hostname or "").lower()
    for server in table["server"]:
        if host == server["host"] or host.endswith("." + server["host"]):
            found |= _quirks(server)
    for entry in table["model"]:
        if fnmatchcase(model.lower().rsplit("/", 1)[-1], entry["match"]):
            found |= _quirks(entry)
    return msgspec.convert(found | (overrides or {}), Traits)


def known_servers() -> list[KnownServer]:
    """The hosted servers, in the order in which their keys are looked for."""
    return [msgspec.convert(entry, KnownServer) for entry in _table()["server"]]


@cache  # the file is part of the package and does not change while it runs
def _table() -> dict[str, Any]:
    return tomllib.loads(files("turnkeeper.providers").joinpath("catalogue.toml").read_text("utf-8"))


def _quirks(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name in Traits.__struct_fields__}
