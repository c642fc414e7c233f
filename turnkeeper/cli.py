# The command line. Everything that a command needs is imported in it, so that `turnkeeper --help` is quick.
#
# Whatever a person can mend ends in one sentence on standard error and exit code 1; a usage mistake in 2; Ctrl-C in 130.

"""`turnkeeper`: chat, demo, turns, usage, keys, probe, parse, model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from turnkeeper.errors import TurnkeeperError

_Command = TypeVar("_Command", bound=Callable[..., Any])


def main() -> None:
    """Runs the command line and exits."""
    try:
        code: int = group.main(standalone_mode=False) or 0
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except TurnkeeperError as problem:
        click.echo(f"turnkeeper: {problem}", err=True)
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has left
        sys.stderr.close()
        sys.exit(141)
    sys.exit(code)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="turnkeeper")
def group() -> None:
    """A chat with a language model that finishes its reply, and a record of all that happened."""


@group.command()
@click.option("--once", metavar="TEXT", help="Answer TEXT and leave; - reads it from standard input.")
@click.option("--json", "as_json", is_flag=True, help="With --once: print one JSON event a line.")
@click.option("--model", default="", metavar="NAME", help="A model of turnkeeper.toml, a local model, or a .gguf file.")
@click.option("--base-url", default="", metavar="URL", help="Where the model is served, such as http://127.0.0.1:8080/v1.")
@click.option("--key-env", default="", metavar="NAME", help="The environment variable that holds the key for --base-url.")
@click.option("--family", default="", metavar="NAME", help="What --base-url speaks, such as anthropic; else by its host.")
@click.option(
    "--tools", default="offline", metavar="SET", help="offline (default), online (adds the web), none, or names: a,b."
)
@click.option("--config", type=click.Path(path_type=Path), help="The configuration file; else turnkeeper.toml here.")
@click.option(
    "--journal", default="", metavar="URL", help="Where turns are recorded; else a file in the data folder; none for nowhere."
)
def chat(**options: str | bool | Path | None) -> int:
    """Chat with a model, in this terminal."""
    from turnkeeper.surfaces.terminal.command import ChatOptions, chat_command

    return chat_command(ChatOptions.of(options))


@group.command()
@click.option("--fast", is_flag=True, help="Leave out the pauses.")
def demo(fast: bool) -> int:
    """A show of three minutes: tools, parallel tools, a hang that times out, a kill. Nothing leaves this machine."""
    from turnkeeper.surfaces.terminal.demo import demo_command

    return demo_command(fast=fast)


@group.command()
@click.argument("turn_id", required=False)
@click.option("--limit", default=20, type=click.IntRange(1, 10_000), help="How many turns are listed.")
@click.option("--journal", default="", metavar="URL", help="The journal; else the one in the data folder.")
def turns(turn_id: str | None, limit: int, journal: str) -> int:
    """List the recorded turns, or show one as a timeline."""
    from turnkeeper.surfaces.terminal.turns import turns_command

    return turns_command(turn_id, limit, journal)


@group.command()
@click.option("--days", default=7, type=click.IntRange(1, 3660), help="How many days, today included.")
@click.option(
    "--by", default="day", type=click.Choice(["day", "model", "user", "channel", "server", "payer"]), help="What is summed by."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--journal", default="", metavar="URL", help="The journal; else the one in the data folder.")
def usage(days: int, by: str, as_json: bool, journal: str) -> int:
    """Show how many tokens were used, and what they cost."""
    from turnkeeper.surfaces.terminal.usage import usage_command

    return usage_command(days, by, journal, as_json=as_json)


@group.command()
@click.argument("base_url", default="")
@click.option("--key-env", default="", metavar="NAME", help="The environment variable that holds the key.")
@click.option("--model", default="", metavar="NAME", help="The model to ask; else the first that the endpoint lists.")
@click.option("--family", default="", metavar="NAME", help="What the endpoint speaks, such as anthropic; else by its host.")
@click.option("--timeout", default=60.0, type=click.FloatRange(1, 3600), help="Seconds that one answer may take.")
@click.option("--config", type=click.Path(path_type=Path), help="The configuration file; else turnkeeper.toml here.")
def probe(base_url: str, key_env: str, model: str, family: str, timeout: float, config: Path | None) -> int:
    """Find out what the endpoint at BASE_URL really does, and print the lines to configure it.

    Without BASE_URL: the model that `chat` would take.
    """
    from turnkeeper.surfaces.terminal.probe import ProbeOptions, probe_command

    return probe_command(ProbeOptions(base_url, key_env, model, family, timeout, config))


@group.command()
@click.argument("family")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--chunk", default=0, type=click.IntRange(0), metavar="N", help="Feed the file in pieces of N bytes.")
def parse(family: str, file: Path, chunk: int) -> int:
    """Print what the parser of FAMILY makes of a recorded answer, as one JSON object."""
    import json

    from turnkeeper.providers.report import report
    from turnkeeper.settings import read_file

    data = read_file(file)
    pieces = [data[at : at + chunk] for at in range(0, len(data), chunk)] if chunk else [data]
    click.echo(json.dumps(report(family, pieces), ensure_ascii=False, indent=2).encode("utf-8", "replace").decode())
    return 0


@group.group()
def model() -> None:
    """The models that run on this machine."""


@model.command("list")
def model_list() -> int:
    """List the local models and what is here of them."""
    from turnkeeper.surfaces.terminal.models import list_command

    return list_command()


@model.command("get")
@click.argument("name")
def model_get(name: str) -> int:
    """Bring a local model to this machine; a cut download goes on where it stopped."""
    from turnkeeper.surfaces.terminal.models import get_command

    return get_command(name)


@model.command("remove")
@click.argument("name")
def model_remove(name: str) -> int:
    """Remove a local model from this machine."""
    from turnkeeper.surfaces.terminal.models import remove_command

    return remove_command(name)


@group.group()
def keys() -> None:
    """The API keys that are kept here, encrypted."""


def _place(command: _Command) -> _Command:
    """The options that say where the keys are."""
    command = click.option("--config", type=click.Path(path_type=Path), help="The configuration file.")(command)
    return click.option("--journal", default="", metavar="URL", help="The database; else the journal's.")(command)


@keys.command("add")
@click.argument("provider")
@click.option("--user", default="", metavar="NAME", help="Whose own key it is; else the server's, for everybody.")
@click.option("--account", default="", metavar="NAME", help="Its account, where several keys share one account's limits.")
@click.option("--from-env", default="", metavar="NAME", help="Take the key from this variable; else it is asked for.")
@_place
def keys_add(provider: str, user: str, account: str, from_env: str, journal: str, config: Path | None) -> int:
    """Add a key of PROVIDER: a name such as openai, or the base URL of a server. The key is asked for, without echo."""
    from turnkeeper.surfaces.terminal.keys import Adding, Place, add_command

    return add_command(Adding(provider, user, account, from_env), Place(journal, config))


@keys.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_place
def keys_list(as_json: bool, journal: str, config: Path | None) -> int:
    """List the keys: whose, the last four characters, and how they fare."""
    from turnkeeper.surfaces.terminal.keys import Place, list_command

    return list_command(Place(journal, config), as_json=as_json)


@keys.command("test")
@click.argument("which", default="")
@_place
def keys_test(which: str, journal: str, config: Path | None) -> int:
    """Ask the providers whether the keys work: all, those of a provider, or one by its id. Spends no tokens."""
    from turnkeeper.surfaces.terminal.keys import Place, test_command

    return test_command(which, Place(journal, config))


@keys.command("replace")
@click.argument("key_id")
@click.option("--from-env", default="", metavar="NAME", help="Take the key from this variable; else it is asked for.")
@_place
def keys_replace(key_id: str, from_env: str, journal: str, config: Path | None) -> int:
    """Put a new key in the place of KEY_ID; its rests end."""
    from turnkeeper.surfaces.terminal.keys import Place, replace_command

    return replace_command(key_id, from_env, Place(journal, config))


@keys.command("remove")
@click.argument("key_id")
@_place
def keys_remove(key_id: str, journal: str, config: Path | None) -> int:
    """Remove the key KEY_ID."""
    from turnkeeper.surfaces.terminal.keys import Place, remove_command

    return remove_command(key_id, Place(journal, config))


@keys.command("rotate")
@_place
def keys_rotate(journal: str, config: Path | None) -> int:
    """Seal all keys with a new master key."""
    from turnkeeper.surfaces.terminal.keys import Place, rotate_command

    return rotate_command(Place(journal, config))
