# What an error answer means.
#
# What stands before the server is told first: a bot challenge, a proxy's login, a web page. None of it is a key's fault.
# The rest is looked up: error_bodies.py reads the body, error_table.py says what that means, retry_after.py until when.
# Not here: what is done about it (loop/policy.py, attempts/).

"""Error answers and errors inside streams, as faults (S12.4, S3.3a, S3.3b)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from turnkeeper.providers.error_bodies import ErrorBody, is_json, is_page, one_line, page_text, read_body, read_value
from turnkeeper.providers.error_table import STATUSES, TABLE, USUALLY, VAGUE, Meaning, Row
from turnkeeper.providers.retry_after import retry_after_s
from turnkeeper.types.faults import ErrorKind, Fault

_CHALLENGE = re.compile(
    rb"just a moment\.\.\.|attention required|challenge-platform|cf-(?:chl|error)|captcha|you have been blocked"
    rb"|\A\s*error code: 10(?!15)\d\d\b",
    re.IGNORECASE,
)
_PROXY = Meaning("auth", "network", "nothing")
_LIMITS = (429, 503, 529)
_PASSES = ("rate_limit", "quota_exhausted", "credit_ceiling", "overloaded", "timeout", "server")  # with time


def fault_of_answer(status: int, headers: Mapping[str, str], body: bytes, *, where: str, now: float | None = None) -> Fault:
    """The fault that an error answer reports.

    headers: names in lower case. body: as much of it as was read. where: host and path that answered.
    now: wall clock, seconds since the epoch; None where it is not known, then dates that the server names are not read.
    """
    read = ErrorBody()
    if headers.get("cf-mitigated") or headers.get("x-amzn-waf-action") or _challenges(status, body):
        meaning, said = Meaning("network"), "a bot challenge stands before the server"
    elif _wants_proxy_login(status, headers, body):  # S3.3b
        meaning, said = _PROXY, f"a proxy before the server wants a login, the server itself did not answer: {page_text(body)}"
    elif is_page(headers.get("content-type", ""), body):
        meaning, said = _of_page(status), f"a web page instead of an API answer: {page_text(body)}"
    elif 300 <= status < 400:
        meaning, said = Meaning("protocol"), "the address sends elsewhere; redirects are not followed"
    else:
        read = read_body(body)
        code = headers.get("x-amzn-errortype", "").partition(":")[0].lower()
        meaning, said = _meaning(status, (code, *read.codes), read), read.said or "the answer was empty"
    wait = None
    if meaning.kind in _PASSES:
        wait = retry_after_s(headers, read.value, now, buckets=status in _LIMITS)
    return _fault(meaning, said, where.partition("?")[0].partition("#")[0], status, wait)


def fault_in_stream(error: object, *, where: str = "", now: float | None = None) -> Fault:
    """The fault that an error object inside a 200 stream reports; also the whole event that holds one."""
    read = read_value(error)
    meaning = _meaning(read.status, read.codes, read)
    wait = retry_after_s({}, read.value, now) if meaning.kind in _PASSES else None
    return _fault(meaning, read.said, where, read.status, wait)


def protocol_fault(content_type: str, body: bytes, *, where: str = "") -> Fault:
    """An answer that is of another kind than the family's: names the content type and quotes 200 characters."""
    quoted = one_line(body[:800].decode("utf-8", "replace"), 200)
    return _fault(Meaning("protocol"), f"{content_type or 'no content type'}: {quoted!r}", where, None)


def network_fault(said: str, *, where: str = "") -> Fault:
    """A connection that failed or was dropped."""
    return _fault(Meaning("network"), said, where, None)


def _meaning(status: int | None, codes: tuple[str, ...], read: ErrorBody) -> Meaning:
    # A relay may answer 500 or 502 for what it heard itself, and name the true status in the body.
    at = read.status if read.status is not None and status in (None, 500, 502) else status
    for row in TABLE:
        if not row.codes.isdisjoint(codes) or _speaks(row, at, read.said):
            return _of_relay(row.meaning) if read.relayed else row.meaning
    if at is None or at == 400 or at >= 500:
        for code in codes:
            if code in VAGUE:
                return Meaning(VAGUE[code])
    usual: ErrorKind = "server" if at is None or at >= 500 else "bad_request"
    return Meaning(STATUSES.get(at or 0, usual))


def _speaks(row: Row, at: int | None, said: str) -> bool:
    counts = row.unplaced if at is None else at in row.at
    return counts and row.words is not None and row.words.search(said) is not None


def _of_relay(meaning: Meaning) -> Meaning:
    """S3.3b: where a relay passes on that a maker does not serve a region, its other makers still do."""
    return Meaning(meaning.kind, "model", "pair") if meaning.rests == "provider" else meaning


def _of_page(status: int) -> Meaning:
    """A page says nothing of a key or a model: something before the server made it (S3.3b)."""
    if status == 403:
        return Meaning("network")
    if status in (405, 413, 429) or status >= 500:
        return Meaning(STATUSES.get(status, "server" if status >= 500 else "bad_request"))
    return Meaning("protocol")


def _challenges(status: int, body: bytes) -> bool:
    return status in (403, 429, 503) and not is_json(body) and _CHALLENGE.search(body[:4000]) is not None


def _wants_proxy_login(status: int, headers: Mapping[str, str], body: bytes) -> bool:
    """No server of a model answers with a page or asks for a password; what stands before one does."""
    if status == 401 and headers.get("www-authenticate", "").lower().startswith(("basic", "digest", "negotiate", "ntlm")):
        return True
    return status == 407 or (status == 401 and is_page(headers.get("content-type", ""), body))


def _fault(meaning: Meaning, said: str, where: str, status: int | None, wait_s: float | None = None) -> Fault:
    blame, rests = USUALLY[meaning.kind]
    return Fault(
        kind=meaning.kind,
        blame=meaning.blame or blame,
        said=one_line(said),
        where=where,
        status=status,
        retry_after_s=wait_s,
        rests=meaning.rests or rests,
        picture=meaning.picture,
        prefill=meaning.prefill,
    )
