"""`roll_dice`: chance."""

from __future__ import annotations

import random
from typing import Annotated, Any

from msgspec import Meta

from turnkeeper.tools.tool import Tool, tool


def roll_dice_tool(chance: random.Random | None = None) -> Tool:
    """The tool. chance: the source of numbers, for tests that want the same ones."""
    source = chance or random.SystemRandom()

    @tool(
        read_only=True,
        triggers=("roll", "dice", "die"),
        examples=(
            ("Roll two dice.", {"sides": 6, "count": 2}),
            ("roll a die", {"sides": 6, "count": 1}),
            ("roll a d20", {"sides": 20, "count": 1}),
        ),
    )
    async def roll_dice(
        sides: Annotated[int, Meta(ge=2, le=1000)] = 6, count: Annotated[int, Meta(ge=1, le=100)] = 1
    ) -> dict[str, Any]:
        """Rolls dice.

        Args:
            sides: Sides of each die, 2 to 1,000.
            count: How many dice, 1 to 100.
        """
        rolls = [source.randint(1, sides) for _ in range(count)]
        return {"rolls": rolls, "total": sum(rolls)}

    return roll_dice
