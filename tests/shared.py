"""Where the data that lies beside the checkout is; tests that need it skip, saying so, where it is absent."""

from pathlib import Path

_BESIDE = Path(__file__).parents[2] / "shared" / "streams"

STREAMS: Path | None = _BESIDE if _BESIDE.is_dir() else None
