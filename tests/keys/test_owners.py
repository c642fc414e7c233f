"""Whose key it is: names, addresses, and what a key looks like."""

from __future__ import annotations

import pytest

from turnkeeper.errors import ConfigurationError
from turnkeeper.keys.owners import mismatch, owner_named, owner_of
from turnkeeper.providers.catalogue import known_servers, provider_at


def test_every_known_server_is_named_in_any_case() -> None:
    for server in known_servers():
        provider = provider_at(server.base_url)
        assert owner_named(f" {provider.upper()} ").provider == provider
        assert owner_of(provider, "").provider == provider


def test_an_address_of_a_known_service_is_that_service_and_another_one_is_kept() -> None:
    assert not owner_named("https://api.openai.com/v1/").kept
    other = owner_named("http://127.0.0.1:8080/v1/")
    assert (other.provider, other.base_url, other.kept) == ("127.0.0.1:8080", "http://127.0.0.1:8080/v1", True)
    assert owner_of(other.provider, other.base_url) == other


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("opnai", "did you mean openai"),
        ("quite-another", "known: openai, anthropic"),
        ("", "known: openai"),
        ("ftp://x.test/v1", "no base URL"),
        ("https://", "no base URL"),
        ("https://user:secret@x.test/v1", "no base URL"),
        ("https://x.test/v1?key=secret", "no base URL"),
    ],
)
def test_what_names_no_provider_is_refused_with_what_may_be_meant(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        owner_named(text)


def test_a_key_written_in_the_providers_place_is_not_quoted() -> None:
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    with pytest.raises(ConfigurationError) as refused:
        owner_named(secret)
    assert secret not in str(refused.value)


@pytest.mark.parametrize(
    ("provider", "secret", "owner"),
    [
        ("openai", "sk-ant-api03-0123456789", "anthropic"),
        ("openai", "sk-or-v1-0123456789", "openrouter"),
        ("openai", "sk-0123456789", ""),
        ("deepseek", "sk-0123456789", ""),
        ("deepseek", "sk-proj-0123456789", "openai"),
        ("gemini", "AIza0123456789", ""),
        ("groq", "hf_0123456789", "Hugging Face"),
        ("x.test", "0123456789", ""),
    ],
)
def test_a_key_that_looks_like_another_providers_is_told(provider: str, secret: str, owner: str) -> None:
    told = mismatch(provider, secret)
    assert (owner in told) if owner else told == ""
    assert secret not in told
