"""`turnkeeper model`: the models that run on this machine."""

from __future__ import annotations

import click

from turnkeeper.providers.local.download import install, list_models, remove
from turnkeeper.providers.local.weights import find_model, readable_size, user_data_folder
from turnkeeper.settings import environment


def list_command() -> int:
    """Prints the local models, one a line, with what is here of each."""
    for listed in list_models(user_data_folder(environment())):
        model = listed.model
        if listed.problem:
            state = listed.problem
        elif listed.path is not None:
            state = f"here: {listed.path}"
        elif listed.partial_bytes:
            state = f"{readable_size(listed.partial_bytes)} of {readable_size(model.size_bytes)} fetched; `model get` goes on"
        else:
            state = f"not here ({readable_size(model.size_bytes)}); `turnkeeper model get {model.name}` brings it"
        click.echo(f"{model.name:<20} {model.licence:<11} {state}\n{'':<20} {model.note}")
    return 0


def get_command(name: str) -> int:
    """Brings a model, with a progress bar."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    model = find_model(name)
    folder = user_data_folder(environment())
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(model.name, total=model.size_bytes)

        def progress(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)

        path = install(model, folder, progress)
    click.echo(f"{model.name} is here: {path}. Chat with it: turnkeeper chat --model {model.name}")
    return 0


def remove_command(name: str) -> int:
    """Removes a model's file."""
    freed = remove(name, user_data_folder(environment()))
    click.echo(f"{name} was removed; {readable_size(freed)} are free again.")
    return 0
