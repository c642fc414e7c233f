"""Finish reasons as servers word them, in our words."""

from __future__ import annotations

from turnkeeper.types.stream import FinishReason

_WORDS: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "completed": "stop",
    "complete": "stop",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "prohibited_content": "content_filter",
    "blocklist": "content_filter",
    "spii": "content_filter",
    "image_safety": "content_filter",
    "language": "content_filter",
    "refusal": "content_filter",
    "pause_turn": "pause",
}


def finish_reason(said: str | None, native: str | None = None) -> FinishReason | None:
    """Our word for a finish reason, or None where nothing was said.

    said: the finish reason. native: what the server behind a gateway said (`native_finish_reason`); it decides where
    `said` is missing, or where it says that the output limit cut what the gateway calls a plain stop.
    """
    own = _WORDS.get(native.lower(), "unknown") if native else None
    if not said:
        return own
    mapped = _WORDS.get(said.lower(), "unknown")
    return "length" if own == "length" and mapped == "stop" else mapped
