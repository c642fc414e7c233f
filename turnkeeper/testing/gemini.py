# The Google Gemini family, spoken by a server: what a request is for, whose it is, and how it is refused.
#
# The words of the answers are gemini_voice.py's, the strict check is strict_gemini.py's.
# The model stands in the path, and so does whether a stream is wanted; nothing of it is in the body.

"""Scripted answers as the Gemini API words them: `ScriptedProvider(family=GEMINI)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from turnkeeper.testing import strict_gemini
from turnkeeper.testing.gemini_voice import GeminiVoice, Signed
from turnkeeper.testing.gemini_words import Target, status_word
from turnkeeper.testing.seen import SeenRequest
from turnkeeper.testing.steps import Answer, Fail
from turnkeeper.testing.strict import Rules
from turnkeeper.testing.wire import Asked

_WRONG_KEY = "API_KEY_INVALID"
_UNKNOWN_CALLER = "An API key is needed: none of the accepted forms of identity came with this request."
_MESSAGES = {
    400: "Request contains an invalid argument.",
    401: "API key not valid. Please pass a valid API key.",
    403: "The caller does not have permission",
    404: "Requested entity was not found.",
    405: "This method is not allowed here.",
    429: "Resource has been exhausted (e.g. check quota).",
    500: "An internal error has occurred.",
    503: "The model is overloaded. Please try again later.",
    504: "The deadline expired before the answer was ready.",
}


class Gemini:
    """The family: `POST {root}/models/NAME:streamGenerateContent`, the same with `:generateContent`, `GET {root}/models`.

    signed: which calls carry a thought signature: "each", only the "first" of an answer, as Gemini 3 has it for parallel
    calls, or "none", as before Gemini 2.5 (then texts carry none either).
    """

    root = "/v1beta"

    def __init__(self, *, signed: Signed = "each") -> None:
        self._signed: Signed = signed

    def asked(self, method: str, path: str) -> Asked | int:
        """What a request is for, or the status that refuses it."""
        if path == f"{self.root}/models":
            return "models" if method == "GET" else 405
        target = Target.of(path)
        known = target.model and target.method in ("generateContent", "streamGenerateContent")
        if not known or not path.startswith(f"{self.root}/models/"):
            return 404
        return "answer" if method == "POST" else 405

    def key(self, headers: Mapping[str, str]) -> str:
        """`x-goog-api-key`."""
        return headers.get("x-goog-api-key", "")

    def key_in(self, path: str) -> str:
        """`?key=`."""
        return Target.of(path).key

    def wrong_key(self, key: str) -> Fail:
        """400 for a wrong key, 403 for none: this API knows no 401 for keys."""
        if not key:
            return Fail(status=403, message=_UNKNOWN_CALLER)
        return Fail(status=400, message=_MESSAGES[401], code=_WRONG_KEY)

    def problems(self, request: SeenRequest, rules: Rules) -> list[str]:
        """What a strict server would refuse."""
        return strict_gemini.problems(request, rules)

    def refusal(self, request: SeenRequest, rules: Rules) -> Fail:
        """404 for an unknown model, else 400."""
        known = strict_gemini.knows_model(request, rules)
        return Fail(status=400 if known else 404, message="; ".join(request.problems))

    def wants_stream(self, request: SeenRequest) -> bool:
        """Whether events are asked for. A stream without `alt=sse` is a document: one array of chunks."""
        target = Target.of(request.path)
        return target.method == "streamGenerateContent" and target.alt == "sse"

    def error(self, status: int, message: str = "", code: str | None = None) -> dict[str, Any]:
        """`{"error": {...}}`. code: the reason in its details, made up for 401."""
        said = {"code": status, "message": message or _MESSAGES.get(status, _MESSAGES[500]), "status": status_word(status)}
        reason = code or (_WRONG_KEY if status == 401 else None)
        return {"error": said if reason is None else said | {"details": [_details(reason)]}}

    def models(self, names: Sequence[str]) -> dict[str, Any]:
        """The list of models."""
        methods = ["generateContent", "countTokens"]
        entries = [
            {
                "name": f"models/{name}",
                "version": "001",
                "displayName": name,
                "inputTokenLimit": 1_048_576,
                "outputTokenLimit": 65_536,
                "supportedGenerationMethods": methods,
            }
            for name in names
        ]
        return {"models": entries}

    def voice(self, answer: Answer, request: SeenRequest, new_id: Callable[[], str]) -> GeminiVoice:
        """Who gives this answer."""
        return GeminiVoice(answer, request, new_id, self._signed)


GEMINI = Gemini()


def _details(reason: str) -> dict[str, Any]:
    return {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "googleapis.com",
        "metadata": {"service": "generativelanguage.googleapis.com"},
    }
