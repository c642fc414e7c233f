"""What a pass costs (S15.2; cases.md, "Usage")."""

from __future__ import annotations

import pytest

from turnkeeper import Model
from turnkeeper.errors import ConfigurationError
from turnkeeper.providers.prices import Prices, find_price, read_price
from turnkeeper.types.usage import Usage

OPUS = {"input": 5, "cache_read": 0.5, "cache_write": 6.25, "cache_write_long": 10, "output": 25, "searches": 10}


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        pytest.param(Usage(input=6, cache_write=159_217, output=2_745), 1.06376125, id="6 + 159,217 written + 2,745 out"),
        pytest.param(Usage(input=3_914, cache_read=16_298), 0.027719, id="3,914 + 16,298 from a cache"),
        pytest.param(Usage(cache_write=1_000, cache_write_long=400), 0.00775, id="two prices for what is written to a cache"),
        pytest.param(Usage(searches=3), 0.03, id="three searches"),
        pytest.param(Usage(), 0.0, id="nothing"),
    ],
)
async def test_a_cost_comes_out_to_the_last_digit(usage: Usage, cost: float) -> None:
    priced = await Prices("http://127.0.0.1:1/v1", "m", read_price(OPUS)).priced(usage)
    assert priced.cost == cost


async def test_the_public_table_gives_the_same_price_as_the_makers_list() -> None:
    pytest.importorskip("genai_prices")
    prices = Prices("https://api.anthropic.com/v1", "claude-opus-4-5", None)
    prices.look_up()
    assert (await prices.priced(Usage(input=6, cache_write=159_217, output=2_745))).cost == 1.06376125


@pytest.mark.parametrize(
    ("base_url", "model"),
    [
        ("https://api.openai.com/v1", "no-such-model"),
        ("https://llm.example.org/v1", "gpt-5-mini"),
        ("http://127.0.0.1:8080/v1", "gpt-5-mini"),
        ("http://192.168.0.7:11434/v1", "gpt-5-mini"),
        ("http://gpu-box:8000/v1", "gpt-5-mini"),
    ],
)
async def test_a_price_that_is_not_known_is_missing_and_not_zero(base_url: str, model: str) -> None:
    prices = Prices(base_url, model, None)
    prices.look_up()
    assert (await prices.priced(Usage(input=10, output=10))).cost is None


async def test_what_the_server_says_that_it_cost_counts_more_than_any_table() -> None:
    assert (await Prices("http://127.0.0.1:1/v1", "m", read_price(OPUS)).priced(Usage(input=1, cost=0.5))).cost == 0.5


def test_without_the_library_no_price_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "genai_prices", None)
    assert find_price("https://api.openai.com/v1", "gpt-4o-never-asked-before") is None


@pytest.mark.parametrize("price", [{"input": 1}, {"input": 1, "output": 2, "inptu": 3}, {"input": "1", "output": 2}])
def test_a_wrong_price_is_refused_in_one_sentence(price: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="The model 'm': a wrong price: "):
        Model("openai-chat", "m", price=price)
