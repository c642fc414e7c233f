"""The head of a GGUF file: what the model is called and how long a context it was trained on.

Only the metadata before the vocabulary is read, which is where every known writer puts these keys.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MOST_KEYS = 4096
_LONGEST_TEXT = 1 << 20
_FEW_TEXTS = 256  # tags, languages; a vocabulary has thousands
_STRING, _ARRAY = 8, 9
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class GgufHeader(Struct, frozen=True):
    """What a GGUF file says of itself; empty or None where it is silent."""

    architecture: str = ""
    name: str = ""
    licence: str = ""
    context_length: int | None = None  # tokens


def read_header(path: Path) -> GgufHeader:
    """The header of the GGUF file at `path`.

    Raises ValueError, with what is wrong, where it is not one or ends in the middle; OSError where it can't be read.
    """
    with path.open("rb") as file:
        if file.read(4) != MAGIC:
            raise ValueError("it does not start with GGUF")
        version, _tensors, keys = _unpack(file, "IQQ")
        if version not in _VERSIONS:
            raise ValueError(f"its GGUF version is {version}; only 2 and 3 are known")
        return _header(_metadata(file, min(int(keys), _MOST_KEYS)))


def _header(found: dict[str, str | int]) -> GgufHeader:
    architecture = str(found.get("general.architecture", ""))
    length = found.get(f"{architecture}.context_length")
    return GgufHeader(
        architecture=architecture,
        name=str(found.get("general.name", "")),
        licence=str(found.get("general.license", "")),
        context_length=length if isinstance(length, int) and length > 0 else None,
    )


def _metadata(file: BinaryIO, keys: int) -> dict[str, str | int]:
    found: dict[str, str | int] = {}
    for _ in range(keys):
        key = _text(file)
        (kind,) = _unpack(file, "I")
        if kind == _STRING:
            found[key] = _text(file)
        elif kind in _NUMBERS:
            found[key] = _unpack(file, _NUMBERS[kind])[0]
        elif kind != _ARRAY or not _skip_array(file):
            break
    return found


def _skip_array(file: BinaryIO) -> bool:
    """Step over an array of numbers or of a few strings; False at any other, for then the vocabulary is reached."""
    kind, count = _unpack(file, "IQ")
    if kind == _STRING and count <= _FEW_TEXTS:
        for _ in range(count):
            _text(file)
        return True
    if kind not in _NUMBERS:
        return False
    file.seek(int(count) * struct.calcsize("<" + _NUMBERS[kind]), 1)
    return True


def _text(file: BinaryIO) -> str:
    (length,) = _unpack(file, "Q")
    if length > _LONGEST_TEXT:
        raise ValueError("its header is damaged")
    return _exactly(file, int(length)).decode("utf-8", "replace")


def _unpack(file: BinaryIO, shape: str) -> tuple[int, ...]:
    return struct.unpack("<" + shape, _exactly(file, struct.calcsize("<" + shape)))


def _exactly(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise ValueError("it ends in the middle of its header")
    return data
