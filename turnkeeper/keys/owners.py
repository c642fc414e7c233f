"""What a person calls the provider that a key is for, and whose key it looks like. Pure."""

from __future__ import annotations

import difflib
from urllib.parse import urlsplit

from msgspec import Struct

from turnkeeper.errors import ConfigurationError
from turnkeeper.providers.catalogue import family_at, known_servers, provider_at

# How keys of one provider alone begin; the longest beginning that fits counts. Plain `sk-` is everybody's.
_BEGINNINGS = {
    "sk-ant-": "anthropic",
    "sk-or-": "openrouter",
    "sk-proj-": "openai",
    "AIza": "gemini",
    "gsk_": "groq",
    "xai-": "xai",
    "pplx-": "perplexity",
    "csk-": "cerebras",
    "fw_": "fireworks",
}
_OTHERS = {"hf_": "Hugging Face", "ghp_": "GitHub", "github_pat_": "GitHub", "pst-": "NovelAI"}


class Owner(Struct, frozen=True):
    """The provider that a key is for.

    provider: as `catalogue.provider_at` names it. base_url: where it is asked; kept: whether it has to be stored with the
    key, because the catalogue does not know it. family: the wire family it speaks.
    """

    provider: str
    base_url: str
    family: str
    kept: bool = False


def owner_named(text: str) -> Owner:
    """The provider that a person names: a known service's name in any case, or the base URL of any server.

    Raises ConfigurationError that says which names are known, and which one may be meant.
    """
    text = text.strip()
    if "://" in text:
        url = urlsplit(text)
        if url.scheme not in ("http", "https") or not url.hostname or url.username or url.password or url.query:
            raise ConfigurationError(
                f"{_shown(text)!r} is no base URL; one is `https://llm.example.com/v1`, without login or query."
            )
        provider = provider_at(text)
        known = _known().get(provider)
        return Owner(provider, text.rstrip("/"), family_at(text), kept=known is None or known.base_url != text.rstrip("/"))
    found = _known().get(text.lower())
    if found is not None:
        return found
    near = difflib.get_close_matches(text.lower(), _known(), n=1)
    meant = f"did you mean {near[0]}?" if near else f"known: {', '.join(_known())}."
    raise ConfigurationError(f"There is no provider {_shown(text)!r}; {meant} Any other server is named by its base URL.")


def owner_of(provider: str, base_url: str) -> Owner:
    """The provider of a stored key. Raises ConfigurationError where the record names neither a known one nor an address."""
    return owner_named(base_url or provider)


def mismatch(provider: str, secret: str) -> str:
    """Why a key looks like another provider's, as a sentence; "" where it does not."""
    begins = next((one for one in sorted(_BEGINNINGS | _OTHERS, key=len, reverse=True) if secret.startswith(one)), "")
    owner = _BEGINNINGS.get(begins) or _OTHERS.get(begins, "")
    if not owner or owner == provider:
        return ""
    return (
        f"Keys that begin with {begins} are {owner}'s, and this one was given for {provider}; remove it if that is a mistake."
    )


def _known() -> dict[str, Owner]:
    owners: dict[str, Owner] = {}
    for server in known_servers():
        provider = provider_at(server.base_url)
        owners.setdefault(provider, Owner(provider, server.base_url, server.family))
    return owners


def _shown(text: str) -> str:
    """What may be quoted of a word: somebody may have written the key in the provider's place."""
    return text if len(text) <= 24 else f"{text[:8]}…"
