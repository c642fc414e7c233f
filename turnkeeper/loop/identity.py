# When two calls are the same call (S3.5, S3.5a).
#
# Identity is taken from the true arguments: the tool's own name, and the arguments as canonical JSON, so that the order of
# keys does not count. What goes on record is a keyed digest of that: it says "the same", and nothing of what the arguments
# were, which may be secrets.

"""The identity of a tool call."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, cast

import msgspec

from turnkeeper.types.calls import Parsed, ToolCall

_encoder = msgspec.json.Encoder(order="deterministic")


def canonical(name: str, call: ToolCall) -> bytes | None:
    """The call as bytes that are the same for the same call; None of one whose arguments could not be read.

    name: the tool's own, whatever the model called it.
    """
    if not isinstance(call.arguments, Parsed):
        return None
    try:
        arguments = _encoder.encode(_plain(call.arguments.value))
    except (RecursionError, OverflowError, UnicodeEncodeError):  # nothing that a canonical form could be made of
        arguments = call.text.encode("utf-8", "surrogatepass")
    return name.encode("utf-8", "surrogatepass") + b"\0" + arguments


def digest(call: bytes, key: bytes) -> str:
    """The keyed digest of a canonical call."""
    return blake2b(call, digest_size=16, key=key).hexdigest()


def identity_key(secrets: Iterable[str]) -> bytes:
    """The key of the digests: the same for the same secrets in each process, and known to nobody who has not got them."""
    return blake2b("\0".join(sorted(secrets)).encode(), digest_size=32, person=b"turnkeeper call").digest()


def _plain(value: Any) -> Any:
    """Numbers that JSON holds equal are equal: 1.0 is 1."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _plain(one) for key, one in cast(dict[str, Any], value).items()}
        case list():
            return [_plain(one) for one in cast(list[Any], value)]
        case _:
            return value
