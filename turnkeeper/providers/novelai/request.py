# NovelAI text requests: the conversation as one text, which the model goes on writing.
#
# The system prompt, then a line of `***`, then each message as a line that begins with who says it. The service wants no
# roles, no tools and no pictures: all of it is text (S3.10). An unfinished reply is simply what the text ends with (S3.4).

"""Writes the neutral conversation as a text to be continued."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.json import encode

from turnkeeper.providers.counts import table_of
from turnkeeper.providers.model import Model
from turnkeeper.providers.novelai.parser import MODEL, PERSON
from turnkeeper.providers.writing import Entry, StableEntries, call_of, retold_result, without_pictures
from turnkeeper.types.messages import AssistantMessage, Message, Prompt, ToolMessage, UserMessage

FRAGMENT_TOKENS = 150
"""The longest fragment that the service writes for one request."""


class NovelWriter:
    """Writes the requests of one attempt."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._entries = StableEntries(self._entry)

    @property
    def path(self) -> str:
        """Where the request goes, below the base URL."""
        return "/ai/generate-stream"

    @property
    def native_prefill(self) -> bool:
        """Always: the service continues a text."""
        return True

    def headers(self, key: str) -> dict[str, str]:
        """The headers of a request with `key`, "" for none."""
        own = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        if key:
            own["Authorization"] = f"Bearer {key}"
        return own | self._model.headers

    def body(self, prompt: Prompt) -> bytes:
        """The request's body."""
        lines = [prompt.system.strip(), "***"] if prompt.system.strip() else []
        lines += [entry.content.decode() for entry in self._entries.of(prompt.messages) if entry.content]
        if prompt.tail:
            lines.append(f"{PERSON} {prompt.tail}")
        lines.append(f"{MODEL} {prompt.prefill.rstrip()}".rstrip())
        return self.fragment("\n".join(lines), FRAGMENT_TOKENS)

    def fragment(self, text: str, tokens: int) -> bytes:
        """The request for the next fragment after `text`, of at most so many tokens."""
        own: dict[str, Any] = {"use_string": True, "generate_until_sentence": False, "max_length": tokens, "min_length": 1}
        if self._model.temperature is not None:
            own["temperature"] = self._model.temperature
        parameters = own | table_of(self._model.extra.get("parameters"))
        parameters["max_length"] = min(tokens, FRAGMENT_TOKENS)
        return encode({"input": text, "model": self._model.name, "parameters": parameters})

    def _entry(self, message: Message, messages: Sequence[Message], place: int) -> Entry:
        match message:
            case UserMessage():
                text = without_pictures(message.text, message.pictures)
                return Entry("user", f"{PERSON} {text}".encode() if text.strip() else b"")
            case AssistantMessage():
                return Entry("assistant", f"{MODEL} {message.text.strip()}".encode() if message.text.strip() else b"")
            case ToolMessage():
                return Entry("user", f"{PERSON} {retold_result(message, call_of(message, messages, place))}".encode())
