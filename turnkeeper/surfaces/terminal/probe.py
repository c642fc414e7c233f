"""`turnkeeper probe`: what an endpoint really does, in a table, and the lines to configure it."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import suppress
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from turnkeeper.config import read_config
from turnkeeper.errors import ConfigurationError
from turnkeeper.probe.ask import Endpoint
from turnkeeper.probe.findings import Found, Place, config_lines, table
from turnkeeper.probe.run import listed_models, probe
from turnkeeper.providers.catalogue import family_at
from turnkeeper.providers.local.weights import user_data_folder
from turnkeeper.providers.model import Model
from turnkeeper.providers.transport import Transport
from turnkeeper.settings import environment
from turnkeeper.surfaces.choose import Wish, opened
from turnkeeper.surfaces.terminal.painter import printable

_UNNAMED = "unnamed"  # until the list has been read
_NOT_FOR_CHAT = ("embed", "rerank", "whisper", "tts", "moderation", "image", "dall-e")


class ProbeOptions(Struct, frozen=True):
    """What the command line says; "" and None for nothing. timeout_s: seconds that one answer may take."""

    base_url: str
    key_env: str
    model: str
    family: str
    timeout_s: float
    config: Path | None


def probe_command(options: ProbeOptions) -> int:
    """Runs the probe. Returns 0 where all was asked, 1 where the endpoint could not be asked, 130 after Ctrl-C."""
    return asyncio.run(_command(options))


async def _command(options: ProbeOptions) -> int:
    env = environment()
    if options.base_url:
        key = env.get(options.key_env, "").strip() if options.key_env else ""
        if options.key_env and not key:
            raise ConfigurationError(f"The environment variable {options.key_env} (--key-env) is not set; put the key into it.")
        family = options.family or family_at(options.base_url)
        model = Model(family, options.model or _UNNAMED, options.base_url, keys=[key] if key else [])
        return await _probe(model, options)
    if options.key_env or options.family:
        raise ConfigurationError("--key-env and --family go with a BASE_URL, the address that they are for.")
    data_folder = user_data_folder(env)
    config = read_config(options.config, env, folders=(Path.cwd(), data_folder))
    async with opened(Wish(options.model), config, env, data_folder) as chosen:
        click.echo(f"Probing {chosen.why}.", err=True)
        return await _probe(chosen.models[0], options)


async def _probe(model: Model, options: ProbeOptions) -> int:
    found = Found()
    transport = Transport()
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    with suppress(NotImplementedError):  # Windows has no such handlers: there Ctrl-C ends the program
        loop.add_signal_handler(signal.SIGINT, task.cancel)
    try:
        model, entry = await _chosen(model, found, transport, options)
        why = await probe(Endpoint(model, transport, options.timeout_s, time.time), found, entry, _progress)
    except asyncio.CancelledError:
        task.uncancel()
        _report(found, model, options, "Stopped; this is what was found so far.")
        return 130
    finally:
        await transport.aclose()
    _report(found, model, options, why)
    return 1 if why else 0


async def _chosen(model: Model, found: Found, transport: Transport, options: ProbeOptions) -> tuple[Model, dict[str, object]]:
    """The model that is asked, and what the list says of it."""
    _progress("the list of models ...")
    entries = await listed_models(Endpoint(model, transport, options.timeout_s, time.time), found)
    if model.name != _UNNAMED:
        own = [entry for entry in entries if entry["id"] == model.name]
        return model, own[0] if own else {}
    if not entries:
        said = found.rows["models"].said.rstrip(".")
        raise ConfigurationError(f"The endpoint lists no models ({said}); name one with --model NAME, or check the base URL.")
    for_chat = [one for one in entries if not any(word in str(one["id"]).lower() for word in _NOT_FOR_CHAT)]
    entry = (for_chat or entries)[0]
    name = str(entry["id"])
    more = f", the first of {len(entries)}; --model names another" if len(entries) > 1 else ""
    click.echo(printable(f"Asking {name}{more}."), err=True)
    return replace(model, name=name), entry


def _progress(text: str) -> None:
    click.echo(text, err=True)


def _report(found: Found, model: Model, options: ProbeOptions, why: str) -> None:
    name = "" if model.name == _UNNAMED else f"{model.name} at "
    lines = [f"{name}{model.url}", "", *table(found)]
    if why:
        lines += ["", why]
    elif options.base_url:
        place = Place(model.family, model.url, model.name, options.key_env)
        lines += ["", "For turnkeeper.toml:", "", *config_lines(found, place)]
    key = model.keys[0] if model.keys else ""
    for line in lines:
        click.echo(printable(line.replace(key, "[redacted]") if key else line))
