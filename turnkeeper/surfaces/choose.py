# Which model answers when nobody named one: the configuration's first, then that of a key in the environment or kept here,
# then a server that runs on this machine, then the embedded model. One line says which was taken, and why; one more what it
# can't do.

"""Chooses the model of a chat, and serves it where it is a local one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from turnkeeper.config import Config
from turnkeeper.errors import ConfigurationError
from turnkeeper.keys.entry import Key
from turnkeeper.providers.catalogue import family_at, known_servers, provider_at
from turnkeeper.providers.model import Model

EMBEDDED = "smollm2-135m"
BETTER = "qwen2.5-coder-1.5b"


class Chosen(Struct, frozen=True):
    """The models to ask, in order. why: which was taken and why, in one line. note: what it can't do, "" for nothing."""

    models: tuple[Model, ...]
    why: str
    note: str = ""


class Wish(Struct, frozen=True):
    """What the command line asks for; "" for nothing.

    family: the wire family of `base_url`. key: an API key for it, read from the environment.
    """

    model: str = ""
    base_url: str = ""
    key: str = ""
    family: str = ""


@asynccontextmanager
async def opened(
    wish: Wish, config: Config, env: Mapping[str, str], data_folder: Path, keys: Sequence[Key] = ()
) -> AsyncGenerator[Chosen]:
    """The model to chat with, ready to be asked for as long as the block lasts. keys: those that are kept here.

    Raises ConfigurationError for a model that nothing here knows, LocalModelError for a local one that can't be served.
    """
    chosen = _named(wish, config, env, keys)
    if chosen is None and not wish.model:
        chosen = await _running()
    if chosen is not None:
        yield chosen
        return
    async with _served(wish.model, config, data_folder) as chosen:
        yield chosen


def _named(wish: Wish, config: Config, env: Mapping[str, str], keys: Sequence[Key]) -> Chosen | None:
    """The model that the command line, the configuration or a key that is here names; None where none does."""
    if wish.base_url:
        if not wish.model:
            raise ConfigurationError("With --base-url, name the model too: --model NAME.")
        family = wish.family or family_at(wish.base_url)
        model = Model(family, wish.model, base_url=wish.base_url, keys=[wish.key] if wish.key else [])
        return Chosen((model,), f"{wish.model} at {model.url}, as the command line says")
    if wish.model in config.models:
        return Chosen(tuple(config.chain(wish.model)), f"{wish.model}, from {config.path}")
    if wish.model:
        return None
    if config.models:
        first = next(iter(config.models))
        return Chosen(tuple(config.chain(first)), f"{config.models[first].name}, the first model of {config.path}")
    return _by_key(env, keys)


def _by_key(env: Mapping[str, str], keys: Sequence[Key]) -> Chosen | None:
    """The default model of the first provider of which there is a key, in the environment or kept here."""
    for server in known_servers():
        provider = provider_at(server.base_url)
        kept = [key.secret for key in keys if key.provider == provider and not key.scope]
        given = env.get(server.key_env, "").strip()
        if not given and not kept:
            continue
        name = env.get("TURNKEEPER_MODEL", "").strip() or server.default_model
        base_url = env.get("OPENAI_BASE_URL", "").strip() if given and server.key_env == "OPENAI_API_KEY" else ""
        if base_url and provider_at(base_url) != provider:
            kept = []  # no key goes to another server than its own
        secrets = [given, *kept] if given else kept
        model = Model(server.family, name, base_url=base_url or server.base_url, keys=list(dict.fromkeys(secrets)))
        why = f"{server.key_env} is set" if given else "a key of it is kept here (`turnkeeper keys list`)"
        return Chosen((model,), f"{name} at {server.name}, because {why}")
    return None


async def _running() -> Chosen | None:
    """A model of a server that runs on this machine already."""
    from turnkeeper.providers.local.discover import discover

    found = await discover()
    if found is None:
        return None
    model = Model("openai-chat", found.models[0], base_url=found.base_url)
    return Chosen((model,), f"{model.name} on {found.kind} at {found.base_url}, because it runs on this machine")


@asynccontextmanager
async def _served(name: str, config: Config, data_folder: Path) -> AsyncGenerator[Chosen]:
    from turnkeeper.providers.local.server import LocalServer
    from turnkeeper.providers.local.weights import CATALOGUE, LocalModelError, locate

    local = [model.name for model in CATALOGUE]
    if name and name not in local and not name.endswith(".gguf"):
        known = ", ".join([*config.models, *local])
        raise ConfigurationError(
            f"There is no model {name!r} here. Known: {known}; a .gguf file by its path; or any model of a server, "
            "with --base-url and --key-env."
        )
    asked = bool(name)
    if not asked:
        name = _best_present(data_folder)
    try:
        weights = locate(name, data_folder)
    except LocalModelError as problem:
        if name != EMBEDDED:
            raise
        raise LocalModelError(f"{problem} Or set OPENAI_API_KEY, or name a server with --base-url.") from None
    async with LocalServer.of(weights) as server:
        quirks: dict[str, Any] = {"context_window": weights.model.context_window, "prefill": True}
        model = Model("openai-chat", weights.model.name, server.base_url, max_output_tokens=1024, quirks=quirks)
        model = replace(model, temperature=0.0 if model.traits.worked_examples else 0.3)
        why = f"{weights.model.title}, the embedded model, for no key is set and no server runs here"
        if asked or name != EMBEDDED:
            why = f"{weights.model.title}, on this machine" + (", as the command line says" if asked else "")
        yield Chosen((model,), why, _note(weights.model.name, weights.model.note))


def _best_present(data_folder: Path) -> str:
    """The better embedded model where someone brought it, else the small one."""
    from turnkeeper.providers.local.weights import QWEN_CODER, LocalModelError, installed_path

    try:
        return BETTER if installed_path(QWEN_CODER, data_folder) is not None else EMBEDDED
    except LocalModelError:
        return EMBEDDED


def _note(name: str, note: str) -> str:
    if name != EMBEDDED:
        return note
    return f"{note} A better one: `turnkeeper model get {BETTER}` (1.1 GB), or set a provider's key."
