"""No bytes break a parser (S12.1): a short slice of `make fuzz`."""

from __future__ import annotations

import pytest

from tests.providers.fuzzing import run


@pytest.mark.parametrize("seed", range(4))
def test_mutated_answers_break_no_parser(seed: int) -> None:
    assert run(250, seed) == 250
