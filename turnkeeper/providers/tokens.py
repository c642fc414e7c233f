"""Tokens counted without a tokenizer, for where a provider reports nothing (S3.10a)."""

from __future__ import annotations

import re

_DENSE = re.compile("[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
_PER_TOKEN_ASCII = 4.0
_PER_TOKEN_OTHER = 2.0
_SAMPLE = 8000  # characters


def estimate_tokens(text: str) -> int:
    """About how many tokens a text is: one for 4 ASCII characters, 2 of other scripts, or 1 Chinese, Japanese or Korean."""
    if len(text) > _SAMPLE:  # a long text is as its beginning is
        return round(estimate_tokens(text[:_SAMPLE]) * len(text) / _SAMPLE)
    if text.isascii():
        return -(-len(text) // 4)
    dense = len(_DENSE.findall(text))
    plain = len(text.encode("ascii", "ignore"))
    return round(dense + plain / _PER_TOKEN_ASCII + (len(text) - dense - plain) / _PER_TOKEN_OTHER)
