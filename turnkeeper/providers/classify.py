# What an error answer means.
#
# One table for all families: the code in the body says most, then the status, then the words of the message. Words are
# looked at where servers give different things the same status (a 400 for a full window, a 403 for an empty account).
# Not here: what is done about it (loop/policy.py, attempts/).

"""Error answers and errors inside streams, as faults (S12.4, S3.3b)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from turnkeeper.types.faults import Blame, ErrorKind, Fault

_QUOTED = 300  # characters of a server's words that we keep

_CODES: dict[str, ErrorKind] = {
    "invalid_api_key": "auth",
    "authentication_error": "auth",
    "unauthenticated": "auth",
    "api_key_invalid": "auth",
    "permission_error": "permission",
    "permission_denied": "permission",
    "rate_limit_exceeded": "rate_limit",
    "rate_limit_error": "rate_limit",
    "too_many_requests": "rate_limit",
    "resource_exhausted": "rate_limit",
    "insufficient_quota": "quota_exhausted",
    "usage_limit_reached": "quota_exhausted",
    "billing_hard_limit_reached": "credit_ceiling",
    "billing_error": "credit_ceiling",
    "insufficient_credits": "credit_ceiling",
    "context_length_exceeded": "context_length",
    "exceed_context_size_error": "context_length",
    "request_too_large": "context_length",
    "content_policy_violation": "content_blocked",
    "content_filter": "content_blocked",
    "model_not_found": "model_unavailable",
    "not_found_error": "model_unavailable",
    "model_not_available": "model_unavailable",
    "overloaded_error": "overloaded",
    "overloaded": "overloaded",
    "server_overloaded": "overloaded",
    "unavailable": "overloaded",
    "api_error": "server",
    "server_error": "server",
    "internal_server_error": "server",
    "internal": "server",
    "timeout_error": "timeout",
    "deadline_exceeded": "timeout",
}

_WORDS: tuple[tuple[re.Pattern[str], ErrorKind], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), cast(ErrorKind, kind))
    for pattern, kind in (
        (
            r"context (?:length|window|size)|maximum context|too many tokens|prompt is too long|input is too long"
            r"|exceeds? the (?:available )?context|token limit|reduce the length|no user query found|input token count",
            "context_length",
        ),
        (r"content (?:policy|filter|management)|flagged|moderation|safety system", "content_blocked"),
        (r"insufficient (?:credit|balance|funds)|out of credit|payment required|credit balance|billing", "credit_ceiling"),
        (r"exceeded your current quota|usage limit|quota (?:exceeded|exhausted)|monthly limit", "quota_exhausted"),
        (r"rate.?limit|too many requests|temporarily rate-limited", "rate_limit"),
        (r"overloaded|at capacity|server is busy|try again later", "overloaded"),
        (r"(?:incorrect|invalid|no|missing) api key|api key (?:not|is) |unauthori[sz]ed", "auth"),
        (
            r"model .{0,80}(?:not found|does not exist|not supported|not available|not exist|is invalid)"
            r"|no such model|unknown model|model identifier is invalid|not a valid model",
            "model_unavailable",
        ),
    )
)

_STATUSES: dict[int, ErrorKind] = {
    401: "auth",
    402: "credit_ceiling",
    403: "permission",
    404: "model_unavailable",
    408: "timeout",
    413: "context_length",
    425: "overloaded",
    429: "rate_limit",
    498: "overloaded",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}

_BLAME: dict[ErrorKind, Blame] = {
    "auth": "key",
    "permission": "key",
    "rate_limit": "key",
    "quota_exhausted": "key",
    "credit_ceiling": "key",
    "context_length": "request",
    "content_blocked": "request",
    "bad_request": "request",
    "model_unavailable": "model",
    "overloaded": "model",
    "timeout": "model",
    "server": "model",
    "network": "network",
    "protocol": "network",
}


def fault_of_answer(
    status: int, headers: Mapping[str, str], body: bytes, *, where: str, retry_after_s: float | None = None
) -> Fault:
    """The fault that an error answer reports.

    headers: names in lower case. body: as much of it as was read. where: host and path, without query.
    retry_after_s: what `retry_after.retry_after_s` made of the headers.
    """
    if headers.get("cf-mitigated") or b"Just a moment..." in body[:2000]:  # S3.3b: a bot challenge
        return _fault("network", "a bot challenge stands before the server", where, status)
    value = _decode(body)
    if value is None and _is_page(headers, body):
        kind: ErrorKind = "auth" if status == 401 else "server" if status >= 500 else "protocol"
        return _fault(kind, f"a web page instead of an API answer: {_quote(body)}", where, status)
    code, said = read_error(value)
    if not said and value is None:
        said = _quote(body)
    kind = _kind(status, code, said)
    return _fault(kind, said, where, status, retry_after_s)


def fault_in_stream(error: object, *, where: str = "") -> Fault:
    """The fault that an error object inside a 200 stream reports."""
    code, said = read_error({"error": error} if not _wraps(error) else error)
    status = _status_in(error)
    return _fault(_kind(status, code, said), said, where, status)


def protocol_fault(content_type: str, body: bytes, *, where: str = "") -> Fault:
    """An answer that is of another kind than the family's: names the content type and quotes 200 characters."""
    quoted = body[:800].decode("utf-8", "replace")
    return _fault("protocol", f"{content_type or 'no content type'}: {_line(quoted)[:200]!r}", where, None)


def network_fault(said: str, *, where: str = "") -> Fault:
    """A connection that failed or was dropped."""
    return _fault("network", said, where, None)


def read_error(value: object) -> tuple[str, str]:
    """Code and message of an error body, whatever shape it has; "" for what is not there."""
    if isinstance(value, list) and value:
        value = cast(list[object], value)[0]  # Gemini wraps the error in a list
    if isinstance(value, str):
        return "", _line(value)
    if not isinstance(value, dict):
        return "", ""
    table = cast(dict[str, Any], value)
    inner: object = table.get("error", table.get("detail", table))
    if isinstance(inner, str):
        return str(table.get("code") or ""), _line(str(table.get("message") or inner))
    if not isinstance(inner, dict):
        return "", _line(str(inner)) if inner else ""
    error = cast(dict[str, Any], inner)
    codes = [error.get("code"), error.get("type"), error.get("status")]
    words = [code for code in codes if isinstance(code, str) and code]
    known = [word for word in words if word.lower() in _CODES]
    message: object = error.get("message") or error.get("detail") or ""
    raw = cast(dict[str, Any], error.get("metadata")) if isinstance(error.get("metadata"), dict) else {}
    upstream: object = raw.get("raw")
    said = f"{message} {upstream}" if isinstance(upstream, str) and upstream else str(message)
    return (known or words or [""])[0], _line(said)


def _kind(status: int | None, code: str, said: str) -> ErrorKind:
    kind = _CODES.get(code.lower())
    if kind in (None, "rate_limit", "permission", "model_unavailable", "server", "auth"):
        for pattern, meant in _WORDS:  # a vague code or status, and words that say more
            if pattern.search(said) and _words_count(status, kind, meant):
                return meant
    if kind is not None:
        return kind
    by_status = _STATUSES.get(status or 0)
    if by_status is not None:
        return by_status
    return "server" if status is None or status >= 500 else "bad_request"


def _words_count(status: int | None, kind: ErrorKind | None, meant: ErrorKind) -> bool:
    """Whether the words may overrule the code: money and size explain a refusal, other words only an unknown one."""
    if meant in ("quota_exhausted", "credit_ceiling"):
        return status in (None, 402, 403, 429) or kind in ("rate_limit", "permission")
    return kind is None and not (meant == "auth" and status not in (None, 400, 401, 403))


def _fault(kind: ErrorKind, said: str, where: str, status: int | None, retry_after_s: float | None = None) -> Fault:
    return Fault(kind=kind, blame=_BLAME[kind], said=said, where=where, status=status, retry_after_s=retry_after_s)


def _wraps(error: object) -> bool:
    return isinstance(error, dict) and "error" in error


def _status_in(error: object) -> int | None:
    if not isinstance(error, dict):
        return None
    table = cast(dict[str, Any], error)
    for name in ("status_code", "code", "status"):
        value = table.get(name)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return None


def _decode(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None


def _is_page(headers: Mapping[str, str], body: bytes) -> bool:
    return "html" in headers.get("content-type", "") or body.lstrip()[:1] == b"<"


def _quote(body: bytes) -> str:
    return _line(body[:800].decode("utf-8", "replace"))[:200]


def _line(text: str) -> str:
    return " ".join(text.split())[:_QUOTED]
