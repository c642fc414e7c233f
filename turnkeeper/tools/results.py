# Whatever a tool returns becomes JSON values and bounded text (S6.5, S2.5a).
#
# A value may be anything: huge, circular, of a class whose `repr` raises. Nothing here is proportional to more than the
# limit, and nothing here raises. What was cut is kept whole under a handle, so that the model can page through the rest.

"""Reads tools' results."""

from __future__ import annotations

import dataclasses
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, cast

import msgspec
from msgspec import Struct

from turnkeeper.tools.pictures import read_picture
from turnkeeper.types.messages import Picture

EMPTY = "(no output)"
_DEEPEST = 40
_MOST_ITEMS = 10_000
_KEPT_CHANNELS = 1_000
_KEPT_TEXTS = 20  # of a channel
_KEPT_BYTES = 8 * 2**20  # of one text

Keep = Callable[[str], str]
"""Keeps a whole text and returns its handle."""


class Readable(Struct, frozen=True):
    """A result: as JSON values (for the record), as text (for the model), and its pictures."""

    data: Any
    text: str
    pictures: tuple[Picture, ...] = ()


class Results:
    """Whole texts of results that were cut, by handle: a few per channel, the newest."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, OrderedDict[str, str]] = OrderedDict()
        self._count = 0

    def keeper(self, channel: str) -> Keep:
        """Keeps texts for `channel`."""

        def keep(text: str) -> str:
            self._count += 1
            handle = f"r{self._count}"
            texts = self._texts.setdefault(channel, OrderedDict())
            texts[handle] = text[:_KEPT_BYTES]
            self._texts.move_to_end(channel)
            if len(texts) > _KEPT_TEXTS:
                texts.popitem(last=False)
            if len(self._texts) > _KEPT_CHANNELS:
                self._texts.popitem(last=False)
            return handle

        return keep

    def any(self, channel: str) -> bool:
        """Whether a result of this channel was cut."""
        return channel in self._texts

    def whole(self, channel: str, handle: str) -> str | None:
        """The whole text of a handle; None where it is unknown in this channel, or gone."""
        texts = self._texts.get(channel)
        return texts.get(handle) if texts is not None else None


def read(value: object, limit_bytes: int, keep: Keep) -> Readable:
    """What `value` says.

    limit_bytes: of the text, in UTF-8. keep: called with the whole text where that had to be cut.
    """
    pictures: list[Picture] = []
    plain = _plain(value, pictures, ())
    if isinstance(plain, str):
        text = plain
    elif plain is None:
        text = ""
    else:
        text = _json(plain)
    if pictures and not text.strip("[], \n"):
        text = "(a picture)" if len(pictures) == 1 else f"({len(pictures)} pictures)"
    cut = bounded(text, limit_bytes, keep)
    data = plain if cut is text and not isinstance(value, Picture) else (cut if cut is not text else plain)
    return Readable(data, cut if cut.strip() else EMPTY, tuple(pictures))


def bounded(text: str, limit_bytes: int, keep: Keep) -> str:
    """`text`, or its beginning with a marker that says how to read on (S6.5)."""
    if len(text) <= limit_bytes // 4 or len(text.encode("utf-8", "surrogatepass")) <= limit_bytes:
        return text
    shown = text[:limit_bytes].encode("utf-8", "surrogatepass")[:limit_bytes].decode("utf-8", "ignore")
    handle = keep(text)
    return (
        f"{shown}\n[cut: showing {len(shown):,} of {len(text):,} characters; "
        f'read_more(handle="{handle}", offset={len(shown)}) shows the rest]'
    )


def _json(plain: object) -> str:
    try:
        return msgspec.json.encode(plain).decode("utf-8")
    except (TypeError, ValueError, UnicodeEncodeError, RecursionError, OverflowError):
        return repr(plain)


def _plain(value: object, pictures: list[Picture], above: tuple[int, ...]) -> Any:
    """`value` as JSON values. `above`: the containers that hold it, to see a circle."""
    match value:
        case None | bool():
            return value
        case str():
            return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
        case int():
            return value if -(2**63) <= value < 2**64 else str(value) if value.bit_length() < 10_000 else "(a huge number)"
        case float():
            return value if math.isfinite(value) else str(value)
        case Picture():
            return _picture(value.data, value.media_type, pictures)
        case bytes() | bytearray() | memoryview():
            return _bytes(bytes(cast(bytes, value)), pictures)
        case PurePath():
            return str(value)
        case _:
            return _object(value, pictures, above)


def _object(value: object, pictures: list[Picture], above: tuple[int, ...]) -> Any:
    if id(value) in above:
        return "(circular)"
    if len(above) >= _DEEPEST:
        return "(too deep)"
    above = (*above, id(value))
    if isinstance(value, Mapping):
        table = cast(Mapping[Any, Any], value)
        return {_key(key): _plain(one, pictures, above) for key, one in _first(iter(table.items()))}
    if isinstance(value, list | tuple):
        return [_plain(one, pictures, above) for one in _first(iter(cast(list[Any], value)))]
    if isinstance(value, set | frozenset):
        return _ordered([_plain(one, pictures, above) for one in _first(iter(cast(set[Any], value)))])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name, None), pictures, above) for field in dataclasses.fields(value)}
    if isinstance(value, Struct):
        return {name: _plain(getattr(value, name, None), pictures, above) for name in value.__struct_fields__}
    dump: object = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return _plain(_safely(dump), pictures, above)
    return _other(value)


def _other(value: object) -> Any:
    """Dates, decimals, ids as msgspec writes them; anything else by its own words, or by its class's name."""
    try:
        return msgspec.to_builtins(value)
    except Exception:  # a foreign object may refuse in any way; it then has its own words
        said = _safely(lambda: str(value))
        return said[:10_000] if isinstance(said, str) else f"(a {type(value).__name__})"


def _safely(call: Callable[[], object]) -> object:
    try:
        return call()
    except Exception:  # a foreign object's own code may raise anything: then it has nothing to say
        return None


def _bytes(data: bytes, pictures: list[Picture]) -> str:
    seen = read_picture(data)
    if isinstance(seen, Picture):
        return _picture(data, seen.media_type, pictures)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return f"(bytes, {max(1, len(data) // 1024)} KB)"


def _picture(data: bytes, media_type: str, pictures: list[Picture]) -> str:
    seen = read_picture(data)
    if isinstance(seen, str):
        return f"[picture left out: {seen}]"
    pictures.append(seen)
    return ""


def _key(key: object) -> str:
    plain = _plain(key, [], ())
    return plain if isinstance(plain, str) else _json(plain)


def _first(items: Iterator[Any]) -> list[Any]:
    taken: list[Any] = []
    for item in items:
        if len(taken) >= _MOST_ITEMS:
            taken.append(("...", "(more left out)"))
            break
        taken.append(item)
    return taken


def _ordered(values: list[Any]) -> list[Any]:
    return sorted(values, key=lambda one: (one.__class__.__name__, str(one)))
