# Theory of operation. `catalogue.toml` is rows of quirks. A server is told by host, path or port, a model by its name; every
# row that matches is laid over those before it, the user's own quirks last. Nothing here knows what a quirk does: that is the
# families' (`openai_chat/request.py` and its kin).

"""What is known of servers and models: window, quirks, and which environment variable holds a server's key."""

from __future__ import annotations

import difflib
import ipaddress
import re
import tomllib
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, get_args, get_type_hints
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec import Meta, Struct

from turnkeeper.providers.identifiers import CallIds

_LOCAL_ENDINGS = (".localhost", ".local", ".lan", ".internal")


class Traits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one model on one server wants to be spoken to. The comments in catalogue.toml say what each field means."""

    context_window: Annotated[int, Meta(ge=1)]
    max_output: Annotated[int, Meta(ge=0)]
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"]
    temperature: bool
    vision: bool
    tools: Literal["native", "verbatim", "none"]
    parallel_calls: bool
    refused_schema_keywords: frozenset[str]
    call_ids: CallIds
    system_role: Literal["system", "developer", "user"]
    alternate: bool
    prefill: bool
    prefill_field: Literal["", "prefix", "partial", "continue_final_message"]
    reasoning_field: str
    reasoning_required: bool
    stream_usage: bool
    ends_unmarked: bool
    worked_examples: bool
    signed_calls: bool


class KnownServer(Struct, frozen=True):
    """A hosted server whose key may stand in the environment variable `key_env`. family: the wire family it speaks."""

    name: str
    base_url: str
    key_env: str
    default_model: str
    family: str = "openai-chat"


class _Server(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    hosts: tuple[str, ...] = ()
    path: str = ""
    port: int = 0
    family: str = "openai-chat"
    base_url: str = ""
    key_env: str = ""
    default_model: str = ""


class _Match(Struct, frozen=True, forbid_unknown_fields=True):
    match: tuple[str, ...]
    server: str = ""


class _Catalogue(Struct, frozen=True):
    """The file, with the quirks of each entry beside it."""

    default: dict[str, Any]
    servers: tuple[tuple[_Server, dict[str, Any]], ...]
    models: tuple[tuple[_Match, dict[str, Any]], ...]


def traits(base_url: str, model: str, overrides: dict[str, Any] | None = None) -> Traits:
    """What the catalogue says of `model` at `base_url`, with the user's own `overrides` on top.

    Raises msgspec.ValidationError when an override has an unknown name or a value of the wrong type.
    """
    catalogue = _catalogue()
    found = dict(catalogue.default)
    url, names = urlsplit(base_url), {""}
    for server, quirks in catalogue.servers:
        if _is_at(server, url):
            names.add(server.name)
            found |= quirks
    known_as = model.lower().rsplit("/", 1)[-1]
    for entry, quirks in catalogue.models:
        if entry.server in names and any(_fits(known_as, pattern) for pattern in entry.match):
            found |= quirks
    return msgspec.convert(found | (overrides or {}), Traits)


def family_at(base_url: str) -> str:
    """The wire family that the server at `base_url` speaks, as far as the catalogue knows; else chat completions."""
    url = urlsplit(base_url)
    families = [server.family for server, _ in _catalogue().servers if server.hosts and _is_at(server, url)]
    return families[-1] if families else "openai-chat"


def provider_at(base_url: str) -> str:
    """Whose keys the server at `base_url` takes: a known service's name in small letters, else host and port (S3.3).

    Two addresses of one service (Gemini's own and its OpenAI-shaped one) are one provider; a customer's own subdomain is one
    by itself, so that no key goes to another customer's.
    """
    url = urlsplit(base_url)
    servers = [server for server, _ in _catalogue().servers]
    found = next((server for server in servers if url.hostname in server.hosts and _is_at(server, url)), None)
    if found is None:
        return f"{url.hostname}:{url.port}" if url.port else url.hostname or ""
    return next(server.name for server in servers if server is found or server.key_env == found.key_env != "").lower()


def quirk_problem(quirks: dict[str, Any]) -> str:
    """What is wrong with a user's quirks, in a sentence that names the quirk and what may stand there; "" for nothing."""
    known = Traits.__struct_fields__
    for name in quirks:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            meant = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(known)}."
            return f"there is no quirk `{name}`; {meant} All of them: docs/catalogue.md."
    try:
        traits("", "", quirks)
    except msgspec.ValidationError as problem:
        said, _, place = str(problem).partition(" - at ")
        found = re.search(r"\w+", place)
        name = found.group() if found else ""
        allowed = [repr(value) for value in get_args(get_type_hints(Traits).get(name)) if isinstance(value, str)]
        may_be = f"it may be {', '.join(allowed)}" if allowed else said
        return f"the quirk `{name}` is wrong: {may_be}."
    return ""


def known_servers() -> list[KnownServer]:
    """The hosted servers, in the order in which their keys are looked for."""
    return [
        KnownServer(server.name, server.base_url, server.key_env, server.default_model, server.family)
        for server, _ in _catalogue().servers
        if server.key_env
    ]


@cache  # the file is part of the package and does not change while it runs
def _catalogue() -> _Catalogue:
    table = tomllib.loads(files("turnkeeper.providers").joinpath("catalogue.toml").read_text("utf-8"))
    return _Catalogue(
        default=table["default"],
        servers=tuple((msgspec.convert(_rest(entry), _Server), _quirks(entry)) for entry in table["server"]),
        models=tuple((_matcher(_rest(entry)), _quirks(entry)) for entry in table["model"]),
    )


def _matcher(entry: dict[str, Any]) -> _Match:
    one_or_several = entry["match"]
    return msgspec.convert(entry | {"match": [one_or_several] if isinstance(one_or_several, str) else one_or_several}, _Match)


def _quirks(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name in Traits.__struct_fields__}


def _rest(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in Traits.__struct_fields__}


def _fits(name: str, pattern: str) -> bool:
    plain = pattern.partition("*")[0].partition("[")[0]  # most are told apart by this, without compiling them
    return name.startswith(plain) and fnmatchcase(name, pattern)


def _is_at(server: _Server, url: SplitResult) -> bool:
    host = (url.hostname or "").lower().rstrip(".")
    if not server.hosts:
        return url.port == server.port and _is_near(host)
    if server.path and not f"{url.path}/".startswith(f"{server.path}/"):
        return False
    return any(host == known or host.endswith("." + known) for known in server.hosts)


def _is_near(host: str) -> bool:
    """Whether a host is this machine or in its network, where a port tells which server listens."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith(_LOCAL_ENDINGS)
