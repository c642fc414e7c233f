"""The origin that fetches from the makers' own repository, with huggingface_hub where it is installed (extra `hub`)."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from turnkeeper.providers.local.origins import OriginError, Progress
from turnkeeper.providers.local.weights import LocalModel

_REACH_S = 3.0


class HubOrigin:
    """The Hugging Face hub. It resumes by itself, in the workshop; no account and no token is used."""

    name = "Hugging Face"

    def __init__(self, endpoint: str | None = None) -> None:
        """endpoint: another hub's base URL; None is huggingface_hub's own setting."""
        self._endpoint = endpoint

    def offers(self, model: LocalModel) -> bool:
        """Whether the model lies there, huggingface_hub is installed, and the hub answers within 3 seconds."""
        if model.source is None or model.source.hub is None or importlib.util.find_spec("huggingface_hub") is None:
            return False
        library = _library()
        try:
            library.get_session().head(self._endpoint or library.constants.ENDPOINT, timeout=_REACH_S)
        except Exception:  # no network, a proxy that refuses, offline mode: each with a type of its own
            return False
        return True

    def bytes_needed(self, model: LocalModel, workshop: Path) -> int:
        """The file, less what an earlier try left."""
        left = sum(file.stat().st_size for file in workshop.rglob("*") if file.is_file()) if workshop.is_dir() else 0
        return max(0, model.size_bytes - left)

    def bring(self, model: LocalModel, workshop: Path, progress: Progress) -> Path:
        """Fetch the file, going on where an earlier try was cut; see `Origin.bring`."""
        if model.source is None or model.source.hub is None:
            raise OriginError("it has not got this model")
        wanted = model.source.hub
        try:
            return Path(
                _library().hf_hub_download(
                    wanted.repo,
                    wanted.file,
                    local_dir=workshop,
                    token=False,
                    endpoint=self._endpoint,
                    tqdm_class=_bar(progress, model),
                )
            )
        except Exception as problem:  # its errors have many roots: its own, httpx's, the disk's
            raise OriginError(str(problem).strip().partition("\n")[0] or type(problem).__name__) from problem


def _library() -> Any:
    """huggingface_hub, which is no dependency of ours and so has no types here; `offers` has seen that it is there."""
    return importlib.import_module("huggingface_hub")


def _bar(progress: Progress, model: LocalModel) -> Any:
    """A class with as much of tqdm's face as huggingface_hub uses, which tells `progress` instead of drawing."""

    class Bar:
        def __init__(self, *_: object, **settings: object) -> None:
            self._done = cast("int", settings.get("initial") or 0)

        def update(self, count: float | None = 1) -> None:
            self._done += int(count or 0)
            progress(self._done, model.size_bytes, model.name)

        def set_description(self, *_: object, **__: object) -> None: ...
        def refresh(self) -> None: ...
        def close(self) -> None: ...

        def __enter__(self) -> Bar:
            return self

        def __exit__(
            self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
        ) -> None: ...

    return Bar
