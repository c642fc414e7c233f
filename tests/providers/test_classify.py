"""Error answers in our classes (S12.4, S3.3b), and the connection's own failures as one sentence each."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from tests.harness import Bench
from tests.shared import STREAMS
from turnkeeper import Model
from turnkeeper.errors import ProviderError
from turnkeeper.providers.classify import fault_of_answer
from turnkeeper.providers.retry_after import read_time, retry_after_s
from turnkeeper.providers.transport import HttpRequest, Transport
from turnkeeper.testing import fail, framing, raw, say
from turnkeeper.types.faults import Fault

NOW = 1_796_126_400.0  # 2026-12-01T12:00:00Z


def classify(status: int, body: Any, **headers: str) -> Fault:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return fault_of_answer(status, {name.replace("_", "-"): value for name, value in headers.items()}, data, where="h/v1")


def said(message: str, code: str | None = None, kind: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "code": code, "type": kind}}


ANSWERS = [
    (401, said("Incorrect API key provided: sk-...", "invalid_api_key"), "auth", "key"),
    (401, b"<html>Unauthorized</html>", "auth", "network"),
    (403, said("You have insufficient permissions"), "permission", "key"),
    (429, said("Rate limit reached for gpt-x", "rate_limit_exceeded"), "rate_limit", "key"),
    (429, said("You exceeded your current quota", "insufficient_quota"), "quota_exhausted", "key"),
    (429, said("slow", "usage_limit_reached"), "quota_exhausted", "key"),
    (402, said("Insufficient balance"), "credit_ceiling", "key"),
    (403, said("billing is not active", "billing_error"), "credit_ceiling", "key"),
    (400, said("This model's maximum context length is 8192 tokens", "context_length_exceeded"), "context_length", "request"),
    (400, said("prompt is too long: 210000 tokens > 200000 maximum"), "context_length", "request"),
    (400, said("the request exceeds the available context size"), "context_length", "request"),
    (400, said("Please reduce the length of the messages"), "context_length", "request"),
    (400, said("input token count (40000) exceeds the maximum"), "context_length", "request"),
    (413, b"", "context_length", "request"),
    (500, said("no user query found in messages"), "context_length", "request"),
    (400, said("rejected by our content policy"), "content_blocked", "request"),
    (404, said("The model `nope` does not exist", "model_not_found"), "model_unavailable", "model"),
    (503, said("The server is overloaded"), "overloaded", "model"),
    (529, said("Overloaded", kind="overloaded_error"), "overloaded", "model"),
    (500, said("boom", "internal_server_error"), "server", "model"),
    (502, b"<html>Bad gateway</html>", "server", "model"),
    (400, said("Invalid 'messages[3]'", "invalid_value"), "bad_request", "request"),
    (405, b"", "bad_request", "request"),
    (404, b"<html>not found</html>", "protocol", "network"),
    (418, b"\xff\xfe", "bad_request", "request"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "body", "kind", "blame"), ANSWERS, ids=[f"{case[0]} {case[2]} {n}" for n, case in enumerate(ANSWERS)]
)
def test_an_error_answer_has_its_class_and_whose_fault_it_is(status: int, body: Any, kind: str, blame: str) -> None:
    fault = classify(status, body)
    assert (fault.kind, fault.blame, fault.status) == (kind, blame, status)


def test_a_bot_challenge_is_the_networks_and_not_the_keys() -> None:
    """S3.3b"""
    for fault in (
        classify(403, b"<html>x</html>", cf_mitigated="challenge"),
        classify(403, b"<title>Just a moment...</title>"),
    ):
        assert (fault.kind, fault.blame) == ("network", "network")


@pytest.mark.skipif(STREAMS is None, reason="the recorded errors are not beside this checkout")
def test_recorded_errors_are_classified_and_quoted() -> None:
    assert STREAMS is not None
    for one in json.loads((STREAMS / "errors" / "recorded.json").read_text("utf-8")):
        fault = classify(one["status"], one["body"])
        assert fault.said, one
        expected = {404: {"model_unavailable"}, 429: {"rate_limit"}, 400: {"bad_request", "model_unavailable"}}[one["status"]]
        assert fault.kind in expected, (fault.kind, one)


TIMES = [
    ("20", 20.0), ("0", 0.0), ("1.5", 1.5), ("6m0s", 360.0), ("250ms", 0.25), ("1h2m3s", 3723.0), ("Tue, 01 Dec 2026 12:05:00 GMT", 300.0),
    ("2026-12-01T12:05:00Z", 300.0), ("2026-12-01 12:05:00", 300.0), (str(int(NOW) + 90), 90.0), (str((int(NOW) + 90) * 1000), 90.0),
    ("Mon, 30 Nov 2026 12:00:00 GMT", 0.0), ("soon", None), ("", None), ("-5", None), ("99999999999999999999", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "seconds"), TIMES)
def test_the_time_that_a_server_names_is_read_in_every_form(text: str, seconds: float | None) -> None:
    """S3.3a: a past time means now; nonsense is ignored."""
    found = read_time(text, NOW)
    assert found == pytest.approx(seconds) if seconds is not None else found is None


def test_milliseconds_go_before_seconds() -> None:
    assert retry_after_s({"retry-after-ms": "250", "retry-after": "9"}, "", NOW) == 0.25
    assert retry_after_s({}, "", NOW) is None


async def failure(url: str) -> str:
    transport = Transport(connect_timeout_s=2)
    try:
        with pytest.raises(ProviderError) as caught:
            await transport.open(HttpRequest(url, {"Authorization": "Bearer sk-secret-0123456789"}, b"{}"))
        assert caught.value.fault.kind == "network"
        assert "secret" not in str(caught.value)
        return str(caught.value)
    finally:
        await transport.aclose()


async def test_connections_that_fail_are_one_sentence_each(bench: Bench) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    assert "connection refused" in await failure(f"http://127.0.0.1:{port}/v1?key=sk-secret-0123456789")
    assert "TLS failed" in await failure(bench.provider.base_url.replace("http:", "https:") + "/chat/completions")
    assert "host name was not found" in await failure("http://no-such-host.invalid/v1")


async def test_what_is_no_answer_of_this_family_is_a_protocol_error_with_a_quote(bench: Bench) -> None:
    bench.provider.play(
        raw(b"<html><body>Please log in</body></html>") + framing(content_type="text/html"),
        fail(302, headers={"Location": "https://elsewhere.example/"}, body=""),
    )
    engine = bench.engine()
    result = await engine.run("go")
    assert result.fault is not None
    assert (result.fault.kind, "Please log in" in result.fault.said) == ("protocol", True)
    result = await engine.run("go")
    assert result.fault is not None
    assert result.fault.status == 302


@pytest.mark.parametrize(
    "how", [{"gzip": True}, {"brotli": True}, {"content_type": ""}, {"crlf": True}, {"bom": True}, {"chunk_bytes": 1}]
)
async def test_an_answer_may_be_packed_cut_and_typed_in_any_way(how: dict[str, Any], bench: Bench) -> None:
    bench.provider.play(say("The tide comes in.") + framing(**how))
    assert (await bench.engine().run("go")).text == "The tide comes in."


async def test_a_wrong_key_is_said_with_advice_and_without_the_key(bench: Bench) -> None:
    bench.provider.play(fail(401, message="Incorrect API key provided: sk-wrong-0123456789abcdef.", code="invalid_api_key"))
    model = Model("openai-chat", "gpt-x", base_url=bench.provider.base_url, keys=["sk-wrong-0123456789abcdef"])
    result = await bench.engine(models=[model]).run("go")
    assert "The key was refused" in result.notices[0].detail
    assert "Check the key" in result.notices[0].detail
    assert "0123456789" not in result.notices[0].detail + str(await bench.events(result))
