# What a pass costs (S15.2).
#
# In order of trust: what the server itself says the pass cost; the prices that the user gave with the model; the public
# price table of the `genai-prices` library (extra `prices`), by the server's address. A model that none of them knows has no
# price: its cost is missing, never 0, and never guessed from another server's price for a model of the same name.
# Sums are decimal: they come out to the last digit.

"""Prices of models, and the cost of what they did."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnkeeper.types.usage import Usage

_MILLION = Decimal(1_000_000)
_PRIVATE = re.compile(
    r"https?://(?:localhost|127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[|[^./]+(?::\d+)?(?:/|$))", re.IGNORECASE
)


class Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars for a million tokens, and for a thousand searches.

    cache_read, cache_write: as `input` where they are not given. cache_write_long: kept for an hour, as `cache_write`.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_long: float | None = None
    searches: float = 0.0

    def cost(self, usage: Usage) -> Decimal:
        """What `usage` costs."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        long = write if self.cache_write_long is None else self.cache_write_long
        tokens = (
            usage.input * _decimal(self.input)
            + usage.cache_read * _decimal(read)
            + (usage.cache_write - usage.cache_write_long) * _decimal(write)
            + usage.cache_write_long * _decimal(long)
            + usage.output * _decimal(self.output)
        )
        return tokens / _MILLION + usage.searches * _decimal(self.searches) / 1000


Pricing = Callable[[Usage], Decimal | None]


class Prices:
    """The price of one model at one address. own: the user's price for it."""

    def __init__(self, base_url: str, model: str, own: Price | None) -> None:
        self._base_url = base_url
        self._model = model
        self._own = own
        self._looked_up: asyncio.Future[Pricing | None] | None = None

    def look_up(self) -> None:
        """Begins to look the price up, in a thread: the table takes a while to load, which the answer takes too."""
        if self._own is None and self._looked_up is None and not _PRIVATE.match(self._base_url):
            self._looked_up = asyncio.get_running_loop().run_in_executor(None, find_price, self._base_url, self._model)

    async def priced(self, usage: Usage) -> Usage:
        """`usage` with its cost, where that is known."""
        if usage.cost is not None:
            return usage
        if self._own is not None:
            return replace(usage, cost=float(self._own.cost(usage)))
        pricing = await asyncio.shield(self._looked_up) if self._looked_up is not None else None
        cost = pricing(usage) if pricing is not None else None
        return usage if cost is None else replace(usage, cost=float(cost))


@cache  # the table is part of the library and does not change while this process runs
def find_price(base_url: str, model: str) -> Pricing | None:
    """The public price of `model` at `base_url`; None where the table, or the library, does not have it."""
    try:
        import genai_prices
        from genai_prices import types
    except ImportError:
        return None

    def pricing(usage: Usage) -> Decimal | None:
        counts = types.Usage(
            input_tokens=usage.prompt,
            cache_read_tokens=usage.cache_read or None,
            cache_write_tokens=usage.cache_write or None,
            cache_write_1h_tokens=usage.cache_write_long or None,
            output_tokens=usage.output,
            web_searches=usage.searches or None,
        )
        try:
            return genai_prices.calc_price(counts, model, provider_api_url=base_url).total_price
        except (LookupError, ValueError):
            return None

    return pricing if pricing(Usage(input=1, output=1)) is not None else None


def read_price(value: dict[str, Any]) -> Price:
    """The user's own price of a model. Raises msgspec.ValidationError for an unknown name or a wrong type."""
    return msgspec.convert(value, Price)


def _decimal(price: float) -> Decimal:
    return Decimal(str(price))
