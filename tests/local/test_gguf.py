"""The head of a GGUF file."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from turnkeeper.providers.local.gguf import GgufHeader, read_header


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def entry(key: str, value: str | int) -> bytes:
    if isinstance(value, str):
        return text(key) + struct.pack("<I", 8) + text(value)
    return text(key) + struct.pack("<II", 4, value)


def gguf(*entries: bytes, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, 0, len(entries)) + b"".join(entries)


NUMBERS = text("general.numbers") + struct.pack("<IIQ3I", 9, 4, 3, 1, 2, 3)
TAGS = text("general.tags") + struct.pack("<IIQ", 9, 8, 2) + text("chat") + text("small")
VOCABULARY = text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 30_000) + text("a") + text("b")
WHOLE = gguf(
    entry("general.architecture", "llama"),
    NUMBERS,
    TAGS,
    entry("general.name", "Tide"),
    entry("general.license", "mit"),
    entry("llama.context_length", 2048),
    VOCABULARY,
    entry("tokenizer.ggml.model", "gpt2"),
)


def test_reads_name_licence_and_window_before_the_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(WHOLE)
    assert read_header(tmp_path / "a.gguf") == GgufHeader("llama", "Tide", "mit", 2048)


def test_what_is_not_said_is_empty(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(gguf())
    assert read_header(tmp_path / "a.gguf") == GgufHeader()


def test_any_cut_before_the_vocabulary_is_a_value_error(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    for length in range(WHOLE.index(b"tokenizer.ggml.tokens")):
        path.write_bytes(WHOLE[:length])
        with pytest.raises(ValueError, match=r"GGUF|middle"):
            read_header(path)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "does not start with GGUF"),
        (b"<!doctype html>", "does not start with GGUF"),
        (gguf(version=1), "version is 1"),
        (b"GGUF" + b"\xff" * 40, "version"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + b"\xff" * 40, "damaged"),
    ],
)
def test_what_is_no_gguf_is_said(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "a.gguf").write_bytes(data)
    with pytest.raises(ValueError, match=said):
        read_header(tmp_path / "a.gguf")
