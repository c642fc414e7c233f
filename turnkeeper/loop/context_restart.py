"""Stage 3: a tool found context that the model should have had from the start (S7.1)."""

from __future__ import annotations

from msgspec.structs import replace

from turnkeeper.loop.state import LoopState, Repetition, Restarted
from turnkeeper.types.messages import UserMessage
from turnkeeper.types.outcomes import ContextItem


def restart_with(state: LoopState, item: ContextItem) -> LoopState:
    """Takes up a context item: the next pass sees it, and the counters reset.

    The item stands at the end of the chain, so that the request extends the one before it (S3.10b). An item whose key was
    taken up in this turn already adds nothing. The tool that asked is switched off by its batch.
    """
    known = item.key is not None and item.key in state.context_keys
    added = () if known else (UserMessage(item.text, item.pictures),)
    keys = state.context_keys if item.key is None else state.context_keys | {item.key}
    return replace(
        state,
        at=Restarted(),
        messages=state.messages + added,
        context_keys=keys,
        tool_errors=0,
        repetition=Repetition(),
        empties=0,
    )
