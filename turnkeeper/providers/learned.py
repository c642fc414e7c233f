# What refusals have taught about models: it is asked otherwise at once, and nobody is blamed (S3.4b, S3.10a).
#
# Kept for as long as the process lives. A server that refused a prefill gets the instruction form; a picture that a server
# refused is told of in words, in every later request, so that one bad picture does not silence a channel.

"""What is remembered of servers that refused a manner of asking."""

from __future__ import annotations

from hashlib import blake2b

from msgspec.structs import replace

from turnkeeper.providers.model import Model
from turnkeeper.providers.writing import without_pictures
from turnkeeper.types.messages import AssistantMessage, Message, Picture, Prompt, ToolMessage, UserMessage

_MOST_KEPT = 1000  # messages whose words are kept


class Learned:
    """Shared by all attempts of an engine."""

    def __init__(self) -> None:
        self._no_prefill: set[tuple[str, str]] = set()
        self._refused: set[bytes] = set()  # digests of pictures
        self._told: dict[int, tuple[Message, Message]] = {}  # by the message's identity, so that its bytes stay the same

    def fitted(self, model: Model) -> Model:
        """The model as it may be asked."""
        return replace(model, quirks=model.quirks | {"prefill": False}) if _place(model) in self._no_prefill else model

    def refuses_prefill(self, model: Model) -> None:
        """This model does not go on after an assistant message."""
        self._no_prefill.add(_place(model))

    def refuses_pictures(self, prompt: Prompt) -> bool:
        """One of the pictures of this prompt was refused; servers do not say which. Returns whether there is a new one."""
        known = len(self._refused)
        self._refused |= {_digest(picture) for message in prompt.messages for picture in _pictures(message)}
        self._told.clear()
        return len(self._refused) > known

    def told(self, prompt: Prompt) -> Prompt:
        """The prompt with words in place of pictures that were refused."""
        if not self._refused:
            return prompt
        return replace(prompt, messages=tuple(self._message(message) for message in prompt.messages))

    def _message(self, message: Message) -> Message:
        if not _pictures(message):
            return message
        kept = self._told.get(id(message))
        if kept is None or kept[0] is not message:
            if len(self._told) > _MOST_KEPT:
                self._told.clear()
            kept = self._told[id(message)] = (message, self._in_words(message))
        return kept[1]

    def _in_words(self, message: Message) -> Message:
        bad = tuple(picture for picture in _pictures(message) if _digest(picture) in self._refused)
        good = tuple(picture for picture in _pictures(message) if picture not in bad)
        match message:
            case UserMessage():
                return replace(message, text=without_pictures(message.text, bad), pictures=good) if bad else message
            case ToolMessage():
                return replace(message, content=without_pictures(message.content, bad), pictures=good) if bad else message
            case AssistantMessage():
                return message


def _pictures(message: Message) -> tuple[Picture, ...]:
    return () if isinstance(message, AssistantMessage) else message.pictures


def _place(model: Model) -> tuple[str, str]:
    return model.url, model.name


def _digest(picture: Picture) -> bytes:
    return blake2b(picture.data, digest_size=16).digest()
