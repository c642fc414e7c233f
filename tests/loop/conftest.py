"""The loop's tests run over every wire family, and over a model that calls in text (S10.4)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.harness import Bench
from tests.loop.verbatim import VerbatimChat
from turnkeeper.testing import ScriptedProvider
from turnkeeper.testing.anthropic import ANTHROPIC
from turnkeeper.testing.gemini import GEMINI
from turnkeeper.testing.openai_chat import OPENAI_CHAT
from turnkeeper.testing.openai_responses import OPENAI_RESPONSES
from turnkeeper.testing.wire import Family

FAMILIES: dict[str, Family] = {
    "openai-chat": OPENAI_CHAT,
    "openai-responses": OPENAI_RESPONSES,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "verbatim": VerbatimChat(),
}


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    """The wire family that the test is run over. `chat_only` keeps a test to chat completions, and says why."""
    native = request.node.get_closest_marker("native_calls")
    if native is not None and request.param == "verbatim":
        pytest.skip(f"only native calls: {native.args[0]}")
    only = request.node.get_closest_marker("chat_only")
    if only is not None and request.param != "openai-chat":
        pytest.skip(f"only chat completions: {only.args[0]}")
    return request.param


@pytest.fixture
async def provider(family: str) -> AsyncIterator[ScriptedProvider]:
    """A real HTTP server on loopback that speaks the family, in the test's own loop."""
    async with ScriptedProvider(models=("gpt-x", "gpt-y"), family=FAMILIES[family]) as running:
        yield running


@pytest.fixture
async def bench(provider: ScriptedProvider, family: str) -> AsyncIterator[Bench]:
    """Engines that ask `provider`; each is closed at the end, and every request must have been a valid conversation."""
    made = Bench(provider, family)
    yield made
    await made.aclose()
    if not made.strict_errors_expected:
        assert [request.problems for request in provider.requests if request.problems] == []
