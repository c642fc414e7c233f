"""What the tests share."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import hypothesis
import pytest

from tests.harness import Bench
from tests.postgres import postgres as postgres
from turnkeeper.testing import ScriptedProvider

hypothesis.settings.register_profile("here", deadline=None)  # a busy machine is no failure
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "here")

asyncio.set_event_loop(None)  # else Python 3.11 makes a loop at the first look for one, and nobody closes it


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
