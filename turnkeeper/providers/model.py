"""A model: which family it speaks, where it is, and with which keys."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field

from turnkeeper.errors import ConfigurationError
from turnkeeper.providers.catalogue import Traits, quirk_problem, traits
from turnkeeper.providers.prices import Price, read_price

HOMES = {
    "openai-chat": "https://api.openai.com/v1",
    "openai-responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
    "novelai": "https://text.novelai.net",
}
"""The wire families, each with its own provider's base URL."""

FAMILIES = tuple(HOMES)


class Model(Struct, frozen=True, dict=True):
    """One model on one server.

    family: the wire family: `openai-chat` (chat completions, which most servers speak), `openai-responses`, `anthropic`,
        `gemini` or `novelai`.
    name: the model's name as its server knows it.
    base_url: where the API begins, such as `http://127.0.0.1:8080/v1`; "" is the family's own provider.
    keys: API keys, tried in order; empty for a server that wants none.
    temperature: 0 to 2, or None for the server's default.
    max_output_tokens: the most that one pass may write, or None for the server's default.
    headers: sent with each request, besides our own.
    extra: fields put into each request's body, for what a server alone understands.
    quirks: catalogue fields that this server wants otherwise (see docs/catalogue.md).
    price: US dollars for a million tokens, `input` and `output` at least (see prices.py), where the public table is not to
        be asked; None for that table.

    Raises ConfigurationError, naming what is wrong and what may stand there.
    """

    family: str
    name: str
    base_url: str = ""
    keys: list[str] = field(default_factory=list[str])
    temperature: float | None = None
    max_output_tokens: int | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    quirks: dict[str, Any] = field(default_factory=dict[str, Any])
    price: dict[str, float] | None = None

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise ConfigurationError(
                f"The model {self.name!r} has the unknown family {self.family!r}; known: {', '.join(FAMILIES)}."
            )
        if not self.name.strip():
            raise ConfigurationError("A model needs a name, such as `gpt-5-mini`.")
        _check_url(self.url, self.name)
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise ConfigurationError(f"The model {self.name!r}: `temperature` must be 0 to 2, not {self.temperature}.")
        if self.max_output_tokens is not None and self.max_output_tokens < 1:
            raise ConfigurationError(f"The model {self.name!r}: `max_output_tokens` must be at least 1.")
        for position, key in enumerate(self.keys, 1):
            if not key or not key.isascii() or any(c.isspace() for c in key):
                raise ConfigurationError(
                    f"Key {position} of the model {self.name!r} is empty or holds blanks or characters that no key has."
                )
        wrong = quirk_problem(self.quirks)
        if wrong:
            raise ConfigurationError(f"The model {self.name!r}: {wrong}")
        try:
            _ = self.own_price
        except msgspec.ValidationError as problem:
            raise ConfigurationError(f"The model {self.name!r}: a wrong price: {problem}.") from None

    @property
    def url(self) -> str:
        """The base URL, the family's own where none was given, without a slash at the end."""
        return (self.base_url or HOMES[self.family]).rstrip("/")

    @cached_property
    def traits(self) -> Traits:
        """How this model wants to be spoken to."""
        return traits(self.url, self.name, self.quirks)

    @cached_property
    def own_price(self) -> Price | None:
        """The price that the user gave."""
        return read_price(self.price) if self.price is not None else None

    @property
    def output_limit(self) -> int | None:
        """What is really asked for as the most of one pass: `max_output_tokens`, and no more than the model can."""
        most = self.traits.max_output
        return min(self.max_output_tokens, most) if self.max_output_tokens and most else self.max_output_tokens

    def __repr__(self) -> str:
        """Without the keys: they appear nowhere (S3.3)."""
        return f"Model({self.family!r}, {self.name!r}, base_url={self.url!r}, keys=[{len(self.keys)}])"


def _check_url(url: str, name: str) -> None:
    parts = urlsplit("")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigurationError(
            f"The model {name!r} has the base URL {url!r}, which is no http or https address such as "
            "`http://127.0.0.1:8080/v1`."
        )
    if parts.username or parts.password:
        raise ConfigurationError(f"The model {name!r} has a password in its base URL; put it into `keys` or `headers`.")
