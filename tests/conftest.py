"""What the tests share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.harness import Bench
from turnkeeper.testing import ScriptedProvider


@pytest.fixture
async def provider() -> AsyncIterator[ScriptedProvider]:
    """A real HTTP server on loopback, in the test's own loop."""
    async with ScriptedProvider(models=("gpt-x", "gpt-y")) as running:
        yield running


@pytest.fixture
async def bench(provider: ScriptedProvider) -> AsyncIterator[Bench]:
    """Engines that ask `provider`; each is closed at the end, and every request must have been a valid conversation."""
    made = Bench(provider)
    yield made
    await made.aclose()
    if not made.strict_errors_expected:
        assert [request.problems for request in provider.requests if request.problems] == []
