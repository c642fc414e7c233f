"""What notices say, in the reader's language."""

from __future__ import annotations

from typing import Literal, TypeAlias

from turnkeeper.types.faults import span
from turnkeeper.types.turn import Notice, NoticeKind

Language: TypeAlias = Literal["en", "ja"]

_TEXTS: dict[Language, dict[NoticeKind, str]] = {
    "en": {
        "still_working": "Still working (request {detail}). /kill stops it.",
        "too_many_passes": "Stopped after {detail} requests to the model: the limit of one reply. What was done so far stands.",
        "too_many_tool_errors": "Stopped: {detail} tool calls in a row failed.",
        "repeated_calls": "Stopped: the model kept calling {detail} with the same arguments and the same result.",
        "timed_out": "The model did not answer in time{detail}.",
        "failed": "No reply could be had. {detail}",
        "answered_by": "Answered by {detail}.",
        "empty_response": "The model answered with nothing, several times. Another wording or another model may help.",
        "silent_after_tool": "The model said nothing after using {detail}. Ask again to hear about it.",
        "length_limit": "The reply was cut at the model's output limit. Say “go on” for the rest.",
        "flush_limit": "The reply was cut: it reached the limit of one reply.",
        "history_healed": "The stored conversation was damaged and was mended: {detail}.",
        "journal_unavailable": "The record can't be written ({detail}), so nothing new is begun.",
        "over_budget": "{detail}",
    },
    "ja": {
        "still_working": "まだ作業中です(リクエスト{detail}回目)。/kill で止められます。",
        "too_many_passes": "1回の返信の上限であるリクエスト{detail}回に達したため終了しました。ここまでの結果は残っています。",
        "too_many_tool_errors": "ツールの呼び出しが{detail}回続けて失敗したため終了しました。",
        "repeated_calls": "モデルが同じ引数で {detail} を呼び続け、結果も同じだったため終了しました。",
        "timed_out": "モデルが時間内に応答しませんでした{detail}。",
        "failed": "返信を得られませんでした。{detail}",
        "answered_by": "{detail} が回答しました。",
        "empty_response": "モデルの返信が何度も空でした。言い換えるか、別のモデルをお試しください。",
        "silent_after_tool": "モデルは {detail} を使った後、何も答えませんでした。もう一度聞いてください。",
        "length_limit": "モデルの出力上限で返信が切れました。続きは「続けて」と送ってください。",
        "flush_limit": "1回の返信の上限に達したため、返信を途中で切りました。",
        "history_healed": "保存された会話が壊れていたため修復しました: {detail}。",
        "journal_unavailable": "記録に書き込めないため({detail})、新しい返信は始めません。",
        "over_budget": "{detail}",
    },
}
_PHASES: dict[Language, dict[str, str]] = {
    "en": {"first_token": ": nothing came at all", "idle": ": it stopped in the middle"},
    "ja": {"first_token": "(何も届きませんでした)", "idle": "(途中で止まりました)"},
}


_BUDGETS: dict[Language, dict[str, str]] = {
    "en": {
        "turn": "Stopped: this reply has used its budget of {amount}. What was done so far stands.",
        "user": "Your budget of {amount} a day is used up; it is full again at 00:00 UTC, in {left}.",
        "channel": "This channel's budget of {amount} a day is used up; it is full again at 00:00 UTC, in {left}.",
        "server": "This server's budget of {amount} a day is used up; it is full again at 00:00 UTC, in {left}.",
        "day": "This bot's budget of {amount} a day is used up; it is full again at 00:00 UTC, in {left}.",
    },
    "ja": {
        "turn": "この返信の予算である{amount}を使い切ったため終了しました。ここまでの結果は残っています。",
        "user": "あなたの1日の予算である{amount}を使い切りました。{left}後の 00:00 UTC に回復します。",
        "channel": "このチャンネルの1日の予算である{amount}を使い切りました。{left}後の 00:00 UTC に回復します。",
        "server": "このサーバーの1日の予算である{amount}を使い切りました。{left}後の 00:00 UTC に回復します。",
        "day": "このボットの1日の予算である{amount}を使い切りました。{left}後の 00:00 UTC に回復します。",
    },
}


def words(notice: Notice, language: Language = "en") -> str:
    """The notice as a sentence in `language`."""
    detail = notice.detail
    if notice.kind == "timed_out":
        detail = _PHASES[language].get(detail, "")
    if notice.kind == "over_budget":
        detail = _budget(detail, language)
    return _TEXTS[language][notice.kind].format(detail=detail).strip()


def _budget(detail: str, language: Language) -> str:
    """The sentence for a detail such as `user 1000 tokens 3600`: whose budget, how much, and seconds until it is full."""
    scope, number, unit, seconds = detail.split()
    tokens = f"{float(number):,.0f} tokens" if language == "en" else f"{float(number):,.0f}トークン"
    amount = tokens if unit == "tokens" else f"${float(number):,.2f}"
    left = span(float(seconds))
    if language == "ja":
        left = left.replace(" h", "時間").replace(" min", "分").replace(" s", "秒").replace(" ", "")
    return _BUDGETS[language][scope].format(amount=amount, left=left)
