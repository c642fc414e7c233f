"""Sends the expression that a tool asked for: a sticker, an emoji, a sprite (S6.6)."""

from __future__ import annotations

from msgspec.structs import replace

from turnkeeper.loop.scope import Scope
from turnkeeper.loop.turn import Turn
from turnkeeper.types.outcomes import Failed, Succeeded, ToolOutcome, Unknown


async def express(turn: Turn, outcome: Succeeded) -> ToolOutcome:
    """Shows `outcome.expression` and returns what became of it, which takes the place of the tool's own result.

    One a turn; the same again is answered "already sent"; one whose send was not confirmed is never risked again. The model
    reads its name, not its id. It is an answer: silence after it is no failure (S9.2).
    """
    expression = outcome.expression
    if expression is None:
        return outcome
    words = str(expression)
    if turn.delivery.expression == expression:
        return Succeeded(f"{words}: already sent", message=outcome.message, delivered="")
    if turn.delivery.expression is not None:
        return Failed(
            "not_available", f"One expression a reply: {turn.delivery.expression} stands; {expression.name} was not sent."
        )
    if turn.signals.stopped:  # right before the send
        return Failed("stopped", f"The person stopped the turn before {expression.name} was sent.")
    confirmed = False
    async with Scope(turn.signals, first_s=turn.settings.settle_timeout):
        confirmed = await turn.delivery.express(expression)
    if not confirmed:
        return Unknown(f"{expression.name} may or may not have been sent; do not send it again.")
    return replace(outcome, data=words, delivered=outcome.delivered or "", expression=None)
