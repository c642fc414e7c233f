"""`turnkeeper chat`: from its options to a running chat."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import Any, cast

import click
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnkeeper.config import Config, read_config
from turnkeeper.delivery.notices import Language
from turnkeeper.engine import Engine, Host
from turnkeeper.errors import ConfigurationError
from turnkeeper.keys.entry import Key
from turnkeeper.keys.master import Masters, system_keyring
from turnkeeper.keys.vault import Vault
from turnkeeper.loop.turn import Approval
from turnkeeper.providers.local.weights import user_data_folder
from turnkeeper.redaction import RedactingFilter, Redactor
from turnkeeper.settings import Settings, environment
from turnkeeper.surfaces.choose import Chosen, Wish, opened
from turnkeeper.surfaces.terminal.chat import CHANNEL, chat_live, chat_piped
from turnkeeper.surfaces.terminal.painter import Painter, has_colour
from turnkeeper.tools.builtin import builtin_tools
from turnkeeper.tools.tool import Tool
from turnkeeper.types.turn import TurnResult

JOURNAL_NAME = "turns.db"
"""The journal's file in the data folder."""

_SYSTEM = (
    "You are a helpful assistant in a chat. Answer briefly and clearly. Use a tool where it helps; never invent its result."
)


class ChatOptions(Struct, frozen=True):
    """What the command line says; "" and None for nothing."""

    once: str | None = None
    as_json: bool = False
    model: str = ""
    base_url: str = ""
    key_env: str = ""
    family: str = ""
    tools: str = "offline"
    config: Path | None = None
    journal: str = ""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> ChatOptions:
        """From the command's own names and values."""
        return cls(**options)


def chat_command(options: ChatOptions) -> int:
    """Runs the chat. Returns the exit code: 0 where all was answered, 1 where something was not, 130 where it was stopped."""
    if options.as_json and options.once is None:
        raise ConfigurationError("--json goes with --once TEXT.")
    env = environment()
    config = read_config(options.config, env, folders=(Path.cwd(), user_data_folder(env)))
    if config.language not in ("en", "ja"):
        raise ConfigurationError(f"{config.path}: `language` in [chat] must be en or ja, not {config.language!r}.")
    return asyncio.run(_chat(options, config, env))


async def _chat(options: ChatOptions, config: Config, env: Mapping[str, str]) -> int:
    data_folder = user_data_folder(env)
    tools = _tools(options.tools)
    vault = _vault(options, config, data_folder, env)
    with closing(vault) if vault is not None else nullcontext():
        keys = [key for _, key in await asyncio.to_thread(vault.opened)] if vault is not None else []
        async with opened(_wish(options, env), config, env, data_folder, keys) as chosen:
            _keep_secrets_from_logs(chosen, keys)
            if not options.as_json:
                _introduce(chosen, quiet=options.once is not None)
            host = Host(
                system_prompt=config.system_prompt or _SYSTEM,
                approve=_ask if sys.stdin.isatty() and options.once is not None else None,
                folders=config.folders,
                keys=vault,
            )
            settings, tools = _fitted(chosen, config.settings, tools, once=options.once is not None)
            async with Engine(chosen.models, tools, settings, _journal(options, config, data_folder), host) as engine:
                return await _talk(engine, options, config, env)


async def _talk(engine: Engine, options: ChatOptions, config: Config, env: Mapping[str, str]) -> int:
    if options.once is not None:
        return await _once(engine, options, cast(Language, config.language))
    if await engine.has_context(CHANNEL):
        click.echo("This goes on from your last conversation; /new begins a new one.")
    if sys.stdin.isatty() and sys.stdout.isatty() and env.get("TERM", "dumb") != "dumb":
        await chat_live(engine, _painter_maker(config))
        return 0
    return 0 if await chat_piped(engine, _painter_maker(config)) else 1


def _fitted(chosen: Chosen, settings: Settings, tools: list[Tool], *, once: bool) -> tuple[Settings, list[Tool]]:
    """Settings and tools for the model that leads; a single question stands alone."""
    if once:
        settings = replace(settings, context_turns=0)
    if chosen.models[0].traits.worked_examples:  # a tiny model: what it has examples of, where a word asks for it
        return replace(settings, tool_mode="deliberate", exposed_turns=0), [tool for tool in tools if tool.options.examples]
    return settings, tools


async def _once(engine: Engine, options: ChatOptions, language: Language) -> int:
    text = options.once or ""
    if text == "-":
        text = await asyncio.to_thread(sys.stdin.read)
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):  # Windows has no such handlers: there Ctrl-C ends the program
        loop.add_signal_handler(signal.SIGINT, lambda: asyncio.ensure_future(engine.stop(CHANNEL)))
    if options.as_json:
        result: TurnResult | None = None
        async for event in engine.stream(text, channel=CHANNEL):
            _write(msgspec.json.encode(event).decode() + "\n")
            result = getattr(event, "result", result)
        return _code(result)
    colour = has_colour(environment(), terminal=sys.stdout.isatty())
    painter = Painter(_write, colour=colour, language=language, aside=None if colour else _write_aside)
    result = await engine.run(text, channel=CHANNEL, sink=painter)
    painter.end_line()
    return _code(result)


def _code(result: TurnResult | None) -> int:
    if result is None or result.end in ("error", "timeout", "empty_response"):
        return 1
    return 130 if result.end == "stopped_by_user" else 0


def _wish(options: ChatOptions, env: Mapping[str, str]) -> Wish:
    key = env.get(options.key_env, "") if options.key_env else ""
    if options.key_env and not key:
        raise ConfigurationError(f"The environment variable {options.key_env} (--key-env) is not set; put the key into it.")
    if options.key_env and not options.base_url:
        raise ConfigurationError("--key-env goes with --base-url, the address that the key is for.")
    if options.family and not options.base_url:
        raise ConfigurationError("--family goes with --base-url, the address that speaks it.")
    return Wish(options.model, options.base_url, key, options.family)


def _tools(wanted: str) -> list[Tool]:
    """The tools that `--tools` names."""
    if wanted == "none":
        return []
    offline = builtin_tools()
    if wanted == "offline":
        return offline
    every = builtin_tools(online=True)
    if wanted == "online":
        return every
    known = {tool.name: tool for tool in every}
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise ConfigurationError(f"There is no built-in tool {name!r} (--tools); known: {', '.join(known)}.")
    return [known[name] for name in names]


def _journal(options: ChatOptions, config: Config, data_folder: Path) -> str | None:
    if options.journal == "none":
        return None
    return options.journal or config.journal or journal_url(data_folder)


def journal_url(data_folder: Path) -> str:
    """The journal in the data folder, which is made where it is missing. Raises ConfigurationError where it can't be."""
    try:
        data_folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise ConfigurationError(
            f"The data folder {data_folder} can't be made: {problem.strerror}; set TURNKEEPER_DATA or use --journal none."
        ) from None
    return f"sqlite:///{data_folder / JOURNAL_NAME}"


def _vault(options: ChatOptions, config: Config, data_folder: Path, env: Mapping[str, str]) -> Vault | None:
    """The keys that are kept here: in the database of the journal, which `--journal none` does not make."""
    if options.journal not in ("", "none"):
        url = options.journal
    elif config.journal or options.journal != "none":
        url = config.journal or journal_url(data_folder)
    elif (data_folder / JOURNAL_NAME).exists():
        url = journal_url(data_folder)
    else:
        return None
    return Vault(url, Masters(env, data_folder, keyring=system_keyring))


def _introduce(chosen: Chosen, *, quiet: bool) -> None:
    lines = [f"Model: {chosen.why}.", chosen.note]
    if not quiet:
        lines.append("Type a message; /help lists what else you can type.")
    for line in lines:
        if line:
            stream = sys.stderr if quiet else sys.stdout
            dim = has_colour(environment(), terminal=stream.isatty())
            click.echo(click.style(line, dim=True) if dim else line, err=quiet)


def _painter_maker(config: Config) -> Callable[[Callable[[str], None]], Painter]:
    return lambda write: Painter(
        write, colour=has_colour(environment(), terminal=sys.stdout.isatty()), language=cast(Language, config.language)
    )


async def _ask(approval: Approval) -> bool:
    """Asks at the terminal whether a tool may run."""
    return await asyncio.to_thread(click.confirm, f"Run {approval.tool}({approval.arguments})?", default=False)


def _keep_secrets_from_logs(chosen: Chosen, keys: Sequence[Key]) -> None:
    """S16.2a: set before anything can log, on the handler, over the formatted text."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    secrets = [key for model in chosen.models for key in model.keys] + [key.secret for key in keys]
    handler.addFilter(RedactingFilter(Redactor(secrets)))
    logging.basicConfig(level=logging.ERROR, handlers=[handler])


def _write_aside(text: str) -> None:
    click.echo(text, err=True, nl=False)


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
        sys.stdout.flush()
