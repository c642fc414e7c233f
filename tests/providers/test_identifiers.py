"""Call ids and tool names in a server's alphabet (S3.10a)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.providers.identifiers import CallIds, fit_call_id, fit_tool_name

IDS: dict[CallIds, str] = {"usual": r"[A-Za-z0-9_-]{1,64}", "nine": r"[A-Za-z0-9]{9}"}


@pytest.mark.parametrize("ids", IDS)
@given(original=st.text(max_size=90))
def test_each_id_fits_its_server_and_is_the_same_each_time(ids: CallIds, original: str) -> None:
    fitted = fit_call_id(original, ids)
    assert re.fullmatch(IDS[ids], fitted)
    assert fit_call_id(original, ids) == fitted
    assert fit_call_id(fitted, ids) == fitted


@given(originals=st.sets(st.text(max_size=90), max_size=20))
def test_two_originals_never_share_an_identifier(originals: set[str]) -> None:
    for ids in IDS:
        assert len({fit_call_id(one, ids) for one in originals}) == len(originals)
    assert len({fit_tool_name(one) for one in originals}) == len(originals)


@given(original=st.text(max_size=90))
def test_each_name_fits_every_server(original: str) -> None:
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", fit_tool_name(original))


@pytest.mark.parametrize(
    ("original", "begins"),
    [
        ("roll_dice", "roll_dice"),
        ("wetter.größe", "wetter_gr_e_"),
        ("x" * 70, "x" * 55 + "_"),
        ("2fast", "tool_2fast_"),
        ("天気", "tool__"),
        ("", "tool__"),
    ],
)
def test_a_fitted_name_can_still_be_read(original: str, begins: str) -> None:
    assert fit_tool_name(original).startswith(begins)


def test_an_id_with_a_bar_and_seventy_characters_is_fitted_and_one_that_fits_is_kept() -> None:
    assert fit_call_id("toolu_01AbC") == "toolu_01AbC"
    assert len(fit_call_id("call_abc|fc_" + "0" * 60)) == 24
    assert len(fit_call_id("toolu_01AbC", "nine")) == 9
    assert fit_call_id("aB3dE6gH9", "nine") == "aB3dE6gH9"
