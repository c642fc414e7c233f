"""Our own tools."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from turnkeeper.tools.address_guard import AddressRefusedError, Guard, GuardedResolver
from turnkeeper.tools.builtin import builtin_tools
from turnkeeper.tools.builtin.calculator import evaluate
from turnkeeper.tools.builtin.clock import current_time_tool
from turnkeeper.tools.builtin.dice import roll_dice_tool
from turnkeeper.tools.builtin.fetch import FetchLimits, check_url, fetch
from turnkeeper.tools.builtin.files import read_file_tool
from turnkeeper.tools.builtin.memory import memory_tools
from turnkeeper.tools.builtin.search import Hit, web_search_tool
from turnkeeper.tools.context import MemoryNotes, ToolContext
from turnkeeper.tools.results import Results

LOOPBACK = FetchLimits(allowed=frozenset({"127.0.0.1"}), seconds=5, most_bytes=50_000)


def context(**fields: Any) -> ToolContext:
    async def say(text: str) -> None:
        raise AssertionError(text)

    known: dict[str, Any] = {
        "channel": "c",
        "user": "ann",
        "turn_id": "t",
        "call_id": "1",
        "say": say,
        "notes": MemoryNotes(),
        "results": Results(),
    }
    return ToolContext(**known | fields)


@pytest.mark.parametrize("zone", ["Tokyo", "tokyo", "Asia/Tokyo", "asia/tokyo"])
async def test_the_time_is_told_for_a_zone_or_a_city(zone: str) -> None:
    clock = current_time_tool(lambda: datetime(2026, 12, 1, 12, 0, tzinfo=UTC))
    assert await clock(zone) == "Tuesday, 01 December 2026, 21:00:00 (Asia/Tokyo, UTC+0900)"


async def test_an_unknown_zone_names_the_nearest() -> None:
    with pytest.raises(ValueError, match="Europe/Berlin"):
        await current_time_tool()("Berlni")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("17 + 25", "42"),
        ("2 ** 10", "1024"),
        ("(2 + 3) * 4.5", "22.5"),
        ("1234 × 77", "95018"),
        ("sqrt(16)", "4"),
        ("10 / 4", "2.5"),
        ("0.1 + 0.2", "0.3"),
        ("max(3, 9)", "9"),
        ("7 // 2", "3"),
        ("factorial(5)", "120"),
    ],
)
def test_arithmetic_is_calculated(expression: str, value: str) -> None:
    assert evaluate(expression) == value


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "2 ^ 3",
        "1 / 0",
        "9 ** 9 ** 9",
        "__import__('os')",
        "().__class__",
        "'a' * 10",
        "x + 1",
        "1 +",
        "[1,2]",
        "(" * 200,
        "10 ** 900",
        "1" * 600,
        "factorial(9999)",
        "lambda: 1",
        "True",
    ],
)
def test_what_is_no_arithmetic_is_refused_with_a_reason(expression: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        evaluate(expression)


async def test_dice_come_from_the_source_they_are_given() -> None:
    made = [await roll_dice_tool(random.Random(5))(sides=6, count=4) for _ in range(2)]
    assert made[0] == made[1]
    assert all(1 <= roll <= 6 for roll in made[0]["rolls"])
    assert "lines" in type(roll_dice_tool().bind({"sides": 1, "count": 1000})).__struct_fields__


async def test_what_is_remembered_is_recalled_in_its_channel_only() -> None:
    remember, recall = memory_tools()
    here = context()
    await remember("Ann likes tea.", here)
    await remember("The meeting is on Monday.", here)
    await remember("Ann likes tea.", here)
    assert await recall(here, "tea") == ["Ann likes tea. (from ann)"]
    assert len(await recall(here)) == 2
    assert await recall(context(channel="d", notes=here.notes)) == []
    assert remember.options.silent


def test_files_are_read_inside_open_folders_only(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / "a.txt").write_text("hello", "utf-8")
    (outside / "secret.txt").write_text("no", "utf-8")
    (inside / "link").symlink_to(outside / "secret.txt")
    (inside / "b.bin").write_bytes(b"\0\1\2")
    (inside / "big.txt").write_bytes(b"x" * 3_000_000)
    read, here = read_file_tool(), context(folders=(inside,), attachments={"note.txt": b"attached"})
    assert read("a.txt", here) == "hello"
    assert read(str(inside / "a.txt"), here) == "hello"
    assert read("note.txt", here) == "attached"
    for path in (
        "../out/secret.txt",
        "link",
        str(outside / "secret.txt"),
        "missing.txt",
        "b.bin",
        "big.txt",
        "a\0b",
        "/etc/passwd",
    ):
        with pytest.raises(ValueError, match=r"\w"):
            read(path, here)
    with pytest.raises(ValueError, match="no folder is open"):
        read("a.txt", context())


REFUSED = [
    "127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "224.0.0.1", "255.255.255.255",
    "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::7f00:1", "::7f00:1", "2002:7f00:1::", "2001:0:4136:e378:8000:63bf:80ff:fffe", "192.0.2.1", "not an address",
]  # fmt: skip


@pytest.mark.parametrize("address", REFUSED)
def test_addresses_that_are_not_public_are_refused_in_every_form(address: str) -> None:
    """S16.2"""
    with pytest.raises(AddressRefusedError):
        Guard().check(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "2606:4700:4700::1111", "64:ff9b::808:808"])
def test_public_addresses_are_not(address: str) -> None:
    Guard().check(address)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x.example/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://",
        "x.example",
        "http://user:pass@x.example/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://0177.0.0.1/",
        "http://１２７.０.０.１/",
        "http://a b/",
        "http://x.example:99999/",
        "http://[::1",
        "http://" + "x" * 3000,
    ],
)
def test_addresses_that_may_not_be_fetched_are_refused_before_a_socket_opens(url: str) -> None:
    """S16.2"""
    with pytest.raises(ValueError, match=r"\w"):
        check_url(url)


@pytest.mark.parametrize(
    "host",
    [
        "[::ffff:a9fe:a9fe]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[::7f00:1]",
        "127.0.0.1",
        "localhost",
        "169.254.169.254",
    ],
)
async def test_a_fetch_of_a_private_address_opens_no_connection(host: str) -> None:
    with pytest.raises(ValueError, match="not on the public internet"):
        await fetch(f"http://{host}:9/", FetchLimits(seconds=5))


class Names:
    """A resolver that knows one name."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[dict[str, Any]]:
        return [{"hostname": host, "host": one, "port": port, "family": 2, "proto": 6, "flags": 0} for one in self.addresses]

    async def close(self) -> None:
        """Nothing to close."""


async def test_one_bad_address_among_several_refuses_the_name() -> None:
    """S16.2"""
    with pytest.raises(AddressRefusedError):
        await GuardedResolver(Guard(), Names("93.184.216.34", "10.0.0.1")).resolve("x.example")  # type: ignore[arg-type]
    assert await GuardedResolver(Guard(), Names("93.184.216.34")).resolve("x.example")  # type: ignore[arg-type]


@pytest.fixture
async def site() -> AsyncIterator[str]:
    async def page(request: web.Request) -> web.StreamResponse:
        match request.match_info["name"]:
            case "page":
                return web.Response(
                    text="<html><head><style>x{}</style></head><body><nav>menu</nav><article><h1>Tides</h1><p>Twice a day the water comes in, and twice it goes out again.</p></article><script>alert(1)</script></body></html>",
                    content_type="text/html",
                )
            case "json":
                return web.json_response({"a": 1})
            case "big":
                return web.Response(body=b"x" * 100_000, content_type="text/plain")
            case "binary":
                return web.Response(body=b"\x89PNG", content_type="image/png")
            case "missing":
                raise web.HTTPNotFound
            case "inside":
                raise web.HTTPFound("http://10.0.0.1/")
            case "meta":
                raise web.HTTPFound("http://[::ffff:a9fe:a9fe]/latest")
            case "loop":
                raise web.HTTPFound("/loop")
            case "there":
                raise web.HTTPFound("/page")
            case _:
                await asyncio.Event().wait()
                raise AssertionError

    app = web.Application()
    app.router.add_get("/{name}", page)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    server = web.TCPSite(runner, "127.0.0.1", 0)
    await server.start()
    host, port = runner.addresses[0][:2]
    yield f"http://{host}:{port}"
    await runner.cleanup()


async def test_a_page_is_fetched_as_text(site: str) -> None:
    page = await fetch(f"{site}/there", LOOPBACK)
    assert page.url == f"{site}/page"
    assert "Twice a day the water comes in" in page.text
    assert "alert" not in page.text
    assert (await fetch(f"{site}/json", LOOPBACK)).text == '{"a": 1}'


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("big", "larger than 48 KB"),
        ("binary", "not text but image/png"),
        ("missing", "answered 404"),
        ("inside", "not on the public"),
        ("meta", "not on the public"),
        ("loop", "more than 5 times"),
    ],
)
async def test_what_can_not_be_fetched_is_one_clear_sentence(name: str, said: str, site: str) -> None:
    """S16.2: size, type and redirect limits; each redirect is checked."""
    with pytest.raises(ValueError, match=said):
        await fetch(f"{site}/{name}", LOOPBACK)


async def test_a_page_that_never_comes_is_given_up(site: str) -> None:
    with pytest.raises(ValueError, match="within 0.2 seconds"):
        await fetch(f"{site}/never", FetchLimits(allowed=LOOPBACK.allowed, seconds=0.2))


async def test_a_search_is_asked_in_a_thread_and_its_failures_are_sentences() -> None:
    search = web_search_tool(lambda query, most: [Hit(f"{query} {n}", "https://x.example", "text") for n in range(9)])
    assert [one["title"] for one in await search("tides", 3)] == ["tides 0", "tides 1", "tides 2"]

    def broken(query: str, most: int) -> list[Hit]:
        raise RuntimeError("202 Ratelimit")

    with pytest.raises(ValueError, match="the search failed"):
        await web_search_tool(broken)("tides")


def test_each_tool_has_a_description_and_described_parameters() -> None:
    import json

    for made in builtin_tools(online=True):
        assert made.spec.description
        for parameter in json.loads(made.spec.parameters)["properties"].values():
            assert parameter["description"]
