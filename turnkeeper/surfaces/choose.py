# Which model answers when nobody named one: the configuration's first, then a key in the environment, then a server that
# runs on this machine, then the embedded model. One line says which was taken, and why.

"""Chooses the model of a chat."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from turnkeeper.config import Config
from turnkeeper.errors import ConfigurationError
from turnkeeper.providers.catalogue import known_servers
from turnkeeper.providers.model import Model


class Chosen(Struct, frozen=True):
    """The models to ask, in order, and why, in one line."""

    models: tuple[Model, ...]
    why: str


class Wish(Struct, frozen=True):
    """What the command line asks for; "" for nothing. key: an API key for `base_url`, read from the environment."""

    model: str = ""
    base_url: str = ""
    key: str = ""


def choose_named(wish: Wish, config: Config, env: Mapping[str, str]) -> Chosen | None:
    """The model that the command line, the configuration or a key in the environment names; None where none does.

    Raises ConfigurationError where the name is of no model that is known here.
    """
    if wish.base_url:
        if not wish.model:
            raise ConfigurationError("With --base-url, name the model too: --model NAME.")
        model = Model("openai-chat", wish.model, base_url=wish.base_url, keys=[wish.key] if wish.key else [])
        return Chosen((model,), f"{wish.model} at {wish.base_url}, as the command line says")
    if wish.model in config.models:
        return Chosen(tuple(config.chain(wish.model)), f"{wish.model}, from {config.path}")
    if wish.model:
        return None
    if config.models:
        first = next(iter(config.models))
        return Chosen(tuple(config.chain(first)), f"{config.models[first].name}, the first model of {config.path}")
    return _from_environment(env)


def unknown_model(name: str, config: Config, local: list[str]) -> ConfigurationError:
    """The error for a model that nothing here knows."""
    known = [*config.models, *local]
    return ConfigurationError(
        f"There is no model {name!r} here. Known: {', '.join(known)}; a .gguf file by its path; "
        "or any model of a server, with --base-url and --key-env."
    )


def is_gguf(name: str) -> bool:
    """Whether a model's name is a path to a weights file."""
    return name.endswith(".gguf") or Path(name).suffix == ".gguf"


def _from_environment(env: Mapping[str, str]) -> Chosen | None:
    for server in known_servers():
        key = env.get(server.key_env, "").strip()
        if key:
            name = env.get("TURNKEEPER_MODEL", "").strip() or server.default_model
            base_url = env.get("OPENAI_BASE_URL", "").strip() if server.key_env == "OPENAI_API_KEY" else ""
            model = Model("openai-chat", name, base_url=base_url or server.base_url, keys=[key])
            return Chosen((model,), f"{name} at {server.name}, for {server.key_env} is set")
    return None
