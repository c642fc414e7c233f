"""Pictures known by their first bytes, with their sides: what a model can be shown, and what it can't (S3.10a)."""

from __future__ import annotations

import struct

from turnkeeper.types.messages import Picture

MOST_BYTES = 5 * 2**20
MOST_SIDE = 8000  # pixels


def read_picture(data: bytes) -> Picture | str:
    """The picture that `data` is, or why it can't be shown, in a few words."""
    media_type = _media_type(data)
    if media_type is None:
        return "not a picture" if data else "an empty file"
    if len(data) > MOST_BYTES:
        return f"{len(data) / 2**20:.1f} MB, the most is {MOST_BYTES // 2**20} MB"
    sides = _sides(data, media_type)
    if sides is None:
        return "a damaged picture"
    if max(sides) > MOST_SIDE or min(sides) < 1:
        return f"{sides[0]} by {sides[1]} pixels, the most is {MOST_SIDE} a side"
    return Picture(data, media_type)


def sides_of(picture: Picture) -> tuple[int, int] | None:
    """Width and height in pixels, None where they can't be read."""
    return _sides(picture.data, picture.media_type)


def _media_type(data: bytes) -> str | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def _sides(data: bytes, media_type: str) -> tuple[int, int] | None:
    try:
        match media_type:
            case "image/png":
                return struct.unpack(">II", data[16:24])
            case "image/gif":
                return struct.unpack("<HH", data[6:10])
            case "image/webp":
                return _webp_sides(data)
            case _:
                return _jpeg_sides(data)
    except (struct.error, IndexError):
        return None


def _webp_sides(data: bytes) -> tuple[int, int] | None:
    form = data[12:16]
    if form == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if form == b"VP8 ":
        width, height = struct.unpack("<HH", data[26:30])
        return width & 0x3FFF, height & 0x3FFF
    if form == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1
    return None


def _jpeg_sides(data: bytes) -> tuple[int, int] | None:
    """From the first frame header; the segments before it are skipped by their lengths."""
    position = 2
    while position + 9 <= len(data):
        if data[position] != 0xFF:
            return None
        marker = data[position + 1]
        if marker in (0xFF, 0x01) or 0xD0 <= marker <= 0xD8:
            position += 1 if marker == 0xFF else 2
            continue
        (length,) = struct.unpack(">H", data[position + 2 : position + 4])
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[position + 5 : position + 9])
            return width, height
        position += 2 + max(2, length)
    return None
