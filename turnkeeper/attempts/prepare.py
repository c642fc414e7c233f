# What a turn's conversation becomes for one model (S3.10, S3.10a).
#
# Older exchanges are left out whole. This turn's own chain is never cut through: its oldest results are shortened, with the
# marker that says how to read on. What can't be shortened is sent: the server says itself when it is too much.

"""Fits a turn into a model's window."""

from __future__ import annotations

from itertools import pairwise

from msgspec.structs import replace

from turnkeeper.loop.history import exchanges_to_drop
from turnkeeper.loop.state import LoopState
from turnkeeper.loop.turn import Turn
from turnkeeper.loop.window import Weight, WindowMeasure, shortened, weigh


def fitted(turn: Turn, state: LoopState, measure: WindowMeasure, room: int) -> LoopState:
    """The state for a model with `room` tokens for the conversation. measure: of that model."""
    bounds = [*turn.exchanges, len(turn.context)]
    weights = [sum(map(weigh, turn.context[begin:end]), Weight()) for begin, end in pairwise(bounds)]
    chain = sum(map(weigh, state.messages), Weight())
    sizes = [measure.tokens(weight) for weight in weights]
    own = measure.tokens(chain)
    dropped = exchanges_to_drop([*sizes[:-1], sizes[-1] + own], room)
    over = sum(sizes[dropped:]) + own - room
    messages = shortened(state.messages, over, turn.keep) if over > 0 else state.messages
    return replace(state, dropped=dropped, messages=messages)


def shorter(turn: Turn, state: LoopState) -> LoopState:
    """The state with this turn's own chain at about half its length, where the server found it too long."""
    chain = sum(map(weigh, state.messages), Weight())
    messages = shortened(state.messages, chain.text // 2, turn.keep)
    return state if messages == state.messages else replace(state, messages=messages)
