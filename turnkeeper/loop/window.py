# How much of a model's window a conversation takes (S3.10a).
#
# Without a tokenizer: text by script, pictures by the provider's rule, and the sum corrected by what the model last
# reported. A report far below the least possible is no correction: the server cut the prompt (a local server whose own
# window is smaller than the catalogue's, as Ollama's is by default). It teaches the real window, and is named once.

"""Measures conversations for a model's window."""

from __future__ import annotations

import math
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from turnkeeper.providers.model import Model
from turnkeeper.providers.tokens import estimate_tokens
from turnkeeper.tools.pictures import sides_of
from turnkeeper.tools.results import Keep, bounded
from turnkeeper.types.messages import AssistantMessage, Message, Picture, ToolMessage, UserMessage

_LEAST_SHARE = 0.4  # of an estimate: fewer tokens than that the text can't have
_LEAST_MEASURED = 1000  # tokens: a short prompt is no evidence
_FACTORS = (0.5, 2.0)  # what a correction may be
_ANSWER_SHARE = 4  # a quarter of the window is left for the answer, where the model names no output budget
_LEAST_ROOM = 256  # tokens for the conversation, however small the window
_SHORTEST_RESULT = 600  # bytes that stay of a result that is shortened
_UNKNOWN_PICTURE = 1000  # tokens of a picture whose sides can't be read


class Weight(Struct, frozen=True):
    """What a part of a conversation weighs. text: tokens by our estimate; pictures: the sides of each, in pixels."""

    text: int = 0
    pictures: tuple[tuple[int, int] | None, ...] = ()

    def __add__(self, other: Weight) -> Weight:
        return Weight(self.text + other.text, self.pictures + other.pictures)


def weigh(message: Message) -> Weight:
    """The weight of one message."""
    match message:
        case UserMessage():
            return Weight(4 + estimate_tokens(message.text), _sides(message.pictures))
        case AssistantMessage():
            return Weight(4 + estimate_tokens(message.text) + sum(8 + estimate_tokens(call.text) for call in message.calls))
        case ToolMessage():
            return Weight(4 + estimate_tokens(message.content), _sides(message.pictures))
        case _:
            assert_never(message)


def picture_tokens(family: str, sides: tuple[int, int] | None) -> int:
    """Tokens of a picture of these sides, by the rule that the family's own provider publishes."""
    if sides is None:
        return _UNKNOWN_PICTURE
    width, height = sides
    match family:
        case "anthropic":  # long side at most 1,568 pixels, then pixels / 750
            scale = min(1.0, 1568 / max(width, height))
            return math.ceil(width * scale * height * scale / 750)
        case "gemini":  # 258 a tile of 768
            small = max(width, height) <= 384
            return 258 if small else 258 * math.ceil(width / 768) * math.ceil(height / 768)
        case _:  # into 2,048 a side, then the short side to 768; 85, and 170 a tile of 512
            scale = min(1.0, 2048 / max(width, height))
            scale *= min(1.0, 768 / max(1.0, min(width, height) * scale))
            return 85 + 170 * math.ceil(width * scale / 512) * math.ceil(height * scale / 512)


def shortened(messages: tuple[Message, ...], over: int, keep: Keep) -> tuple[Message, ...]:
    """A turn's chain with about `over` tokens less: its oldest results are cut, with the marker that says how to read on.

    keep: keeps a whole text and returns its handle (S6.5).
    """
    cut = list(messages)
    for place, message in enumerate(messages):
        if over <= 0:
            break
        if isinstance(message, ToolMessage) and len(message.content) > 2 * _SHORTEST_RESULT:
            short = bounded(message.content, _SHORTEST_RESULT, keep)
            over -= estimate_tokens(message.content) - estimate_tokens(short)
            cut[place] = replace(message, content=short)
    return tuple(cut)


class WindowMeasure:
    """What is known of one model's window. family: whose picture rule holds. window: tokens, as the catalogue says."""

    def __init__(self, family: str, window: int) -> None:
        self._family = family
        self._factor = 1.0
        self.window = window
        """Tokens that a request and its answer may have together; the real number, once a server has shown it."""

    def tokens(self, weight: Weight) -> int:
        """About how many tokens of this model's window a weight takes."""
        pictures = sum(picture_tokens(self._family, sides) for sides in weight.pictures)
        return round(weight.text * self._factor) + pictures

    def observe(self, sent: Weight, reported: int) -> str | None:
        """Takes what the model reported for a request. Returns a sentence for the operator where the server cut the prompt."""
        pictures = sum(picture_tokens(self._family, sides) for sides in sent.pictures)
        estimated = sent.text + pictures
        if estimated < _LEAST_MEASURED or reported <= 0:
            return None
        if reported >= estimated * _LEAST_SHARE:
            low, high = _FACTORS
            self._factor = min(high, max(low, (reported - pictures) / max(1, sent.text)))
            return None
        if reported >= self.window:
            return None  # said already
        self.window = reported
        return (
            f"the server read only {reported:,} of about {estimated:,} tokens: its own context window is smaller than ours. "
            "Make it larger there (Ollama: num_ctx; llama.cpp: --ctx-size; LM Studio: context length), or set "
            f"`quirks.context_window = {reported}` for this model; until then requests are cut to that size"
        )


def room_for(model: Model, measure: WindowMeasure, fixed: int) -> int:
    """Tokens of the model's window that the conversation may take: what the answer and `fixed` tokens leave (S3.10)."""
    answer = model.output_limit or measure.window // _ANSWER_SHARE
    return max(_LEAST_ROOM, measure.window - answer - fixed)


def _sides(pictures: tuple[Picture, ...]) -> tuple[tuple[int, int] | None, ...]:
    return tuple(sides_of(picture) for picture in pictures)
