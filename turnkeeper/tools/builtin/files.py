"""`read_file`: text files that came with the message, or that lie in an allowed folder."""

from __future__ import annotations

from pathlib import Path

from turnkeeper.tools.context import ToolContext
from turnkeeper.tools.tool import Tool, tool

_MOST_BYTES = 2 * 2**20


def read_file_tool() -> Tool:
    """The tool. A plain function: the disk may be slow, so it runs in a thread."""

    @tool(read_only=True)
    def read_file(path: str, context: ToolContext) -> str:
        """Reads a text file: an attachment by its name, or a file in an allowed folder by its path.

        Args:
            path: The attachment's name, or the file's path.
        """
        attached = (context.attachments or {}).get(path)
        if attached is not None:
            return _text(attached, path)
        found = _allowed(path, context.folders)
        if found.stat().st_size > _MOST_BYTES:
            raise ValueError(f"{path} is larger than {_MOST_BYTES // 2**20} MB")
        return _text(found.read_bytes(), path)

    return read_file


def _allowed(path: str, folders: tuple[Path, ...]) -> Path:
    """The file of this path inside one of `folders`, links resolved. Raises ValueError where there is none."""
    if not folders:
        raise ValueError("no folder is open for reading here, and no attachment has this name")
    if "\0" in path or len(path) > 4096:
        raise ValueError("that is no path")
    for folder in folders:
        root = folder.expanduser().resolve()
        found = (root / Path(path).expanduser()).resolve()
        if found.is_relative_to(root) and found.is_file():
            return found
    raise ValueError(f"there is no file {path!r} in the folders that are open for reading")


def _text(data: bytes, path: str) -> str:
    if b"\0" in data[:8192]:
        raise ValueError(f"{path} is not a text file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text") from None
