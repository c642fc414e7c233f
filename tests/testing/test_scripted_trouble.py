"""Scripted trouble, as a client on the wire sees it: lost and hanging connections, refusals, odd layouts."""

from __future__ import annotations

import asyncio
import json
import zlib

import aiohttp
import brotli
import pytest

from turnkeeper.testing import (
    ScriptedProvider,
    close,
    cut,
    done,
    error,
    event,
    fail,
    finish,
    framing,
    hang,
    keepalive,
    never_start,
    raw,
    say,
    think,
    usage,
    wait,
    whole,
)


async def on_the_wire(provider: ScriptedProvider, body: bytes) -> tuple[bytes, str]:
    """All bytes of an answer, and how the connection ended: "reset" or "closed"."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(provider.base_url.split(":")[2].split("/")[0]))
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    got, end = b"", "closed"
    try:
        while data := await reader.read(65536):
            got += data
            if got.endswith(b"\r\n0\r\n\r\n"):
                end = "open"
                break
    except ConnectionResetError:
        end = "reset"
    writer.close()
    return got, end


CUTS = [
    ("after text", say("The tide", pieces=1) + cut(), b"The tide", "reset"),
    ("before the head", cut(), b"", "reset"),
    ("before the head, later", wait(0.0) + cut(), b"", "reset"),
    ("after the head", cut(after_bytes=0), b"HTTP/1.1 200 OK", "reset"),
    ("without a reset", say("The tide", pieces=1) + cut(reset=False), b"The tide", "closed"),
    ("inside the body, without a reset", say("The tide") + cut(9, reset=False), b"data: {", "closed"),
    ("an orderly end before the head", close(), b"", "closed"),
    ("an orderly end of the body", say("The tide", pieces=1) + close(), b"The tide", "open"),
]


@pytest.mark.parametrize(("name", "answer", "contains", "end"), CUTS, ids=[case[0] for case in CUTS])
async def test_how_a_connection_ends(hello, name, answer, contains, end) -> None:
    async with ScriptedProvider() as provider:
        provider.play(answer)
        got, ended = await on_the_wire(provider, json.dumps(hello).encode())
        await provider.idle()
    assert ended == end
    assert contains in got
    assert bool(got) == bool(contains)
    assert b"[DONE]" not in got
    assert b'"stop"' not in got
    assert (provider.requests[0].finished, provider.requests[0].closed_early) == (True, False)


@pytest.mark.parametrize("count", [0, 1, 7, 200, 500])
async def test_a_body_is_cut_after_so_many_bytes(client, count) -> None:
    async with ScriptedProvider() as provider:
        provider.play(say("The tide comes in.", pieces=3) + cut(count))
        reply = await client.ask(provider)
    assert len(reply.data) == count
    assert reply.lost


async def test_a_body_that_is_shorter_is_cut_at_its_end(client) -> None:
    async with ScriptedProvider() as provider:
        provider.play(say("The tide", pieces=1) + cut(10**6))
        reply = await client.ask(provider)
    assert (reply.text, bool(reply.lost)) == ("The tide", True)


async def test_a_large_body_arrives_before_the_cut(client) -> None:
    """The reset must not overtake what the socket has not taken yet."""
    async with ScriptedProvider() as provider:
        provider.play(say("x" * 5_000_000, pieces=1) + cut())
        reply = await client.ask(provider)
    assert (len(reply.text), bool(reply.lost)) == (5_000_000, True)


@pytest.mark.parametrize("answer", [hang(), say("The tide") + hang(), keepalive(10**6, 1e6), say("a") + wait(1e6)])
async def test_a_hang_notices_that_the_client_left(client, answer) -> None:
    async with ScriptedProvider() as provider:
        provider.play(answer)
        async with client.open(provider) as response:
            assert response.status == 200
        await provider.idle()
        assert (provider.requests[0].closed_early, provider.requests[0].finished) == (True, False)


async def test_an_answer_that_never_starts_notices_that_the_client_left(client) -> None:
    async with ScriptedProvider() as provider, asyncio.TaskGroup() as tasks:
        provider.play(never_start())
        asking = tasks.create_task(client.ask(provider))
        await provider.waiting(1)
        asking.cancel()
        await provider.idle()
        assert (provider.requests[0].closed_early, provider.requests[0].status) == (True, 0)


async def test_a_client_that_leaves_at_the_end_mark_has_not_left_early(client) -> None:
    async with ScriptedProvider() as provider:
        provider.play(say("ok"))
        async with client.open(provider) as response:
            await response.content.readuntil(b"[DONE]\n\n")
        await provider.idle()
        assert (provider.requests[0].closed_early, provider.requests[0].finished) == (False, True)


@pytest.mark.looptime
@pytest.mark.parametrize("answer", [hang(), never_start(), say("The tide") + hang(), cut(0) + usage(prompt=1)])
async def test_a_clients_time_limit_runs_on_the_loops_clock(client, looptime, answer) -> None:
    """S5.1: a first-token budget of five minutes is over at once, and neither early nor late."""
    async with ScriptedProvider() as provider:
        provider.play(answer)
        began = float(looptime)
        try:
            async with asyncio.timeout(300):
                assert (await client.ask(provider)).lost
        except TimeoutError:
            assert float(looptime) - began == pytest.approx(300, abs=0.01)
        await provider.idle()
        assert provider.requests[0].closed_early is not provider.requests[0].finished


@pytest.mark.looptime
async def test_time_before_and_after_the_head(client, looptime) -> None:
    async with ScriptedProvider() as provider:
        provider.play(wait(30, before_head=True) + say("a"), wait(30) + say("a"))
        heads: list[float] = []
        for _ in range(2):
            began = float(looptime)
            async with client.open(provider) as response:
                heads.append(float(looptime) - began)
                await response.read()
    assert heads == [pytest.approx(30, abs=0.01), pytest.approx(0, abs=0.01)]


@pytest.mark.looptime
async def test_keep_alives_are_comments_for_as_long_as_they_last(client, looptime) -> None:
    async with ScriptedProvider() as provider:
        provider.play(keepalive(40, 15, text=" OPENROUTER PROCESSING") + say("ok"))
        began = float(looptime)
        reply = await client.ask(provider)
        assert float(looptime) - began == pytest.approx(600, abs=0.1)
    assert reply.data.startswith(b": OPENROUTER PROCESSING\n\n" * 40 + b"data: {")
    assert reply.text == "ok"


FAILURES = [
    (fail(429), 429, "application/json", b'"code": "rate_limit_exceeded"'),
    (fail(429, {"Retry-After": "20"}, code="insufficient_quota"), 429, "application/json", b'"code": "insufficient_quota"'),
    (fail(500, message="it broke"), 500, "application/json", b'"message": "it broke"'),
    (fail(529, body={"type": "error"}), 529, "application/json", b'{"type": "error"}'),
    (fail(403, {"cf-mitigated": "challenge"}, "<!doctype html>"), 403, "text/html; charset=utf-8", b"<!doctype html>"),
    (fail(502, body="Bad gateway"), 502, "text/plain; charset=utf-8", b"Bad gateway"),
    (fail(500, {"Content-Type": "x/y"}, b"\xff"), 500, "x/y", b"\xff"),
    (wait(0.0) + fail(503), 503, "application/json", b'"code": "overloaded"'),
]


@pytest.mark.parametrize(("answer", "status", "content_type", "contains"), FAILURES)
async def test_a_failure_is_an_http_answer(client, answer, status, content_type, contains) -> None:
    async with ScriptedProvider() as provider:
        provider.play(answer)
        reply = await client.ask(provider)
    assert (reply.status, reply.headers["content-type"]) == (status, content_type)
    assert contains in reply.data
    assert reply.headers.get("retry-after", "20") == "20"
    assert (provider.requests[0].status, provider.requests[0].finished) == (status, True)


async def test_an_error_inside_the_stream_is_the_last_word(client) -> None:
    async with ScriptedProvider() as provider:
        provider.play(say("a") + error("too much", code=429), error("bad", name="error") + done())
        plain, named = await client.ask(provider), await client.ask(provider)
    assert plain.chunks[-1] == {"error": {"message": "too much", "type": "server_error", "param": None, "code": 429}}
    assert named.data.startswith(b'event: error\ndata: {"error":{"message":"bad"')
    assert named.data.endswith(b"\n\ndata: [DONE]\n\n")


async def test_raw_bytes_are_sent_as_they_are(client) -> None:
    recording = b'data: {"odd": 1}\r\n\r\n: x\rdata: [DONE]'
    async with ScriptedProvider() as provider:
        provider.play(raw(recording), say("a") + raw(b"data: x\n\n"), say("a") + done() + raw(b"junk"))
        alone, within, after = [await client.ask(provider) for _ in range(3)]
    assert alone.data == recording
    assert within.chunks[-3] == "x"
    assert (within.finish, within.chunks[-1]) == (["stop"], "[DONE]")
    assert after.data.endswith(b"data: [DONE]\n\njunk" + after.data.split(b"junk")[1])


async def test_a_whole_answer_is_one_document(client, hello) -> None:
    answer = think("Hm.") + say("Hello") + usage(prompt=3)
    async with ScriptedProvider() as provider:
        provider.play(answer + whole(), answer, error("no") + whole(), say("Hello") + whole() + cut(5))
        asked = await client.ask(provider)
        unasked = await client.ask(provider, {name: value for name, value in hello.items() if name != "stream"})
        failed = await client.ask(provider)
        lost = await client.ask(provider)
    for reply in (asked, unasked):
        assert reply.headers["content-type"] == "application/json"
        body = json.loads(reply.data)
        assert (body["object"], body["choices"][0]["finish_reason"]) == ("chat.completion", "stop")
        assert body["choices"][0]["message"] == {"role": "assistant", "content": "Hello", "reasoning_content": "Hm."}
        assert body["usage"]["total_tokens"] == 3 + 2 + 1
    assert json.loads(failed.data)["error"]["message"] == "no"
    assert (len(lost.data), bool(lost.lost)) == (5, True)


async def test_a_page_instead_of_a_stream(client) -> None:
    async with ScriptedProvider() as provider:
        provider.play(framing(content_type="text/html") + raw(b"<html>login</html>"))
        reply = await client.ask(provider)
    assert (reply.status, reply.headers["content-type"], reply.data) == (200, "text/html", b"<html>login</html>")


async def test_no_content_type_at_all(client) -> None:
    async with ScriptedProvider() as provider:
        provider.play(say("ok") + framing(content_type=None))
        reply = await client.ask(provider)
    assert ("content-type" in reply.headers, reply.text) == (False, "ok")


async def test_small_writes_are_reads_of_their_own(client) -> None:
    """So that a parser sees every cut, whatever the kernel would make of it."""
    async with ScriptedProvider() as provider:
        provider.play(say("grüße 😀") + framing(chunk_bytes=1))
        reply = await client.ask(provider)
    assert {len(read) for read in reply.reads} == {1}
    assert reply.text == "grüße 😀"


@pytest.mark.parametrize(("encoding", "options"), [("gzip", {"gzip": True}), ("br", {"brotli": True})])
async def test_a_compressed_body_can_be_read_as_it_comes(hello, encoding, options) -> None:
    """Each event is flushed: text before a hang is seen."""
    async with ScriptedProvider() as provider, aiohttp.ClientSession(auto_decompress=False) as session:
        provider.play(say("The tide", pieces=1) + framing(**options), say("The tide", pieces=1) + hang() + framing(**options))
        url = f"{provider.base_url}/chat/completions"
        async with session.post(url, json=hello) as response:
            assert response.headers["content-encoding"] == encoding
            data = await response.read()
            assert b"[DONE]" in (zlib.decompress(data, 31) if encoding == "gzip" else brotli.decompress(data))
        inflate = zlib.decompressobj(31).decompress if encoding == "gzip" else brotli.Decompressor().process
        async with session.post(url, json=hello) as response:
            plain = b""
            while b"The tide" not in plain:
                plain += inflate(await response.content.readany())


async def test_a_compressed_body_is_read_by_an_ordinary_client(client) -> None:
    async with ScriptedProvider() as provider:
        provider.play(
            say("ok") + framing(gzip=True), say("ok") + framing(brotli=True), fail(500, body="x") + framing(gzip=True)
        )
        replies = [await client.ask(provider) for _ in range(3)]
    assert [reply.text for reply in replies[:2]] == ["ok", "ok"]
    assert (replies[2].status, replies[2].data) == (500, b"x")


ENDS = [
    (finish("length"), ["length"], True),
    (finish(""), [""], True),
    (finish(None), [], True),
    (finish(None, done=False), [], False),
    (finish("eos", done=False), ["eos"], False),
    (framing(no_done=True), ["stop"], False),
    (finish("stop") + framing(no_done=True), ["stop"], False),
    (event({"choices": []}), ["stop"], True),
]


@pytest.mark.parametrize(("answer", "reasons", "marked"), ENDS)
async def test_how_a_stream_ends(client, answer, reasons, marked) -> None:
    async with ScriptedProvider() as provider:
        provider.play(say("ok") + answer)
        reply = await client.ask(provider)
    assert (reply.finish, reply.chunks[-1] == "[DONE]") == (reasons, marked)
