"""The loop's decisions, against the table in docs/ends.md."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from turnkeeper.loop.policy import ExecuteTools, Finish, RestartWith, Step, StreamOnce, next_step
from turnkeeper.loop.state import Beginning, Executed, LoopState, RanTool, Repetition, Restarted
from turnkeeper.settings import Settings
from turnkeeper.types.calls import Parsed, ToolCall
from turnkeeper.types.ends import AskedCall, Completed, Empty, Failed, FollowUp, Paused, Stopped, TimedOut, ToolCalls
from turnkeeper.types.faults import Fault
from turnkeeper.types.outcomes import ContextItem
from turnkeeper.types.turn import Notice

LIMITS = Settings()
CALL = ToolCalls((AskedCall(ToolCall("1", "f", "{}", Parsed({}))),))
PLAIN = RanTool("f", True)
SILENT = RanTool("remember", True, silent=True)


class Row(NamedTuple):
    happened: str
    also: str
    state: LoopState
    stopped: bool = False
    over: bool = False


def ran(*tools: RanTool, **executed: object) -> LoopState:
    return LoopState(at=Executed(tools, **executed), passes=1, ran=tools)  # type: ignore[arg-type]


def nothing(count: int, *tools: RanTool, finish: str = "stop", **state: object) -> LoopState:
    return replace(LoopState(at=Empty(finish), passes=count, ran=tools, empties=count), **state)  # type: ignore[arg-type]


ROWS = [
    Row("anything", "someone asked the turn to stop", LoopState(at=Completed("hi", "stop")), stopped=True),
    Row("a new attempt", "nothing was shown by an earlier one", LoopState()),
    Row("a new attempt", "an earlier one left unfinished text", LoopState(at=Beginning(unfinished=True))),
    Row("a context item was taken up", "", LoopState(at=Restarted(), passes=1)),
    Row("the model asked for tools", "", LoopState(at=CALL, passes=1)),
    Row("tools ran", "a tool ended the turn", replace(ran(PLAIN, end_turn=True), tool_errors=5, passes=100)),
    Row("tools ran", "10 times the same call with the same result", replace(ran(PLAIN), repetition=Repetition(None, "b", 10), tool_errors=5)),
    Row("tools ran", "5 calls in a row failed", replace(ran(PLAIN), tool_errors=5, passes=100)),
    Row("tools ran", "100 passes were made", replace(ran(PLAIN, restart=ContextItem("x")), passes=100)),
    Row("tools ran", "a tool found context", ran(SILENT, restart=ContextItem("x"), text_before=True)),
    Row("tools ran", "text came before, all tools silent", ran(SILENT, text_before=True)),
    Row("tools ran", "otherwise", ran(PLAIN, text_before=True)),
    Row("a pass would follow", "a budget is used up", ran(PLAIN, text_before=True), over=True),
    Row("the server paused", "", LoopState(at=Paused("hi"), passes=1, texts=("hi",))),
    Row("text", "finished", LoopState(at=Completed("hi", "stop"), passes=1, texts=("hi",))),
    Row("text", "cut by the output limit", LoopState(at=Completed("hi", "length"), passes=1, texts=("hi",))),
    Row("text", "cut by the output limit, carried on 3 times", LoopState(at=Completed("hi", "length"), passes=4, texts=("hi",), continuations=3)),
    Row("nothing", "it was to carry on a text", nothing(1, texts=("hi",), continuations=1)),
    Row("nothing", "it only said again what was shown, carrying on", nothing(1, at=Empty("stop", repeated=True), texts=("hi",), continuations=1)),
    Row("nothing", "after tools, and people have an answer", nothing(1, PLAIN, texts=("hi",))),
    Row("nothing", "after tools, the first time", nothing(1, PLAIN)),
    Row("nothing", "after tools, the second time", nothing(2, PLAIN)),
    Row("nothing", "after tools, the third time", nothing(3, PLAIN)),
    Row("nothing", "no tools, the first or second time", nothing(2)),
    Row("nothing", "no tools, for want of room", nothing(1, finish="length")),
    Row("nothing", "no tools, the third time", nothing(3)),
    Row("the provider failed", "", LoopState(at=Failed(Fault("server", "model")))),
    Row("a clock ran out", "", LoopState(at=TimedOut("idle", 120.0))),
    Row("the operator's message limit", "", LoopState(at=Stopped("send_message_limit"))),
    Row("the safety limit of a reply", "", LoopState(at=Stopped("flush_limit"))),
    Row("a newer message of the same user", "", LoopState(at=FollowUp())),
]  # fmt: skip


def in_words(step: Step) -> str:
    match step:
        case StreamOnce(purpose=purpose):
            return f"pass ({purpose.replace('_', ' ')})"
        case ExecuteTools():
            return "run the tools"
        case RestartWith():
            return "take up the context"
        case Finish(end=end, notice=notice):
            return f"ends `{end}`" + (f", notice `{notice.kind}`" if notice else "")


def table() -> dict[tuple[str, str], str]:
    text = (Path(__file__).parents[2] / "docs" / "ends.md").read_text("utf-8")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    return {(row[0], row[1]): row[2] for row in cells[2:]}


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.happened}: {row.also}" for row in ROWS])
def test_each_row_of_the_table_of_ends_is_what_the_policy_decides(row: Row) -> None:
    over = Notice("over_budget", "turn 100 tokens 0") if row.over else None
    assert in_words(next_step(row.state, LIMITS, stopped=row.stopped, over_budget=over)) == table()[row.happened, row.also]


def test_the_table_of_ends_has_a_test_for_each_row() -> None:
    assert set(table()) == {(row.happened, row.also) for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.happened}: {row.also}" for row in ROWS])
def test_a_budget_refuses_only_what_would_cost(row: Row) -> None:
    """Issue 11.8: tools that were asked for run, and an end stays as it is."""
    free = next_step(row.state, LIMITS, stopped=row.stopped)
    refused = next_step(row.state, LIMITS, stopped=row.stopped, over_budget=Notice("over_budget", "turn 100 tokens 0"))
    assert isinstance(refused, Finish) if isinstance(free, StreamOnce) else refused == free


@pytest.mark.parametrize("tool", [RanTool("f", True, follow_up=True), RanTool("f", False)], ids=["wants a follow-up", "failed"])
def test_silence_after_a_tool_that_needs_words_is_not_settled(tool: RanTool) -> None:
    """S9.2"""
    assert in_words(next_step(nothing(1, tool, texts=("hi",)), LIMITS)) == "pass (again)"


def test_silence_for_want_of_room_is_not_settled() -> None:
    """S9.2: not if the finish reason was the token limit."""
    assert in_words(next_step(nothing(1, PLAIN, texts=("hi",), finish="length"), LIMITS)) == "pass (again)"


def test_silence_that_a_tool_asked_for_is_respected() -> None:
    """S9.4a: a silent result needs no words."""
    assert in_words(next_step(nothing(1, SILENT), LIMITS)) == "ends `completed`"


def test_a_silent_tool_without_text_before_it_goes_on() -> None:
    """S9.1: the exit is for text that people have seen."""
    assert in_words(next_step(ran(SILENT), LIMITS)) == "pass (answer)"


@pytest.mark.parametrize(
    "tools",
    [(SILENT, PLAIN), (RanTool("remember", True, silent=True, follow_up=True),), (RanTool("remember", False, silent=True),)],
)
def test_the_pre_tool_text_exit_is_for_silent_tools_that_succeeded_and_want_nothing_more(tools: tuple[RanTool, ...]) -> None:
    """S9.1"""
    assert in_words(next_step(ran(*tools, text_before=True), LIMITS)) == "pass (answer)"


def test_people_are_told_at_pass_20_that_the_turn_goes_on() -> None:
    """S4.2"""
    notices = {}
    for passes in range(1, 100):
        step = next_step(replace(ran(PLAIN), passes=passes), LIMITS)
        assert isinstance(step, StreamOnce)
        if step.notice is not None:
            notices[passes + 1] = step.notice.kind
    assert notices == {20: "still_working"}


def test_a_stop_wins_over_everything() -> None:
    """S5.3a"""
    for row in ROWS:
        assert next_step(row.state, LIMITS, stopped=True) == Finish("stopped_by_user")
