"""`turnkeeper keys`: the API keys that are kept here, encrypted, and how they fare."""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import datetime
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from turnkeeper.config import read_config
from turnkeeper.errors import ConfigurationError
from turnkeeper.keys.entry import UNTIL_EDITED, Key, Rest
from turnkeeper.keys.health import Health
from turnkeeper.keys.master import Masters, system_keyring
from turnkeeper.keys.owners import mismatch, owner_named, owner_of
from turnkeeper.keys.vault import NewKey, StoredKey, Vault
from turnkeeper.probe.key import Checked, check
from turnkeeper.providers.local.weights import user_data_folder
from turnkeeper.providers.transport import Transport
from turnkeeper.settings import environment
from turnkeeper.surfaces.terminal.command import journal_url
from turnkeeper.surfaces.terminal.painter import printable
from turnkeeper.types.faults import span

_MOST_CHARS = 8192  # of what is read as a key
_CHECKED_AT_ONCE = 4
_TIMEOUT_S = 20.0


class Place(Struct, frozen=True):
    """Where the keys are. journal: a database URL, "" for the configured one. config: the configuration file."""

    journal: str = ""
    config: Path | None = None

    def vault(self) -> Vault:
        """The vault there. Raises ConfigurationError for a configuration that is wrong."""
        env = environment()
        data_folder = user_data_folder(env)
        config = read_config(self.config, env, folders=(Path.cwd(), data_folder))
        url = self.journal or config.journal or journal_url(data_folder)
        return Vault(url, Masters(env, data_folder, keyring=system_keyring))


class Listed(Struct, frozen=True):
    """A key as it is listed. health: a line for each rest. next_try: seconds since the epoch; null for now or for never."""

    id: str
    provider: str
    scope: str
    account: str
    base_url: str
    last_four: str
    added_at: float
    readable: bool
    health: list[str]
    next_try: float | None


class Adding(Struct, frozen=True):
    """A key to be added. from_env: the variable that holds it; "" reads it from the terminal or standard input."""

    provider: str
    user: str = ""
    account: str = ""
    from_env: str = ""


def add_command(adding: Adding, place: Place) -> int:
    """Adds a key."""
    owner = owner_named(adding.provider)
    vault = place.vault()
    try:
        secret = _secret(adding.from_env, f"The key of {owner.provider}")
        kept_url = owner.base_url if owner.kept else ""
        stored = vault.add(NewKey(owner.provider, secret, adding.user, adding.account, kept_url), time.time())
        warning = mismatch(owner.provider, secret)
    finally:
        vault.close()
    click.echo(f"Added {stored.id}: {_whose(stored)} key of {stored.provider}, …{stored.last_four}.")
    if warning:
        click.echo(f"turnkeeper: {warning}", err=True)
    return 0


def replace_command(key_id: str, from_env: str, place: Place) -> int:
    """Puts another secret in a key's place; what is known of its health ends with the old one."""
    vault = place.vault()
    try:
        stored = vault.find(key_id)
        vault.replace(stored.id, _secret(from_env, f"The new key of {stored.provider}"))
        shown = vault.find(stored.id).last_four
    finally:
        vault.close()
    click.echo(f"Replaced {stored.id}: …{stored.last_four} became …{shown}, and its rests ended.")
    return 0


def remove_command(key_id: str, place: Place) -> int:
    """Removes a key."""
    vault = place.vault()
    try:
        stored = vault.remove(key_id)
    finally:
        vault.close()
    click.echo(f"Removed {stored.id}: {_whose(stored)} key of {stored.provider}, …{stored.last_four}.")
    return 0


def rotate_command(place: Place) -> int:
    """Seals all keys with a new master key."""
    vault = place.vault()
    try:
        count = vault.rotate()
    finally:
        vault.close()
    click.echo(f"{count} {'key is' if count == 1 else 'keys are'} sealed with a new master key now.")
    return 0


def list_command(place: Place, *, as_json: bool) -> int:
    """Prints the keys with their health; of a key itself, the last four characters."""
    vault = place.vault()
    try:
        stored, rests = vault.all(), vault.rests()
        readable = {key.id: key for _, key in vault.opened()}
    finally:
        vault.close()
    now = time.time()
    health = Health(rests)
    rows = [_listed(one, readable.get(one.id), health, now) for one in stored]
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(rows)).decode())
        return 0
    if not rows:
        click.echo("No keys are kept here. `turnkeeper keys add PROVIDER` adds one; keys of the environment work too.")
    for row in rows:
        head = f"{row.id}  {row.provider:<12}  {row.scope or 'server':<12}  …{row.last_four}  "
        click.echo(printable(head + row.health[0]))
        for line in row.health[1:]:
            click.echo(printable(" " * len(head) + line))
    return 0


def test_command(which: str, place: Place) -> int:
    """Asks the providers whether the keys work. which: an id, a provider, or "" for all. Returns 1 where one was refused."""
    vault = place.vault()
    try:
        opened = vault.opened()
        by_provider = {key.provider for _, key in opened}
        name = which.lower()
        asked = [one for one in opened if not which or one[1].provider == name]
        if which and name not in by_provider:
            wanted = vault.find(which).id
            asked = [one for one in opened if one[0].id == wanted]
            if not asked:
                raise ConfigurationError(f"The key {wanted} can't be read, for its master key is missing.")
        if not asked:
            click.echo("There is no key to test. `turnkeeper keys add PROVIDER` adds one.")
            return 0
        return asyncio.run(_check_all(vault, asked))
    finally:
        vault.close()


async def _check_all(vault: Vault, asked: list[tuple[StoredKey, Key]]) -> int:
    transport = Transport()
    room = asyncio.Semaphore(_CHECKED_AT_ONCE)

    async def one(stored: StoredKey, key: Key) -> Checked:
        async with room:
            found = await check(owner_of(stored.provider, stored.base_url), key.secret, transport, _TIMEOUT_S, time.time())
        await asyncio.to_thread(_note, vault, key, found)
        said = f": {found.said}" if found.said else ""
        click.echo(printable(f"{stored.id}  {stored.provider:<12}  …{stored.last_four}  {found.verdict}{said}"))
        return found

    try:
        found = await asyncio.gather(*(one(stored, key) for stored, key in asked))
    finally:
        await transport.aclose()
    return 1 if any(one.verdict == "refused" for one in found) else 0


def _note(vault: Vault, key: Key, found: Checked) -> None:
    """Puts on record what was found of the key itself; a limit of one model is not touched by it."""
    health = Health(vault.rests())
    if found.verdict == "refused" and found.fault is not None and found.fault.rests == "key":
        vault.save(health.refused(key, "", found.fault, time.time()).rests, [])
    elif found.verdict == "works":
        vault.save([], [rest for rest in health.rests if rest.holder == key.id and rest.kind in ("auth", "permission")])


def _secret(from_env: str, asked: str) -> str:
    """The key, from a variable, the terminal without echo, or standard input; never from the command line, which others see."""
    if from_env:
        secret = environment().get(from_env, "").strip()
        if not secret:
            raise ConfigurationError(f"The environment variable {from_env} (--from-env) is not set; put the key into it.")
        return secret
    if sys.stdin.isatty():
        return str(click.prompt(f"{asked} (it is not shown)", hide_input=True, type=str)).strip()
    secret = sys.stdin.read(_MOST_CHARS).strip()
    if not secret:
        raise ConfigurationError("No key came on standard input; type it at the prompt of a terminal, or use --from-env NAME.")
    return secret


def _whose(stored: StoredKey) -> str:
    return f"{stored.scope}'s own" if stored.scope else "the server's"


def _listed(stored: StoredKey, key: Key | None, health: Health, now: float) -> Listed:
    rests = health.resting(key, now) if key is not None else []
    lines = [_said(rest, now) for rest in rests] or ["ready" if key is not None else "can't be read: its master key is missing"]
    return Listed(
        id=stored.id,
        provider=stored.provider,
        scope=stored.scope,
        account=stored.account,
        base_url=stored.base_url,
        last_four=stored.last_four,
        added_at=stored.added_at,
        readable=key is not None,
        health=lines,
        next_try=max((rest.until for rest in rests if rest.until != UNTIL_EDITED), default=None),
    )


def _said(rest: Rest, now: float) -> str:
    what = f" for {rest.model}" if rest.model else ""
    whole = {"account": " with its account", "provider": " with its provider"}.get(rest.holder.partition(":")[0], "")
    said = f": {rest.said}" if rest.said else ""
    if rest.until == UNTIL_EDITED:
        return f"rests{what}{whole} until it is replaced ({rest.kind.replace('_', ' ')}){said}"
    at = datetime.fromtimestamp(rest.until).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    return f"rests{what}{whole} for {span(rest.until - now)}, until {at} ({rest.kind.replace('_', ' ')}){said}"
